"""A storage configuration in an administrator's words: shell, fstab, sysctl.d, udev, TuneD, Ansible.

Lines name the places that only the administrator knows: /dev/DEVICE and /MOUNTPOINT. They speak of what was
chosen; everything else is left to mkfs, to the kernel and to what the machine has in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.quoting import (
    comment,
    echo_line,
    fstab_line,
    mount_options,
    shell_line,
    sysctl_line,
    tuned_line,
    udev_rule,
)
from ascar.space import ChangeCost
from ascar.systems.playbook import Playbook, PlaybookTask, sysctl_task
from ascar.systems.recipe import DEVICE_PARAMETER, recipe_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Configuration, Space
    from ascar.systems.playbook import Yaml
    from ascar.systems.recipe import Recipe

DEVICE = "/dev/DEVICE"
MOUNTPOINT = "/MOUNTPOINT"
UDEV_FILE = "/etc/udev/rules.d/90-ascar.rules"
MIB = 2**20

# The keeper's mkfs options as mkfs's own words; several with one switch are joined by commas.
_EXT_WORDS = {
    "block_size_bytes": "-b {0}",
    "inode_size_bytes": "-I {0}",
    "flex_bg_groups": "-G {0}",
    "blocks_per_group": "-g {0}",
    "journal_size_bytes": "-J size={1}",
}
_XFS_WORDS = {
    "block_size_bytes": "-b size={0}",
    "inode_size_bytes": "-i size={0}",
    "agcount": "-d agcount={0}",
    "sector_size_bytes": "-s size={0}",
    "crc": "-m crc={0:d}",
}
_BTRFS_WORDS = {"node_size_bytes": "-n {0}", "metadata_profile": "-m {0}"}
_NILFS2_WORDS = {"block_size_bytes": "-b {0}", "blocks_per_segment": "-B {0}"}
_REISERFS_WORDS = {"block_size_bytes": "-b {0}"}
_WORDS = {
    "ext2": _EXT_WORDS,
    "ext3": _EXT_WORDS,
    "ext4": _EXT_WORDS,
    "xfs": _XFS_WORDS,
    "btrfs": _BTRFS_WORDS,
    "nilfs2": _NILFS2_WORDS,
    "reiserfs": _REISERFS_WORDS,
}


def command_lines(
    configuration: Configuration, space: Space, chosen: Collection[str]
) -> Mapping[str, list[str]]:
    """Lines by form, of what was chosen; all forms are empty where nothing was.

    "shell" makes the file system, mounts it and sets what can be set at once, as far as the chosen parameters
    need it; the other forms make it last: fstab the mount, sysctl and udev the kernel's settings, TuneD those
    as one profile, Ansible all of them, but for the file system, which nothing makes unasked.

    Args:
        configuration: valid in `space`.
        space: says what each parameter's change costs.
        chosen: parameters to speak of; `block_scheduler` brings `block_nr_requests` with it, which it resets.
    """
    wanted = {"fs", *chosen, *(("block_nr_requests",) if "block_scheduler" in chosen else ())}
    recipe = recipe_of({name: value for name, value in configuration.items() if name in wanted}, space)
    costs = {space[name].cost for name in chosen if name in configuration}
    lines = _lines(recipe, costs)
    if DEVICE_PARAMETER in chosen and DEVICE_PARAMETER in configuration:
        where = comment(f"Measured on {configuration[DEVICE_PARAMETER]}.")
        return {form: [where, *of] if of and form != "sysctl" else of for form, of in lines.items()}
    return lines


def _lines(recipe: Recipe, costs: Collection[ChangeCost]) -> dict[str, list[str]]:
    return {
        "shell": [*_making(recipe, costs), *_settings(recipe)],
        "fstab": [_fstab(recipe)] if _is_mounted_otherwise(recipe, costs) else [],
        "sysctl": [
            sysctl_line(knob, value) for knob, value in recipe.knobs.items() if knob.startswith("vm.")
        ],
        "udev": _udev(recipe),
        "tuned": _tuned(recipe),
        "ansible": _playbook(recipe, costs).lines(),
    }


def _is_made(costs: Collection[ChangeCost]) -> bool:
    """Whether the file system is made anew: on the same device or on another one."""
    return ChangeCost.REFORMAT_RESTORE in costs or ChangeCost.HARDWARE_CHANGE in costs


def _mkfs(recipe: Recipe) -> str:
    words = [
        word.format(value, int(value) // MIB if isinstance(value, int) else value)
        for name, value in recipe.format.items()
        for word in _WORDS[recipe.fs][name].split()
    ]
    return shell_line([f"mkfs.{recipe.fs}", *words, DEVICE])


def _making(recipe: Recipe, costs: Collection[ChangeCost]) -> list[str]:
    """From the file system to its mount, as far as is needed."""
    if _is_made(costs):
        return [_mkfs(recipe), _mount(recipe)]
    if ChangeCost.UMOUNT_MOUNT in costs:
        return [shell_line(["umount", MOUNTPOINT]), _mount(recipe)]
    if ChangeCost.REMOUNT in costs:
        return [
            shell_line(["mount", "-o", mount_options(("remount", *recipe.remount)), MOUNTPOINT]),
            *_mounted_settings(recipe),
        ]
    return _mounted_settings(recipe)


def _mounted_settings(recipe: Recipe) -> list[str]:
    """What the mounted file system has files for."""
    return [
        echo_line(value, f"/sys/fs/{knob.replace('.DEV.', '/DEVICE/')}")
        for knob, value in recipe.mounted_knobs.items()
    ]


def _options(recipe: Recipe) -> str:
    """Mount options, with what ext4 takes as one although it can also be set later."""
    later = [
        f"inode_readahead_blks={value}"
        for knob, value in recipe.mounted_knobs.items()
        if knob.endswith(".inode_readahead_blks")
    ]
    return mount_options((*recipe.mount, *later))


def _mount(recipe: Recipe) -> str:
    options = _options(recipe)
    return shell_line(["mount", "-t", recipe.fs, *(["-o", options] if options else []), DEVICE, MOUNTPOINT])


def _is_mounted_otherwise(recipe: Recipe, costs: Collection[ChangeCost]) -> bool:
    return _is_made(costs) or bool(_options(recipe))


def _check_pass(recipe: Recipe) -> int:
    """When fsck looks at it at boot (fstab(5), the sixth field)."""
    return 0 if recipe.fs in ("xfs", "btrfs", "nilfs2") else 2


def _fstab(recipe: Recipe) -> str:
    return fstab_line(DEVICE, MOUNTPOINT, recipe.fs, _options(recipe), _check_pass(recipe))


def _queue(recipe: Recipe) -> dict[str, int | str]:
    """Settings of the block device's queue, by their file."""
    prefix = "block.DEV."
    return {
        knob.removeprefix(prefix): value for knob, value in recipe.knobs.items() if knob.startswith(prefix)
    }


