"""A playbook of Ansible: what a configuration takes, as tasks of the modules that administrators use.

    - name: "Settings of PostgreSQL found by ascar"
      hosts: "postgresql"
      become: true
      tasks:
        - name: "work_mem"
          community.postgresql.postgresql_set:
            name: "work_mem"
            value: "8MB"

Its hosts are a group of the administrator's inventory. Strings are quoted, and hold no templates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.quoting import ansible_word, comment, sysctl_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SYSCTL_FILE = "/etc/sysctl.d/90-ascar.conf"

Yaml = bool | int | str | list["Yaml"] | dict[str, "Yaml"]
"""What a playbook is made of."""


@dataclass(frozen=True, slots=True)
class PlaybookTask:
    """A task.

    Attributes:
        name: what it does, for people.
        module: the full name of the module.
        arguments: the module's arguments.
        user: whom it runs as, where it is not root.
        restarts: whether the service has to be restarted where the task changes something.
    """

    name: str
    module: str
    arguments: Mapping[str, Yaml]
    user: str | None = None
    restarts: bool = False


@dataclass(frozen=True, slots=True)
class Playbook:
    """A playbook of one play.

    Attributes:
        system: the name of the system, for people.
        hosts: the group of hosts.
        tasks: what is done there, in this order.
        service: the service that tasks restart.
        remarks: lines above it.
    """

    system: str
    hosts: str
    tasks: Sequence[PlaybookTask]
    service: str = ""
    remarks: Sequence[str] = field(default_factory=tuple)

    def lines(self) -> list[str]:
        """The playbook, line by line; none without a task.

        Raises:
            InputError: a playbook cannot say a value.
        """
        if not self.tasks:
            return []
        handler = f"Restart {self.system}"
        play: dict[str, Yaml] = {
            "name": f"Settings of {self.system} found by ascar",
            "hosts": self.hosts,
            "become": True,
            "tasks": [_task(one, handler) for one in self.tasks],
        }
        if any(one.restarts for one in self.tasks):
            service: dict[str, Yaml] = {"name": self.service, "state": "restarted"}
            play["handlers"] = [{"name": handler, "ansible.builtin.service": service}]
        return [*map(comment, self.remarks), *_said([play])]


def sysctl_task(key: str, value: object) -> PlaybookTask:
    """A setting of the kernel, now and at each boot.

    Raises:
        InputError: sysctl.d cannot say it.
    """
    sysctl_line(key, value)
    arguments: dict[str, Yaml] = {"name": key, "value": str(value), "sysctl_file": SYSCTL_FILE}
    return PlaybookTask(key, "ansible.posix.sysctl", arguments)


def _task(task: PlaybookTask, handler: str) -> Yaml:
    found: dict[str, Yaml] = {"name": task.name, task.module: dict(task.arguments)}
    if task.user is not None:
        found["become_user"] = task.user
    if task.restarts:
        found["notify"] = handler
    return found


def _said(value: Yaml) -> list[str]:
    """The lines of a value: one of a scalar, which its key or its dash stands before."""
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int):
        return [str(value)]
    if isinstance(value, str):
        return [ansible_word(value)]
    if isinstance(value, list):
        return [line for one in value for line in _indented("- ", _said(one))]
    return [line for key, one in value.items() for line in _entry(key, one)]


def _entry(key: str, value: Yaml) -> list[str]:
    lines = _said(value)
    return [f"{key}:", *_indented("  ", lines)] if isinstance(value, (list, dict)) else [f"{key}: {lines[0]}"]


def _indented(first: str, lines: list[str]) -> list[str]:
    return [f"{'  ' if number else first}{line}" for number, line in enumerate(lines)]
