"""The settings of a control group; `cgroup.toml` lists them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

from ascar.catalogues import listed
from ascar.catalogues.server_setting import RankedSetting
from ascar.space import ChangeCost

if TYPE_CHECKING:
    from ascar.space import Value

OF_GROUP = "cgroup."
"""What the names of its settings begin with."""
UNLIMITED = -1
"""What a study calls no limit."""
_ENDLESS = 2**62  # version 1 of the interface shows the greatest number that it has


class GroupSetting(RankedSetting, frozen=True, kw_only=True):
    """A setting of a control group; see `cgroup.toml`.

    Attributes:
        version: the version of the kernel's interface.
        controller: what has to be enabled for it.
        file: its file in the directory of the group.
        key: what stands before "=" in a line of its file; empty: the number stands alone.
        of_device: whether its file has a line for each device.
        none: the word for no limit; empty: there is always one.
        bounded: what bounds it on this machine.
        from_others: whether others on the machine may get less by it.
        systemd: the setting of systemd that keeps it; empty: there is none.
        suffix: the unit that systemd's number is written with.
    """

    version: Literal[1, 2]
    controller: str
    file: str
    context: Literal["dynamic", "connection", "restart"] = "dynamic"
    key: str = ""
    of_device: bool = False
    none: str = ""
    bounded: Literal["", "use", "half"] = ""
    from_others: bool = False
    systemd: str = ""
    suffix: str = ""

    @property
    def hierarchy(self) -> tuple[int, str]:
        """The version and the controller, which tell the hierarchy that it is in."""
        return self.version, self.controller

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change."""
        return ChangeCost.DYN_KERNEL

    def text(self, value: object) -> str:
        """A value as records have it."""
        return str(value)

    def value(self, text: str) -> int:
        """A value from a text of `text`, or a word of its file.

        Raises:
            ValueError: it is none.
        """
        if text == self.none:
            return UNLIMITED
        return UNLIMITED if int(text) >= _ENDLESS else int(text)

    def value_in(self, text: str, device: str) -> int:
        """What its file says.

        Args:
            text: what the file holds.
            device: the number of the disk, such as "8:0".

        Raises:
            ValueError: the file has another form.
        """
        lines = [line.split() for line in text.splitlines() if line.strip()]
        if self.of_device:
            words = next((line[1:] for line in lines if line[0] == device), [])
            found = [word.removeprefix(f"{self.key}=") for word in words if word.startswith(self.key)]
            return self.value(found[0] if found else self.none)
        words = [word for word in lines[0] if word != "default"] if lines else [""]
        return self.value(words[0])

    def word(self, value: Value) -> str:
        """A value as the kernel is told it."""
        return self.none if value == UNLIMITED else str(value)

    def said(self, value: Value, device: str) -> str:
        """What is written to its file."""
        told = f"{self.key}={self.word(value)}" if self.key else self.word(value)
        return f"{device} {told}" if self.of_device else told

    def unit_line(self, value: Value, disk: str, period_us: int) -> str:
        """A line of a unit of systemd.

        Args:
            value: the value.
            disk: the path of the disk.
            period_us: the period of a quota, of which systemd takes percents.
        """
        told = "" if self.suffix == "%" else "infinity"  # which a quota takes for no number
        if isinstance(value, int) and value != UNLIMITED:
            told = (
                f"{round(100 * value / period_us, 2):.12g}%"
                if self.suffix == "%"
                else f"{value}{self.suffix}"
            )
        return f"{self.systemd}={disk} {told}" if self.of_device else f"{self.systemd}={told}"


@cache
def group_settings() -> dict[str, GroupSetting]:
    """The settings by name."""
    return listed("cgroup", GroupSetting)
