"""What may make runs of one configuration differ, each cause with the test that would show it.

The tests of one study are one family: their p-values are adjusted (Holm 1979), so that where none of these
causes is, any check at all holds with a probability of at most `LEVEL`. That needs runs which are alike but
for chance: a configuration's runs could have come in any order, and a run's readings backwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar import _core
from ascar.analysis.variation_tests import (
    HypothesisTest,
    first_rank,
    permuted,
    seasonal_kendall,
    signed_rank,
    standardized,
    two_levels,
)
from ascar.analysis.variation_time import parts
from ascar.significance import holm, mid_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.analysis.variation_runs import Runs
    from ascar.analysis.variation_summary import Spread

LEVEL = 0.05
"""Of all checks of a study together."""
EFFECT_MIN = 0.01
"""A relative difference below this is not worth an advice, however sure it is."""
_LARGE_ENOUGH: Mapping[str, float] = {"levels": 0.3, "neighbours": 0.1, "set-ups": 0.3, "time-of-day": 0.05}

_RUNS_MAX = 4_000  # for tests by permutation
_READINGS_MIN = 20
_DAY_S = 86_400.0
_SPAN_S = 1.5 * _DAY_S
_PAIRS_MIN = 20
_MODES_RUNS_MIN = 8
_SMALL = 1e-300


@dataclass(frozen=True, slots=True)
class Check:
    """One cause, looked for.

    Attributes:
        cause: "first-run", "order", "start", "drift", "lazy-initialization", "levels", "set-ups",
            "two-levels", "time-of-day", "neighbours".
        result: the result of the statistical test.
        p_adjusted: the p-value, adjusted for all checks of the study.
        effect: the size of the effect: a share of the mean, a correlation (levels, neighbours), or the share
            of the variance between set-ups.
        held: whether there is evidence that is large enough to matter.
        said: numbers that an advice needs, by name.
    """

    cause: str
    result: HypothesisTest
    effect: float
    said: tuple[tuple[str, float], ...] = ()
    p_adjusted: float = 1.0
    held: bool = False


def checks_of(runs: Runs, spread: Spread, seed: int = 1) -> list[Check]:
    """Every check that the study has data for.

    Args:
        runs: the study's runs.
        spread: theirs; checks by correlation say nothing where runs hardly differ.
        seed: the seed of the permutation tests.
    """
    rng = np.random.default_rng(seed)
    found: list[Check | None] = []
    if runs.at is not None:
        found += [_first_run(runs), _order(runs)]
    pieces = _pieces(runs)
    if pieces is not None:
        found += [_start(pieces, runs), _drift(pieces)]
    if runs.at is not None or pieces is not None:
        found.append(_lazy(runs, pieces))
    few = _sample(runs, rng)
    differ = float(np.median(spread.range)) >= EFFECT_MIN
    if differ:
        found += [_levels(few, rng), _setups(few, rng), _two_levels(runs)]
        found += [_time_of_day(few, rng), _neighbours(few, rng)]
    known = [one for one in found if one is not None]
    adjusted = holm([one.result.p_value for one in known])
    return [
        replace(
            one, p_adjusted=p, held=p <= LEVEL and abs(one.effect) >= _LARGE_ENOUGH.get(one.cause, EFFECT_MIN)
        )
        for one, p in zip(known, adjusted, strict=True)
    ]


def _first_run(runs: Runs) -> Check | None:
    result = first_rank(runs.scores, runs.bounds)
    if result is None:
        return None
    return Check("first-run", result, float(np.median(_first_against_others(runs))))


def _first_against_others(runs: Runs) -> NDArray[np.float64]:
    """(k,) the first run less the mean of the others, over that of all."""
    counts = runs.counts
    sums = np.add.reduceat(runs.scores, runs.bounds[:-1])
    first = runs.scores[runs.bounds[:-1]]
    return (first - (sums - first) / (counts - 1)) / np.abs(sums / counts)


def _order(runs: Runs) -> Check | None:
    """Of all runs but the first: what the first differs by has a check of its own."""
    keep = np.ones(len(runs.scores), bool)
    keep[runs.bounds[:-1]] = False
    counts = runs.counts - 1
    values = runs.scores[keep]
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
    result = seasonal_kendall(values, bounds)
    if result is None:
        return None
    long = counts > 1
    starts, ends = bounds[:-1][long], bounds[1:][long] - 1
    place = np.arange(len(values)) - np.repeat(bounds[:-1], counts)
    middle = np.repeat((counts - 1) / 2, counts)
    means = np.add.reduceat(values, bounds[:-1]) / counts
    slopes = np.add.reduceat((place - middle) * values, bounds[:-1])[long]
    squares = np.add.reduceat((place - middle) ** 2, bounds[:-1])[long]
    changes = slopes / squares * (ends - starts) / np.abs(means[long])
    return Check("order", result, float(np.median(changes)))


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """Parts of the runs that have readings enough, over the mean of the run.

    Attributes:
        tenths: (m, 10).
        thirds: (m, 3).
        rows: (m,) which runs.
        run_s: median length.
    """

    tenths: NDArray[np.float64]
    thirds: NDArray[np.float64]
    rows: NDArray[np.intp]
    run_s: float


def _pieces(runs: Runs) -> _Pieces | None:
    rows: list[int] = []
    tenths: list[NDArray[np.float64]] = []
    thirds: list[NDArray[np.float64]] = []
    for row, one in enumerate(runs.series):
        if one is None or len(one) < _READINGS_MIN:
            continue
        mine = parts(one, 10)
        size = abs(float(mine.mean()))
        if size > 0:
            rows.append(row)
            tenths.append(mine / size)
            thirds.append(parts(one, 3) / size)
    if not rows:
        return None
    lengths = [float(one.seconds[-1]) for row in rows if (one := runs.series[row]) is not None]
    return _Pieces(np.stack(tenths), np.stack(thirds), np.array(rows), float(np.median(lengths)))


def _start(pieces: _Pieces, runs: Runs) -> Check | None:
    """The first tenth against the last: where readings could come backwards, neither is the higher one."""
    result = signed_rank(pieces.tenths[:, 0] - pieces.tenths[:, 9])
    if result is None:
        return None
    effect = float(np.median(pieces.tenths[:, 0] - pieces.tenths[:, 5:].mean(1)))
    slow = np.bincount(runs.owner[pieces.rows], minlength=len(runs))
    return Check(
        "start", result, effect, (("start_s", pieces.run_s / 10), ("configurations", float((slow > 0).sum())))
    )


def _drift(pieces: _Pieces) -> Check | None:
    """The middle third against the last: at the start something is expected, here no more."""
    apart = pieces.thirds[:, 2] - pieces.thirds[:, 1]
    result = signed_rank(apart)
    if result is None:
        return None
    return Check("drift", result, float(np.median(apart)), (("run_s", pieces.run_s),))


def _lazy(runs: Runs, pieces: _Pieces | None) -> Check | None:
    """A slow beginning on ext4, and slower than on what else was measured.

    Only where the study says which file system each configuration has, and nothing rules lazy initialization
    out. Both must hold, so that the larger of the two p-values counts.
    """
    ext4 = _ext4(runs)
    if runs.lazily is False or ext4 is None or not ext4.any():
        return None
    if pieces is not None:
        owner = runs.owner[pieces.rows]
        begin = pieces.tenths[:, 0] - pieces.tenths[:, 9]
        own = signed_rank(begin[ext4[owner]])
        counts = np.bincount(owner, minlength=len(runs))
        sums = np.bincount(owner, begin, len(runs))
        by_configuration = np.divide(sums, counts, out=np.full(len(runs), np.nan), where=counts > 0)
    else:
        by_configuration = _first_against_others(runs)
        own = first_rank(runs.only(ext4).scores, runs.only(ext4).bounds)
    mine, others = (by_configuration[which] for which in (ext4, ~ext4))
    mine, others = mine[np.isfinite(mine)], others[np.isfinite(others)]
    if own is None or not len(mine):
        return None
    # One side: lazy initialization makes nothing faster.
    p = own.p_value / 2 if own.statistic < 0 else 1 - own.p_value / 2
    result = HypothesisTest(f"{own.name} on ext4", own.statistic, p, own.sample)
    effect = min(0.0, float(np.median(mine)))
    if len(others):
        z = _rank_sum(mine, others)
        p = max(p, _core.normal_below(z))
        result = HypothesisTest(f"{result.name}; against the others", z, p, own.sample)
        effect = min(0.0, effect, float(np.median(mine) - np.median(others)))
    return Check("lazy-initialization", result, effect)


def _ext4(runs: Runs) -> NDArray[np.bool_] | None:
    """(k,) which configurations are of ext4 and may be initialised lazily; None: the study does not say."""
    texts = [name for name in runs.names if runs.values[name].dtype == pl.String]
    masks = [
        runs.values[name].str.to_lowercase().str.contains(r"\bext4\b").fill_null(value=False)
        for name in texts
    ]
    if not any(mask.any() for mask in masks):
        return None
    found = np.logical_or.reduce([mask.to_numpy() for mask in masks])
    for name in runs.names:
        if "lazy" in name.lower():
            off = (
                runs.values[name].cast(pl.String).str.to_lowercase().is_in(["0", "0.0", "false", "off", "no"])
            )
            found &= ~off.fill_null(value=False).to_numpy()
    return found


def _rank_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Z of Mann and Whitney (1947), below 0 where the first are lower."""
    ranks = mid_ranks(np.concatenate([a, b]))
    n, m = len(a), len(b)
    variance = n * m / (n + m - 1) * float(((ranks - ranks.mean()) ** 2).mean())
    apart = float(ranks[:n].sum()) - n * (n + m + 1) / 2
    return float(np.sign(apart) * max(abs(apart) - 0.5, 0.0) / np.sqrt(max(variance, _SMALL)))


