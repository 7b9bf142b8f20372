"""Trials as a Polars frame: what every figure and every analysis starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ascar.history.table import trials_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.objective import Objective
    from ascar.results.trial import Trial


def trials_frame(trials: Sequence[Trial], objective: Objective) -> pl.DataFrame:
    """Trials as a frame, in their order, with what follows from the order.

    Columns beside those of `ascar.history.table.trials_table`:
        trial.usable: Boolean, complete, scored and no constraint broken.
        trial.elapsed_s: Float64, seconds that this and all earlier trials took; pauses of a resumed study do
            not count (Cao 5.2: set-up and benchmarking time).
        trial.best_so_far: Float64, the best usable score up to and with this trial, verification left out;
            null before the first.

    Args:
        trials: the trials of one run, in the order of their numbers.
        objective: says which score is better.
    """
    best: list[float | None] = []
    current: float | None = None
    for trial in trials:
        score = trial.score if trial.usable and not trial.purpose.of_comparison else None
        if score is not None and (current is None or objective.better(score, current)):
            current = score
        best.append(current)
    return trials_table(trials).with_columns(
        pl.Series("trial.usable", [trial.usable for trial in trials], pl.Boolean),
        pl.col("trial.seconds").cum_sum().alias("trial.elapsed_s"),
        pl.Series("trial.best_so_far", best, pl.Float64),
    )
