"""The journal of systemd, where standard error goes there: a line is an entry with fields, as of `ascard`.

Source: systemd's Native Journal Protocol; `JOURNAL_STREAM` in systemd.exec(5).
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ascar.cli.front_page import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Sequence

SOCKET: Final = "/run/systemd/journal/socket"
_PRIORITIES: Final = {"error: ": 3, "warning: ": 4}
"""By how a line begins (syslog(3)); others only inform."""
_INFORMS: Final = 6
_ROLES: Final = {"capes train": "learner"}
"""What units and nodes call a command."""


def told_journal(line: str) -> bool:
    """Send a line to the journal.

    Returns:
        Whether the journal has it; it has none where standard error goes elsewhere.
    """
    if not _has_standard_error():
        return False
    command = command_of(sys.argv[1:])
    begin = next((one for one in _PRIORITIES if line.startswith(one)), "")
    fields = {
        "MESSAGE": line.removeprefix(begin).removeprefix(f"ascar {command}: "),
        "PRIORITY": str(_PRIORITIES.get(begin, _INFORMS)),
        "SYSLOG_IDENTIFIER": "ascar",
        "ASCAR_ROLE": _ROLES.get(command, command),
    }
    entry = b"".join(_field(name, value) for name, value in fields.items() if value)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as one:
            one.sendto(entry, SOCKET)
    except OSError:
        return False
    return True


class Warnings(logging.Handler):
    """Warnings of any module, said as those of commands."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say one."""
        from ascar.cli.output import say

        say(f"warning: {record.getMessage()}")


def command_of(arguments: Sequence[str]) -> str:
    """The command that a command line names, e.g. `capes train`; empty where it names none."""
    words = list(arguments[:2])
    if not words or words[0] not in COMMANDS:
        return ""
    # A group's commands lie in a folder of its name.
    is_group = Path(__file__).with_name(words[0]).is_dir()
    return " ".join(words) if is_group and not words[-1].startswith("-") else words[0]


def _has_standard_error() -> bool:
    """Whether standard error is the file that the variable names: it may have been redirected since."""
    try:
        found = os.fstat(2)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def _field(name: str, value: str) -> bytes:
    """A field of an entry: one of several lines has its length before it, and no line of it is a field."""
    data = value.encode(errors="backslashreplace")
    if b"\n" in data:
        return b"%s\n%s%s\n" % (name.encode(), len(data).to_bytes(8, "little"), data)
    return b"%s=%s\n" % (name.encode(), data)
