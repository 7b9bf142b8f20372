"""How a run stands: best so far, trials as they come, what is being tried, what is left."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ascar.errors import StudyError
from ascar.history import RunState
from ascar.results.encode import json_ready
from ascar.results.trial import TrialState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.history import History, Run
    from ascar.results.trial import Trial

_RECENT = 300
_READINGS = 240


def standing(history: History, run: Run, now: datetime | None = None) -> dict[str, Any]:
    """How a run stands, JSON-ready.

    Time left counts what trials took against the budget, as the search itself does; evaluations left are that
    over the median of the last trials, and no more than `[stop] trials` leaves.

    Args:
        history: the history that holds the run.
        run: the run.
        now: the time; None: this moment.
    """
    summary = next((one for one in history.runs(run.name) if one.id == run.id), None)
    trials = run.trials(readings=False)
    state = RunState.INTERRUPTED if summary is None else summary.state
    alive = state is RunState.RUNNING
    current = run.trial(run.next_number() - 1) if alive else None
    if current is not None and current.state is not TrialState.RUNNING:
        current = None
    steps = run.best_so_far()
    best = next((one for one in trials if steps and one.number == steps[-1].number), None)
    durations = [sum(trial.stage_s.values()) for trial in trials]
    elapsed_s = sum(durations)
    since_s = 0.0 if current is None else _since_s(current.started_at, now or datetime.now(UTC))
    budget_s, trials_max = _limits(run)
    left_s = None if budget_s is None or not alive else max(0.0, budget_s - elapsed_s - since_s)
    verdict = None if summary is None else summary.verdict
    return {
        "kind": "run",
        "run_id": run.id,
        "study": run.name,
        "state": state.value,
        "objective": run.objective.text,
        "minimize": run.objective.sign < 0,
        "started_at": run.started_at,
        "budget_s": budget_s,
        "elapsed_s": elapsed_s + since_s,
        "left_s": left_s,
        "evaluations": len(trials),
        "evaluations_left": _evaluations_left(trials, durations, left_s, trials_max) if alive else None,
        "failed": sum(trial.state is TrialState.FAILED for trial in trials),
        "best_so_far": [
            {"number": step.number, "elapsed_s": step.elapsed_s, "score": step.score} for step in steps
        ],
        "best": None if best is None else _trial(run, best),
        "trying": None if current is None else _trying(run, current, since_s),
        "trials": [
            {
                "number": one.number,
                "purpose": one.purpose.value,
                "state": one.state.value,
                "score": json_ready(one.score),
                "unmet": bool(one.unmet),
            }
            for one in trials[-_RECENT:]
        ],
        "trials_before": max(0, len(trials) - _RECENT),
        "verdict": None if verdict is None else {"kind": verdict.kind, "note": verdict.note},
    }


def _trying(run: Run, trial: Trial, since_s: float) -> dict[str, Any]:
    """The running trial, with its readings so far, evenly thinned out."""
    readings = run.latest_readings(trial.number)
    step = max(1, -(-len(readings) // _READINGS))
    return {**_trial(run, trial), "since_s": since_s, "readings": readings[::-1][::step][::-1]}


def _trial(run: Run, trial: Trial) -> dict[str, Any]:
    """A trial and what in its configuration somebody chose."""
    measurement = trial.measurement
    return {
        "number": trial.number,
        "purpose": trial.purpose.value,
        "score": json_ready(trial.score),
        "ci_low": None if measurement is None else json_ready(measurement.ci_low),
        "ci_high": None if measurement is None else json_ready(measurement.ci_high),
        "chosen": {
            name: json_ready(trial.configuration[name]) for name in run.space.departures(trial.configuration)
        },
    }


def _evaluations_left(
    trials: Sequence[Trial], durations: Sequence[float], left_s: float | None, trials_max: int | None
) -> int | None:
    found: list[int] = []
    if left_s is not None and durations:
        typical_s = statistics.median(durations[-20:])
        found += [int(left_s / typical_s)] if typical_s > 0 else []
    if trials_max is not None:
        found.append(max(0, trials_max - sum(trial.purpose.of_search for trial in trials)))
    return min(found) if found else None


def _limits(run: Run) -> tuple[float | None, int | None]:
    """Seconds and search trials that the study allows; None: not known any more."""
    try:
        study = run.study
    except StudyError:
        return None, None
    return study.budget_s, study.stop.trials


def _since_s(started_at: str, now: datetime) -> float:
    try:
        return max(0.0, (now - datetime.fromisoformat(started_at)).total_seconds())
    except (TypeError, ValueError):
        return 0.0
