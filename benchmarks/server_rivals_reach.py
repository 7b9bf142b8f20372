"""How far a parameter may go while the others stay as they are, and advice as far as it may be followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.space import Choices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Configuration, Space, Value

_HALVINGS = 30


def reach(space: Space, configuration: Mapping[str, Value], name: str, towards: float) -> Value:
    """The value nearest to a position with which a valid configuration stays valid.

    Args:
        space: the space.
        configuration: a valid configuration.
        name: a parameter that is a range.
        towards: the position between the range's low (0) and high (1), on its scale.
    """
    domain, value = space.domain(name), configuration[name]
    assert not isinstance(domain, Choices), "only a range has positions"
    if space.is_valid({**configuration, name: domain.nearest(towards)}):
        return domain.nearest(towards)
    assert not isinstance(value, str), "a range has numbers"
    inside = 1 - towards if value in domain.special else domain.position(value)
    outside, found = towards, value
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if space.is_valid({**configuration, name: domain.nearest(middle)}):
            inside, found = middle, domain.nearest(middle)
        else:
            outside = middle
    return found


def within(space: Space, advice: Mapping[str, Value]) -> tuple[Configuration, dict[str, Value]]:
    """Advice as a configuration of a space: what it forbids is the nearest value that it allows.

    Args:
        space: the space, in which nothing weakens a guarantee.
        advice: values by parameter, taken up one after the other; of others the default stays.

    Returns:
        The configuration, and what is not in force as advised.
    """
    found, kept = dict(space.default()), dict[str, "Value"]()
    for name, value in advice.items():
        if name not in space.names:
            kept[name] = value
            continue
        domain = space.domain(name)
        if isinstance(domain, Choices):
            found[name] = value if value in domain.values else found[name]
            near = found[name] == value
        else:
            assert not isinstance(value, str), "a range has numbers"
            position = domain.position(min(max(value, domain.low), domain.high))
            found[name] = reach(space, found, name, position)
            near = abs(float(found[name]) - value) <= (domain.step or 0)
        if not near:
            kept[name] = value
    return space.validate(found), kept
