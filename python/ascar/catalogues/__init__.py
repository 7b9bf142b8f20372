"""Lists of settings by the system's own names; `linux.toml` is the kernel's, from which the keeper is built.

The keeper allows what is in its own copy, made when it was built. What is written here can narrow that, and
never widen it.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from ascar import typed
from ascar.space import ChangeCost

__all__ = ["DEVICE_MARK", "KernelSetting", "kernel_setting", "linux", "listed"]

DEVICE_MARK = "<dev>"
"""In names and paths: the kernel's name of a device."""

_MOST = 2**63 - 1


class KernelSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A setting of the kernel that ascar may change; see `linux.toml`.

    Attributes:
        name: the name of the setting, with `<dev>` for a device's name.
        path: the file of the setting.
        what: what the setting does.
        unit: the unit of its numbers.
        weaker: the guarantee that values weaken, by relation such as ">3000".
        range: the least and the greatest whole number.
        powers_of_two: the least and the greatest power of two; zero as well where it is the lower end.
        up_to: the least number, and the file beside it that tells the greatest.
        listed: whether the file lists the words that it takes.
        limit: the greatest number; zero is no limit.
        zeroes: the setting that becomes zero with a change.
        raises: siblings that Lustre raises with it.
        couples: what the scheduler or the limits of the queue have to do with it; see `coupling`.
        expert: whether a study searches it that names no settings.
        search: the range that is searched then; None: all that is allowed.
        log: whether the scale of that range is logarithmic.
        step: the distance of the values that are searched, where the kernel rounds down to it.
        new_mounts: whether it acts on what is mounted afterwards alone.
    """

    name: str
    path: str
    what: str
    unit: str = ""
    weaker: dict[str, str] = {}
    range: tuple[int, int] | None = None
    powers_of_two: tuple[int, int] | None = None
    up_to: tuple[int, str] | None = None
    listed: bool = False
    limit: int | None = None
    zeroes: str | None = None
    raises: tuple[str, ...] = ()
    couples: str | None = None
    expert: bool = False
    search: tuple[int, int] | None = None
    log: bool = False
    step: int = 1
    new_mounts: bool = False

    @property
    def cost(self) -> ChangeCost:
        """The cost of a change: each of them takes effect at once."""
        return ChangeCost.DYN_KERNEL

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest number; None where the machine tells, or where it takes words."""
        return self.range or self.powers_of_two or (None if self.limit is None else (0, self.limit))

    @property
    def values(self) -> str:
        """What it may be set to, for people."""
        if self.up_to is not None:
            return f"{self.up_to[0]:,} to {self.up_to[1]}"
        if self.bounds is None:
            return "a word that the kernel lists"
        low, high = self.bounds
        kind = "" if self.powers_of_two is None else "powers of two, "
        return f"{kind}{low:,} and more" if high == _MOST else f"{kind}{low:,} to {high:,}"

    def file(self, device: str | None) -> Path:
        """The file of the setting on a device."""
        return Path(self.path.replace(DEVICE_MARK, device or ""))


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)


def listed(system: str, kind: type[_N], table: str = "setting") -> dict[str, _N]:
    """What the list of a system names, by name and in its order.

    Args:
        system: the system.
        kind: what an entry of the list becomes.
        table: what the list calls an entry.
    """
    tables = tomllib.loads(Path(__file__).with_name(f"{system}.toml").read_text("utf-8"))[table]
    return {one.name: one for one in (typed.convert(entry, kind) for entry in tables)}


@cache
def linux() -> dict[str, KernelSetting]:
    """The kernel's settings by name."""
    return listed("linux", KernelSetting, "knob")


def kernel_setting(name: str) -> KernelSetting | None:
    """The setting that a knob's name means; None: there is none of that name.

    Args:
        name: such as `vm.dirty_ratio`, `block.sda.scheduler` or, for any device, `block.DEV.scheduler`.
    """
    for one in linux().values():
        before, mark, after = one.name.partition(DEVICE_MARK)
        if not mark and one.name == name:
            return one
        device = name.removeprefix(before).removesuffix(after)
        if mark and name == f"{before}{device}{after}" and device and "." not in device:
            return one
    return None
