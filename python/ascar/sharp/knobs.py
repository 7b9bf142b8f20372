"""The numbers in a rule set as knobs: parameters that a tuner or a learner can turn (Li, section 6.3.1).

The rules then need no communication at run time, and still learn: what is turned is what every controller
follows by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ascar.errors import InputError
from ascar.sharp.candidates import B100, M100, TAU_US
from ascar.sharp.rules import Action
from ascar.space import ChangeCost, Space, integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.sharp.candidates import Steps
    from ascar.sharp.rules import RuleSet
    from ascar.space import Parameter

__all__ = ["FIELDS", "knobs", "space_of", "with_values"]

FIELDS: Final[dict[str, Steps]] = {"m100": M100, "b100": B100, "tau_us": TAU_US}
"""Fields of an action that can be turned, each with its range of table 3.2."""

_MEANINGS = {
    "m100": "what the window is multiplied by, times 100",
    "b100": "requests added to the window, times 100",
    "tau_us": "least gap between requests",
}
_ONCE_X100 = 100  # what "do not multiply" multiplies by


def knobs(
    rules: RuleSet, fields: Sequence[str] = tuple(FIELDS), at: Sequence[int] | None = None
) -> tuple[Parameter, ...]:
    """The parameters of a rule set: `rule3_tau_us` is the third rule's gap; defaults are its own numbers.

    Args:
        rules: whose numbers are turned.
        fields: of `FIELDS`.
        at: numbers of the rules, from 0; None: all.

    Raises:
        InputError: no such field or rule, or a number of the rules lies outside of the range of table 3.2.
    """
    unknown = [name for name in fields if name not in FIELDS]
    if unknown or not fields:
        raise InputError(f"fields: {', '.join(unknown) or 'none'}; allowed: {', '.join(FIELDS)}")
    numbers = range(len(rules.rules)) if at is None else at
    for number in numbers:
        if not 0 <= number < len(rules.rules):
            raise InputError(f"rule {number + 1}: there are rules 1 to {len(rules.rules)}")
    return tuple(_knob(rules, number, name) for number in numbers for name in fields)


def space_of(rules: RuleSet, fields: Sequence[str] = tuple(FIELDS), at: Sequence[int] | None = None) -> Space:
    """The space of `knobs`, for an optimizer.

    Raises:
        InputError: as `knobs`.
    """
    return Space(knobs(rules, fields, at), name="rules")


def with_values(rules: RuleSet, values: Mapping[str, object]) -> RuleSet:
    """The rule set with knobs turned.

    Args:
        rules: as `knobs` was given.
        values: by parameter; those that are absent stay.

    Raises:
        InputError: no such parameter, or a value that it does not take.
    """
    turned = [_action(rule.action) for rule in rules.rules]
    for name, value in values.items():
        number, field = _parsed(name, len(turned))
        parameter = _knob(rules, number, field)
        canonical = parameter.canonical(value)
        assert isinstance(canonical, int), "knobs are whole numbers"
        turned[number][field] = canonical
    for number, action in enumerate(turned):
        if action != _action(rules.rules[number].action):
            rules = rules.with_action(number, Action(**action))
    return rules


def _knob(rules: RuleSet, number: int, field: str) -> Parameter:
    steps, now = FIELDS[field], _action(rules.rules[number].action)[field]
    low, high = _whole(steps)
    name = f"rule{number + 1}_{field}"
    if not low <= now <= high:
        raise InputError(f"{name} = {now}: must be from {low} to {high} to be turned (table 3.2)")
    return integer(
        name,
        (low, high),
        default=now,
        cost=ChangeCost.DYN_KERNEL,
        unit="us" if field == "tau_us" else "",
        description=f"{_MEANINGS[field]}, in rule {number + 1}",
    )


def _whole(steps: Steps) -> tuple[int, int]:
    return int(steps.lower), int(steps.upper)


def _action(action: Action) -> dict[str, int]:
    """By field, with the multiplier that "do not multiply" means."""
    m100 = action.m100 if action.m100 >= 0 else _ONCE_X100
    return {"m100": m100, "b100": action.b100, "tau_us": action.tau_us}


def _parsed(name: str, rules: int) -> tuple[int, str]:
    head, _, field = name.partition("_")
    digits = head.removeprefix("rule")
    if head.startswith("rule") and digits.isascii() and digits.isdecimal() and len(digits) < 6:  # noqa: SIM102
        if 1 <= int(digits) <= rules and field in FIELDS and str(int(digits)) == digits:
            return int(digits) - 1, field
    raise InputError(f"{name[:80]!r}: is no knob of these rules; there are rule1_m100 to rule{rules}_tau_us")
