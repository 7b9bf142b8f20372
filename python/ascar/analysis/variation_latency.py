"""Variation of latencies from recorded percentiles (Cao 6.6.3.2).

Where only some percentiles of a run are known, so is its distribution function at these and nowhere else.
Between them it is taken as straight over the logarithm of the latency; below the least of them nothing is
known, and the function counts as that percentile there. So distances are those of the known parts, and at
most 1 less the least percentile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ascar.analysis.variation import Estimate, latency_throughput_correlations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.analysis.variation_runs import Runs
    from ascar.analysis.variation_summary import Spread

_COLUMN = re.compile(
    r"(?:metric\.)*(?:(?P<what>.+?)_)?latency_(?P<unit>ns|us|ms|s)_(?:p(?P<p>\d{1,2}(?:_\d+)?)|(?P<max>max))"
)
_ANY = re.compile(r"(?:metric\.)*(?:.+_)?latency_(?:ns|us|ms|s)(?:_(?:p\d{1,2}(?:_\d+)?|max|min|mean|sd))?")
_ALL = "all"
_RUNS_MAX = 10
_CONFIGURATIONS_MAX = 1_000
_CONFIGURATIONS_MIN = 8
_LEAST = 1e-12


def is_latency(column: str) -> bool:
    """Whether a column's name says that it holds latencies."""
    return _ANY.fullmatch(column) is not None


@dataclass(frozen=True, slots=True, eq=False)
class Percentiles:
    """What is known of the latencies of an operation.

    Attributes:
        operation: the operation's name; "all" for all operations together.
        unit: "ns", "us", "ms" or "s".
        levels: float64 (q,), ascending, the greatest 1 where it is the maximum.
        values: float64 (n, q), a row a run; NaN where unknown.
    """

    operation: str
    unit: str
    levels: NDArray[np.float64]
    values: NDArray[np.float64]


def percentiles(columns: Mapping[str, NDArray[np.float64]]) -> list[Percentiles]:
    """By operation, those of at least two percentiles, from columns such as `read_latency_ms_p99`."""
    found: dict[tuple[str, str], dict[float, NDArray[np.float64]]] = {}
    for name, values in columns.items():
        if (match := _COLUMN.fullmatch(name)) is not None:
            level = 1.0 if match["max"] else float(match["p"].replace("_", ".")) / 100
            found.setdefault((match["what"] or _ALL, match["unit"]), {})[level] = values
    kept: list[Percentiles] = []
    for (operation, unit), by_level in found.items():
        levels = sorted(by_level)
        values = np.stack([by_level[level] for level in levels], 1)
        if len(levels) > 1 and np.isfinite(values).all(1).any():
            kept.append(Percentiles(operation, unit, np.array(levels), values))
    return kept


def latency_ranges(one: Percentiles, runs: Runs, places: Sequence[int]) -> NDArray[np.float64]:
    """The largest distance of any two runs of each configuration; NaN where fewer than two are known."""
    ranges = np.full(len(places), np.nan)
    for row, place in enumerate(places):
        known = one.values[runs.of(place)]
        known = np.log(np.maximum(known[np.isfinite(known).all(1)][:_RUNS_MAX], _LEAST))
        if len(known) > 1:
            ranges[row] = max(_distance(a, b, one.levels) for a, b in combinations(known, 2))
    return ranges


def _distance(a: NDArray[np.float64], b: NDArray[np.float64], levels: NDArray[np.float64]) -> float:
    """Between two functions through these points, greatest at a point of one of them."""
    at = np.concatenate([a, b])
    return float(np.abs(_below(at, a, levels) - _below(at, b, levels)).max())


def _below(
    at: NDArray[np.float64], points: NDArray[np.float64], levels: NDArray[np.float64]
) -> NDArray[np.float64]:
    # Percentiles of a histogram can be equal; the function jumps there, to the greatest of their levels.
    rising = np.maximum.accumulate(points)
    last = np.concatenate([np.diff(rising) > 0, [True]]).astype(np.bool_)
    return np.asarray(np.interp(at, rising[last], levels[last], left=float(levels[0])), np.float64)


@dataclass(frozen=True, slots=True)
class Correlated:
    """How the latency variation of an operation goes with the throughput's (Fig. 6.11).

    Attributes:
        group: the name of the group of configurations.
        operation: the operation's name.
        configurations: the number of configurations behind the correlation.
        estimate: the correlation of Pearson, with its interval.
    """

    group: str
    operation: str
    configurations: int
    estimate: Estimate


def correlated(
    known: Sequence[Percentiles], runs: Runs, spread: Spread, groups: tuple[Sequence[str], NDArray[np.intp]]
) -> list[Correlated]:
    """By group of at least eight configurations, each operation's, the most correlated first."""
    names, of = groups
    found: list[Correlated] = []
    for group, name in enumerate(names):
        places = np.flatnonzero(of == group)[:_CONFIGURATIONS_MAX]
        for one in known if len(places) >= _CONFIGURATIONS_MIN else ():
            ranges = latency_ranges(one, runs, places.tolist())
            finite = np.isfinite(ranges)
            if one.operation == _ALL or finite.sum() < _CONFIGURATIONS_MIN:
                continue
            estimate = latency_throughput_correlations(
                spread.range[places][finite], {one.operation: ranges[finite]}
            ).get(one.operation)
            if estimate is not None:
                found.append(Correlated(name, one.operation, int(finite.sum()), estimate))
    return sorted(found, key=lambda one: (names.index(one.group), -one.estimate.value))
