"""What a terminal sees, and what its end does."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress

import pytest

STUDY = """
[study]
name = "endless"
objective = "maximize throughput_ops_per_s"
budget = "1000 h"
[target]
kind = "simulated"
metrics = { throughput_ops_per_s = "1000 - depth" }
[space.parameters.depth]
kind = "integer"
low = 0
high = 100000
default = 50000
cost = "dyn-kernel"
[optimizer]
kind = "random"
"""


class Terminal:
    """A command on a terminal of its own, which is the command's controlling one."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self.descriptor, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        # No fork of this process, which may have threads: setsid(1) makes the terminal the controlling one.
        command = ["setsid", "--ctty", sys.executable, "-m", "ascar", *arguments]
        environment = {**os.environ, "TERM": "xterm-256color", **environment}
        self._child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
        os.close(theirs)
        self.seen = ""

    def wait_for(self, text: str, within_s: float = 200) -> None:
        deadline = time.monotonic() + within_s
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            self.read_more()

    def read_more(self) -> None:
        self.seen += os.read(self.descriptor, 65536).decode(errors="replace")

    def type(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def read_to_the_end(self) -> str:
        with suppress(OSError):  # a terminal that nobody has open any more cannot be read
            while piece := os.read(self.descriptor, 65536):
                self.seen += piece.decode(errors="replace")
        return self.seen

    def close(self) -> None:
        os.close(self.descriptor)

    def status(self) -> int:
        return self._child.wait(200)


@pytest.fixture
def study(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    return file


def test_a_running_study_shows_time_best_and_readings(study, ascar):
    terminal = Terminal("tune", str(study))
    for shown in ("endless (run 1)", "time left", "best so far", "default", "trial", "readings"):
        terminal.wait_for(shown)
    terminal.type(b"\x03")
    seen = terminal.read_to_the_end()
    terminal.close()
    assert terminal.status() == 130
    assert f"go on with `ascar tune {study} --resume`" in re.sub(r"\s+", " ", seen)
    assert seen.rstrip().endswith("`"), "the last thing on the screen says how to go on"
    assert "\x1b[?25h" in seen, "the cursor is back"
    assert ascar("history", "ls", "--json").document["runs"][0]["state"] == "interrupted"


def test_a_terminal_that_is_closed_interrupts(study, ascar):
    terminal = Terminal("tune", str(study))
    while not any(int(number) > 3 for number in re.findall(r"trial (\d+)", terminal.seen)):
        terminal.read_more()
    terminal.close()
    assert terminal.status() == 130
    (run,) = ascar("history", "ls", "--json").document["runs"]
    assert run["state"] == "interrupted"
    assert run["counts"]["complete"] > 2


def test_quiet_is_quiet_on_a_terminal_too(study, tmp_path):
    study.write_text(STUDY.replace('budget = "1000 h"', 'budget = "1 min"'))
    terminal = Terminal("tune", str(study), "--quiet", "--json", NO_COLOR="1")
    seen = terminal.read_to_the_end()
    terminal.close()
    assert terminal.status() in (0, 3)
    assert seen.startswith("{")
    assert "\x1b" not in seen
