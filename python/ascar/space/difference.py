"""What it takes to get from one configuration to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ascar.space.cost import ChangeCost
    from ascar.space.domain import Value
    from ascar.space.parameter import Parameter


@dataclass(frozen=True, slots=True)
class Difference:
    """What it takes to get from one configuration to another.

    Attributes:
        parameters: the parameters whose value differs, or that are active in only one of the two, in the
            space's order.
        cost: the highest change cost among them; None where nothing differs.
    """

    parameters: tuple[str, ...]
    cost: ChangeCost | None

    @property
    def category(self) -> int | None:
        """The highest category of Table 9.1 among them; None where nothing differs."""
        return None if self.cost is None else self.cost.category


def difference(
    parameters: Iterable[Parameter], before: Mapping[str, Value], after: Mapping[str, Value]
) -> Difference:
    """Which of the parameters differ, and the highest cost among them (Cao 9.4)."""
    changed = [one for one in parameters if not same(before.get(one.name), after.get(one.name))]
    return Difference(
        tuple(one.name for one in changed),
        max((one.cost for one in changed), key=lambda cost: cost.rank, default=None),
    )


def same(left: Value | None, right: Value | None) -> bool:
    """Whether two values are one: 1, 1.0 and True are three."""
    return type(left) is type(right) and left == right