def _sample(runs: Runs, rng: np.random.Generator) -> Runs:
    """Configurations drawn until there are as many runs as permutations can take."""
    if len(runs.scores) <= _RUNS_MAX:
        return runs
    order = rng.permutation(len(runs))
    kept = np.zeros(len(runs), bool)
    kept[order[: max(1, int(np.searchsorted(np.cumsum(runs.counts[order]), _RUNS_MAX)))]] = True
    return runs.only(kept)


def _levels(runs: Runs, rng: np.random.Generator) -> Check | None:
    """Whether a run ends as high, among those of its configuration, as it began.

    The first and the last two fifths are compared, with the middle between them, so that readings which are
    alike because they are neighbours say nothing.
    """
    known = np.array([one is not None and len(one) >= _READINGS_MIN for one in runs.series], bool)
    if len(known) != len(runs.scores) or not known.any():
        return None
    halves = np.array([parts(one, 5) for one, used in zip(runs.series, known, strict=True) if used and one])
    counts = np.bincount(runs.owner[known], minlength=len(runs))
    several = np.repeat(counts, counts) > 1
    counts = counts[counts > 1]
    if counts.sum() < 4:
        return None
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
    begin = standardized(halves[several, :2].mean(1), bounds)
    end = standardized(halves[several, 3:].mean(1), bounds)
    p = permuted(lambda values: float(begin @ values), end, bounds, rng)
    size = float(np.sqrt((begin @ begin) * (end @ end)))
    if size == 0:
        return None
    correlation = float(begin @ end) / size
    return Check(
        "levels",
        HypothesisTest("correlation in configurations, r", correlation, p, f"{counts.sum()} runs"),
        correlation,
    )


