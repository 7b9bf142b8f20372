"""Two rule sets compared on a system at work: intervals under each in turns, until they are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import ExpressionError, InputError, WorkError
from ascar.pilot.turns import PairTest, compare_in_turns, taking_turns
from ascar.sharp.client_shares import ClientShares
from ascar.sharp.deployment.managed_system import interval_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.objective import Objective
    from ascar.pilot.turns import InTurns, Side
    from ascar.rules import RuleSet
    from ascar.sharp.metric_bounds import MetricBound
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
    shares: ClientShares | None = None,
    told: Callable[[InTurns], None] = lambda _: None,
) -> InTurns:
    """Compare rules on trial with those that are kept; at the end those that are kept are in force.

    Args:
        system: keeps the first of both.
        objective: the objective over an interval's metrics; the comparison ends if it has no value.
        both: rules that it keeps, None where it does without, and those that are put on trial.
        test: the test of the comparison.
        lengths: the lengths of the intervals.
        shares: takes in what each client gets, and ends it where that collapses; None: nobody asks.
        told: hears of each pair.

    Raises:
        WorkError: the system does not do as it is told.
    """

    def score(side: Side) -> float | None:
        system.back()
        rules = both[1] if side == "candidate" else both[0]
        if side == "candidate":
            system.try_out(both[1])
        clients = system.collect(rules, lengths.settle_s, lengths.measure_s)
        metrics = interval_metrics(clients)
        if shares is not None:
            shares.take(side, clients, metrics)
        try:
            return objective.score(metrics)
        except ExpressionError:
            return None

    def over(_: InTurns) -> bool:
        return shares is not None and bool(shares.collapsed())

    try:
        return compare_in_turns(taking_turns(score), objective.direction, test, over=over, told=told)
    finally:
        system.back()


def kept_if_better(
    system: RunningSystem,
    objective: Objective,
    before: RuleSet,
    best: RuleSet,
    bounds: Sequence[MetricBound] = (),
) -> tuple[RuleSet, InTurns | None, str]:
    """Compare rules with those of the beginning, and keep them if they are better and break no bound.

    Args:
        system: keeps the rules of the beginning.
        objective: the objective over an interval's metrics.
        before: the rules of the beginning.
        best: the rules that are compared with them.
        bounds: what the new rules must keep; shares are of what a client gets under those of the beginning.

    Returns:
        The rules that are kept at the end; the comparison, None where both are the same rules; and the bound
        that better rules broke, or nothing.

    Raises:
        WorkError: the system does not do as it is told, or the objective has no value.
    """
    if best == before:
        return before, None, ""
    shares = ClientShares(tuple(bounds))
    found = in_turns(system, objective, (before, best), shares=shares)
    if found.ended == "failures":
        raise WorkError(f"objective: {objective.unit} has no value")
    broken = shares.broken() if found.improved else ""
    if broken or not found.improved:
        return before, found, broken
    system.try_out(best)
    system.keep()
    return best, found, ""
