"""The settings of an NFS server, its clients and its disk; `nfs.toml` lists them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Literal

from ascar.catalogues import DEVICE_MARK, linux, listed
from ascar.catalogues.server_setting import RankedSetting
from ascar.space import ChangeCost, ordinal

if TYPE_CHECKING:
    from collections.abc import Collection

    from ascar.space import Parameter
    from ascar.space.parameter import Traits


# The kernel tells the four limits that `actimeo` sets, each where it is not its default.
_TOLD = {"actimeo": ("acregmin", "acregmax", "acdirmin", "acdirmax")}
_NUMBER = re.compile(r"-?[0-9]{1,18}")


class NfsSetting(RankedSetting, frozen=True, kw_only=True):
    """A setting; see `nfs.toml`.

    Attributes:
        where: whose setting it is.
        knob: the keeper's name of a kernel's setting; empty: it is none that changes while a server runs.
        words: the options that say yes and no.
        powers: whether only powers of two are searched.
        unsaid: the value that stands for the option's absence; empty: it has none.
    """

    where: Literal["mount", "client", "export", "server", "disk", "boot"]
    knob: str = ""
    words: tuple[str, ...] = ()
    powers: bool = False
    unsaid: str = ""

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change."""
        if self.where == "boot":
            return ChangeCost.REBOOT
        if self.context == "restart":
            return ChangeCost.APP_RESTART
        if self.context == "connection":
            return ChangeCost.UMOUNT_MOUNT
        return ChangeCost.DYN_APP if self.where == "export" else ChangeCost.DYN_KERNEL

    @property
    def is_window(self) -> bool:
        """Whether it is a setting of the kernel's that new connections of a client take."""
        return self.where == "client" and self.context == "connection"

    @property
    def spelled(self) -> tuple[str, ...]:
        """What options that say its value begin with: its name first, then what the kernel tells instead."""
        return (self.name, *self.words, *_TOLD.get(self.name, ()))

    def file(self, device: str | None) -> str:
        """The file of a kernel's setting.

        Args:
            device: the kernel's name of the disk, or the number of the mount.
        """
        if not self.knob:
            return f"/proc/fs/{self.name.replace('.', '/')}"
        return str(linux()[self.knob].file(device))

    def knob_of(self, device: str | None) -> str:
        """The keeper's name of the setting on a device."""
        return self.knob.replace(DEVICE_MARK, device or "")

    def text(self, value: object) -> str:
        """A value as its file has it, or the word of a boolean."""
        if isinstance(value, bool):
            return self.words[0 if value else 1]
        return str(value)

    def value(self, text: str) -> bool | int | float | str:
        """A value from what its file says; what is none of the kind stays a text."""
        if self.kind == "boolean":
            return text == self.words[0] if text in self.words else text
        return int(text) if self.kind == "integer" and _NUMBER.fullmatch(text) else text

    def option(self, value: object) -> str:
        """A value as an option of a mount, an export or a kernel; empty: the option is left out."""
        text = self.text(value)
        if isinstance(value, bool):
            return text
        return "" if text == self.unsaid else f"{self.name}={text}"

    def value_in(self, options: Collection[str]) -> bool | int | float | str:
        """What options of a mount or an export say; the default where they are silent.

        Args:
            options: such as "vers=4.2" or "nocto".
        """
        if self.kind == "boolean":
            return next((self.value(word) for word in self.words if word in options), self.default)
        said = next((one for one in options if one.partition("=")[0] in self.spelled[:2]), None)
        return self.default if said is None else self.value(said.partition("=")[2])

    def built(self, name: str, traits: Traits) -> Parameter:
        """A parameter with the values of the setting; one in force is among them, whatever it is."""
        if not self.powers:
            return super().built(name, traits)
        low, high = (int(end) for end in self.search)
        powers = {1 << at for at in range(low.bit_length() - 1, high.bit_length())}
        return ordinal(name, sorted({*powers, int(traits["default"])}), **traits)


@cache
def nfs() -> dict[str, NfsSetting]:
    """The settings by name, in the order of writing."""
    return listed("nfs", NfsSetting)
