"""A rule set in words: when each rule holds, what it does (Li, section 3.2.4, table 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ascar.rules import INDICATOR_LIST, INFINITY

if TYPE_CHECKING:
    from ascar.rules import Action, Rule, RuleSet

_WINDOW = 8.0  # requests: the default, where nothing else tells
_WINDOW_MIN, _WINDOW_MAX = 1.0, 256.0
_ALIKE = 0.05  # numbers this near to what is usual are not called high or low
_STEPS = 1_000

Level = Literal["low", "usual", "high"]

_STATES = {
    ("low", "high"): "not congested and getting worse",
    ("low", "low"): "not congested and improving",
    ("high", "high"): "congested and getting worse",
    ("high", "low"): "congested, but improving",
    ("low", "usual"): "not congested",
    ("high", "usual"): "congested",
    ("usual", "high"): "getting worse",
    ("usual", "low"): "improving",
    ("usual", "usual"): "as usual",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """One rule.

    Attributes:
        rule: the rule.
        when: the congestion state in words, e.g. "not congested and getting worse".
        what: the action in words, e.g. "fewer, faster".
        window_settles_at: the limit of the window under repeated use; None: it stays as it is.
        used_share: the share of all uses of rules, 0 to 1; None where nothing was counted.
    """

    rule: Rule
    when: str
    what: str
    window_settles_at: float | None
    used_share: float | None


def explain(rules: RuleSet) -> tuple[Explained, ...]:
    """Every rule in words, in the order of the set.

    Replies and requests that come after long gaps are a sign of congestion, and tell its history; a process
    time far above the shortest is what happens now (section 3.2.4). What is high or low is told by the means
    of where a rule was used, against the mean of all uses; where nothing was counted, by where it holds.
    """
    uses = sum(one.observed.used_times for one in rules.rules if one.observed is not None)
    usual = _usual(rules) if uses else None
    tau_us = _usual_tau_us(rules) if len({one.action.tau_us for one in rules.rules}) > 1 else None
    return tuple(
        Explained(
            rule,
            _when(rule, usual),
            _what(rule.action, tau_us),
            settles_at(rule.action),
            None if not uses or rule.observed is None else rule.observed.used_times / uses,
        )
        for rule in rules.rules
    )


def window_after(action: Action, window: float) -> float:
    """The window after one use of a rule, in requests."""
    times = 1.0 if action.m100 < 0 else action.m100 / 100
    return min(max(window * times + action.b100 / 100, _WINDOW_MIN), _WINDOW_MAX)


def settles_at(action: Action) -> float | None:
    """Where a window of 8 goes when the rule is used again and again; None: it stays."""
    window = _WINDOW
    for _ in range(_STEPS):
        window = window_after(action, window)
    return None if window == _WINDOW and window_after(action, _WINDOW * 2) == _WINDOW * 2 else window


def _when(rule: Rule, usual: tuple[float, ...] | None) -> str:
    levels = [_level(rule, axis, usual) for axis in range(len(rule.region))]
    ack, send, ratio = levels[:3]
    words = _STATES[ack if ack != "usual" else send, ratio]
    if {ack, send} == {"low", "high"}:
        words += ", a queue grows" if ack == "high" else ", a queue drains"
    for indicator, level in zip(INDICATOR_LIST, levels, strict=False):
        if indicator.words and level != "usual":
            words += f", {'many' if level == 'high' else 'few'} {indicator.words}"
    everywhere = all(
        at.lo == one.least and at.hi == INFINITY for at, one in zip(rule.region, INDICATOR_LIST, strict=False)
    )
    return "always" if everywhere else words


def _level(rule: Rule, axis: int, usual: tuple[float, ...] | None) -> Level:
    """Whether a rule is about low or high values of an indicator."""
    seen = rule.observed
    if usual is not None and seen is not None and seen.used_times and axis < len(usual):
        mean, reference = seen.means[axis], usual[axis]
        if abs(mean - reference) <= _ALIKE * reference:
            return "usual"
        return "high" if mean > reference else "low"
    at = rule.region[axis]
    below, above = at.lo <= INDICATOR_LIST[axis].least, at.hi >= INFINITY
    if below == above:  # all of it, or something in between
        return "usual"
    return "low" if below else "high"


def _what(action: Action, usual_tau_us: float | None) -> str:
    """What is done to the window, and the gap: against the usual one; where all have the same, itself."""
    after = window_after(action, _WINDOW)
    window = "as many" if abs(after - _WINDOW) < 0.005 else "more" if after > _WINDOW else "fewer"
    if usual_tau_us is None:
        return f"{window}, {f'at least {action.tau_us / 1_000:g} ms apart' if action.tau_us else 'unpaced'}"
    if abs(action.tau_us - usual_tau_us) <= _ALIKE * usual_tau_us:
        return window
    return f"{window}, {'faster' if action.tau_us < usual_tau_us else 'slower'}"


def _usual(rules: RuleSet) -> tuple[float, ...]:
    """Mean of each indicator over all uses of rules."""
    seen = [one.observed for one in rules.rules if one.observed is not None]
    uses = sum(one.used_times for one in seen)
    axes = min(len(one.means) for one in seen)
    return tuple(sum(one.means[axis] * one.used_times for one in seen) / uses for axis in range(axes))


def _usual_tau_us(rules: RuleSet) -> float:
    """Mean gap: over uses where they were counted, else over rules."""
    weights = [0 if one.observed is None else one.observed.used_times for one in rules.rules]
    if not any(weights):
        weights = [1] * len(weights)
    taus = [one.action.tau_us for one in rules.rules]
    return sum(tau * weight for tau, weight in zip(taus, weights, strict=True)) / sum(weights)
