"""A service of systemd: reloaded, restarted, stopped, and at the end as it was."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.systems.program.commands import done_command, program_path, run_command

if TYPE_CHECKING:
    from ascar.systems.program.commands import CommandPlace

_ON_ITS_WAY = ("activating", "reloading", "deactivating")


class Unit:
    """A unit.

    Args:
        name: the name of the unit.
        of_user: whether the user's systemd runs it.
        place: where systemctl runs.
        systemctl: the program; None: the one that is installed.

    Raises:
        EnvironmentLacks: there is no systemctl.
        StageFailed: systemd knows no such unit.
    """

    def __init__(
        self, name: str, *, of_user: bool, place: CommandPlace, systemctl: str | None = None
    ) -> None:
        self.name, self._place = name, place
        program = systemctl or program_path("service", "systemctl")
        self._words = [program, *(["--user"] if of_user else [])]
        self._variables = [f"XDG_RUNTIME_DIR={_runtime_directory()}"] if of_user else []
        if self._asked("show", "--property=LoadState", "--value") != "loaded":
            raise StageFailed("change", f"target.service = {name!r}: systemd has no such unit loaded")
        self._was_active = self.state() == "active"

    def state(self) -> str:
        """What systemd says: active, inactive, failed, activating, ..."""
        return self._asked("is-active")

    def do(self, verb: str) -> None:
        """Have systemd do something with it: "restart", "reload-or-restart", "start" or "stop".

        Raises:
            StageFailed: it cannot.
        """
        if verb != "stop":  # many restarts in a row are no failure here (systemd.unit(5), StartLimitBurst=)
            run_command("service", [*self._words, "reset-failed", self.name], self._place)
        done_command("service", [*self._words, verb, self.name], self._place)

    def check_alive(self) -> None:
        """See that it is active, or on its way.

        Raises:
            StageFailed: it is not.
        """
        state = self.state()
        if state != "active" and state not in _ON_ITS_WAY:
            raise StageFailed("program", f"{self.name} is {state}; `journalctl -u {self.name}` tells why")

    def restoring(self) -> list[str]:
        """The command that brings it to the state in which it was found, with its files read anew."""
        verb = "restart" if self._was_active else "stop"
        variables = ["/usr/bin/env", *self._variables] if self._variables else []
        return [*variables, *self._words, verb, self.name]

    def line(self, verb: str) -> list[str]:
        """The command of an administrator."""
        return ["systemctl", *self._words[1:], verb, self.name]

    def _asked(self, *words: str) -> str:
        said = run_command("service", [*self._words, *words, self.name], self._place)
        lines = (said.output.strip() or said.error.strip()).splitlines()
        return lines[-1] if lines else "unknown"


def _runtime_directory() -> str:
    return os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
