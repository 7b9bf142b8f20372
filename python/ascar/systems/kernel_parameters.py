"""The kernel's settings as parameters of a study, on the machine whose files are read."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.catalogues import DEVICE_MARK, KernelSetting, kernel_setting, linux
from ascar.errors import EnvironmentLacks, StudyError
from ascar.expression import Expression, parse
from ascar.space import Parameter, categorical, identifier, integer, ordinal
from ascar.systems.machine import backing_of, disk_of, file_system_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascar.systems.kernel_files import KernelFiles

DEVICE = "DEV"
"""In names of settings: the device that the target names."""

_NUMBER_MAX = 2**53  # of parameters, which floats must hold


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices below an application.

    Attributes:
        disk: the kernel's name of the disk, whose queue has settings; None: none is known.
        volume: the kernel's name of what the file system lies on: a partition, or the disk.
        file_system: the type of the file system; empty: not known.
        named: whether the study names the device, so that names of settings keep DEV for it.
    """

    disk: str | None = None
    volume: str | None = None
    file_system: str = ""
    named: bool = False

    @classmethod
    def below(cls, path: Path) -> Devices:
        """The devices of the file system that holds a path.

        Raises:
            OSError: there is no such path.
        """
        volume = backing_of(path)
        return cls(None if volume is None else disk_of(volume), volume, file_system_of(path))

    def of(self, setting: str) -> str | None:
        """The device whose setting it is; None: it is no device's, or none is known."""
        return {"block": self.disk, "ext4": self.volume}.get(setting.split(".", maxsplit=1)[0])

    def native(self, setting: str) -> str:
        """The name of a setting on these devices."""
        device = self.of(setting)
        return setting if self.named or device is None else here(setting, device)


def all_here(devices: Devices, files: KernelFiles, *, wide: bool) -> tuple[Parameter, ...]:
    """The settings that an expert searches, or all of them, with the ranges that are searched.

    Left out are those that this machine lacks or only shows, limits of devices, what only one scheduler has,
    of two settings that replace each other the one that is not in force, those of a server that is off, and
    those that act on new mounts alone, for nothing is mounted.
    """
    return tuple(_all_here(devices, files, wide=wide))


def _all_here(devices: Devices, files: KernelFiles, *, wide: bool) -> Iterator[Parameter]:
    for setting in linux().values():
        device = devices.of(setting.name)
        is_other = setting.name.startswith("fs.xfs.") and devices.file_system != "xfs"
        of_scheduler = setting.couples == "scheduled" and not setting.expert
        is_useless = is_other or of_scheduler or setting.limit is not None or setting.new_mounts
        if not (wide or setting.expert) or is_useless or (DEVICE_MARK in setting.name and device is None):
            continue
        path = setting.file(device)
        present = files.in_force(path)
        # Of two that replace each other one is 0; a study must not start an NFS server, which has no thread.
        is_off = present == "0" and (setting.zeroes is not None or setting.name == "nfsd.threads")
        if not present or is_off or not files.can_be_written(path):
            continue
        name = setting.name.replace(DEVICE_MARK, DEVICE)
        yield _parameter(setting, identifier(name), devices.native(name), device, files)


def here(native: str, device: str | None) -> str:
    """A setting's name with the device's own name for DEV."""
    return native if device is None else native.replace(f".{DEVICE}.", f".{device}.")


def file_of(native: str, device: str | None) -> Path:
    """The file of a setting; DEV in its name stands for `device`."""
    setting = known_setting(native)
    before, _, after = setting.name.partition(DEVICE_MARK)
    named = here(native, device).removeprefix(before).removesuffix(after)
    return setting.file(named if DEVICE_MARK in setting.name else None)


def known_setting(native: str) -> KernelSetting:
    """The setting of the kernel that a name means.

    Raises:
        StudyError: the keeper may not change a setting of that name.
    """
    setting = kernel_setting(native)
    if setting is None:
        near = get_close_matches(native.replace(f".{DEVICE}.", f".{DEVICE_MARK}."), linux(), n=1)
        hint = f"; did you mean {near[0].replace(DEVICE_MARK, DEVICE)!r}?" if near else ""
        raise StudyError(
            f"target.settings: {native!r:.80} is not a setting of the kernel that the keeper may change; "
            f"`ascar space linux` lists them{hint}"
        )
    return setting


