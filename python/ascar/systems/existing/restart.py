"""The command that starts a server of others anew, where a study allows that."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ascar.errors import StageFailed, StudyError
from ascar.study import duration
from ascar.systems.program.commands import CommandPlace, done_command, program_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMIT_MAX_S = 45.0
"""What is left of the time that the keeper gives a command, once the old values are written."""

_LOOK_S = 0.1
_WORDS_MAX = 100

R = TypeVar("R")


class ServerRestart(msgspec.Struct, frozen=True):
    """How a server is started anew.

    Attributes:
        argv: the command, which ends once the server was started.
        limit_s: seconds after which a server that does not answer has failed.
    """

    argv: tuple[str, ...]
    limit_s: float

    @classmethod
    def of(
        cls,
        allowed: str,
        command: Sequence[str],
        limit: str,
        *,
        unit: str = "postgresql",
        limit_max_s: float = LIMIT_MAX_S,
    ) -> ServerRestart | None:
        """That of `[target]`; None: restarts are not allowed.

        Args:
            allowed: "never" or "allowed".
            command: the command.
            limit: seconds that it may take until the server answers, as a text.
            unit: a unit of systemd, for an example.
            limit_max_s: the greatest limit.

        Raises:
            StudyError: a key is wrong, or missing.
            EnvironmentLacks: the program is not there.
        """
        limit_s = duration("target.restart_limit", limit)
        if allowed == "never":
            if command:
                raise StudyError("target.restart_command: needs target.restarts = 'allowed'; leave it out")
            return None
        if not command:
            raise StudyError(
                "target.restart_command: missing; target.restarts = 'allowed' needs the command that starts "
                f"the server anew, such as ['sudo', '-n', 'systemctl', 'restart', {unit!r}]"
            )
        if len(command) > _WORDS_MAX or not all(word.isprintable() and word for word in command):
            raise StudyError(
                f"target.restart_command: must be at most {_WORDS_MAX} words of characters that are printed"
            )
        if limit_s > limit_max_s:
            raise StudyError(f"target.restart_limit = {limit!r:.60}: must be at most {limit_max_s:g} s")
        return cls((program_path("restart_command", command[0]), *command[1:]), limit_s)

    def carry_out(self, connected: Callable[[], R]) -> R:
        """Start the server anew, and wait until it answers.

        Args:
            connected: connects to it.

        Returns:
            The connection.

        Raises:
            StageFailed: the command fails, or the server does not answer in time.
        """
        end_s = time.monotonic() + self.limit_s
        done_command("restart_command", self.argv, CommandPlace(Path("/"), self.limit_s))
        while True:
            try:
                return connected()
            except StageFailed:
                if time.monotonic() > end_s:
                    raise
            time.sleep(_LOOK_S)
