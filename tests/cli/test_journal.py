"""Where standard error goes to systemd's journal, lines are entries with fields."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import free_port

from ascar.cli import journal
from ascar.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 60.0
# `ascar`, with another socket than the journal's own.
ASCAR = """
import sys
from ascar.cli import journal, main
journal.SOCKET = sys.argv.pop(1)
sys.exit(main())
"""
LEARNER = """
session = "files"
connection = "connection.toml"
objective = "minimize cpu_busy_share"
state = "learner.npz"
"""


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The journal's socket."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as found:
        found.bind(str(tmp_path / "journal"))
        found.settimeout(PATIENCE_S)
        monkeypatch.setattr(journal, "SOCKET", str(tmp_path / "journal"))
        yield found


@pytest.fixture
def into_journal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Standard error is the file that the journal reads."""
    assert capfd.readouterr().err == ""
    about = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{about.st_dev}:{about.st_ino}")
    monkeypatch.setattr(sys, "argv", ["ascar", "capes", "train", "--config", "learner.toml"])


@pytest.mark.usefixtures("into_journal")
def test_a_line_is_an_entry_with_its_role(inbox: socket.socket, capfd: pytest.CaptureFixture[str]) -> None:
    for line in (
        "ascar capes train: learning: 2 knobs",
        "warning: late",
        "error: learner.toml: no such file",
    ):
        say(line)
    assert [inbox.recv(4096).decode() for _ in range(3)] == [
        f"MESSAGE={message}\nPRIORITY={priority}\nSYSLOG_IDENTIFIER=ascar\nASCAR_ROLE=learner\n"
        for message, priority in (("learning: 2 knobs", 6), ("late", 4), ("learner.toml: no such file", 3))
    ]
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("into_journal")
def test_a_warning_of_a_module_is_an_entry(inbox: socket.socket) -> None:
    record = logging.LogRecord(
        "ascar.systems", logging.WARNING, "", 0, "%s: left alone", ("vm.dirty_ratio",), None
    )
    journal.Warnings(logging.WARNING).handle(record)
    assert inbox.recv(4096).decode().startswith("MESSAGE=vm.dirty_ratio: left alone\nPRIORITY=4\n")


@pytest.mark.usefixtures("into_journal")
def test_no_line_of_a_text_becomes_a_field(inbox: socket.socket) -> None:
    say("a node named\nPRIORITY=0\nASCAR_ROLE=keeper \x1b[2J")
    entry = inbox.recv(4096)
    text = b"a node named\nPRIORITY=0\nASCAR_ROLE=keeper \\x1b[2J"
    assert entry.startswith(b"MESSAGE\n" + len(text).to_bytes(8, "little") + text + b"\nPRIORITY=6\n")


@pytest.mark.usefixtures("into_journal")
@pytest.mark.parametrize("why", ["nobody listens", "too long", "redirected"])
def test_what_the_journal_does_not_take_is_on_standard_error(
    why: str, inbox: socket.socket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    line = "x" * (4 << 20 if why == "too long" else 9)
    if why == "nobody listens":
        inbox.close()
    elif why == "redirected":
        about = os.fstat(2)
        monkeypatch.setenv("JOURNAL_STREAM", f"{about.st_dev}:{about.st_ino + 1}")
    say(line)
    assert capfd.readouterr().err == f"{line}\n"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["capes", "train", "--config", "x"], "capes train"),
        (["sharp", "watch", "FILE"], "sharp watch"),
        (["explore", "train"], "explore"),
        (["capes", "--help"], "capes"),
        (["capes"], "capes"),
        (["--version"], ""),
        ([], ""),
    ],
)
def test_the_command_of_a_command_line(words: list[str], command: str) -> None:
    assert journal.command_of(words) == command


def started(folder: Path, config: str) -> subprocess.Popen[str]:
    """The learner, as systemd starts it: standard error is the journal's stream."""
    with (folder / "stream").open("w") as stream:
        about = os.fstat(stream.fileno())
        return subprocess.Popen(
            [sys.executable, "-c", ASCAR, folder / "journal", "capes", "train", "--config", folder / config],
            env={**os.environ, "JOURNAL_STREAM": f"{about.st_dev}:{about.st_ino}"},
            stdout=subprocess.DEVNULL,
            stderr=stream,
            text=True,
        )


def test_the_learner_says_to_the_journal_what_it_waits_for(inbox: socket.socket, tmp_path: Path) -> None:
    (tmp_path / "connection.toml").write_text(f'url = "nats://127.0.0.1:{free_port()}"\n')
    (tmp_path / "connection.toml").chmod(0o600)
    (tmp_path / "learner.toml").write_text(LEARNER)
    with started(tmp_path, "learner.toml") as running:
        try:
            entry = inbox.recv(4096).decode()
        finally:
            running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE_S) == 0
    assert entry.partition("\n")[0].endswith("; waiting for it")
    assert entry.endswith("\nPRIORITY=6\nSYSLOG_IDENTIFIER=ascar\nASCAR_ROLE=learner\n")
    assert (tmp_path / "stream").read_text() == ""


def test_why_the_learner_ended_is_in_the_journal(inbox: socket.socket, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(f"{LEARNER}nonsense = 1\n")
    with started(tmp_path, "wrong.toml") as running:
        assert running.wait(PATIENCE_S) == 2
    entry = inbox.recv(4096).decode()
    assert "nonsense" in entry.partition("\n")[0]
    assert entry.endswith("\nPRIORITY=3\nSYSLOG_IDENTIFIER=ascar\nASCAR_ROLE=learner\n")
