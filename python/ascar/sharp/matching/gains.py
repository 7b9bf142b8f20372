"""What rule sets gain on a workload: runs with and without them on the same random numbers, paired."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar import _core
from ascar.errors import ExpressionError, InputError
from ascar.sharp.trials.bench import FRESH, RuleTrial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascar.objective import Objective
    from ascar.rules import RuleSet
    from ascar.sharp.trials.bench import Bench, RuleRun

CONFIDENCE = 0.95
_PAIRS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class RuleGain:
    """Relative, above zero is better whichever way the objective points.

    Attributes:
        mean: the mean of the pairs.
        low: lower end of its interval; None: a single pair has none.
        high: upper end.
        pairs: the number of pairs of runs.
    """

    mean: float
    low: float | None
    high: float | None
    pairs: int


def gain_of(
    with_rules: Sequence[float], without: Sequence[float], sign: int = 1, confidence: float = CONFIDENCE
) -> RuleGain | None:
    """The gain that pairs of scores show; None where a score without rules is not above zero, or not finite.

    The mean of the relative differences and its t interval: pairs share their random numbers, so that what
    both sides meet cancels. The number of pairs was settled beforehand; intervals of comparisons that are
    looked at again and again are those of `ascar.pilot.turns`.

    Args:
        with_rules: a score a pair.
        without: the scores of the same pairs without rules.
        sign: 1: larger is better, -1: smaller.
        confidence: the confidence of the interval.
    """
    ours, base = np.asarray(with_rules, np.float64), np.asarray(without, np.float64)
    assert ours.shape == base.shape, "pairs have two sides"
    if not (np.isfinite(ours).all() and np.isfinite(base).all() and (base > 0).all() and len(base)):
        return None
    relative = sign * (ours / base - 1)
    mean = float(relative.mean())
    if len(relative) < 2:
        return RuleGain(mean, None, None, len(relative))
    tail = _core.student_t_quantile((1 + confidence) / 2, len(relative) - 1)
    half = tail * float(relative.std(ddof=1)) / math.sqrt(len(relative))
    return RuleGain(mean, mean - half, mean + half, len(relative))


def gains(
    bench: Bench, objective: Objective, rule_sets: Sequence[RuleSet], pairs: int
) -> Iterator[RuleGain | None]:
    """What each rule set gains on the bench's workload, in their order; None where it has no value.

    Runs meet random numbers that no search has met; those without rules are made once.

    Raises:
        InputError: too few or too many pairs.
    """
    if not 1 <= pairs <= _PAIRS_MAX:
        raise InputError(f"pairs = {pairs}: must be from 1 to {_PAIRS_MAX}")
    seeds = range(FRESH, FRESH + pairs)
    trials = [
        RuleTrial(rules, seed) for rules in (None, *(one.bare() for one in rule_sets)) for seed in seeds
    ]
    results = bench.run(trials)
    try:
        without = [_score(objective, next(results)) for _ in seeds]
        for _ in rule_sets:
            scores = [_score(objective, next(results)) for _ in seeds]
            yield gain_of(scores, without, objective.sign)
    finally:
        results.close()


def _score(objective: Objective, result: RuleRun) -> float:
    try:
        return objective.score(result.metrics)
    except ExpressionError:
        return math.nan
