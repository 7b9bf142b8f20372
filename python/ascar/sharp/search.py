"""The rule loop: rule set -> candidates -> controllers -> workload -> pilot, objective -> split (Li, alg. 1).

An epoch improves one rule, round by round; a round tries the candidates around its action. Then the hottest
rule is split, so that its parts can differ. What a run is, and when all is over, is `judge`'s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal, cast, get_args

from ascar.errors import InputError
from ascar.sharp.candidates import candidates
from ascar.sharp.judge import RUNS, Over
from ascar.sharp.rules import Action, RuleSet
from ascar.sharp.splitting import split

if TYPE_CHECKING:
    from ascar.sharp.judge import Judge, Judged

__all__ = ["FIRST", "RULES_MAX", "SCHEDULES", "Found", "Plan", "Schedule", "plan_of", "search"]

Schedule = Literal["sharp", "faithful", "remy"]
SCHEDULES: tuple[str, ...] = get_args(Schedule)
"""sharp: ours; faithful: Li's algorithm 1 to the letter; remy: all rules an epoch, a split every fourth."""

FIRST = RuleSet.uniform(Action(100, 0, 20_000))
"""One rule that holds everywhere (line 4)."""

RULES_MAX = 256
_REMY_SPLITS_EVERY = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """How to search.

    Attributes:
        schedule: one of `SCHEDULES`.
        start: the rule set to begin with.
        patience: end after so many epochs in a row without gain; 0: never. Algorithm 1 never does.
    """

    schedule: Schedule = "sharp"
    start: RuleSet = FIRST
    patience: int = 2

    def __post_init__(self) -> None:
        """Check the plan.

        Raises:
            InputError: the patience is below zero.
        """
        if self.patience < 0:
            raise InputError(f"patience = {self.patience}: must be 0 (never) or more epochs")


def plan_of(schedule: str, start: RuleSet = FIRST, patience: int | None = None) -> Plan:
    """A plan from plain values; None leaves the patience as it is.

    Raises:
        InputError: as `Plan`.
    """
    if schedule not in SCHEDULES:
        raise InputError(f"schedule = {schedule[:80]!r}: must be one of {', '.join(SCHEDULES)}")
    chosen = cast("Schedule", schedule)
    return Plan(chosen, start) if patience is None else Plan(chosen, start, patience)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Attributes:
        best: the best rule set; None: nothing was run.
        stopped: "evaluations", "time", "no-gain" or "rules" (no more of them are allowed).
    """

    best: Judged | None
    stopped: str


def search(judge: Judge, plan: Plan) -> Found:
    """Search until a limit of the judge is reached, or epochs bring nothing.

    The same journal, bench and plan lead to the same end, wherever a search was interrupted.
    """
    schedules = {"sharp": _sharp, "faithful": _faithful, "remy": _remy}
    try:
        stopped = schedules[plan.schedule](judge, plan)
    except Over as over:
        stopped = over.reason
        _make_sure(judge)
    return Found(judge.best, stopped)


def _make_sure(judge: Judge) -> None:
    """The best of the round that was cut off gets its runs, too, if they are still allowed."""
    if not judge.seen:
        return
    leader = max(judge.seen, key=lambda one: one.lead(judge.best))
    if judge.best is not None and leader.lead(judge.best) <= 0:
        return
    try:
        judge.hold(judge.again(leader, RUNS))
    except Over:
        if judge.best is None:
            judge.hold(leader)


def _sharp(judge: Judge, plan: Plan) -> str:
    """Algorithm 1, where a rule set must beat the one it comes from, on the same random numbers."""
    rules, idle = plan.start, 0
    for judge.epoch in count(1):
        before = judge.best
        base = judge.measured(rules)
        judge.hold(base)
        best = _improved(judge, base, base.observed.hottest())
        idle = 0 if before is None or judge.best is not before else idle + 1
        if plan.patience and idle >= plan.patience:
            return "no-gain"
        rules = split(best.observed)
        if len(rules.rules) > RULES_MAX:
            return "rules"
    raise AssertionError("epochs never end by themselves")


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


def _faithful(judge: Judge, plan: Plan) -> str:
    """Algorithm 1, line by line. Scores begin below all instead of at zero: eq. 3.1 can be negative."""
    rules = plan.start.bare()
    idle = 0
    for judge.epoch in count(1):
        before = judge.best
        # To know the hottest rule: who uses the parts of a split is seen only when they are in force.
        at = judge.measured(rules, 1).observed.hottest() if len(rules.rules) > 1 else 0
        epoch_best = _published_epoch(judge, rules, at)
        judge.hold(epoch_best)
        idle = 0 if before is None or judge.best is not before else idle + 1
        if plan.patience and idle >= plan.patience:
            return "no-gain"
        rules = split(epoch_best.observed)
        if len(rules.rules) > RULES_MAX:
            return "rules"
    raise AssertionError("epochs never end by themselves")


def _published_epoch(judge: Judge, rules: RuleSet, at: int) -> Judged:
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


def _remy(judge: Judge, plan: Plan) -> str:
    """Remy's schedule: every used rule once an epoch, the hottest first; a split every fourth epoch."""
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


def _hottest_of(rules: RuleSet, done: set[int]) -> int | None:
    """The rule used most of those not done; None: all that were used are done."""
    uses = {
        at: rule.observed.used_times
        for at, rule in enumerate(rules.rules)
        if at not in done and rule.observed is not None and rule.observed.used_times
    }
    return max(uses, key=lambda at: (uses[at], -at)) if uses else None
