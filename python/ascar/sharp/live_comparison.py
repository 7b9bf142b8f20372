"""Two rule sets compared on a system at work: intervals under each in turns, until they are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import ExpressionError, InputError, WorkError
from ascar.pilot.turns import PairTest, compare_in_turns, taking_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.objective import Objective
    from ascar.pilot.turns import InTurns, Side
    from ascar.rules import RuleSet
    from ascar.sharp.running import RunningSystem

PROOF = PairTest(level=0.01, margin=0.005, pairs_min=8, pairs_max=20)
"""What has to be shown before rules are kept that a learner found."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of the intervals that are compared.

    Attributes:
        settle_s: left out after rules have changed.
        measure_s: the length of each compared interval.
    """

    settle_s: float = 4.0
    measure_s: float = 10.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is out of range.
        """
        if not self.settle_s >= 0:
            raise InputError(f"settle_s = {self.settle_s}: must be 0 or more")
        if not self.measure_s > 0:
            raise InputError(f"measure_s = {self.measure_s}: must be above zero")


def in_turns(
    system: RunningSystem,
    objective: Objective,
    both: tuple[RuleSet | None, RuleSet],
    *,
    test: PairTest = PROOF,
    lengths: Lengths = Lengths(),
    told: Callable[[InTurns], None] = lambda _: None,
) -> InTurns:
    """Compare rules on trial with those that are kept; at the end those that are kept are in force.

    Args:
        system: keeps the first of both.
        objective: the objective over an interval's metrics; the comparison ends if it has no value.
        both: rules that it keeps, None where it does without, and those that are put on trial.
        test: the test of the comparison.
        lengths: the lengths of the intervals.
        told: hears of each pair.

    Raises:
        WorkError: the system does not do as it is told.
    """

    def score(side: Side) -> float | None:
        system.back()
        rules = both[1] if side == "candidate" else both[0]
        if side == "candidate":
            system.try_out(both[1])
        metrics = system.measure(rules, lengths.settle_s, lengths.measure_s)
        try:
            return objective.score(metrics)
        except ExpressionError:
            return None

    try:
        return compare_in_turns(taking_turns(score), objective.direction, test, told=told)
    finally:
        system.back()


def kept_if_better(
    system: RunningSystem, objective: Objective, before: RuleSet, best: RuleSet
) -> tuple[RuleSet, InTurns | None]:
    """Compare rules with those of the beginning, and keep them if they are shown to be better.

    Returns:
        The rules that are kept at the end, and the comparison: None where both are the same rules.

    Raises:
        WorkError: the system does not do as it is told, or the objective has no value.
    """
    if best == before:
        return before, None
    found = in_turns(system, objective, (before, best))
    if found.ended == "failures":
        raise WorkError(f"objective: {objective.unit} has no value")
    if not found.improved:
        return before, found
    system.try_out(best)
    system.keep()
    return best, found
