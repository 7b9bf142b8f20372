"""The settings of Redis that bear on speed, by the server's own names; `redis.toml` lists them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec.structs import replace

from ascar import typed
from ascar.catalogues.server_setting import ServerSetting
from ascar.space import ChangeCost
from ascar.space.parameter import identifier

if TYPE_CHECKING:
    from ascar.space import Parameter

_VALKEY_APART = (8, 0)
"""The first version of Valkey that differs from Redis 7.2."""

_WORDS = {False: "no", True: "yes"}


class ValkeyDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is different in Valkey, which began as Redis 7.2.

    Attributes:
        default: the default from version 8.0 on. None: the same.
        until: the first version that has the setting no longer.
        dynamic_from: the first version whose CONFIG SET changes it.
    """

    default: bool | int | str | None = None
    until: str = ""
    dynamic_from: str = ""


class RedisSetting(ServerSetting, frozen=True, kw_only=True):
    """A setting of the server; see `redis.toml`.

    Attributes:
        context: whether CONFIG SET changes it, or a new start alone.
        guarantees: what a weaker value promises less of.
        weakest_first: the values by how much they promise, as the server writes them.
        weakens: which numbers promise less than the default.
        weakest_special: a number outside of the range that promises least.
        when: the condition under which it has an effect.
        set_by: what sets it instead of a search.
        since: the first version that has it.
        valkey: what is different in Valkey.
    """

    context: Literal["dynamic", "restart"]
    guarantees: tuple[str, ...] = ()
    weakest_first: tuple[str, ...] = ()
    weakens: Literal["", "above", "below"] = ""
    weakest_special: str = ""
    when: str = ""
    set_by: str = ""
    since: str = "6.0"
    valkey: ValkeyDifference = ValkeyDifference()

    def of(self, flavour: str, version: tuple[int, int]) -> RedisSetting | None:
        """The setting as a version has it; None: it has none.

        Args:
            flavour: "redis" or "valkey".
            version: major and minor version.
        """
        if version < _number(self.since):
            return None
        other = self.valkey
        if flavour != "valkey" or version < _VALKEY_APART:
            return self
        if other.until and version >= _number(other.until):
            return None
        is_dynamic = other.dynamic_from and version >= _number(other.dynamic_from)
        return replace(
            self,
            default=self.default if other.default is None else other.default,
            context="dynamic" if is_dynamic else self.context,
        )

    @property
    def parameter_name(self) -> str:
        """The name in a study, whose formulas know no hyphen."""
        return identifier(self.name)

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change."""
        return ChangeCost.APP_RESTART if self.context == "restart" else ChangeCost.DYN_APP

    def parameter(self, default: bool | int | float | str | None = None) -> Parameter:
        """The setting as a parameter of a space.

        Args:
            default: the value in force where nobody chose another; None: the server's own.

        Raises:
            SpaceError: the setting cannot have that value.
        """
        value = self.default if default is None else default
        return self.built(
            self.parameter_name,
            {
                "default": value,
                "cost": self.cost,
                "weaker": self._weaker(value),
                "when": self.when,
                "unit": self.unit,
                "description": self.what,
                "native": self.name,
            },
        )

    def text(self, value: object) -> str:
        """A value as the server writes it: yes, 4096."""
        return _WORDS[value] if isinstance(value, bool) else str(value)

    def value(self, text: str) -> bool | int | float | str:
        """A value from what the server writes; what is none of the kind stays a text."""
        if self.kind == "boolean":
            return {"no": False, "yes": True}.get(text, text)
        if self.kind == "choice":
            return text
        try:
            return int(text) if self.kind == "integer" else float(text)
        except ValueError:
            return text

    def _weaker(self, default: bool | float | str) -> dict[object, list[str]]:
        """The values that promise less than a default, and what they promise less of."""
        named, text = list(self.guarantees), self.text(default)
        if text in self.weakest_first:
            below = self.weakest_first[: self.weakest_first.index(text)]
            return {self.value(one): named for one in below}
        if not self.weakens or text == self.weakest_special:
            return {}
        found: dict[object, list[str]] = {f"{'>' if self.weakens == 'above' else '<'}{text}": named}
        if self.weakest_special:
            found[int(self.weakest_special)] = named
        return found


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    setting: tuple[RedisSetting, ...]


@cache
def redis() -> dict[str, RedisSetting]:
    """The settings by the server's names, those of the expert's space first."""
    text = Path(__file__).with_name("redis.toml").read_text("utf-8")
    return {one.name: one for one in typed.convert(tomllib.loads(text), _List).setting}


def redis_of(flavour: str, version: tuple[int, int]) -> dict[str, RedisSetting]:
    """The settings that a version has, as it has them, by the server's names.

    Args:
        flavour: "redis" or "valkey".
        version: major and minor version.
    """
    found = (one.of(flavour, version) for one in redis().values())
    return {one.name: one for one in found if one is not None}
