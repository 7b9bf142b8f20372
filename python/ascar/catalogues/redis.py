"""The settings of Redis that bear on speed, by the server's own names; `redis.toml` lists them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from ascar import typed
from ascar.catalogues.server_setting import ComparedSetting

_WORDS = {False: "no", True: "yes"}


class RedisSetting(ComparedSetting, frozen=True, kw_only=True):
    """A setting of the server; see `redis.toml`.

    Attributes:
        since: the first version that has it.
    """

    since: str = "6.0"

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


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    setting: tuple[RedisSetting, ...]


@cache
def redis() -> dict[str, RedisSetting]:
    """The settings by the server's names, those of the expert's space first."""
    text = Path(__file__).with_name("redis.toml").read_text("utf-8")
    return {one.name: one for one in typed.convert(tomllib.loads(text), _List).setting}