def _settings(recipe: Recipe) -> list[str]:
    vm = [
        shell_line(["sysctl", "-w", f"{knob}={value}"])
        for knob, value in recipe.knobs.items()
        if knob.startswith("vm.")
    ]
    return [
        *(echo_line(value, f"/sys/block/DEVICE/queue/{name}") for name, value in _queue(recipe).items()),
        *vm,
    ]


def _udev(recipe: Recipe) -> list[str]:
    return udev_rule("DEVICE", {f"queue/{name}": value for name, value in _queue(recipe).items()})


def _tuned(recipe: Recipe) -> list[str]:
    queue = _queue(recipe)
    if not recipe.knobs:
        return []
    lines = ["[main]", "summary=Storage settings found by ascar"]
    if vm := [tuned_line(knob, value) for knob, value in recipe.knobs.items() if knob.startswith("vm.")]:
        lines += ["[sysctl]", *vm]
    if queue:
        # The order counts: a new scheduler resets block_nr_requests.
        lines += [
            "[sysfs]",
            *(tuned_line(f"/sys/block/DEVICE/queue/{name}", value) for name, value in queue.items()),
        ]
    return lines


def _playbook(recipe: Recipe, costs: Collection[ChangeCost]) -> Playbook:
    """Lines of sysctl.d, a udev rule, and a line of fstab, which counts from the next mount on."""
    tasks = [sysctl_task(knob, value) for knob, value in recipe.knobs.items() if knob.startswith("vm.")]
    if rules := _udev(recipe):
        content = "".join(f"{rule}\n" for rule in rules)
        tasks.append(
            PlaybookTask("udev rule", "ansible.builtin.copy", {"dest": UDEV_FILE, "content": content})
        )
    if _is_mounted_otherwise(recipe, costs):
        mount: dict[str, Yaml] = {
            "src": DEVICE,
            "path": MOUNTPOINT,
            "fstype": recipe.fs,
            "opts": _options(recipe) or "defaults",
            "passno": str(_check_pass(recipe)),
            "state": "present",
        }
        tasks.append(PlaybookTask("fstab", "ansible.posix.mount", mount))
    remarks = [f"Make the file system by hand: {_mkfs(recipe)}"] if _is_made(costs) else []
    return Playbook("Linux", "linux", tasks, remarks=remarks)
