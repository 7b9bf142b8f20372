"""Which values a study may use: those that promise as much as the default, and those it names."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ascar.errors import SpaceError
from ascar.space.domain import Choices, Range
from ascar.space.guarantee import Guarantee
from ascar.space.parameter import value_text
from ascar.space.suggestion import hint

if TYPE_CHECKING:
    from ascar.space.domain import Domain, Value
    from ascar.space.guarantee import Weaker
    from ascar.space.parameter import Parameter
    from ascar.space.space import Space

Permissions = tuple[str, ...]
"""The guarantees that values may weaken, and the single `parameter=value`s that may weaken some."""


def permits(parameter: Parameter, value: Value, allow_weaker: Permissions) -> bool:
    """Whether a value may be used: it weakens nothing, or only what is allowed, or is named itself."""
    return (
        parameter.weakens(value) <= set(allow_weaker)
        or f"{parameter.name}={value_text(value)}" in allow_weaker
    )


def permitted(parameter: Parameter, allow_weaker: Permissions) -> Domain:
    """The values of a parameter that may be used."""
    domain = parameter.domain
    if not parameter.weaker:
        return domain
    if isinstance(domain, Choices):
        return Choices(tuple(v for v in domain.values if permits(parameter, v, allow_weaker)), domain.ordered)
    special = {value for value in domain.special if permits(parameter, value, allow_weaker)}
    # Values named one by one stay, as single values outside the range that is left.
    named = {_value_of(parameter, entry) for entry in allow_weaker if entry.startswith(f"{parameter.name}=")}
    narrow = domain
    for label in parameter.weaker:
        if not label.guarantees <= set(allow_weaker) and label.relation != "==":
            cut = _cut(narrow, label)
            if cut is None:
                # Single values alone are left, the default among them: one of them is the range.
                value, *others = sorted(special | named)
                return Range(value, value, integer=domain.integer, special=tuple(others))
            narrow = cut
    special |= {value for value in named if not narrow.low <= value <= narrow.high}
    return replace(narrow, special=tuple(sorted(special)))


def too_weak(parameter: Parameter, value: Value) -> SpaceError:
    """The refusal of a value, with the permission that it needs."""
    entry = f"{parameter.name}={value_text(value)}"
    weakened = " and ".join(sorted(parameter.weakens(value)))
    return SpaceError(
        f"parameter {parameter.name} = {value_text(value)}: weakens {weakened} against the default; "
        f"add {entry!r} to allow_weaker to permit it"
    )


def canonical_permission(space: Space, entry: str) -> str:
    """The entry as `permits` compares it: a guarantee, or a `parameter=value` that weakens something.

    Raises:
        SpaceError: anything else.
    """
    if entry in set(Guarantee):
        return Guarantee(entry).value
    name, equals, text = entry.partition("=")
    if not equals:
        raise SpaceError(
            f"allow_weaker: {entry!r} is neither a guarantee ({', '.join(Guarantee)}) nor 'parameter=value'"
            f"{hint(entry, [*Guarantee, *space.names])}"
        )
    try:
        value = space[name].parse(text)
    except SpaceError as error:
        raise SpaceError(f"allow_weaker: {error.message}") from None
    if not space[name].weakens(value):
        raise SpaceError(f"allow_weaker: {entry!r} weakens nothing; leave it out")
    return f"{name}={value_text(value)}"


def _value_of(parameter: Parameter, entry: str) -> float:
    value = parameter.parse(entry.partition("=")[2])
    assert not isinstance(value, str), "a range holds numbers"
    return value


def _cut(domain: Range, label: Weaker) -> Range | None:
    """The part of a range that a label does not cover; None: none of it, for the default is special."""
    limit = label.value
    assert not isinstance(limit, str), "relations are between numbers"
    strict = label.relation in ("<", ">")  # the limit itself is not covered
    below = label.relation in (">", ">=")  # what is left lies below the limit
    if domain.step is None:
        bound = limit if strict else math.nextafter(limit, -math.inf if below else math.inf)
    else:
        steps = (limit - domain.low) / domain.step
        index = (
            (math.floor(steps) if strict else math.ceil(steps) - 1)
            if below
            else (math.ceil(steps) if strict else math.floor(steps) + 1)
        )
        bound = domain.low + index * domain.step
    low, high = (domain.low, min(domain.high, bound)) if below else (max(domain.low, bound), domain.high)
    return None if low > high else replace(domain, low=low, high=high)
