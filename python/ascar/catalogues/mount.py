"""The mount options that a remount changes; `mount.toml` lists them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from ascar.catalogues import listed
from ascar.catalogues.server_setting import RankedSetting
from ascar.space import ChangeCost

if TYPE_CHECKING:
    from collections.abc import Collection

    from ascar.space import Parameter, Value
    from ascar.space.parameter import Traits

OF_MOUNT = "mount."
"""What the names of its settings begin with."""
_NUMBER = re.compile(r"[0-9]{1,15}")


class MountSetting(RankedSetting, frozen=True, kw_only=True):
    """A mount option; see `mount.toml`.

    Attributes:
        file_systems: the file systems that have it.
        option: the option that a number or a choice follows; empty: the values are options themselves.
        words: the options that say yes and no.
        hidden_by: the options beside which it has no effect, or is refused.
        whole: whether each remount has to say it, since one that does not sets the kernel's default.
    """

    file_systems: tuple[str, ...]
    context: Literal["dynamic", "connection", "restart"] = "dynamic"
    option: str = ""
    words: tuple[str, ...] = ()
    hidden_by: tuple[str, ...] = ()
    whole: bool = False

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change."""
        return ChangeCost.REMOUNT

    @property
    def spelled(self) -> tuple[str, ...]:
        """What its options begin with, before any "="."""
        return self.words or ((self.option,) if self.option else self.values)

    def is_hidden(self, options: Collection[str]) -> bool:
        """Whether it has no effect beside the options of a mount."""
        return any(one in self.hidden_by or one.partition("=")[0] in self.hidden_by for one in options)

    def text(self, value: object) -> str:
        """A value as its option has it, or the word of a boolean."""
        return self.words[0 if value else 1] if self.kind == "boolean" else str(value)

    def value(self, text: str) -> bool | int | float | str:
        """A value from what the kernel shows; what is none of the kind stays a text."""
        if self.kind == "boolean":
            return text == self.words[0] if text in self.words else text
        return int(text) if self.kind == "integer" and _NUMBER.fullmatch(text) else text

    def said(self, value: object) -> str:
        """A value as an option of mount(8)."""
        return f"{self.option}={self.text(value)}" if self.option else self.text(value)

    def value_in(self, options: Collection[str]) -> Value:
        """What the options of a mount say; the default where they are silent."""
        if not self.option:
            return next((self.value(one) for one in self.spelled if one in options), self.default)
        shown = next((one for one in options if one.startswith(f"{self.option}=")), None)
        return self.default if shown is None else self.value(shown.partition("=")[2])

    def built(self, name: str, traits: Traits) -> Parameter:
        """A parameter with the values of the setting; a choice in force is among them, whatever it is."""
        default = traits["default"]
        if self.kind == "choice" and self.option and default not in self.values:
            return replace(self, values=(*self.values, str(default))).built(name, traits)
        return super().built(name, traits)


@cache
def mount_settings() -> dict[str, MountSetting]:
    """The settings by name."""
    return listed("mount", MountSetting)
