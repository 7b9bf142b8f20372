"""What changing a parameter costs: the categories of Cao's Table 9.1, with all their named sub-categories."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import SpaceError
from ascar.space.fields import shown
from ascar.space.suggestion import hint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_COST_MAX_S = 1e9


class ChangeCost(StrEnum):
    """A sub-category of Table 9.1 (Cao 9.4); members stand in order of rising cost."""

    DYN_KERNEL = "dyn-kernel"
    DYN_APP = "dyn-app"
    APP_RESTART = "app-restart"
    REMOUNT = "remount"
    UMOUNT_MOUNT = "umount-mount"
    REBOOT = "reboot"
    BIOS = "bios"
    REFORMAT_RESTORE = "reformat-restore"
    HARDWARE_CHANGE = "hardware-change"

    @property
    def category(self) -> int:
        """0 no downtime, 1 seconds, 2 minutes, 3 hours to days."""
        return _CATEGORY[self]

    @property
    def rank(self) -> int:
        """Position in the order of rising cost."""
        return _RANK[self]

    @property
    def description(self) -> str:
        """Table 9.1's own words."""
        return _DESCRIPTION[self]


_RANK = {cost: rank for rank, cost in enumerate(ChangeCost)}
_CATEGORY = {
    ChangeCost.DYN_KERNEL: 0,
    ChangeCost.DYN_APP: 0,
    ChangeCost.APP_RESTART: 1,
    ChangeCost.REMOUNT: 1,
    ChangeCost.UMOUNT_MOUNT: 1,
    ChangeCost.REBOOT: 2,
    ChangeCost.BIOS: 2,
    ChangeCost.REFORMAT_RESTORE: 3,
    ChangeCost.HARDWARE_CHANGE: 3,
}
_DESCRIPTION = {
    ChangeCost.DYN_KERNEL: "dynamically changeable parameter of the operating system",
    ChangeCost.DYN_APP: "change the application's parameter without restarting it",
    ChangeCost.APP_RESTART: "restart the application",
    ChangeCost.REMOUNT: "remount the file system",
    ChangeCost.UMOUNT_MOUNT: "unmount the file system and mount it again",
    ChangeCost.REBOOT: "reboot the system",
    ChangeCost.BIOS: "change a BIOS setting",
    ChangeCost.REFORMAT_RESTORE: "create the file system anew: back up, format, restore",
    ChangeCost.HARDWARE_CHANGE: "change the hardware",
}


def costs_named(names: Iterable[str | int], key: str = "allow_cost") -> frozenset[ChangeCost]:
    """The costs that a list of names means; a category's number means all its sub-categories.

    Raises:
        SpaceError: a name that Table 9.1 does not have.
    """
    costs: set[ChangeCost] = set()
    for name in names:
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name <= 3:
            costs |= {cost for cost in ChangeCost if cost.category == name}
        elif isinstance(name, str) and name in _BY_NAME:
            costs.add(_BY_NAME[name])
        else:
            allowed = ", ".join(_BY_NAME)
            raise SpaceError(
                f"{key}: {shown(name)} is not a change cost; allowed: {allowed}, 0 to 3{hint(name, _BY_NAME)}"
            )
    return frozenset(costs)


def change_budget(table: Mapping[str, Any]) -> dict[ChangeCost, int]:
    """How often a search may change parameters, by cost: a study's `space.change_budget`.

    Raises:
        SpaceError: a name that Table 9.1 does not have, or a number that is none or below 2.
    """
    found: dict[ChangeCost, int] = {}
    for name, limit in _by_cost(table, "change_budget", 2).items():
        (cost,) = costs_named([name], "change_budget")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 2 <= limit <= 1_000_000:
            raise SpaceError(
                f"change_budget.{name} = {limit!r}: must be a number from 2 to 1000000, one change to try "
                "and one to go back; to change it never, leave it out of allow_cost"
            )
        found[cost] = limit
    return found


def change_costs_s(table: Mapping[str, Any]) -> dict[ChangeCost, float]:
    """What a change counts for in seconds, by cost: a study's `space.change_cost_s`.

    Raises:
        SpaceError: a name that Table 9.1 does not have, or a number that is none, or not from 0 to 1e9.
    """
    found: dict[ChangeCost, float] = {}
    for name, seconds in _by_cost(table, "change_cost_s", 3600).items():
        (cost,) = costs_named([name], "change_cost_s")
        number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        if not (number and 0 <= seconds <= _COST_MAX_S):
            raise SpaceError(
                f"change_cost_s.{name} = {shown(seconds)}: must be seconds from 0 to {_COST_MAX_S:g}; to "
                "change it never, leave it out of allow_cost"
            )
        found[cost] = float(seconds)
    return found


def _by_cost(table: Mapping[str, Any], key: str, example: int) -> dict[str, Any]:
    """The table at a key; empty where it is missing."""
    values = table.get(key, {})
    if not isinstance(values, dict):
        raise SpaceError(f"{key} = {values!r}: must be a table, e.g. {{ reformat-restore = {example} }}")
    return cast("dict[str, Any]", values)


_BY_NAME = {cost.value: cost for cost in ChangeCost}
