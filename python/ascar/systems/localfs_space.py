"""A preset as far as this machine and this device offer it, with the machine's own values as defaults."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ascar.catalogues import kernel_setting
from ascar.errors import EnvironmentLacks, SpaceError, StudyError
from ascar.program.found import find_program
from ascar.space import ChangeCost, Choices, Guarantee, Parameter
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.localfs_options import FILE_SYSTEMS, MKFS
from ascar.systems.machine import missing_program
from ascar.systems.published_spaces import published_space
from ascar.systems.recipe import DEVICE_PARAMETER, KNOBS, knobs_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from ascar.space import Space

MIB = 2**20
_VM = {name: knob for name, knob in KNOBS.items() if knob.startswith("vm.")}
"""Settings that every program on the machine shares."""


def localfs_space(size_bytes: int, file_systems: tuple[str, ...] | None, name: str = "storage-v5") -> Space:
    """The space of a device of so many bytes, with every value that the device can take.

    Args:
        size_bytes: the size of the device.
        file_systems: the file systems to compare; None: all that this machine can make.
        name: the preset.

    Raises:
        EnvironmentLacks: one that was asked for, or every one of the preset, cannot be made here.
        StudyError: the preset does not have it.
    """
    space = published_space(name).permit_weaker(Guarantee)
    available, offered = available_file_systems(), file_systems_of(space)
    for fs in file_systems or ():
        if fs not in available:
            raise EnvironmentLacks(f"target.file_systems: {fs}: {missing_program(MKFS[fs])}")
        if fs not in offered:
            raise StudyError(
                f"target.file_systems: {fs}: must be some of {', '.join(offered)}, which {name} has"
            )
    wanted = file_systems or tuple(fs for fs in offered if fs in available) or (str(space["fs"].default),)
    if space["fs"].default not in wanted:
        # What everything is compared with has to be in the space: the first one named.
        space = space.with_defaults({"fs": wanted[0]})
    space = space.only("fs", wanted)
    # An allocation group must hold the log, about 64 MiB; a journal may take a quarter of the file system.
    groups = size_bytes // (65 * MIB)
    for one in ("xfs_allocation_groups", "allocation_groups"):
        space = _at_most(space, one, groups)
    if "block_group" in space and "xfs" in wanted:
        space = space.constrain(f'if(fs == "xfs" and block_group != "n/a", block_group <= {groups}, true)')
    if "block_group" in space and "nilfs2" in wanted:
        # mkfs.nilfs2 wants more than 16 segments, here in MiB.
        segment = (size_bytes - 4096) // (16 * MIB)
        space = space.constrain(
            f'if(fs == "nilfs2" and block_group != "n/a", block_group * block_size_k <= {segment}, true)'
        )
    space = _at_most(space, "ext_journal_size_mib", size_bytes // (4 * MIB))
    return _with_bounds(_with_defaults(space, vm_in_force(KernelFiles())))


def _with_bounds(space: Space) -> Space:
    """With what the kernel takes of each of its settings, so that a study can list other values."""
    parameters: list[Parameter] = []
    for one in space.parameters:
        setting = kernel_setting(one.native)
        is_number = one.kind == "ordinal" and setting is not None and setting.range is not None
        parameters.append(replace(one, bounds=setting.range) if is_number and setting else one)
    return replace(space, parameters=tuple(parameters))


def vm_in_force(files: KernelFiles) -> dict[str, int | None]:
    """The values of `vm.*` that a machine has; None: there is none, or another setting stands for it."""
    settings = {name: kernel_setting(knob) for name, knob in _VM.items()}
    return {
        name: _number(files.in_force(one.file(None))) for name, one in settings.items() if one is not None
    }


def with_kernel_defaults(space: Space, found: Mapping[str, int | str | None]) -> Space:
    """The space with the settings that a device was found to have as defaults."""
    return _with_defaults(space, found)


def with_devices(space: Space, devices: Sequence[str]) -> Space:
    """The space with the choice among several block devices, of which the first is the default.

    Changing it is Cao's `hardware-change` (Table 9.1): the file system is made anew on the other device.
    """
    if len(devices) < 2:
        return space
    device = Parameter(
        name=DEVICE_PARAMETER,
        domain=Choices(tuple(devices)),
        default=devices[0],
        cost=ChangeCost.HARDWARE_CHANGE,
        description="block device that holds the file system",
    )
    return replace(space, parameters=(*space.parameters, device))


def with_queues(space: Space, queues: Sequence[Mapping[str, tuple[str, ...]]]) -> Space:
    """The space with those settings of queues that every device has, and the words that each of them offers.

    Args:
        space: the space, with the settings in force as defaults.
        queues: of each device, the settings of its queue with the words that they may be set to.
    """
    for name, knob in knobs_of(space).items():
        if not knob.startswith("block."):
            continue
        if any(knob not in queue for queue in queues):
            space = _without(space, {name})
            continue
        domain = space.domain(name)
        if not isinstance(domain, Choices) or domain.ordered:
            continue
        offered = [word for word in domain.values if all(word in queue[knob] for queue in queues)]
        # The published spaces have words of their own, for which what the kernel offers stands.
        if space[name].default in offered and len(offered) < len(domain.values):
            space = space.only(name, offered)
    return space


def without_machine_wide(space: Space) -> Space:
    """The space without `vm.*`, which every program on the machine shares."""
    return _without(space, _VM)


def _without(space: Space, names: Collection[str]) -> Space:
    return replace(
        space,
        parameters=tuple(parameter for parameter in space.parameters if parameter.name not in names),
        constraints=tuple(one for one in space.constraints if not set(one.names) & set(names)),
    )


def available_file_systems() -> tuple[str, ...]:
    """File systems that this machine has the mkfs of; whether its kernel mounts them, the keeper says."""
    return tuple(fs for fs in FILE_SYSTEMS if find_program(MKFS[fs]) is not None)


def _with_defaults(space: Space, found: Mapping[str, int | str | None]) -> Space:
    for name, value in found.items():
        # A value that the space cannot express (a ratio of 0 because bytes are set) leaves the preset's.
        with suppress(SpaceError):
            if value is not None:
                space = space.with_defaults({name: value})
    return space


def _at_most(space: Space, name: str, limit: int) -> Space:
    """The space without values of a parameter, if any, that are above a limit, and above its default."""
    if name not in space:
        return space
    parameter = space[name]
    assert isinstance(parameter.domain, Choices), "sizes are ordinal"
    kept = [value for value in parameter.domain.values if int(value) <= max(limit, int(parameter.default))]
    return space.only(name, kept)


def _number(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if value > 0 else None


def known_file_systems(space: Space) -> set[str]:
    """The file systems that a space names, also those that weaken a guarantee."""
    domain = space["fs"].domain
    assert isinstance(domain, Choices)
    return {str(fs) for fs in domain.values}


def file_systems_of(space: Space) -> list[str]:
    """The file systems among which a space lets choose."""
    domain = space.domain("fs")
    assert isinstance(domain, Choices)
    return [str(fs) for fs in domain.values]
