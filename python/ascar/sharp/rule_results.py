"""Rules as the results that commands print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.results.rule_sets import RuleResult, RuleSetResult
from ascar.rules import INDICATOR_LIST

if TYPE_CHECKING:
    from ascar.rules import Rule, RuleSet

_KEYS = tuple(one.key for one in INDICATOR_LIST)


def rule_result(rule: Rule) -> RuleResult:
    """A rule, with its use if it was counted."""
    observed = rule.observed
    return RuleResult(
        region={name: (at.lo, at.hi) for name, at in zip(_KEYS, rule.region, strict=False)},
        m_x100=rule.action.m100,
        b_x100=rule.action.b100,
        tau_us=rule.action.tau_us,
        used_times=None if observed is None else observed.used_times,
        means=None if observed is None else dict(zip(_KEYS, observed.means, strict=False)),
    )


def rule_set_result(rules: RuleSet) -> RuleSetResult:
    """A rule set, with the use of its rules if it was counted."""
    return RuleSetResult(
        updates_per_second=rules.updates_per_second,
        rules=tuple(rule_result(one) for one in rules.rules),
        active_files=rules.active_files,
    )
