"""The list of all runs: each with its counts and its best score, or with what is damaged of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ascar.history import schema
from ascar.history.conclusion import verdict_of
from ascar.history.damage import damage_of_run, damage_of_trials, wrong_trial_words
from ascar.history.kinds import RunKind, RunState
from ascar.history.lock import holder, lock_name
from ascar.results.trial import Purpose, TrialState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.results.verdict import Verdict

_run, _trial = schema.run, schema.trial
_Scores = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A line of the history's list.

    Attributes:
        id: the run's.
        name: the study's.
        state: a run that claims to be running but whose process is gone is interrupted.
        pid: the process that runs it now, or None.
        objective: the objective of the study.
        started_at: ISO 8601, UTC.
        finished_at: the same; empty while it runs.
        counts: trials by how they ended.
        best_score: the best usable trial's, verification left out; None where there is none.
        verdict: the verdict of the last comparison; None while the run has not ended.
        kind: the loop that made the run.
    """

    id: int
    name: str
    state: RunState
    pid: int | None
    objective: str
    started_at: str
    finished_at: str
    counts: Mapping[TrialState, int]
    best_score: float | None
    verdict: Verdict | None = None
    kind: RunKind = RunKind.STUDY


@dataclass(frozen=True, slots=True)
class DamagedRun:
    """A line of the history's list in place of what cannot be believed.

    Attributes:
        id: the run's.
        name: the study's, as the row has it now.
        damage: what is damaged: the run, or its trials and columns.
    """

    id: int
    name: str
    damage: tuple[str, ...]


def list_runs(
    connection: sa.Connection, locks: Path, name: str | None, *, trials_checked: bool
) -> list[RunSummary | DamagedRun]:
    """Every run, the latest first.

    Args:
        connection: a transaction.
        locks: where the locks of runs lie.
        name: only this study's.
        trials_checked: whether every trial is held against its checksum; ten thousand take about a second.
    """
    only = [_run.c.name == name] if name else []
    rows = connection.execute(sa.select(_run).where(*only).order_by(_run.c.id.desc())).all()
    listed: list[RunSummary | DamagedRun] = []
    counts, scores = _counts(connection), _scores(connection)
    for row in rows:
        damage = damage_of_run(connection, row)
        if trials_checked:
            damage += damage_of_trials(connection, row.id, readings=False)
        else:
            damage += wrong_trial_words(connection, row.id)
        if damage:
            listed.append(DamagedRun(row.id, str(row.name), tuple(damage)))
            continue
        by_state = {TrialState(state): count for state, count in counts.get(row.id, {}).items()}
        listed.append(_summary(row, locks, by_state, scores.get(row.id, (None, None))))
    return listed


def process_of(row: Any, locks: Path) -> int | None:
    """The process that runs a run now; None where none does."""
    return holder(locks, lock_name(row.kind, row.name, row.digest))


def _counts(connection: sa.Connection) -> dict[int, dict[str, int]]:
    columns = (_trial.c.run_id, _trial.c.state)
    found: dict[int, dict[str, int]] = {}
    for run_id, state, count in connection.execute(sa.select(*columns, sa.func.count()).group_by(*columns)):
        found.setdefault(run_id, {})[state] = count
    return found


def _scores(connection: sa.Connection) -> dict[int, _Scores]:
    """The lowest and the highest score of each run's usable trials."""
    compared = [purpose.value for purpose in Purpose if purpose.of_comparison]
    usable = (_trial.c.state == TrialState.COMPLETE.value) & _trial.c.purpose.not_in(compared)
    extremes = (
        sa.select(_trial.c.run_id, sa.func.min(_trial.c.score), sa.func.max(_trial.c.score))
        .where(usable, _trial.c.unmet == "[]")
        .group_by(_trial.c.run_id)
    )
    return {run_id: (low, high) for run_id, low, high in connection.execute(extremes)}


def _summary(row: Any, locks: Path, counts: Mapping[TrialState, int], scores: _Scores) -> RunSummary:
    state = RunState(row.state)
    pid = process_of(row, locks) if state is RunState.RUNNING else None
    return RunSummary(
        id=row.id,
        name=row.name,
        state=RunState.INTERRUPTED if state is RunState.RUNNING and pid is None else state,
        pid=pid,
        objective=row.objective,
        started_at=row.started_at,
        finished_at=row.finished_at,
        counts=counts,
        best_score=scores[0] if row.objective.startswith("minimize") else scores[1],
        verdict=verdict_of(row.kind, row.outcome, f"run {row.id}"),
        kind=RunKind(row.kind),
    )
