"""The settings of Redis that bear on speed, by the server's own names; `redis.toml` lists them."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec.structs import replace

from ascar.catalogues import listed
from ascar.catalogues.server_setting import RankedSetting

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


class RedisSetting(RankedSetting, frozen=True, kw_only=True):
    """A setting of the server; see `redis.toml`.

    Attributes:
        since: the first version that has it.
        valkey: what is different in Valkey.
    """

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


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


@cache
def redis() -> dict[str, RedisSetting]:
    """The settings by the server's names, those of the expert's space first."""
    return listed("redis", RedisSetting)


def redis_of(flavour: str, version: tuple[int, int]) -> dict[str, RedisSetting]:
    """The settings that a version has, as it has them, by the server's names.

    Args:
        flavour: "redis" or "valkey".
        version: major and minor version.
    """
    found = (one.of(flavour, version) for one in redis().values())
    return {one.name: one for one in found if one is not None}
