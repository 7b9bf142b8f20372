"""Which settings of the kernel a write to another one resets, and in which order they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues import kernel_setting

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.space import Value

_RESETS = {"scheduler": ("depth", "scheduled"), "depth": (), "limits": ("limited",)}
"""What a write to a setting resets on the same device, by how it is coupled; what resets comes first."""


def in_order_of_writing(names: Iterable[str]) -> list[str]:
    """The names of settings, those that reset others first."""
    order = list(_RESETS)
    return sorted(
        names, key=lambda name: order.index(_couples(name)) if _couples(name) in order else len(order)
    )


def with_reset(written: Collection[str], names: Iterable[str]) -> list[str]:
    """Of the names of settings, those that are written and those that have to be written again after them."""
    reset = {(_device(name), other) for name in written for other in _RESETS.get(_couples(name), ())}
    return in_order_of_writing(
        name for name in names if name in written or (_device(name), _couples(name)) in reset
    )


def to_write(wanted: Mapping[str, Value], present: Mapping[str, Value]) -> list[str]:
    """The names of the settings that have to be written so that all wanted values are in force, in order."""
    return with_reset({name for name, value in wanted.items() if present.get(name) != value}, wanted)


def lock_of(name: str) -> str:
    """The lock of a setting of sysctl or a queue: those that one write changes together share one."""
    setting, couples = kernel_setting(name), _couples(name)
    if setting is not None and setting.zeroes is not None:
        return min(name, setting.zeroes)
    if couples in ("scheduler", "depth", "scheduled"):
        return f"block.{_device(name)}.scheduler"
    if couples in ("limits", "limited"):
        return f"block.{_device(name)}.max_sectors_kb"
    return name


def _couples(name: str) -> str:
    setting = kernel_setting(name)
    return "" if setting is None or setting.couples is None else setting.couples


def _device(name: str) -> str:
    return name.split(".")[1]
