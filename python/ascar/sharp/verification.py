"""The last comparison: the best rules and the system as it is, in turns, on fresh random numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.pilot.turns import PAIRS_MIN, alternating, compare_in_turns
from ascar.sharp.effects import compared_runs, figure_changes, group_changes, standings
from ascar.sharp.trials.bench import FRESH, RuleTrial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.pilot.turns import Gain, InTurns, PairTest, Scores, Side
    from ascar.results.rule_search import BoundStanding, FigureChange
    from ascar.results.verdict import VerdictKind
    from ascar.rules import RuleSet
    from ascar.sharp.trials.judge import Judge


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What the last comparison says of rules.

    Attributes:
        comparison: of the objective.
        figures: what becomes of other figures.
        groups: what becomes of each group that shares the system.
        bounds: how the rules stand to the bounds that they must keep.
    """

    comparison: InTurns
    figures: tuple[FigureChange, ...] = ()
    groups: tuple[FigureChange, ...] = ()
    bounds: tuple[BoundStanding, ...] = ()

    @property
    def broken(self) -> tuple[BoundStanding, ...]:
        """The bounds that the rules are shown to break."""
        return tuple(one for one in self.bounds if one.standing == "broken")

    @property
    def kind(self) -> VerdictKind:
        """The verdict; no gain is claimed for rules that break a bound."""
        return "not-verified" if self.broken and self.comparison.improved else self.comparison.kind

    @property
    def gain(self) -> Gain | None:
        """In the objective; None: nothing is claimed."""
        return None if self.kind == "not-verified" else self.comparison.gain

    @property
    def note(self) -> str:
        """Why the comparison ended, or which bound the rules break."""
        if not self.broken:
            return self.comparison.note
        return "; ".join(
            f"the rules break {one.bound}: {one.value:.3g} ({one.low:.3g} to {one.high:.3g}) on fresh runs"
            for one in self.broken
        )


def verify_all(judge: Judge, rules: RuleSet, test: PairTest, until_s: float | None = None) -> RuleVerdict:
    """Compare rules with the system without any, in the objective and in what it might be bought with."""
    comparison = verify(judge, rules, test, until_s)
    runs = compared_runs(judge, rules, comparison.made)
    groups = group_changes(judge.bench.groups, runs)
    return RuleVerdict(comparison, figure_changes(runs), groups, standings(judge.bounds, runs, groups))


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
        values = (judge.score(results["reference"]), judge.score(results["candidate"]))
        reference, candidate = (judge.objective.sign * one if math.isfinite(one) else None for one in values)
        yield reference, candidate
        pair += 1
