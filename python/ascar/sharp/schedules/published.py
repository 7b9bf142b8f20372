"""The published schedules: Li's algorithm 1 to the letter, and Remy's (Li, sections 3.1.6 and 3.2.5)."""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING

from ascar.sharp.plan import RULES_MAX
from ascar.sharp.schedules.candidates import candidates
from ascar.sharp.schedules.splitting import split
from ascar.sharp.trials.judge import RUNS

if TYPE_CHECKING:
    from ascar.rules import RuleSet
    from ascar.sharp.plan import SearchPlan
    from ascar.sharp.trials.judge import Judge, Judged

_REMY_SPLITS_EVERY = 4


def faithful(judge: Judge, plan: SearchPlan) -> str:
    """Algorithm 1, line by line. Scores begin below all instead of at zero: eq. 3.1 can be negative."""
    rules = plan.start.bare()
    idle = 0
    for judge.epoch in count(1):
        before = judge.best
        # To know the hottest rule: who uses the parts of a split is seen only when they are in force.
        at = judge.measured(rules, 1).observed.hottest() if len(rules.rules) > 1 else 0
        epoch_best = _epoch(judge, rules, at)
        judge.hold(epoch_best)
        idle = 0 if before is None or judge.best is not before else idle + 1
        if plan.patience and idle >= plan.patience:
            return "no-gain"
        rules = split(epoch_best.observed)
        if len(rules.rules) > RULES_MAX:
            return "rules"
    raise AssertionError("epochs never end by themselves")


def remy(judge: Judge, plan: SearchPlan) -> str:
    """Remy's schedule: every used rule once an epoch, the hottest first; a split every fourth epoch.

    A rule set must beat the one it comes from, on the same random numbers.
    """
    best, idle = judge.measured(plan.start), 0
    judge.hold(best)
    for judge.epoch in count(1):
        before, done = judge.best, set[int]()
        while (at := _hottest_of(best.observed, done)) is not None:
            done.add(at)
            best = _improved(judge, best, at)
        idle = 0 if judge.best is not before else idle + 1
        if plan.patience and idle >= _REMY_SPLITS_EVERY * plan.patience:
            return "no-gain"
        if judge.epoch % _REMY_SPLITS_EVERY == 0:
            rules = split(best.observed)
            if len(rules.rules) > RULES_MAX:
                return "rules"
            best = judge.measured(rules)
            judge.hold(best)
    raise AssertionError("epochs never end by themselves")


def _epoch(judge: Judge, rules: RuleSet, at: int) -> Judged:
    """Lines 8 to 28."""
    best: Judged | None = None
    while True:
        judge.round += 1
        judge.first_runs(list(candidates(rules, at)))
        winner = _published_winner(judge)
        if best is None or winner.score > best.score:
            best = winner
            judge.hold(best)
        if winner.score < best.score or winner.score == -math.inf:
            return best
        rules = winner.rules


def _published_winner(judge: Judge) -> Judged:
    """Results that vary are looked at again, then the best of the round until it has three runs."""
    for runs in range(2, RUNS + 1):
        for at, judged in enumerate(judge.seen):
            if len(judged.results) == runs - 1 and judged.uneven:
                judge.seen[at] = judge.again(judged, runs)
    while True:
        at, leader = max(enumerate(judge.seen), key=lambda one: (one[1].score, -one[0]))
        if len(leader.results) >= RUNS:
            return leader
        judge.seen[at] = judge.again(leader, RUNS)


def _improved(judge: Judge, base: Judged, at: int) -> Judged:
    """Rounds on one rule, until none brings anything."""
    best = base
    while True:
        judge.round += 1
        judge.first_runs(list(candidates(best.rules, at)))
        winner = _winner(judge, best)
        if winner is None or winner.score <= best.score:
            return best
        best = winner
        judge.hold(best)


def _winner(judge: Judge, reference: Judged) -> Judged | None:
    """The candidate furthest ahead once it has all its runs; None: none is ahead of the reference."""
    while judge.seen:
        at, leader = max(enumerate(judge.seen), key=lambda one: (one[1].lead(reference), -one[0]))
        if leader.lead(reference) <= 0:
            return None
        if len(leader.results) >= RUNS:
            return leader
        judge.seen[at] = judge.again(leader, len(leader.results) + 1)
    return None


def _hottest_of(rules: RuleSet, done: set[int]) -> int | None:
    """The rule used most of those not done; None: all that were used are done."""
    uses = {
        at: rule.observed.used_times
        for at, rule in enumerate(rules.rules)
        if at not in done and rule.observed is not None and rule.observed.used_times
    }
    return max(uses, key=lambda at: (uses[at], -at)) if uses else None
