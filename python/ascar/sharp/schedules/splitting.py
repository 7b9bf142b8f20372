"""Splitting a rule at what was observed, so that its parts can differ (Li, algorithm 1, lines 29-30)."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from ascar.rules import INDICATORS, KINDS, Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    return _parted(rule_set, at, {axis: _halves(rule, axis) for axis in axes})


def split_at(rule_set: RuleSet, at: int, axis: int, value: int) -> RuleSet:
    """Split one rule in two at a value of an indicator, which lies inside it; without statistics."""
    return _parted(rule_set, at, {axis: _cut(rule_set.rules[at].region[axis], value)}).bare()


def split_in_the_middle(rule_set: RuleSet, at: int, axes: Sequence[int]) -> RuleSet:
    """Split one rule along indicators of `KINDS`, each in the middle between two kinds of stream."""
    region = rule_set.rules[at].region
    return _parted(rule_set, at, {axis: _cut(region[axis], KINDS[INDICATORS[axis]]) for axis in axes}).bare()


def _parted(rule_set: RuleSet, at: int, pieces: Mapping[int, tuple[Interval, ...]]) -> RuleSet:
    """One rule in parts: a part for each combination of the pieces of its intervals."""
    rule = rule_set.rules[at]
    intervals = [pieces.get(axis, (whole,)) for axis, whole in enumerate(rule.region)]
    parts = (replace(rule, region=region, observed=None) for region in product(*intervals))
    return rule_set.with_rules(at, tuple(parts))


def _cut(whole: Interval, value: int) -> tuple[Interval, ...]:
    """An interval in two at a value; whole where the value is not inside."""
    if not whole.lo < value < whole.hi:
        return (whole,)
    return Interval(whole.lo, value), Interval(value, whole.hi)


def _halves(rule: Rule, axis: int) -> tuple[Interval, ...]:
    whole = rule.region[axis]
    if whole.hi - whole.lo < 2:
        return (whole,)
    seen = None if rule.observed is None else rule.observed.means[axis]
    inside = seen is not None and whole.lo < seen < whole.hi
    return _cut(whole, seen if inside and seen is not None else (whole.lo + whole.hi) // 2)
