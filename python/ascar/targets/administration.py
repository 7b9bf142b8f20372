"""A storage configuration in an administrator's words: shell, fstab, sysctl.d, udev, TuneD.

Lines name the places that only the administrator knows: /dev/DEVICE and /MOUNTPOINT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.targets.recipe import Recipe

__all__ = ["DEVICE", "MOUNTPOINT", "command_lines"]

DEVICE = "/dev/DEVICE"
MOUNTPOINT = "/MOUNTPOINT"
MIB = 2**20

# The keeper's mkfs options as mkfs's own words; several with one switch are joined by commas.
_EXT_WORDS = {
    "block_size_bytes": "-b {0}",
    "inode_size_bytes": "-I {0}",
    "flex_bg_groups": "-G {0}",
    "journal_size_bytes": "-J size={1}",
}
_XFS_WORDS = {
    "block_size_bytes": "-b size={0}",
    "inode_size_bytes": "-i size={0}",
    "agcount": "-d agcount={0}",
    "sector_size_bytes": "-s size={0}",
}
_BTRFS_WORDS = {"node_size_bytes": "-n {0}", "metadata_profile": "-m {0}"}
_WORDS = {
    "ext2": _EXT_WORDS,
    "ext3": _EXT_WORDS,
    "ext4": _EXT_WORDS,
    "xfs": _XFS_WORDS,
    "btrfs": _BTRFS_WORDS,
}


def command_lines(recipe: Recipe) -> Mapping[str, list[str]]:
    """Lines by form.

    "shell" makes the file system, mounts it and sets what can be set at once; the other forms make it last:
    fstab the mount, sysctl and udev the kernel's settings, TuneD those as one profile.
    """
    return {
        "shell": [_mkfs(recipe), _mount(recipe), *_settings(recipe)],
        "fstab": [_fstab(recipe)],
        "sysctl": [f"{knob} = {value}" for knob, value in recipe.knobs.items() if knob.startswith("vm.")],
        "udev": _udev(recipe),
        "tuned": _tuned(recipe),
    }


def _mkfs(recipe: Recipe) -> str:
    words = [
        _WORDS[recipe.fs][name].format(value, int(value) // MIB if isinstance(value, int) else value)
        for name, value in recipe.format.items()
    ]
    return " ".join([f"mkfs.{recipe.fs}", *words, DEVICE])


def _options(recipe: Recipe) -> str:
    """Mount options, with what ext4 takes as one although it can also be set later."""
    later = [
        f"inode_readahead_blks={value}"
        for knob, value in recipe.mounted_knobs.items()
        if knob.endswith(".inode_readahead_blks")
    ]
    return ",".join([*recipe.mount, *later])


def _mount(recipe: Recipe) -> str:
    return f"mount -t {recipe.fs} -o {_options(recipe)} {DEVICE} {MOUNTPOINT}"


def _fstab(recipe: Recipe) -> str:
    check = 0 if recipe.fs in ("xfs", "btrfs") else 2
    return f"{DEVICE} {MOUNTPOINT} {recipe.fs} {_options(recipe)} 0 {check}"


def _queue(recipe: Recipe) -> dict[str, int | str]:
    """Settings of the block device's queue, by their file."""
    prefix = "block.DEV."
    return {
        knob.removeprefix(prefix): value for knob, value in recipe.knobs.items() if knob.startswith(prefix)
    }


def _settings(recipe: Recipe) -> list[str]:
    vm = [f"sysctl -w {knob}={value}" for knob, value in recipe.knobs.items() if knob.startswith("vm.")]
    return [
        *(f"echo {value} > /sys/block/DEVICE/queue/{name}" for name, value in _queue(recipe).items()),
        *vm,
    ]


def _udev(recipe: Recipe) -> list[str]:
    settings = [f'ATTR{{queue/{name}}}="{value}"' for name, value in _queue(recipe).items()]
    if not settings:
        return []
    return [", ".join(['ACTION=="add|change"', 'SUBSYSTEM=="block"', 'KERNEL=="DEVICE"', *settings])]


def _tuned(recipe: Recipe) -> list[str]:
    queue = _queue(recipe)
    lines = ["[main]", "summary=Storage settings found by ascar"]
    if vm := [f"{knob}={value}" for knob, value in recipe.knobs.items() if knob.startswith("vm.")]:
        lines += ["[sysctl]", *vm]
    if queue:
        # The order counts: a new scheduler resets nr_requests.
        lines += ["[sysfs]", *(f"/sys/block/DEVICE/queue/{name}={value}" for name, value in queue.items())]
    return lines
