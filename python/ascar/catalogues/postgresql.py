"""The settings of PostgreSQL that bear on speed, by the server's own names; `postgresql.toml` lists them."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar import typed
from ascar.catalogues import listed
from ascar.catalogues.server_setting import ServerSetting
from ascar.errors import SpaceError
from ascar.space import ChangeCost
from ascar.space.parameter import value_text

if TYPE_CHECKING:
    from ascar.space import Parameter, Value

BYTES = {"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "MB": 1 << 20, "16MB": 16 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""The server's units of memory (manual, section 20.1.1)."""


_MEMORY = {name: BYTES[name] for name in ("TB", "GB", "MB", "kB", "B")}
_TIMES_US = {"d": 86_400 * 10**6, "h": 3600 * 10**6, "min": 60 * 10**6, "s": 10**6, "ms": 1000, "us": 1}

_AMOUNT = re.compile(r"(?P<number>-?[0-9]{1,15}(?:\.[0-9]{1,9})?) ?(?P<unit>[A-Za-z]{0,3})")
_BOOLEANS = {"on": True, "off": False, "true": True, "false": False}

VERSION_MIN = 15
"""The oldest version that ascar tunes; PostgreSQL maintains none before it."""


class PostgresSetting(ServerSetting, frozen=True, kw_only=True):
    """A setting of the server; see `postgresql.toml`.

    Attributes:
        context: when a change takes effect, as pg_settings says.
        weaker: values that promise less than the default, and the guarantees that they weaken. Of a choice,
            whose values are then listed by how much they promise, the strongest first, only those count that
            come after the value in force, for what that still promises; of numbers, those on that side of it.
        since: the first major version that has the setting.
        newer: the attributes that are others from a major version on.
    """

    context: Literal["postmaster", "sighup", "superuser", "user"]
    weaker: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])
    since: int = VERSION_MIN
    newer: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict[str, dict[str, Any]])

    def of(self, version: int) -> PostgresSetting:
        """The setting as a major version has it."""
        changed = dict[str, Any]()
        for first in sorted(self.newer, key=int):
            if int(first) <= version:
                changed |= self.newer[first]
        return typed.convert({**msgspec.structs.asdict(self), **changed, "newer": {}}, PostgresSetting)

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change: a restart, or a reload of the configuration."""
        return ChangeCost.APP_RESTART if self.context == "postmaster" else ChangeCost.DYN_APP

    def parameter(self) -> Parameter:
        """The setting as a parameter of a space."""
        return self.built(
            self.name,
            {
                "default": self.default,
                "cost": self.cost,
                "weaker": self._weaker(),
                "unit": self.unit,
                "description": self.what,
                "native": self.name,
            },
        )

    def found(self, present: Value) -> Parameter | None:
        """The setting as a parameter whose default is the value in force, also one that no search would try.

        Args:
            present: the value in force; a word that nobody knows makes None.
        """
        known = msgspec.structs.replace(self, default=present)
        with suppress(SpaceError):
            return known.parameter()
        if isinstance(present, (bool, str)):
            return None
        special = {**self.special, str(present): "the value that the study found"}
        return msgspec.structs.replace(known, special=special).parameter()

    def _weaker(self) -> dict[str, list[str]]:
        """The values that promise less than the default, and what they promise less of."""
        if self.kind not in ("boolean", "choice"):
            return {f"{relation[0]}{self.default}": named for relation, named in self.weaker.items()}
        present = value_text(self.default)
        known = self.values if self.kind == "choice" else ("true", "false")
        weaker = known[known.index(present) + 1 :] if present in known else known
        lost = self.weaker.get(present, [])
        return {
            one: [each for each in self.weaker[one] if each not in lost] or self.weaker[one]
            for one in weaker
            if one in self.weaker
        }

    def text(self, value: object) -> str:
        """A value as the server's configuration file writes it, without quotes: on, 4096kB, 0.9."""
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, str) or (isinstance(value, (int, float)) and value < 0):
            return str(value)  # numbers below zero mean something of their own, which has no unit
        return f"{value}{self.unit}"

    def shown(self, value: object) -> str:
        """A value as SHOW writes it: in the largest unit that divides it (ShowGUCOption in guc.c)."""
        if isinstance(value, (bool, str)) or not isinstance(value, (int, float)):
            return self.text(value)
        units = next((units for units in (_MEMORY, _TIMES_US) if self.unit in units), None)
        if value <= 0 or units is None:
            return f"{value:g}" if isinstance(value, float) else str(value)
        amount = round(value * units[self.unit], 6)
        unit = next((one for one, size in units.items() if amount % size == 0), self.unit)
        return f"{amount / units[unit]:.15g}{unit}"

    def given(self, value: object) -> Value:
        """A value as a person writes it, in postgresql.conf or as SHOW does: "4GB", "15min", "on", 1.1, -1.

        Raises:
            SpaceError: it cannot be read as one of the setting's.
        """
        if self.kind == "boolean":
            word = str(value).lower()
            if word not in _BOOLEANS:
                raise SpaceError("must be on or off")
            return _BOOLEANS[word]
        if self.kind == "choice":
            word = self.text(value) if isinstance(value, bool) else str(value)
            if word not in self.values:
                raise SpaceError(f"must be one of {', '.join(self.values)}")
            return word
        units = next((units for units in (_MEMORY, _TIMES_US) if self.unit in units), None)
        found = None if isinstance(value, bool) else _AMOUNT.fullmatch(str(value).strip())
        if found is None or (found["unit"] and (units is None or found["unit"] not in units)):
            of_units = f" with a unit of {', '.join(units)}" if units else ""
            raise SpaceError(f"must be a number{of_units}")
        number = float(found["number"])
        if units is not None and number > 0:
            if not found["unit"]:
                raise SpaceError(f"must have a unit, such as {found['number']}{self.unit}")
            number *= units[found["unit"]] / units[self.unit]
        return round(number) if self.kind == "integer" else number

    def end(self, index: int) -> str:
        """The begin or the end of what is searched, as the server's configuration file writes it."""
        number = self.search[index]
        return self.text(int(number) if self.kind == "integer" else number)

    def within(self, least: str, most: str, unit: str) -> PostgresSetting | None:
        """The setting with what a range leaves of the one that is searched; None: not even the default.

        Args:
            least: the least number, as the server tells it.
            most: the greatest number.
            unit: the server's unit of both.
        """
        known = self.narrowed(least, most, unit)
        with suppress(SpaceError):
            known.parameter()
            return known
        return None

    def narrowed(self, least: str, most: str, unit: str) -> PostgresSetting:
        """The setting with what a range leaves of the one that is searched, which may be nothing.

        Args:
            least: the least number, as the server tells it.
            most: the greatest number.
            unit: the server's unit of both.
        """
        return self.between(float(self.value(least, unit)), float(self.value(most, unit)))

    def value(self, text: str, unit: str) -> bool | int | float | str:
        """A value from what pg_settings tells: its columns `setting` and `unit`."""
        if self.kind == "boolean":
            return text == "on"
        if self.kind == "choice":
            return text
        number = float(text)
        if number > 0 and unit != self.unit and unit in BYTES:
            number *= BYTES[unit] / BYTES[self.unit]
        return int(number) if self.kind == "integer" else number


@cache
def postgresql() -> dict[str, PostgresSetting]:
    """The settings of all versions by name, as the oldest has them, those of the expert's space first."""
    return listed("postgresql", PostgresSetting)


def postgresql_of(version: int) -> dict[str, PostgresSetting]:
    """The settings that a major version has, as it has them."""
    return {name: one.of(version) for name, one in postgresql().items() if one.since <= version}
