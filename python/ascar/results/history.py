"""Results of `ascar history`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ascar.results.measurement import Count
from ascar.results.outcome import Counts, Outcome
from ascar.results.pareto import ParetoPoint
from ascar.results.trial import Trial


class RunListed(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list.

    Attributes:
        pid: the process that runs it now.
        counts: trials by how they ended.
        best_score: the best single trial's, verification left out.
        verdict: null while the run has not ended.
        gain_relative: by the last comparison; null without one, and where scores are not all above
            zero.
        difference: in the objective's unit, above zero is better.
    """

    run_id: Count
    study: str
    state: Literal["running", "complete", "interrupted"]
    pid: Count | None
    objective: str
    started_at: str
    finished_at: str | None
    counts: Counts
    best_score: float | None
    verdict: Literal["improved", "default-is-fine", "not-verified"] | None
    gain_relative: float | None
    difference: float | None


class HistoryLsResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-ls/1",
):
    """Every run, the latest first."""

    runs: tuple[RunListed, ...]


class HistoryShowResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-show/1",
):
    """A run, with its trials."""

    run_id: Count
    study: str
    state: Literal["running", "complete", "interrupted"]
    objective: str
    started_at: str
    versions: dict[str, str]
    machine: dict[str, Any]
    outcome: Outcome
    trials: tuple[Trial, ...]


class HistoryParetoResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-pareto/1",
):
    """Configurations that no other beats in one objective without losing in another.

    Attributes:
        configurations: that were measured and met the constraints.
        points: the set, the best in the first objective first.
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
        left_out: runs that cannot be read.
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
    """The numbers that the added runs got."""

    runs: tuple[Count, ...]
    file: str


class HistoryPurgeResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/history-purge/1",
):
    """Which runs were removed."""

    runs: tuple[Count, ...]
    removed: Count
