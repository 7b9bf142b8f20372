"""The numbers in a rule set as knobs: parameters that a tuner or a learner can turn (Li, section 6.3.1).

The rules then need no communication at run time, and still learn: what is turned is what every controller
follows by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ascar.errors import InputError
from ascar.rules import Action
from ascar.sharp.ranges import FIELDS, numbers, ranges, sets_window
from ascar.space import ChangeCost, Space, integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.rules import RuleSet
    from ascar.space import Parameter

_MEANINGS: Final = {
    "m100": "what the window is multiplied by, times 100",
    "b100": "requests added to the window, times 100",
    "tau_us": "least gap between requests",
}


def knobs(
    rules: RuleSet, fields: Sequence[str] = tuple(FIELDS), at: Sequence[int] | None = None
) -> tuple[Parameter, ...]:
    """The parameters of a rule set: `rule3_tau_us` is the third rule's gap; defaults are its own numbers.

    How far each goes: `ascar.sharp.ranges`.

    Args:
        rules: the rules whose numbers become parameters.
        fields: the numbers to use, a subset of `FIELDS`.
        at: numbers of the rules, from 0; None: all.

    Raises:
        InputError: no such field or rule.
    """
    unknown = [name for name in fields if name not in FIELDS]
    if unknown or not fields:
        raise InputError(f"fields: {', '.join(unknown) or 'none'}; allowed: {', '.join(FIELDS)}")
    chosen = range(len(rules.rules)) if at is None else at
    for number in chosen:
        if not 0 <= number < len(rules.rules):
            raise InputError(f"rule {number + 1}: there are rules 1 to {len(rules.rules)}")
    return tuple(_knob(rules, number, name) for number in chosen for name in fields)


def space_of(rules: RuleSet, fields: Sequence[str] = tuple(FIELDS), at: Sequence[int] | None = None) -> Space:
    """The space of `knobs`, for an optimizer.

    Raises:
        InputError: as `knobs`.
    """
    return Space(knobs(rules, fields, at), name="rules")


def with_values(rules: RuleSet, values: Mapping[str, object]) -> RuleSet:
    """The rule set with knobs turned.

    Args:
        rules: the rules that were given to `knobs`.
        values: the values by parameter; absent parameters keep theirs.

    Raises:
        InputError: no such parameter, or a value that it does not take.
    """
    turned = [numbers(rule.action) for rule in rules.rules]
    for name, value in values.items():
        number, field = _parsed(name, len(turned))
        parameter = _knob(rules, number, field)
        canonical = parameter.canonical(value)
        assert isinstance(canonical, int), "knobs are whole numbers"
        turned[number][field] = canonical
    for number, action in enumerate(turned):
        if action != numbers(rules.rules[number].action):
            rules = rules.with_action(number, Action(**action))
    return rules


def _knob(rules: RuleSet, number: int, field: str) -> Parameter:
    action = rules.rules[number].action
    return integer(
        f"rule{number + 1}_{field}",
        ranges(action)[field],
        default=numbers(action)[field],
        log=field == "b100" and sets_window(action),  # where b is the window ratios matter
        cost=ChangeCost.DYN_KERNEL,
        unit="us" if field == "tau_us" else "",
        description=f"{_MEANINGS[field]}, in rule {number + 1}",
    )


def _parsed(name: str, rules: int) -> tuple[int, str]:
    head, _, field = name.partition("_")
    digits = head.removeprefix("rule")
    if head.startswith("rule") and digits.isascii() and digits.isdecimal() and len(digits) < 6:  # noqa: SIM102
        if 1 <= int(digits) <= rules and field in FIELDS and str(int(digits)) == digits:
            return int(digits) - 1, field
    raise InputError(
        f"{name[:80]!r}: is not a knob of these rules; there are rule1_m100 to rule{rules}_tau_us"
    )
