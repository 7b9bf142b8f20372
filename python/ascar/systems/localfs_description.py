"""What results of a local file system are valid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.space import ChangeCost
from ascar.systems.applied import applied_knobs
from ascar.systems.localfs_options import FILE_SYSTEMS, MKFS
from ascar.systems.localfs_space import file_systems_of
from ascar.systems.machine import (
    backing_of,
    describe_machine,
    disk_identity,
    file_system_of,
    program_version,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.space import Space
    from ascar.systems.localfs_memory import MemoryLimit
    from ascar.systems.localfs_options import LocalFileSystemSettings


def localfs_description(
    settings: LocalFileSystemSettings, space: Space, names: Sequence[str], memory: MemoryLimit
) -> Mapping[str, Any]:
    """The machine, the device below the file system, limits, programs, defaults in force."""
    chosen = settings.options
    stack: dict[str, Any] = {"name": ", ".join(names), "size_bytes": settings.device_bytes}
    if chosen.iops is not None:
        stack["iops_max"] = chosen.iops
    if chosen.device is None:
        directory = settings.image.parent
        stack |= {
            "kind": "image on a loop device",
            "direct_io": chosen.direct_io,
            "image": str(settings.image),
            "image_file_system": file_system_of(directory),
            "image_device": backing_of(directory),
        }
    else:
        stack |= {"kind": "block device", "path": ", ".join(settings.devices)}
    told = "" if chosen.device is None else ", ".join(filter(None, map(disk_identity, names)))
    here = file_systems_of(space)
    # What few machines have is told where it is compared, so that others' descriptions stay as they were.
    programs = {MKFS[fs] for fs in FILE_SYSTEMS if fs in here or fs not in ("nilfs2", "reiserfs")}
    return {
        "target": "localfs",
        **describe_machine(),
        "device": stack,
        **({"disk_identity": told} if told else {}),
        "memory_bytes": memory.bytes,
        "memory_limit": memory.kind,
        "dataset_to_memory": chosen.dataset_to_memory,
        "dataset_bytes": memory.dataset_bytes,
        "applied": applied_knobs(),
        "state": chosen.state,
        "machine_wide": chosen.machine_wide,
        "user": chosen.user,
        "file_systems": here,
        "programs": {name: program_version(name) for name in sorted(programs)},
        "kernel_defaults": {
            parameter.name: parameter.default
            for parameter in space.parameters
            if parameter.cost is ChangeCost.DYN_KERNEL
        },
    }
