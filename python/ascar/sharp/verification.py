"""The last comparison: the best rules and the system as it is, in turns, on fresh random numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ascar.pilot.turns import PAIRS_MIN, alternating, compare_in_turns
from ascar.sharp.trials.bench import FRESH, RuleTrial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.pilot.turns import InTurns, PairTest, Scores, Side
    from ascar.rules import RuleSet
    from ascar.sharp.trials.judge import Judge


def verify(judge: Judge, rules: RuleSet, test: PairTest, until_s: float | None = None) -> InTurns:
    """Compare rules with the system without any, pair by pair, until told apart or shown to be equal.

    Args:
        judge: runs them.
        rules: the best that was found.
        test: the test that ends the comparison.
        until_s: end when the search, this included, has taken so long; None: whatever it takes.
    """

    def over(now: InTurns) -> bool:
        return now.made >= PAIRS_MIN and until_s is not None and judge.elapsed_s >= until_s

    return compare_in_turns(_pairs(judge, rules), judge.objective.direction, test, over=over)


def _pairs(judge: Judge, rules: RuleSet) -> Iterator[Scores]:
    """The two runs of a pair meet the same random numbers, and may be made at the same time."""
    pair = 0
    while True:
        both: dict[Side, RuleTrial] = {
            "reference": RuleTrial(None, FRESH + pair),
            "candidate": RuleTrial(rules, FRESH + pair),
        }
        order = alternating(pair)
        results = dict(zip(order, judge.fetch([both[side] for side in order]), strict=True))
        values = (judge.value(results["reference"]), judge.value(results["candidate"]))
        reference, candidate = (judge.objective.sign * one if math.isfinite(one) else None for one in values)
        yield reference, candidate
        pair += 1
