"""Results of `ascar history`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ascar.results.measurement import Count
from ascar.results.outcome import Counts, Outcome
from ascar.results.pareto import ParetoPoint
from ascar.results.rule_search import SharpSearchResult
from ascar.results.rule_sets import SharpLearnResult
from ascar.results.session import SessionOutcome
from ascar.results.trial import Trial
from ascar.results.verdict import VerdictKind


class RunListed(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list.

    Attributes:
        run_id: the number of the run.
        kind: the loop that made the run; null for a damaged run.
        study: the name of the study, the session or the rules' file.
        state: the state of the run; nothing else of a damaged run is listed but its name.
        pid: the process that executes the run now; null if none does.
        objective: the objective of the study.
        started_at: the start of the run: ISO 8601, UTC.
        finished_at: the end of the run; null before it.
        counts: the number of trials by state.
        best_score: the best score of a single trial, verification excluded.
        verdict: the kind of verdict; null before the end of the run.
        gain_relative: the gain by the last comparison; null without one, and if some scores are not above
            zero.
        difference: the difference by the last comparison, in the objective's unit; above zero is better.
        damage: the damaged parts of the run: the run, trials, columns.
    """

    run_id: Count
    kind: Literal["study", "session", "search", "learning"] | None
    study: str
    state: Literal["running", "complete", "interrupted", "damaged"]
    pid: Count | None
    objective: str
    started_at: str
    finished_at: str | None
    counts: Counts
    best_score: float | None
    verdict: VerdictKind | None
    gain_relative: float | None
    difference: float | None
    damage: tuple[str, ...] = ()


class HistoryLsResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-ls/1",
):
    """Every run, the latest first.

    Attributes:
        runs: the runs, the latest first.
    """

    runs: tuple[RunListed, ...]


class HistoryShowResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-show/1",
):
    """A run, with its trials.

    Attributes:
        run_id: the number of the run.
        kind: the loop that made the run.
        study: the name of the study, the session or the rules' file.
        state: the state of the run.
        objective: the objective of the run.
        started_at: the start of the run: ISO 8601, UTC.
        imported: the file that the run was imported from; null if it was made in this history.
        versions: the versions of ascar and of the programs that it used.
        machine: the description of the machine.
        outcome: the outcome of a study's run; null for another kind.
        session: the outcome of a session; null for another kind, and before the end.
        search: the result of a search for rules; null for another kind, and before the end.
        learning: the result of learning rules; null for another kind, and before the end.
        trials: the trials of a study, in order.
    """

    run_id: Count
    kind: Literal["study", "session", "search", "learning"]
    study: str
    state: Literal["running", "complete", "interrupted"]
    objective: str
    started_at: str
    versions: dict[str, str]
    machine: dict[str, Any]
    outcome: Outcome | None
    session: SessionOutcome | None
    search: SharpSearchResult | None
    learning: SharpLearnResult | None
    trials: tuple[Trial, ...]
    imported: str | None = None


class HistoryParetoResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-pareto/1",
):
    """Configurations that no other beats in one objective without losing in another.

    Attributes:
        run_id: the number of the run.
        study: the name of the study.
        objectives: the objectives, as text.
        configurations: the number of configurations that were measured and met the constraints.
        points: the Pareto set, the best in the first objective first.
        default: the point of the default configuration; null if it was not measured.
    """

    run_id: Count
    study: str
    objectives: tuple[str, ...]
    configurations: Count
    points: tuple[ParetoPoint, ...]
    default: ParetoPoint | None


class HistoryExportResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-export/1",
):
    """Which runs were written where.

    Attributes:
        runs: the numbers of the runs in the file.
        left_out: the numbers of runs that cannot be read.
        file: the file that was written.
    """

    runs: tuple[Count, ...]
    left_out: tuple[Count, ...]
    file: str


class HistoryImportResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-import/1",
):
    """The numbers that the added runs got.

    Attributes:
        runs: the numbers that the imported runs got.
        file: the file that was read.
    """

    runs: tuple[Count, ...]
    file: str


class HistoryPurgeResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-purge/1",
):
    """Which runs were removed.

    Attributes:
        runs: the numbers of the removed runs.
        removed: the number of removed runs.
    """

    runs: tuple[Count, ...]
    removed: Count


class HistoryCheckResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-check/1",
):
    """What of the history is not as it was written.

    Attributes:
        damaged: the damaged runs, trials and readings, and what the database itself finds.
    """

    damaged: tuple[str, ...]
