"""How far a parameter may go while the others stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.space import Choices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Space, Value

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
