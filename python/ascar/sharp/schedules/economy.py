"""Our schedule: few evaluations, as each takes half a minute on a real system.

It begins with the best of a sweep of static windows, improves rules by a model of their actions, splits one
rule along one indicator at a time, and judges by races on common random numbers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from ascar.rules import INDICATORS, KINDS, Action, RuleSet
from ascar.sharp.plan import RULES_MAX
from ascar.sharp.schedules.action_model import Actions, promising
from ascar.sharp.schedules.candidates import candidates
from ascar.sharp.schedules.racing import Field, race
from ascar.sharp.schedules.scouting import Scout, usual_window
from ascar.sharp.schedules.splitting import split, split_in_the_middle
from ascar.sharp.trials.judge import RUNS

if TYPE_CHECKING:
    from ascar.sharp.plan import SearchPlan
    from ascar.sharp.trials.judge import Judge, Judged

_WINDOWS = ((1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (32, 0), (64, 0))
_PACED = ((4, 10), (16, 30), (2, 60), (8, 60), (64, 20), (64, 50))  # the last two by their gap alone
_STATIC = (*_WINDOWS, *_PACED)
SWEPT = tuple(RuleSet.uniform(Action(0, 100 * window, 1_000 * tau_ms)) for window, tau_ms in _STATIC)
"""Static windows and gaps, each as a set of one rule: the sweep that a search begins with."""
_FOR_A_KIND = tuple(
    Action(0, 100 * window, 1_000 * tau_ms)
    for window in (1, 2, 3, 4, 6, 8, 16, 32)
    for tau_ms in (0, 10, 20, 40)
)
"""Static windows and gaps that are tried for each kind of stream: the best of two can be far apart."""
_FAR = (Action(0, 100, 0), Action(0, 300, 20_000))
"""Far from most actions, and the best where many streams crowd a disk; tried where kinds are told apart."""
_BATCH = 4
_ROUNDS_MAX = 8
_MISSES_MAX = 2
_MISSES_FIRST_MAX = 3  # of the only rule there is: most of what can be won is won there
_TRUE_SHARE = 0.5  # of the gain hoped for; when less comes true, what was hoped is no guide
_WORTH_DEVIATIONS = 0.03  # an improvement expected below so much of one run's noise is not worth a run


def economical(judge: Judge, plan: SearchPlan) -> str:
    """Search until epochs bring nothing; why it ended."""
    judge.shared = "common-numbers" not in plan.without
    field = Field(judge, racing="racing" not in plan.without)
    judge.epoch = 1
    best = _begun(field, plan)
    if len(best.rules.rules) == 1:
        best = _improved(field, plan, best, 0)
        best = _told_apart(field, plan, best)
    kinds = [axis for axis in plan.axes if INDICATORS[axis] in KINDS]
    congestion = [axis for axis in plan.axes if axis not in kinds]
    scout = Scout(field, congestion, _FAR) if kinds and congestion else Scout(field, plan.axes)
    idle = 0
    for judge.epoch in count(2):
        if len(best.rules.rules) > RULES_MAX - 8:
            return "rules"
        found = _refined(field, plan, scout, best)
        if found is None:
            return "no-gain"
        idle = 0 if found.rules != best.rules else idle + 1
        best = found
        if plan.patience and idle >= plan.patience:
            return "no-gain"
    raise AssertionError("epochs never end by themselves")


def _begun(field: Field, plan: SearchPlan) -> Judged:
    """The best of those that the search begins with."""
    judge = field.judge
    judge.round += 1
    (first,) = field.run([plan.widened(plan.start)], RUNS)
    judge.take_as_best(first)
    swept = [one for one in SWEPT if plan.admits(one.rules[0].action)]
    sweep = [] if "sweep" in plan.without else [plan.widened(one) for one in swept]
    others = [plan.widened(one) for one in plan.others]
    if plan.hoped is None:
        best = _raced(field, first, [*others, *sweep])
    else:
        best = _raced(field, first, others)
        if sweep and best.gain(first) < _TRUE_SHARE * plan.hoped:
            judge.round += 1
            best = _raced(field, best, sweep)
    if plan.active_files:
        judge.round += 1
        best = _raced(field, best, [replace(best.rules, active_files=limit) for limit in plan.active_files])
    return best


def _told_apart(field: Field, plan: SearchPlan, best: Judged) -> Judged:
    """A rule for each kind of stream, improved one after the other, the hottest first.

    One split at a time would not find them: a window that serves random writers may starve sequential ones,
    and what tells the two apart brings nothing before the other is split off.
    """
    axes = [axis for axis in plan.axes if INDICATORS[axis] in KINDS]
    if not axes:
        return best
    field.judge.round += 1
    (parts,) = field.run([split_in_the_middle(best.observed, 0, axes)], RUNS)
    uses = {at: rule.observed.used_times for at, rule in enumerate(parts.observed.rules) if rule.observed}
    found = parts
    for at in sorted((at for at in uses if uses[at]), key=lambda at: -uses[at]):
        found = _swept(field, plan, found, at)
    return best if found.rules == parts.rules else found


def _swept(field: Field, plan: SearchPlan, best: Judged, at: int) -> Judged:
    """The action of one rule after a sweep of static ones, improved."""
    field.judge.round += 1
    best = _raced(field, best, [best.rules.with_action(at, action) for action in _FOR_A_KIND])
    return _improved(field, plan, best, at)


def _raced(field: Field, best: Judged, rule_sets: list[RuleSet]) -> Judged:
    """The best after a round of others."""
    winner = race(field, best, field.tried(rule_sets))
    if winner.rules != best.rules:
        field.judge.take_as_best(winner)
    return winner


def _improved(field: Field, plan: SearchPlan, best: Judged, at: int) -> Judged:
    """Rounds on the action of one rule, until none brings anything."""
    product = "surrogate" in plan.without
    return _by_product(field, plan, best, at) if product else _by_model(field, plan, best, at)


def _by_product(field: Field, plan: SearchPlan, best: Judged, at: int) -> Judged:
    """Every candidate of Table 3.2 a round."""
    while True:
        field.judge.round += 1
        admitted = [one for one in candidates(best.rules, at) if plan.admits(one.rules[at].action)]
        winner = _raced(field, best, admitted)
        if winner.rules == best.rules:
            return winner
        best = winner


def _by_model(field: Field, plan: SearchPlan, best: Judged, at: int) -> Judged:
    """What the model of the rule's actions names."""
    actions = Actions(usual_window(best.rules.rules[at].action), plan.admits)
    misses, misses_max = 0, _MISSES_MAX if len(best.rules.rules) > 1 else _MISSES_FIRST_MAX
    for _ in range(_ROUNDS_MAX):
        named = promising(actions, field.variants(best.rules, at), best, _BATCH)
        worth = _WORTH_DEVIATIONS * field.deviation(best)
        if misses == misses_max or not named or named[0].improvement <= worth:
            return best
        field.judge.round += 1
        winner = _raced(field, best, [best.rules.with_action(at, one.action) for one in named])
        misses = misses + 1 if winner.rules == best.rules else 0
        best = winner
    return best


def _refined(field: Field, plan: SearchPlan, scout: Scout, best: Judged) -> Judged | None:
    """An epoch: one rule split, its parts improved; the rules as they were where that brings nothing.

    None: nothing is left to split.
    """
    if "one-axis" in plan.without:
        return _split_whole(field, plan, best)
    field.judge.round += 1
    cut = scout.cut(best)
    if cut is None:
        return None
    parts = field.adopt(replace(best, rules=cut.rules))
    found = parts
    improved = _swept if scout.far else _improved
    for at in cut.parts:
        found = improved(field, plan, found, at)
    return best if found.rules == parts.rules else found


def _split_whole(field: Field, plan: SearchPlan, best: Judged) -> Judged:
    """The hottest rule in 2^d, as algorithm 1 has it, and the hottest of the parts improved."""
    (parts,) = field.run([split(best.observed)], RUNS)
    # Where that brings nothing the parts do as the whole did: the next epoch goes on with them.
    return _improved(field, plan, parts, parts.observed.hottest())
