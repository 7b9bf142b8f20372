"""The parameters of a Lustre client, by kind of device and name; `lustre.toml` lists them."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from ascar import typed


class LustreSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A parameter that all devices of a kind have; see `lustre.toml`.

    Attributes:
        name: the kind of device and the parameter, such as "osc.max_dirty_mb".
        what: what the parameter does.
        unit: the unit of its numbers.
        range: the least and the greatest number.
        default: the default of Lustre.
        source: where the range and the rule are from.
        log: whether its scale is logarithmic.
        changes: other settings that Lustre changes with it.
        at_most: the setting that it must not exceed when it is set; empty: none.
        expert: whether a study searches it that names no settings.
        since: the first version that has it.
    """

    name: str
    what: str
    unit: str
    range: tuple[int, int]
    default: int
    source: str
    log: bool = False
    changes: tuple[str, ...] = ()
    at_most: str = ""
    expert: bool = False
    since: str = "2.5"

    def pattern(self, file_system: str) -> str:
        """What `lctl` calls it on all devices of a file system."""
        kind, parameter = self.name.split(".")
        return f"{kind}.{file_system}-*.{parameter}"


class _List(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    setting: tuple[LustreSetting, ...]


@cache
def lustre() -> dict[str, LustreSetting]:
    """The settings by name, in an order of writing in which what changes others comes first."""
    text = Path(__file__).with_name("lustre.toml").read_text("utf-8")
    return {one.name: one for one in typed.convert(tomllib.loads(text), _List).setting}
