"""Runs of a study in the history: which of its trials tell of variation, and their readings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar.analysis.variation_runs import FrameLayout
from ascar.errors import EnvironmentLacks, StudyError
from ascar.history.table import trials_table
from ascar.results.measurement import Series
from ascar.results.trial import Purpose, TrialState
from ascar.systems import system_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.history import Run
    from ascar.objective import Objective
    from ascar.results.trial import Trial
    from ascar.study import Study

SETUP = "#setup"
"""The column that numbers set-ups in the order of time."""

_LARGEST = 1e100  # what is done in a run is a product of the two, and a sum of many

# A search measures a configuration again because its score was good, so the score it has from the search is
# too good by what chance added; runs that reuse the state of the run before are no repetitions.
_LEFT_OUT = (Purpose.SEARCH, Purpose.BIAS)


def unselected(trial: Trial) -> bool:
    """Whether a trial counts as one of several runs of its configuration."""
    return trial.state is TrialState.COMPLETE and trial.purpose not in _LEFT_OUT


def unselected_rows(frame: pl.DataFrame) -> pl.Expr:
    """The same of the rows of a table of trials."""
    kept = pl.col("trial.state") == TrialState.COMPLETE.value
    if "trial.purpose" in frame.columns:
        kept &= pl.col("trial.purpose").is_in([purpose.value for purpose in _LEFT_OUT]).not_()
    return kept


def trial_material(run: Run, trials: Sequence[Trial] | None = None) -> tuple[pl.DataFrame, FrameLayout]:
    """A frame of a run's trials, and what its columns are.

    Args:
        run: a run of the history.
        trials: all of its trials with their readings; None: they are read.
    """
    every = run.trials() if trials is None else trials
    kept = [trial for trial in every if unselected(trial)]
    frame = trials_table(kept)
    names = tuple(name for name in run.space.names if name in frame.columns)
    fresh = [
        trial.change is None or "format" in trial.change.step_s or not trial.change.filled for trial in kept
    ]
    frame = frame.with_columns(pl.Series(SETUP, np.cumsum(np.array(fresh, np.int64)), pl.Int64))
    rate, series = _over_time(kept, run.objective)
    dated = bool(kept) and all(trial.started_at for trial in kept)
    return frame, FrameLayout(
        "trial.score",
        names,
        "trial.started_at" if dated else "trial.number",
        SETUP,
        series if any(one is not None for one in series) else (),
        run.objective.unit,
        rate,
        f"readings over time are of {rate}" if rate != run.objective.unit and rate else "",
        lazily=_lazily(run),
    )


def _over_time(trials: Sequence[Trial], objective: Objective) -> tuple[str, list[Series | None]]:
    """The objective over time; where it is no rate, e.g. a total, the one series that was recorded."""
    known = [objective.series(trial.series, trial.metrics) for trial in trials]
    name = objective.unit
    if all(one is None for one in known):
        names = {name for trial in trials for name in trial.series}
        if len(names) != 1:
            return "", list(known)
        (name,) = names
        known = [trial.series.get(name) for trial in trials]
    return name, [None if one is None else readings(one.seconds, one.values) for one in known]


def _lazily(run: Run) -> bool | None:
    try:
        return initialises_lazily(run.study)
    except StudyError:  # of an older version
        return None


def initialises_lazily(study: Study) -> bool | None:
    """Whether work that a change left behind disturbs the load; None if the system does not say."""
    try:
        return system_of(study.target).initialises_lazily
    except (StudyError, EnvironmentLacks):  # of a kind that is not installed here
        return None


def readings(seconds: NDArray[np.float64], values: NDArray[np.float64]) -> Series | None:
    """A series without what is not a number; None where the instants do not rise from above 0."""
    if seconds.shape != values.shape:
        return None
    finite = np.isfinite(seconds) & np.isfinite(values)
    seconds, values = seconds[finite], values[finite]
    if not len(seconds) or seconds[0] <= 0 or (np.diff(seconds) <= 0).any():
        return None
    if max(np.abs(values).max(), seconds[-1]) > _LARGEST:
        return None
    return Series(seconds, values)
