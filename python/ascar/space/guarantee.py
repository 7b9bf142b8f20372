"""What a storage system promises, and the labels on values that promise less than the default does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import eq, ge, gt, le, lt

from ascar.space.domain import Value, same

RELATIONS = {"==": eq, "<=": le, ">=": ge, "<": lt, ">": gt}


class Guarantee(StrEnum):
    """A promise of the system.

    durability: what was acknowledged (or is older than the default's window) survives a crash.
    consistency: after a crash, files hold what was written to them, in an order that makes sense.
    integrity: what is read is what was written; damage is noticed or repaired.
    availability: what was served goes on being served when a part fails, or while the change is made.
    """

    DURABILITY = "durability"
    CONSISTENCY = "consistency"
    INTEGRITY = "integrity"
    AVAILABILITY = "availability"


@dataclass(frozen=True, slots=True)
class Weaker:
    """Values of a parameter that promise less than its default.

    Attributes:
        relation: "==" for one value; "<", "<=", ">", ">=" for all numbers on that side of it.
        value: the value, or the limit.
        guarantees: the guarantees that these values weaken.
    """

    relation: str
    value: Value
    guarantees: frozenset[Guarantee]

    def covers(self, value: Value) -> bool:
        """Whether `value` is one of these values."""
        if self.relation == "==":
            return same(value, self.value)
        if isinstance(value, (bool, str)) or isinstance(self.value, (bool, str)):
            return False
        return bool(RELATIONS[self.relation](value, self.value))
