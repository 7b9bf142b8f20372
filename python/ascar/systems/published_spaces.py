"""Cao's spaces storage-v1 to storage-v4 on a present machine: their parameters in the words of storage-v5.

The schedulers of their time are gone from the kernel since 5.0; those that replaced them take their place:
"none" for noop, "mq-deadline" for deadline, "bfq" for cfq. XFS inodes of 256 bytes need a file system without
checksums of its metadata. `compress` is Btrfs' zlib, its default then and now. "n/a" leaves the option out,
as in the thesis (section 4.3). A block group counts thousands of blocks, of Nilfs2's segments too: the thesis
gives no unit, and mkfs.nilfs2 takes no segment below 16 blocks, so that a third of those that were measured
could not have been made of single blocks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ascar.space import Choices, preset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.space import Parameter, Space, Value

NOT_GIVEN = "n/a"
_SCHEDULERS = {"noop": "none", "deadline": "mq-deadline", "cfq": "bfq"}
_XFS_INODE_WITH_CHECKSUMS = 512
_FAMILIES = {"ext2": "ext", "ext3": "ext", "ext4": "ext"}
_RENAMED = {
    "flex_group_size": "ext4_flex_group_size",
    "inode_readahead_blocks": "ext4_inode_readahead_blks",
    "allocation_groups": "xfs_allocation_groups",
    "sector_size_bytes": "xfs_sector_size_bytes",
    "log_buffers": "xfs_log_buffers",
    "log_buffer_size_kib": "xfs_log_buffer_size_kib",
    "allocation_size_kib": "xfs_allocation_size_kib",
    "atime_option": "atime",
}


# By the parameter and the file system, whose parameters share a name there; "": whatever it is.
_SAID: Mapping[tuple[str, str], Callable[[Any], dict[str, Value]]] = {
    ("block_size_k", "btrfs"): lambda size_k: {},  # noqa: ARG005 - 4, the size of its sectors
    ("block_size_k", ""): lambda size_k: {"block_size_bytes": 1024 * size_k},
    ("inode_size_bytes", "ext"): lambda size: {"ext_inode_size_bytes": size},
    ("inode_size_bytes", "xfs"): lambda size: {
        "xfs_inode_size_bytes": size,
        **({"xfs_checksums": False} if size < _XFS_INODE_WITH_CHECKSUMS else {}),
    },
    ("inode_size_bytes", "btrfs"): lambda size: {"btrfs_node_size_bytes": size},
    ("block_group", "ext"): lambda thousands: {"ext_blocks_per_group": 1024 * thousands},
    ("block_group", "xfs"): lambda groups: {"xfs_allocation_groups": groups},
    ("block_group", "nilfs2"): lambda thousands: {"nilfs2_blocks_per_segment": 1024 * thousands},
    ("journal_option", "nilfs2"): lambda option: {"nilfs2_order": option.removeprefix("order=")},
    ("journal_option", "reiserfs"): lambda option: {"reiserfs_journal_mode": option.removeprefix("data=")},
    ("special_option", "reiserfs"): lambda option: {"reiserfs_tail_packing": option != "notail"},
    ("journal_option", ""): lambda option: {"ext_journal_mode": option.removeprefix("data=")},
    ("special_option", ""): lambda option: (
        {"btrfs_compression": "zlib"} if option == "compress" else {"btrfs_data_mode": option}
    ),
}


def present_words(name: str, value: Value, fs: str) -> Mapping[str, Value]:
    """A parameter of any of the spaces and its value as parameters of storage-v5, and options beyond them.

    Args:
        name: the parameter.
        value: its value.
        fs: the file system.
    """
    if value == NOT_GIVEN:
        return {}
    say = _SAID.get((name, _FAMILIES.get(fs, fs))) or _SAID.get((name, ""))
    return {present_name(name): value} if say is None else say(value)


def present_name(name: str) -> str:
    """The name in storage-v5 of a parameter of another space with the same values; else its own."""
    return _RENAMED.get(name, name)


@cache
def published_space(name: str) -> Space:
    """A preset as a present machine has it: as many configurations, with present schedulers and costs.

    Raises:
        SpaceError: there is none of that name.
    """
    space = preset(name)
    present = {one.name: one for one in preset("storage-v5").parameters}
    parameters = tuple(_as_now(one, present.get(present_name(one.name))) for one in space.parameters)
    return replace(space, parameters=parameters)


def _as_now(parameter: Parameter, present: Parameter | None) -> Parameter:
    """A parameter with its present native name and cost: kernels ignore a remount of XFS' log buffers."""
    if present is None or parameter is present:
        return parameter
    now = replace(parameter, native=present.native, cost=present.cost)
    if parameter.name != "block_scheduler":
        return now
    assert isinstance(parameter.domain, Choices), "schedulers are words"
    domain = Choices(tuple(_SCHEDULERS[str(value)] for value in parameter.domain.values))
    return replace(now, domain=domain, default=_SCHEDULERS[str(parameter.default)])