def parameter_here(native: str, devices: Devices, files: KernelFiles) -> Parameter:
    """A setting as a parameter of the machine whose files are read; its default is the value in force.

    Its range is all that is allowed.

    Raises:
        StudyError: no such setting, or it is one of a device and none is named.
        EnvironmentLacks: the machine does not have the setting, or only shows it, or cannot be reached.
    """
    setting = known_setting(native)
    device = devices.of(native) or devices.disk
    if f".{DEVICE}." in native and device is None:
        raise StudyError(f"target.device: missing; {native!r} is a setting of a device: name the device")
    path = file_of(native, device)
    if setting.limit is None:
        try:
            files.text(path)
            is_fixed = not files.can_be_written(path)
        except EnvironmentLacks as error:
            raise EnvironmentLacks(
                f"target.settings: {native!r}: the machine does not have it ({error.message})"
            ) from error
        if is_fixed:
            raise EnvironmentLacks(f"target.settings: {native!r}: {path} is read-only on this kernel")
    return _parameter(setting, identifier(native), devices.native(native), device, files, whole=True)


def accepted(parameters: Sequence[Parameter], devices: Devices, files: KernelFiles) -> tuple[Expression, ...]:
    """What the kernel would refuse, or change without a word, as constraints.

    A background limit of dirty pages is the lower one. Without a scheduler there are no more requests than
    the device's own queue holds.
    """
    return tuple(
        parse(text) for text in (*_of_dirty_pages(parameters), *_of_queues(parameters, devices, files))
    )


def _of_dirty_pages(parameters: Sequence[Parameter]) -> Iterator[str]:
    present = {one.name: one.default for one in parameters}
    for unit in ("ratio", "bytes"):
        low, high = f"vm_dirty_background_{unit}", f"vm_dirty_{unit}"
        if low in present and high in present and int(present[low]) < int(present[high]):
            yield f"{low} < {high}"


def _of_queues(parameters: Sequence[Parameter], devices: Devices, files: KernelFiles) -> Iterator[str]:
    natives = {one.native: one for one in parameters}
    for native, depth in natives.items():
        queue, _, file = native.rpartition(".")
        if file != "nr_requests":
            continue
        device = here(native, devices.disk).split(".")[1]
        held = files.in_force(Path("/sys/block", device, "mq/0/nr_tags"))
        if not held.isdecimal():
            continue  # a device without a queue of its own
        limit, scheduler = f"{depth.name} <= {held}", natives.get(f"{queue}.scheduler")
        if scheduler is not None:
            yield f'{scheduler.name} != "none" or {limit}'
        elif files.in_force(Path("/sys/block", device, "queue/scheduler")) == "none":
            yield limit


def _parameter(
    setting: KernelSetting,
    name: str,
    native: str,
    device: str | None,
    files: KernelFiles,
    *,
    whole: bool = False,
) -> Parameter:
    path = file_of(native, device)
    traits: dict[str, Any] = {
        "cost": setting.cost,
        "unit": setting.unit,
        "description": setting.what,
        "native": native,
    }
    bounds = setting.bounds
    if setting.up_to is not None:
        least, beside = setting.up_to
        bounds = (least, files.number(path.with_name(beside)))
    if bounds is None:
        words, word = files.words(path)
        return categorical(name, words, default=word, **traits)
    log = False
    if setting.search is not None and not whole:
        bounds, log = (max(bounds[0], setting.search[0]), min(bounds[1], setting.search[1])), setting.log
    low, high = bounds[0], min(bounds[1], _NUMBER_MAX)
    present = 0 if setting.limit is not None else int(files.in_force(path) or 0)
    traits["weaker"] = _labels(setting, present)
    if setting.powers_of_two is not None:
        powers = [2**at for at in range(high.bit_length()) if low <= 2**at <= high]
        values: list[int] = sorted({present, *powers, *([0] if low == 0 else [])})
        return ordinal(name, values, default=present, **traits)
    is_searched = low <= present <= high and (present - low) % setting.step == 0
    outside = {} if is_searched else {present: "the value that the machine started with"}
    return integer(name, (low, high), step=setting.step, log=log, default=present, special=outside, **traits)


def _labels(setting: KernelSetting, present: int) -> dict[str, str]:
    """What values weaken; the value in force weakens nothing, so that a limit moves there."""
    labels: dict[str, str] = {}
    for relation, guarantee in setting.weaker.items():
        if not relation.startswith((">", "<")):
            relation = f"<{int(relation) + 1}"  # noqa: PLW2901 - of a range, a value is a side: the least one
        sign, limit = relation[0], float(relation[1:])
        crossed = present > limit if sign == ">" else present < limit
        labels[f"{sign}{present}" if crossed else relation] = guarantee
    return labels
