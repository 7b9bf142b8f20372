"""A storage configuration put in force where a file system is at work already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues import DEVICE_MARK, kernel_setting
from ascar.quoting import comment, fstab_field, shell_word
from ascar.results.machine import UNKNOWN, AppliedSetting, LeftToUser
from ascar.space import ChangeCost
from ascar.systems.administration import DEVICE, MOUNTPOINT, command_lines
from ascar.systems.placement import Placement
from ascar.systems.recipe import DEVICE_PARAMETER, knobs_of, recipe_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ascar.space import Configuration, Space
    from ascar.systems.place import Place
    from ascar.systems.recipe import Recipe


def placed(space: Space, configuration: Configuration, place: Place) -> Placement:
    """The knobs to set at once, and what needs a remount, an unmount or a new file system.

    Only what somebody chose is put in force: the defaults were the machine's own. Reads the machine, changes
    nothing.
    """
    chosen = space.departures(configuration)
    recipe = recipe_of(configuration, space)
    homeless: list[str] = []
    located: list[AppliedSetting] = []
    for parameter, knob, value in _settings(recipe, knobs_of(space), chosen):
        setting = _located(parameter, knob, value, place)
        if setting is None:
            homeless.append(parameter)
        else:
            located.append(setting)
    left = tuple(_left(space, configuration, chosen, place, tuple(homeless)))
    measured_on = str(configuration.get(DEVICE_PARAMETER, ""))
    return Placement(tuple(located), left, tuple(_warnings(recipe, place, measured_on)))


def _settings(
    recipe: Recipe, knobs: Mapping[str, str], chosen: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    """Parameter, knob and value of the knobs to be set, in the order of writing."""
    values = {**recipe.knobs, **recipe.mounted_knobs}
    for parameter, knob in knobs.items():
        # A new scheduler resets the number of requests, so that has to be set again.
        again = parameter == "block_nr_requests" and "block_scheduler" in chosen
        if knob in values and (parameter in chosen or again):
            yield parameter, knob, str(values[knob])


def _located(parameter: str, knob: str, value: str, place: Place) -> AppliedSetting | None:
    """A knob here; None where it belongs to a device or a file system that was not named."""
    setting = kernel_setting(knob)
    assert setting is not None, "the catalogue has every knob of the space"
    kind = knob.partition(".")[0]
    device = place.queue if kind == "block" else place.name if place.fs == kind else None
    if device is None and DEVICE_MARK in setting.name:
        return None
    path = setting.file(device)
    return AppliedSetting(parameter, knob.replace("DEV", device or ""), str(path), _present(path), value)


def _present(path: Path) -> str:
    """What is in force: of a list of choices the one in brackets."""
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return UNKNOWN
    return text.partition("[")[2].partition("]")[0] or text


def _left(
    space: Space,
    configuration: Configuration,
    chosen: tuple[str, ...],
    place: Place,
    homeless: tuple[str, ...],
) -> Iterator[LeftToUser]:
    """What has to be done by hand, the most expensive first."""
    if homeless:
        what = "belong to a device" if place.device is None else f"do not exist on {place.device}"
        why = f"{what}: name it with --device or --mountpoint" if place.device is None else what
        yield LeftToUser(homeless, why, ())
    by_cost = {cost: tuple(name for name in chosen if space[name].cost is cost) for cost in ChangeCost}
    again, remount = by_cost[ChangeCost.UMOUNT_MOUNT], by_cost[ChangeCost.REMOUNT]
    made = by_cost[ChangeCost.HARDWARE_CHANGE] + by_cost[ChangeCost.REFORMAT_RESTORE]
    named = made + again + remount
    # What is set at once is not left to anybody; fstab makes it last, so there it is among the options.
    shell = command_lines(configuration, space, named)["shell"]
    lasting = (
        (*named, *(name for name, knob in knobs_of(space).items() if knob.startswith("ext4.")))
        if named
        else ()
    )
    fstab = command_lines(configuration, space, [name for name in lasting if name in chosen])["fstab"]
    commands = (
        *(_here(line, place, shell_word) for line in shell),
        *(
            comment(f"/etc/fstab: {_here(line, place, fstab_field)}")
            for line in fstab
            if not line.startswith("#")
        ),
    )
    if made:
        why = "a new file system: everything on the device is lost; back up first, restore afterwards"
        if place.in_use:
            why += f"; {place.device} is in use, mounted at {', '.join(place.in_use)}"
        yield LeftToUser(named, why, commands)
    elif again:
        yield LeftToUser(named, "unmount and mount again", commands)
    elif remount:
        yield LeftToUser(named, "remount", commands)


def _here(line: str, place: Place, quoted: Callable[[object], str]) -> str:
    """A line with the places that were named in it."""
    if place.device is not None:
        line = line.replace(DEVICE, quoted(place.device))
    return line if place.mountpoint is None else line.replace(MOUNTPOINT, quoted(place.mountpoint))


def _warnings(recipe: Recipe, place: Place, measured_on: str) -> Iterator[str]:
    if place.fs is not None and place.fs != recipe.fs:
        yield (
            f"file system: the result is valid for {recipe.fs}, {place.mountpoint} has {place.fs}; "
            "what is set here was never measured together with that"
        )
    if place.device is not None and measured_on not in ("", str(place.device)):
        yield f"device: the result is valid for {measured_on}, not for {place.device}"
    if place.device is None:
        yield "device: none was named, so it is not known whether it is like the one that was tuned"
