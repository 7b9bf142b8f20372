"""Two rule sets compared on a system at work: intervals under each in turns, until they are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import ExpressionError, InputError, WorkError
from ascar.pilot.pairs import PAIRS_MIN, compare_pairs

if TYPE_CHECKING:
    from ascar.objective import Objective
    from ascar.pilot.pairs import PairComparison
    from ascar.sharp.rules import RuleSet
    from ascar.sharp.running import Running

__all__ = ["Proof", "Turns", "in_turns"]


@dataclass(frozen=True, slots=True)
class Turns:
    """How they are compared.

    Attributes:
        settle_s: left out after rules have changed.
        measure_s: of each interval.
        pairs_min: of intervals before which nothing is decided.
        pairs_max: of intervals at most.
        level: probability, over all looks together, of calling equal ones different.
        margin: relative difference that does not matter.
    """

    settle_s: float = 4.0
    measure_s: float = 10.0
    pairs_min: int = 8
    pairs_max: int = 20
    level: float = 0.01
    margin: float = 0.005

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is out of range.
        """
        if not PAIRS_MIN <= self.pairs_min <= self.pairs_max:
            raise InputError(
                f"pairs_min = {self.pairs_min}, pairs_max = {self.pairs_max}: must be {PAIRS_MIN} or more, "
                "the first not above the other"
            )
        if not (self.settle_s >= 0 and self.measure_s > 0):
            raise InputError(f"settle_s = {self.settle_s}, measure_s = {self.measure_s}: must not be below 0")


def in_turns(
    system: Running, objective: Objective, both: tuple[RuleSet | None, RuleSet], turns: Turns
) -> PairComparison:
    """Compare rules on trial with those that are kept; at the end those that are kept are in force.

    Args:
        system: keeps `before`.
        objective: over what intervals tell.
        both: those that it keeps, None where it does without rules, and those that are put on trial.
        turns: how.

    Raises:
        WorkError: the system does not do as it is told, or the objective has no value.
    """
    before, after = both
    scores: tuple[list[float], list[float]] = [], []
    found: PairComparison | None = None
    try:
        for pair in range(turns.pairs_max):
            # Old new, new old, old new: a drift favours neither.
            for side in (1, 0) if pair % 2 else (0, 1):
                system.back()
                if side:
                    system.try_out(after)
                metrics = system.measure(after if side else before, turns.settle_s, turns.measure_s)
                scores[side].append(_number(objective, metrics))
            if pair + 1 >= turns.pairs_min:
                found = compare_pairs(*scores, turns.level, turns.margin)
                if found.decision != "open":
                    break
    finally:
        system.back()
    assert found is not None, "at least `pairs_min` pairs are compared"
    return found


@dataclass(frozen=True, slots=True)
class Proof:
    """Rules compared with those of the beginning, and kept or not.

    Attributes:
        objective: what they were compared by.
        before: kept at the beginning.
        after: kept at the end.
        found: the comparison; None: they are the same rules.
    """

    objective: Objective
    before: RuleSet
    after: RuleSet
    found: PairComparison | None

    @classmethod
    def of(
        cls, system: Running, objective: Objective, before: RuleSet, best: RuleSet, turns: Turns = Turns()
    ) -> Proof:
        """Compare, and keep the new rules if they are shown to be better.

        Raises:
            WorkError: the system does not do as it is told, or the objective has no value.
        """
        if best == before:
            return cls(objective, before, before, None)
        found = in_turns(system, objective, (before, best), turns)
        if found.decision != ("higher" if objective.sign > 0 else "lower"):
            return cls(objective, before, before, found)
        system.try_out(best)
        system.keep()
        return cls(objective, before, best, found)


def _number(objective: Objective, metrics: dict[str, float]) -> float:
    try:
        return objective.formula.number(metrics)
    except ExpressionError as error:
        raise WorkError(f"objective: {error.message}") from None
