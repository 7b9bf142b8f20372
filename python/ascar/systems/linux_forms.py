"""Settings of a machine in administrators' forms: udev's rule for its disks, and a playbook."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ascar.quoting import udev_rule
from ascar.systems.playbook import Playbook, PlaybookTask, sysctl_task

if TYPE_CHECKING:
    from collections.abc import Collection

    from ascar.results.machine import AppliedSetting

_OF_DISK = re.compile(r"/sys/block/(?P<name>[^/]+)/(?P<attribute>.+)")


def udev_rules(settings: Collection[AppliedSetting]) -> list[str]:
    """A rule for each disk, with its settings in the order in which they have to be written."""
    found: dict[str, dict[str, str]] = {}
    for one in settings:
        if disk := _OF_DISK.fullmatch(one.path):
            found.setdefault(disk["name"], {})[disk["attribute"]] = one.after
    return [line for name, attributes in found.items() for line in udev_rule(name, attributes)]


def playbook_of(settings: Collection[AppliedSetting], of_mount: Collection[PlaybookTask]) -> Playbook:
    """Lines of sysctl.d and fstab where there can be one; for others commands, which a reboot undoes."""
    tasks: list[PlaybookTask] = []
    gone: list[str] = []
    for one in settings:
        if one.path.startswith("/proc/sys/"):
            tasks.append(sysctl_task(one.knob, one.after))
        elif one.path.startswith("/sys/"):
            tasks.append(PlaybookTask(one.knob, "ansible.builtin.shell", {"cmd": one.command}))
            gone.append(one.knob)
    remarks = [f"Until the next boot only, by a command each: {', '.join(gone)}"] if gone else []
    return Playbook("Linux", "linux", [*tasks, *of_mount], remarks=remarks)
