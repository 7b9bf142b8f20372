"""A storage configuration as what has to be done: mkfs options, mount options, knobs. Pure.

The parameters are those of the space preset storage-v5, in which those of the others are said; how each is
spelled is data. Every option is given explicitly, its default too: two trials of one configuration do the
same on any kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.errors import InputError
from ascar.space import ChangeCost, preset
from ascar.systems.published_spaces import present_name, present_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.space import Space, Value

MIB = 2**20
DEVICE_PARAMETER = "device"
"""The parameter that says where a recipe is carried out, among several block devices."""
_MOUNTED = "ext4."  # knobs of a mounted file system


@dataclass(frozen=True, slots=True)
class Recipe:
    """What puts a configuration in force on a device.

    Attributes:
        fs: the file system.
        format: the keeper's mkfs options, by name.
        mount: mount options.
        remount: the mount options that a remount can change, with the options that undo them.
        knobs: values by knob, with "DEV" for the device's name, in an order in which no write undoes another
            ("scheduler" resets "nr_requests").
        mounted_knobs: the knobs that exist only while the file system is mounted, with their values.
    """

    fs: str
    format: Mapping[str, int | str | bool]
    mount: tuple[str, ...]
    remount: tuple[str, ...]
    knobs: Mapping[str, int | str]
    mounted_knobs: Mapping[str, int | str]

    @property
    def layout(self) -> tuple[Any, ...]:
        """What the files' place on the device can depend on: equal where a filled image may be used again."""
        return (self.fs, *sorted(self.format.items()), *self.mount)


# Parameter to the keeper's mkfs option, and to its value; None leaves the option to mkfs.
_FORMAT: Mapping[str, tuple[str, Callable[[Any], int | str | None]]] = {
    "block_size_bytes": ("block_size_bytes", int),
    "ext_inode_size_bytes": ("inode_size_bytes", int),
    "ext4_flex_group_size": ("flex_bg_groups", int),
    "ext_blocks_per_group": ("blocks_per_group", int),
    "ext_journal_size_mib": ("journal_size_bytes", lambda mib: mib * MIB or None),
    "xfs_inode_size_bytes": ("inode_size_bytes", int),
    "xfs_allocation_groups": ("agcount", int),
    "xfs_sector_size_bytes": ("sector_size_bytes", int),
    "xfs_checksums": ("crc", bool),
    "btrfs_node_size_bytes": ("node_size_bytes", int),
    "btrfs_metadata_profile": ("metadata_profile", str),
    "nilfs2_blocks_per_segment": ("blocks_per_segment", int),
}

# Parameter to mount options; an empty text leaves the option out.
_MOUNT: Mapping[str, Callable[[Any], str]] = {
    "atime": str,
    "ext_journal_mode": lambda mode: f"data={mode}",
    "ext_commit_interval_s": lambda seconds: f"commit={seconds}",
    "ext4_delayed_allocation": lambda on: "delalloc" if on else "nodelalloc",
    "write_barrier": lambda on: "barrier" if on else "nobarrier",
    "xfs_log_buffers": lambda count: f"logbufs={count}",
    "xfs_log_buffer_size_kib": lambda kib: f"logbsize={kib}k",
    "xfs_allocation_size_kib": lambda kib: f"allocsize={kib}k" if kib else "",
    "btrfs_data_mode": lambda mode: "" if mode == "datacow" else str(mode),
    "btrfs_compression": lambda kind: "" if kind == "none" else f"compress={kind}",
    "btrfs_commit_interval_s": lambda seconds: f"commit={seconds}",
    "btrfs_max_inline_bytes": lambda size: f"max_inline={size}",
    "nilfs2_order": lambda order: f"order={order}",
    "reiserfs_journal_mode": lambda mode: f"data={mode}",
    "reiserfs_tail_packing": lambda on: "" if on else "notail",
}

# What a remount needs where a fresh mount needs nothing: the options that take back their alternatives.
_REMOUNT: Mapping[tuple[str, Value], tuple[str, ...]] = {
    ("btrfs_data_mode", "datacow"): ("datacow", "datasum"),
    ("btrfs_data_mode", "nodatasum"): ("datacow", "nodatasum"),
    ("btrfs_compression", "none"): ("compress=no",),
}

KNOBS: Mapping[str, str] = {
    one.name: one.native
    for one in sorted(preset("storage-v5").parameters, key=lambda one: one.native.startswith(_MOUNTED))
    if one.native
}
"""Parameter of storage-v5 to knob, in the order of writing: the scheduler resets nr_requests."""
_MOUNTED_KNOBS = {name: knob for name, knob in KNOBS.items() if knob.startswith(_MOUNTED)}
_KNOBS = {name: knob for name, knob in KNOBS.items() if name not in _MOUNTED_KNOBS}


def knobs_of(space: Space) -> dict[str, str]:
    """Parameter to knob of any of the spaces, in the order of writing, whatever the space calls its knobs."""
    names = {present_name(name): name for name in space.names}
    return {names[present]: knob for present, knob in KNOBS.items() if present in names}


def recipe_of(configuration: Mapping[str, Value], space: Space) -> Recipe:
    """The recipe of a configuration of (a part of) one of the spaces.

    Args:
        configuration: valid in `space`, or the part of one that is to be said, "fs" among it.
        space: says which parameters a remount changes.

    Raises:
        InputError: a parameter is none of the file system's.
    """
    fs = str(configuration["fs"])
    said: dict[str, Value] = {}
    costs: dict[str, ChangeCost] = {}
    for own, value in configuration.items():
        if own == DEVICE_PARAMETER:
            continue
        words = present_words(own, value, fs)
        said |= words
        costs |= {name: space[own].cost for name in words if name in _MOUNT}
    known = {*_FORMAT, *_MOUNT, *_KNOBS, *_MOUNTED_KNOBS, "fs"}
    for name in said:
        if name not in known:
            raise InputError(f"{name}: must be a parameter of {fs} that ascar can set")
    options = {_FORMAT[name][0]: _FORMAT[name][1](value) for name, value in said.items() if name in _FORMAT}
    mount = {name: text for name, value in said.items() if name in _MOUNT and (text := _MOUNT[name](value))}
    remount: list[str] = []
    for name, value in said.items():
        if name in _MOUNT and costs[name] is ChangeCost.REMOUNT:
            remount += _REMOUNT.get((name, value), (mount[name],) if name in mount else ())
    return Recipe(
        fs=fs,
        format={name: value for name, value in options.items() if value is not None},
        mount=tuple(mount.values()),
        remount=tuple(remount),
        knobs=_in_order(said, _KNOBS),
        mounted_knobs=_in_order(said, _MOUNTED_KNOBS),
    )


def _in_order(configuration: Mapping[str, Value], knobs: Mapping[str, str]) -> dict[str, int | str]:
    return {knob: _scalar(configuration[name]) for name, knob in knobs.items() if name in configuration}


def _scalar(value: Value) -> int | str:
    return value if isinstance(value, str) else int(value)
