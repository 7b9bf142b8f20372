"""Programs over a serial line, here a pseudo-terminal: process 1, the relay, and the program here."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import tty
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.testbed.frames import FrameKind, FrameReader, frame
from ascar.testbed.relay import Relay
from ascar.testbed.remote import RemoteNode, run_there

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROCESS_ONE = "from ascar.testbed.process_one import main; main()"
REMOTE = "from ascar.testbed.remote import main; main()"
LIMIT_S = 60.0


@pytest.fixture
def process() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    words = [sys.executable, "-c", PROCESS_ONE, os.ttyname(theirs)]
    with subprocess.Popen(words, start_new_session=True) as process:
        yield process, ours
        process.kill()
    with suppress(OSError):
        os.close(ours)
    os.close(theirs)


@pytest.fixture
def relay(process: tuple[subprocess.Popen[bytes], int], tmp_path: Path) -> Iterator[Relay]:
    one, line = process
    relay = Relay(tmp_path / "socket", os.dup(line), os.dup(line), one.pid)
    assert relay.is_up.wait(LIMIT_S)
    yield relay
    relay.close()


@pytest.fixture
def there(relay: Relay, tmp_path: Path) -> RemoteNode:
    return RemoteNode("one", str(tmp_path / "socket"))


def here(there: RemoteNode, *words: str) -> list[str]:
    return [sys.executable, "-c", REMOTE, there.name, there.socket, *words]


def test_status_bytes_and_errors_are_exact(there: RemoteNode) -> None:
    content = bytes(range(256)) * 2048
    assert run_there(there, ["cat"], LIMIT_S, content) == (0, content, "")
    assert run_there(there, ["sh", "-c", "echo a; echo b >&2; exit 255"], LIMIT_S) == (255, b"a\n", "b\n")
    assert run_there(there, ["sh", "-c", "kill -KILL $$"], LIMIT_S)[0] == -9
    assert run_there(there, ["printf", "%s.", "", "'a b'\n"], LIMIT_S)[1] == b".'a b'\n."


def test_input_that_nobody_takes_holds_up_nothing(there: RemoteNode) -> None:
    much = bytes(2 << 20)
    assert run_there(there, ["true"], LIMIT_S, much)[0] == 0
    assert run_there(there, ["sh", "-c", "exec <&-; sleep 0.1; echo done"], LIMIT_S, much)[1] == b"done\n"


def test_output_that_nobody_takes_holds_up_nobody(there: RemoteNode) -> None:
    with subprocess.Popen(here(there, "yes"), stdout=subprocess.PIPE) as unread:
        assert unread.stdout is not None
        assert unread.stdout.readline() == b"y\n"
        assert run_there(there, ["echo", "there"], LIMIT_S)[1] == b"there\n"
        unread.kill()


def test_errors_have_their_words(there: RemoteNode) -> None:
    with pytest.raises(EnvironmentLacks, match=r"^node one: no-such-program is not installed there$"):
        run_there(there, ["no-such-program"], LIMIT_S)
    with pytest.raises(EnvironmentLacks, match="cannot be run: Permission denied"):
        run_there(there, ["/etc/passwd"], LIMIT_S)
    with pytest.raises(StageFailed, match="sleep does not end within 0.2 s"):
        run_there(there, ["sleep", "1000"], 0.2)
    with pytest.raises(StageFailed, match="writes more than 16777216 bytes"):
        run_there(there, ["cat", "/dev/zero"], LIMIT_S)


def test_what_is_given_up_is_killed_with_its_group(there: RemoteNode, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(StageFailed):
        run_there(there, ["sh", "-c", f"trap '' TERM; sleep 1000 <> {fifo} & wait"], 1.0)
    # Its end closes the fifo, which nobody else has open for writing.
    end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    end_s = time.monotonic() + LIMIT_S
    while True:
        try:
            assert os.read(end, 1) == b""
            break
        except BlockingIOError:
            assert time.monotonic() < end_s
            time.sleep(0.02)
    os.close(end)


def test_the_program_here_ends_as_the_one_there(there: RemoteNode) -> None:
    words = here(there, "sh", "-c", "cat; echo no >&2; exit 9")
    done = subprocess.run(words, input=b"\0in", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (9, b"\0in", b"no\n")
    assert subprocess.run(here(there, "sh", "-c", "kill -TERM $$"), check=False).returncode == -15
    none = subprocess.run(here(there, "no-such-program"), capture_output=True, check=False)
    assert (none.returncode, none.stderr) == (
        127,
        b"ascar: node one: no-such-program is not installed there\n",
    )


def test_the_end_of_the_connection_closes_the_input_and_leaves_the_program(
    there: RemoteNode, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    line = f"echo begun; cat >/dev/null; echo put back; echo ended > {fifo}"
    with subprocess.Popen(here(there, "sh", "-c", line), stdin=-1, stdout=-1) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"begun\n"
        program.kill()
    assert fifo.read_text() == "ended\n"


def test_the_end_of_the_node_ends_its_programs_here(
    process: tuple[subprocess.Popen[bytes], int], relay: Relay, there: RemoteNode
) -> None:
    with subprocess.Popen(here(there, "cat"), stdin=-1, stdout=-1, stderr=-1) as program:
        assert program.stdin is not None and program.stdout is not None
        program.stdin.write(b"one\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"one\n"
        process[0].kill()
        _, errors = program.communicate()
    assert (program.returncode, b"it ended while a program ran" in errors) == (255, True)
    assert relay.has_ended.wait(LIMIT_S)
    with pytest.raises(EnvironmentLacks, match="boot it first"):
        run_there(there, ["true"], LIMIT_S)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        frame(0, FrameKind.INPUT, b"before the start"),
        frame(0, FrameKind.START, b"?\0true"),
        frame(0, FrameKind.START, b"k\0sleep\0" + b"1000") * 2,
        frame(0, FrameKind.START, b"k\0sleep\0" + b"1000") + frame(0, FrameKind.ROOM, b"1"),
        frame(0, FrameKind.HELLO),
    ],
)
def test_who_talks_nonsense_is_disconnected_alone(there: RemoteNode, nonsense: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(there.socket)
        line.sendall(nonsense)
        assert line.recv(100) == b""
    assert run_there(there, ["true"], LIMIT_S)[0] == 0


def test_frames_are_read_however_they_come() -> None:
    content = frame(1, FrameKind.OUTPUT, b"out") + frame(2, FrameKind.INPUT_END)
    expected = [(1, FrameKind.OUTPUT, b"out"), (2, FrameKind.INPUT_END, b"")]
    reader = FrameReader()
    assert [one for at in range(len(content)) for one in reader.feed(content[at : at + 1])] == expected
    for wrong in (b"\0" * 10, b"\xa5\x63" + b"\0" * 8, b"\xa5\x06" + b"\xff" * 8):
        with pytest.raises(ValueError):
            FrameReader().feed(wrong)
