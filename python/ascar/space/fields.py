"""A table from outside, read key by key; every mistake names the key, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any, cast

from ascar.errors import SpaceError
from ascar.space.suggestion import hint, listed

_ITEMS_MAX = 10_000
_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True)
class Fields:
    """A table whose keys are known.

    Attributes:
        table: the table that was read.
        path: the table's own key, for messages.
    """

    table: Mapping[str, Any]
    path: str

    @classmethod
    def of(cls, table: object, path: str, allowed: Sequence[str]) -> Fields:
        """The fields of a table.

        Raises:
            SpaceError: it is not a table, or has an unknown key.
        """
        if not isinstance(table, Mapping):
            raise SpaceError(f"{path} = {shown(table)}: must be a table")
        known = cast("Mapping[str, Any]", table)
        for key in known:
            if key not in allowed:
                name = shown(key) if not str(key).isidentifier() else str(key)[:_SHOWN_MAX]
                raise SpaceError(
                    f"{path}.{name}: unknown key; allowed here: {listed(allowed)}{hint(key, allowed)}"
                )
        return cls(known, path)

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def error(self, key: str, problem: str) -> SpaceError:
        """An error about the value at a key."""
        return SpaceError(f"{self.path}.{key} = {shown(self.table.get(key))}: {problem}")

    def need(self, key: str, example: str) -> Any:
        """The value at a key that must be there.

        Raises:
            SpaceError: it is not.
        """
        if key not in self.table:
            raise SpaceError(f"{self.path}.{key}: missing; write e.g. {key} = {example}")
        return self.table[key]

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        value = self.table.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, "must be a string")
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where missing."""
        value = self.table.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def number(self, key: str, *, whole: bool = False) -> float:
        """A number that must be there."""
        value = self.need(key, "1")
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or (whole and not isinstance(value, int))
        ):
            raise self.error(key, "must be an integer" if whole else "must be a number")
        return value

    def items(self, key: str, kinds: tuple[type, ...] = (str,), what: str = "strings") -> list[Any]:
        """A list with members of some types; empty where missing."""
        value = self.table.get(key, ())
        if not isinstance(value, (list, tuple)) or not all(
            isinstance(item, kinds) and (bool in kinds or not isinstance(item, bool))
            for item in cast("Sequence[Any]", value)
        ):
            raise self.error(key, f"must be a list of {what}")
        items = list(cast("Sequence[Any]", value))
        if len(items) > _ITEMS_MAX:
            raise SpaceError(f"{self.path}.{key}: {len(items)} items; at most {_ITEMS_MAX}")
        return items

    def mapping(self, key: str) -> dict[str, Any]:
        """A table; empty where missing."""
        value = self.table.get(key, {})
        if not isinstance(value, Mapping):
            raise self.error(key, "must be a table")
        return {str(name): item for name, item in cast("Mapping[Any, Any]", value).items()}


def shown(value: object) -> str:
    """A value for one line of text."""
    text = value.isoformat() if isinstance(value, date | time) else repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