def _setups(runs: Runs, rng: np.random.Generator) -> Check | None:
    """How much of the variance within configurations lies between their set-ups, where some share one."""
    if runs.setup is None:
        return None
    owner = runs.owner
    pairs, which, sizes = np.unique(
        np.stack([owner, runs.setup]), axis=1, return_inverse=True, return_counts=True
    )
    which = which.ravel()
    several = np.bincount(pairs[0], minlength=len(runs)) > 1
    repeated = np.zeros(len(runs), bool)
    repeated[pairs[0][sizes > 1]] = True
    kept = several & repeated
    if not kept.any():
        return None
    part = runs.only(kept)
    group = np.unique(which[kept[owner]], return_inverse=True)[1]
    values, counts = standardized(part.scores, part.bounds), np.bincount(group)

    def between(one: NDArray[np.float64]) -> float:
        return float((np.bincount(group, one) ** 2 / counts).sum())

    whole = float(values @ values)
    if whole == 0:
        return None
    p = permuted(between, values, part.bounds, rng)
    share = between(values) / whole
    sample = f"{len(counts)} set-ups of {len(part)} configurations"
    return Check("set-ups", HypothesisTest("variance between set-ups", share, p, sample), share)


def _two_levels(runs: Runs) -> Check | None:
    """The configuration whose runs fall most surely into two groups, corrected for having looked at all."""
    places = np.flatnonzero((runs.counts >= _MODES_RUNS_MIN) & (runs.counts <= 1_000))
    best: tuple[float, float, tuple[float, float], int] | None = None
    for place in places:
        block = runs.scores[runs.of(int(place))]
        if block.min() < block.max():
            share, p, levels = two_levels(block)
            if best is None or p < best[1]:
                best = share, p, levels, int(place)
    if best is None:
        return None
    share, p, (low, high), place = best
    mean = abs(float(runs.scores[runs.of(place)].mean()))
    said = (("place", float(place)), ("low", low), ("high", high))
    sample = f"{runs.counts[place]} runs, the clearest of {len(places)} configurations"
    result = HypothesisTest("variance between two levels", share, min(1.0, p * len(places)), sample)
    return Check("two-levels", result, (high - low) / mean, said)


