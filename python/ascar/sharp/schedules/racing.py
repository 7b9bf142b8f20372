"""Races between rule sets: each lap is a run of those not yet shown to be behind.

A lap is made on the same random numbers by all. The test may be repeated after each lap: limits of a mean of
normal differences, of known deviation, that hold at all laps together (Robbins, "Statistical methods related
to the law of the iterated logarithm", Annals of Mathematical Statistics 41, 1970: the normal mixture). The
deviation is pooled over all comparisons of the search, so that it is known well after a few.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from ascar.sharp.trials.judge import RUNS, Judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.rules import Action, RuleSet
    from ascar.sharp.trials.judge import Judge

_LEVEL = 0.2
_LAPS_MAX = 8
_STARTERS_MAX = 12
_SURE = 1.6  # standard errors that the winner must be ahead: one side, 5%


class Field:
    """All rule sets of a search with their runs.

    Args:
        judge: runs them.
        racing: False: every rule set that is tried gets all its runs, whatever they show.
    """

    def __init__(self, judge: Judge, *, racing: bool = True) -> None:
        self.judge = judge
        self.racing = racing
        self._known: dict[RuleSet, Judged] = {}

    def run(self, several: Sequence[RuleSet], runs: int = 1) -> list[Judged]:
        """Each with at least so many runs; those of several are made at once."""
        wanted = [one.bare() for one in several]
        asked = [self._known.get(rules, Judged.not_run(rules)) for rules in dict.fromkeys(wanted)]
        self._known |= {one.rules: one for one in self.judge.extended(asked, runs)}
        return [self._known[rules] for rules in wanted]

    def tried(self, several: Sequence[RuleSet]) -> list[Judged]:
        """The first runs of a round's candidates."""
        self.judge.seen = self.run(several, 1 if self.racing else RUNS)
        return self.judge.seen

    def adopt(self, judged: Judged) -> Judged:
        """Count runs of a rule set as those of another that does the same; the latter as it now stands."""
        return self._known.setdefault(judged.rules, judged)

    def variants(self, rules: RuleSet, at: int) -> dict[Action, Judged]:
        """What is known of rule sets that differ in the action of one rule alone, by that action."""
        own = rules.rules[at].action
        return {
            one.rules.rules[at].action: one
            for one in self._known.values()
            if len(one.rules.rules) == len(rules.rules) and one.rules.with_action(at, own) == rules
        }

    def latest(self, judged: Judged) -> Judged:
        """The same rule set with the runs that it has by now."""
        return self._known.get(judged.rules, judged)

    def deviation(self, reference: Judged) -> float:
        """Standard deviation of the difference to a reference in one run, pooled over rule sets.

        Before any was run twice it is that of two independent runs of the reference.
        """
        squares, freedom = 0.0, 0
        for one in self._known.values():
            if one.rules == reference.rules:
                continue
            differences = _differences(one, reference)
            if len(differences) > 1:
                middle = fmean(differences)
                squares += sum((value - middle) ** 2 for value in differences)
                freedom += len(differences) - 1
        if freedom:
            return math.sqrt(squares / freedom)
        scores = [score for score in reference.plain if math.isfinite(score)]
        middle = fmean(scores) if scores else 0.0
        own = sum((score - middle) ** 2 for score in scores) / max(len(scores) - 1, 1)
        return math.sqrt(2 * own)


def limit(deviation: float, runs: int, level: float = _LEVEL) -> float:
    """Half the width of an interval of a mean difference that holds after every run.

    Args:
        deviation: the standard deviation of a single difference.
        runs: the number of runs so far, at least one.
        level: the probability that the interval misses the mean after any run.
    """
    spread = runs + 1
    return deviation * math.sqrt(spread * math.log(spread / level**2)) / runs


def race(field: Field, reference: Judged, starters: Sequence[Judged]) -> Judged:
    """The winner among rule sets that were run before; the reference, unless one is ahead of it.

    Who is shown to be behind the leader or the reference leaves.
    """
    alive = sorted(starters, key=lambda one: -one.lead(reference))[:_STARTERS_MAX]
    for laps in range(1, _LAPS_MAX + 1):
        if laps > 1:
            reference, *alive = field.run([reference.rules, *(one.rules for one in alive)], laps)
        alive = _still_in(field, reference, alive)
        if not alive:
            return field.latest(reference)
        leader = max(alive, key=lambda one: one.lead(reference))
        runs = min(len(leader.scores), len(reference.scores))
        spread = field.deviation(reference)
        if laps >= RUNS and len(alive) == 1 and leader.lead(reference) > limit(spread, runs):
            return leader
        if laps == _LAPS_MAX and leader.lead(reference) > _SURE * spread / math.sqrt(runs):
            return leader
    return field.latest(reference)


def _still_in(field: Field, reference: Judged, alive: Sequence[Judged]) -> list[Judged]:
    """Those that may still be the best, and ahead of the reference."""
    if not alive:
        return []
    leader = max(alive, key=lambda one: one.lead(reference))
    spread = field.deviation(reference)
    return [
        one
        for one in alive
        if one.lead(reference) > -math.inf
        and one.lead(reference) + limit(spread, _common(one, reference)) > 0
        and (one is leader or one.lead(leader) + limit(spread, _common(one, leader)) > 0)
        and (one.lead(reference) > 0 or _common(one, reference) < RUNS)
    ]


def _common(one: Judged, other: Judged) -> int:
    return min(len(one.scores), len(other.scores))


def _differences(one: Judged, other: Judged) -> list[float]:
    # Of plain scores: whether a run breaks a bound is no noise.
    both = zip(one.plain, other.plain, strict=False)
    return [a - b for a, b in both if math.isfinite(a) and math.isfinite(b)]
