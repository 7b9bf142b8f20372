"""Variation over time within runs (Cao 6.5 and 6.6.3.1): cumulative, windowed and instantaneous throughput.

Readings are rates, each the mean since the one before; what was done by an instant is their integral, so that
windows of any length can be taken of readings at any instants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.analysis.variation_runs import Runs
    from ascar.results.measurement import Series

_READINGS_MIN = 4
_WINDOWS_SHOWN = (20, 8, 4, 2, 1)
_LACKING = 1e-3


def done_by(series: Series) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Instants from 0 (n + 1,) and what was done by each."""
    at = np.concatenate([[0.0], series.seconds])
    return at, np.concatenate([[0.0], np.cumsum(series.values * np.diff(at))])


def cumulative(series: Series) -> NDArray[np.float64]:
    """(n,) the mean rate since the start, at each reading's instant (section 6.5, Fig. 6.1)."""
    at, done = done_by(series)
    return done[1:] / at[1:]


def settled_s(series: Series, tolerance: float) -> float:
    """The first instant from which on the cumulative throughput stays within a share of its end."""
    rates = cumulative(series)
    beyond = np.flatnonzero(np.abs(rates - rates[-1]) > tolerance * abs(rates[-1]))
    return float(series.seconds[beyond[-1] + 1]) if len(beyond) else 0.0


def throughput_n(series: Series, window_s: float) -> NDArray[np.float64]:
    """Throughput-N: the mean rate of each full window of so many seconds (section 6.2)."""
    at, done = done_by(series)
    # Clocks jitter: the last window may lack a thousandth of itself.
    count = int(float(at[-1]) / window_s + _LACKING)
    edges = np.arange(count + 1, dtype=np.float64) * window_s
    return np.diff(np.interp(edges, at, done)) / window_s


def parts(series: Series, count: int) -> NDArray[np.float64]:
    """(count,) the mean rate of each of equally long parts of the run."""
    at, done = done_by(series)
    end_s = float(at[-1])
    edges = np.linspace(0, end_s, count + 1, dtype=np.float64)
    return np.diff(np.interp(edges, at, done)) / (end_s / count)


@dataclass(frozen=True, slots=True)
class RunLength:
    """How long runs of a group must be.

    Attributes:
        group: the group's name.
        runs: the number of runs that have enough readings.
        run_s: the median length of these runs.
        median_s: seconds after which half of them stay within the tolerance of their ends.
        most_s: 90% of them.
        late: share that settles in the second half of the run only; such runs may be too short.
    """

    group: str
    runs: int
    run_s: float
    median_s: float
    most_s: float
    late: float


def settling(runs: Runs, names: Sequence[str], of: NDArray[np.intp], tolerance: float) -> list[RunLength]:
    """Of every group with readings (Fig. 6.1 in numbers)."""
    found: list[RunLength] = []
    owner = runs.owner
    for place, name in enumerate(names):
        mine = [
            one for one, row in zip(runs.series, owner, strict=False) if of[row] == place and _enough(one)
        ]
        if not mine:
            continue
        at = np.array([settled_s(one, tolerance) for one in mine if one is not None])
        long_s = np.array([float(one.seconds[-1]) for one in mine if one is not None])
        middle, most = np.quantile(at, [0.5, 0.9])
        found.append(
            RunLength(
                name, len(at), float(np.median(long_s)), float(middle), float(most),
                float(np.mean(at > long_s / 2)),
            )
        )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Windowed:
    """Relative ranges over runs of the windows of one length (Fig. 6.8).

    Attributes:
        group: the name of the group of configurations.
        window_s: length of the windows.
        configurations: the number of configurations that have at least two runs as long as the window.
        idle: windows left out because nothing was done in them in any run.
        ranges: float64, one a window and configuration, ascending.
    """

    group: str
    window_s: float
    configurations: int
    idle: int
    ranges: NDArray[np.float64]

    @property
    def quantiles(self) -> tuple[float, float, float]:
        """Median, 90% and greatest."""
        median, most = np.quantile(self.ranges, [0.5, 0.9])
        return float(median), float(most), float(self.ranges[-1])


def windowed(
    runs: Runs, names: Sequence[str], of: NDArray[np.intp], windows_s: Sequence[float] = ()
) -> list[Windowed]:
    """By group and window; windows as asked for, or from a single reading to the whole run."""
    chosen = [place for place in range(len(runs)) if _pair(runs, place)]
    if not chosen:
        return []
    lengths = tuple(windows_s) or _lengths(runs, chosen)
    found: list[Windowed] = []
    for group, name in enumerate(names):
        mine = [place for place in chosen if of[place] == group]
        for window_s in lengths:
            ranges: list[float] = []
            idle = used = 0
            for place in mine:
                series = [one for one in runs.series[runs.of(place)] if one is not None and _enough(one)]
                long = [throughput_n(one, window_s) for one in series]
                long = [one for one in long if len(one)]
                if len(long) < 2:
                    continue
                used += 1
                together = np.stack([one[: min(map(len, long))] for one in long])
                means = np.abs(together.mean(0))
                idle += int((means == 0).sum())
                ranges += (np.ptp(together, 0)[means > 0] / means[means > 0]).tolist()
            if ranges:
                found.append(Windowed(name, window_s, used, idle, np.sort(np.array(ranges))))
    return found


def _lengths(runs: Runs, chosen: Sequence[int]) -> tuple[float, ...]:
    """From the interval of readings to the shortest run, about five, each a whole number of readings."""
    series = [
        one for place in chosen for one in runs.series[runs.of(place)] if one is not None and _enough(one)
    ]
    step_s = float(np.median([np.median(np.diff(one.seconds)) for one in series]))
    # One run that was cut off must not hide the windows of all others.
    run_s = float(np.quantile([one.seconds[-1] for one in series], 0.1))
    readings = max(1, int(run_s / step_s + 0.01))
    counts = sorted({max(1, round(readings / share)) for share in _WINDOWS_SHOWN})
    digits = 3 - int(np.floor(np.log10(step_s)))
    return tuple(round(count * _rounded(step_s, readings, run_s), digits) for count in counts)


def _rounded(step_s: float, readings: int, run_s: float) -> float:
    """The interval without the jitter of clocks, where the run still has room for as many."""
    nice = float(f"{step_s:.2g}")
    return nice if nice * readings <= run_s * 1.001 else step_s


def _pair(runs: Runs, place: int) -> bool:
    return bool(runs.series) and sum(_enough(one) for one in runs.series[runs.of(place)]) > 1


def _enough(one: Series | None) -> bool:
    return one is not None and len(one) >= _READINGS_MIN