def _time_of_day(runs: Runs, rng: np.random.Generator) -> Check | None:
    """A wave of a day in the runs' deviations; needs runs over a day and a half at least."""
    if runs.at is None or not runs.clock or float(np.ptp(runs.at)) < _SPAN_S:
        return None
    values = standardized(runs.scores, runs.bounds)
    angle = 2 * np.pi * (runs.at % _DAY_S) / _DAY_S
    waves = np.stack([standardized(wave, runs.bounds * 1) for wave in (np.cos(angle), np.sin(angle))], 1)
    if not waves.any() or not values.any():
        return None
    base, _ = np.linalg.qr(waves)
    whole = float(values @ values)
    p = permuted(lambda one: float(((base.T @ one) ** 2).sum()), values, runs.bounds, rng)
    share = float(((base.T @ values) ** 2).sum()) / whole
    return Check(
        "time-of-day",
        HypothesisTest("variance that a wave of a day explains", share, p, f"{len(values)} runs"),
        share,
    )


def _neighbours(runs: Runs, rng: np.random.Generator) -> Check | None:
    """Whether runs of different configurations that follow one another deviate alike."""
    if runs.at is None:
        return None
    values, owner = standardized(runs.scores, runs.bounds), runs.owner
    order = np.argsort(runs.at, kind="stable")
    before, after = order[:-1], order[1:]
    apart = owner[before] != owner[after]
    before, after = before[apart], after[apart]
    if len(before) < _PAIRS_MIN:
        return None
    p = permuted(lambda one: float(one[before] @ one[after]), values, runs.bounds, rng)
    size = float(np.sqrt((values[before] @ values[before]) * (values[after] @ values[after])))
    if size == 0:
        return None
    correlation = float(values[before] @ values[after]) / size
    result = HypothesisTest("correlation of one run with the next, r", correlation, p, f"{len(before)} pairs")
    return Check("neighbours", result, correlation)
