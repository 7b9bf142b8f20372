"""Splitting a rule at what was observed, so that its parts can differ (Li, algorithm 1, lines 29-30)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from ascar.rules import INDICATORS, KINDS, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.rules import Rule, RuleSet


def split(rule_set: RuleSet, at: int | None = None, axes: Sequence[int] = (0, 1, 2)) -> RuleSet:
    """Split one rule along some indicators at their observed means into 2^d, d of `axes`.

    Args:
        rule_set: the rules, with statistics where they were used.
        at: number of the rule; the hottest by default.
        axes: numbers of the indicators.

    Returns:
        The set with the parts in the rule's place, without its statistics; an interval of a single value
        stays whole.
    """
    at = rule_set.hottest() if at is None else at
    rule = rule_set.rules[at]
    halves = [
        _halves(rule, axis) if axis in axes else (interval,) for axis, interval in enumerate(rule.region)
    ]
    parts = (replace(rule, region=region, observed=None) for region in product(*halves))
    return rule_set.with_rules(at, tuple(parts))


def split_at(rule_set: RuleSet, at: int, axis: int, value: int) -> RuleSet:
    """Split one rule in two at a value of an indicator, which lies inside it; without statistics."""
    rule = rule_set.rules[at]
    whole = rule.region[axis]
    parts = (
        replace(rule, region=(*rule.region[:axis], half, *rule.region[axis + 1 :]))
        for half in (Interval(whole.lo, value), Interval(value, whole.hi))
    )
    return rule_set.with_rules(at, tuple(parts)).bare()


def split_in_the_middle(rule_set: RuleSet, at: int, axes: Sequence[int]) -> RuleSet:
    """Split one rule along indicators of `KINDS`, each in the middle between two kinds of stream."""
    rule = rule_set.rules[at]
    middles = {axis: KINDS[INDICATORS[axis]] for axis in axes}
    halves = [
        (Interval(whole.lo, middles[axis]), Interval(middles[axis], whole.hi))
        if axis in middles and whole.lo < middles[axis] < whole.hi
        else (whole,)
        for axis, whole in enumerate(rule.region)
    ]
    parts = (replace(rule, region=region, observed=None) for region in product(*halves))
    return rule_set.with_rules(at, tuple(parts)).bare()


def _halves(rule: Rule, axis: int) -> tuple[Interval, ...]:
    whole = rule.region[axis]
    if whole.hi - whole.lo < 2:
        return (whole,)
    seen = None if rule.observed is None else rule.observed.means[axis]
    inside = seen is not None and whole.lo < seen < whole.hi
    at = seen if inside and seen is not None else (whole.lo + whole.hi) // 2
    return Interval(whole.lo, at), Interval(at, whole.hi)
