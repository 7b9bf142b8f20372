"""Static windows and gaps over a grid: how throughput depends on them, and what the best is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ascar import _core
from ascar.errors import InputError
from ascar.results.cluster import FIGURES, StaticGain, StaticSetting
from ascar.simulation.batch import BatchProgress, run_many, seeded
from ascar.simulation.controlled import with_control
from ascar.simulation.explanation import shown
from ascar.simulation.spread import CONFIDENCE, spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.results.cluster import ClusterOutcome
    from ascar.simulation.scenario import Scenario

_FIGURE = "throughput_mb_per_s"


@dataclass(frozen=True, slots=True)
class Grid:
    """What is tried.

    Attributes:
        windows: requests in flight of a stream.
        taus_us: least gaps between its requests.
        seeds: runs of each.
        figure: the figure that points are compared by; larger is better.
    """

    windows: tuple[float, ...]
    taus_us: tuple[float, ...] = (0.0,)
    seeds: int = 1
    figure: str = _FIGURE


@dataclass(frozen=True, slots=True)
class Swept:
    """A grid over one scenario.

    Attributes:
        scenario: the scenario as it is.
        baseline: the scenario's own window and gap.
        points: the grid, gaps outside, windows inside.
        best: the point with the largest mean.
        gain: the gain of the best point.
        events: the number of events of all runs.
    """

    scenario: Scenario
    baseline: StaticSetting
    points: tuple[StaticSetting, ...]
    best: StaticSetting
    gain: StaticGain
    events: int


def sweep(
    scenario: Scenario,
    grid: Grid,
    *,
    threads: int | None = None,
    listener: Callable[[BatchProgress], None] | None = None,
) -> Swept:
    """Run a scenario with every window and gap of a grid; then the best and the scenario as it is once more.

    The best of many is also the luckiest: its gain is therefore that of fresh seeds.

    Args:
        scenario: the scenario; its controllers must be "fixed".
        grid: the windows and gaps to try.
        threads: runs at a time; None: one a core.
        listener: told how far it has come, of both parts together.

    Raises:
        InputError: a controller is not "fixed", or the grid is empty.
        ScenarioError: a point is out of the bounds of the scenario's control.
    """
    for control in scenario.controls:
        if control.controller != "fixed":
            raise InputError(
                f"control.controller = {control.controller!r}: must be 'fixed' for static windows to hold"
            )
    if grid.figure not in FIGURES:
        raise InputError(f"figure = {shown(grid.figure)}: must be one of {', '.join(FIGURES)}")
    places = [(window, tau_us) for tau_us in grid.taus_us for window in grid.windows]
    if not places:
        raise InputError("the grid has no point: give a window at least")
    variants = [with_control(scenario, window=window, tau_us=tau_us) for window, tau_us in places]
    wanted = [one for variant in (scenario, *variants) for one in seeded(variant, grid.seeds)]
    extra = 2 * grid.seeds
    outcomes = run_many(wanted, threads=threads, listener=_part(listener, 0, len(wanted), extra))
    runs = [outcomes[start : start + grid.seeds] for start in range(0, len(outcomes), grid.seeds)]
    own = scenario.control
    baseline = StaticSetting(own.window, own.tau_us, spread_of(runs[0]))
    points = tuple(
        StaticSetting(window, tau_us, spread_of(group))
        for (window, tau_us), group in zip(places, runs[1:], strict=True)
    )
    best = max(points, key=lambda point: point.figures[grid.figure].mean)
    fresh = [
        msgspec.structs.replace(one, seed=one.seed + grid.seeds)
        for variant in (variants[points.index(best)], scenario)
        for one in seeded(variant, grid.seeds)
    ]
    again = run_many(fresh, threads=threads, listener=_part(listener, len(wanted), extra, 0))
    gain = _gain(again[: grid.seeds], again[grid.seeds :], grid.figure)
    events = sum(one.events for one in (*outcomes, *again))
    return Swept(scenario, baseline, points, best, gain, events)


def _gain(best: Sequence[ClusterOutcome], baseline: Sequence[ClusterOutcome], figure: str) -> StaticGain:
    a = np.array([one.figure(figure) for one in best], np.float64)
    b = np.array([one.figure(figure) for one in baseline], np.float64)
    relative = float(a.mean() / b.mean() - 1) if b.mean() else 0.0
    if len(a) < 2 or not b.mean() or not (a.var() or b.var()):
        return StaticGain(relative, None, None, len(a))
    found = _core.welch(a, b, CONFIDENCE)
    low, high = found.ratio_ci_low, found.ratio_ci_high
    return StaticGain(relative, None if low is None else low - 1, None if high is None else high - 1, len(a))


def _part(
    listener: Callable[[BatchProgress], None] | None, before: int, now: int, after: int
) -> Callable[[BatchProgress], None] | None:
    """A listener of one part of the work that speaks of all of it."""
    if listener is None:
        return None

    whole = before + now + after

    def tell(standing: BatchProgress) -> None:
        listener(BatchProgress(before + standing.done, whole, (before + standing.share * now) / whole))

    return tell
