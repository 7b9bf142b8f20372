"""Nodes of a testbed: booted and cut, and what runs there is as it is anywhere else."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from ascar.errors import EnvironmentLacks, StageFailed, WorkError
from ascar.testbed import inside, machine
from ascar.testbed.namespace import NamespaceNode, lacks
from ascar.testbed.process import ProcessNode
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

STRANGE = ["two words", "", "$(touch /tmp/never)", "'quotes\"", "new\nline", "a;b|c&d", "-o", "--", "*"]
LIMIT_S = 60.0
ONE = os.getpid()
"""Makes programs of this process different from those of other tests."""


@pytest.fixture
def folder(in_memory: Path | None) -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as path:
        yield Path(path)


@pytest.fixture(params=["process", "namespace"])
def node(request: pytest.FixtureRequest, folder: Path) -> Iterator[ProcessNode]:
    kind = {"process": ProcessNode, "namespace": NamespaceNode}[request.param]
    if request.param == "namespace" and (missing := lacks()):
        pytest.skip(missing)
    node = kind("node1", folder / "node1", f"{folder}:test:node1:")
    node.boot(LIMIT_S)
    yield node
    node.close()


def living(mark: str) -> list[int]:
    """Processes whose command line has a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (path / "cmdline").read_bytes() and int(path.name) != os.getpid():
                found.append(int(path.name))
        except OSError:
            pass
    return found


def test_it_is_a_machine(node: ProcessNode) -> None:
    assert isinstance(node, machine.TestbedMachine)
    assert (node.name, node.alive) == ("node1", True)


def test_every_word_arrives_as_it_is(node: ProcessNode) -> None:
    done = node.run(["printf", "%s\\0", *STRANGE], LIMIT_S)
    assert done.out.decode().split("\0")[:-1] == STRANGE
    assert not Path("/tmp/never").exists()


def test_input_output_status_and_folder(node: ProcessNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAID_BEFORE", "so")
    words = ["sh", "-c", "cat; pwd; echo $SAID_BEFORE; echo oops >&2; exit 3"]
    done = node.run(words, LIMIT_S, b"\0\xff" * 50_000)
    assert (done.status, done.err) == (3, "oops\n")
    assert done.out == b"\0\xff" * 50_000 + f"{node.folder}\nso\n".encode()


def test_a_signal_is_told(node: ProcessNode) -> None:
    assert node.run(["sh", "-c", "kill -KILL $$"], LIMIT_S).status == -signal.SIGKILL
    assert node.run(["sh", "-c", "kill -TERM $$"], LIMIT_S).status == -signal.SIGTERM


def test_one_that_does_not_end_is_killed(node: ProcessNode) -> None:
    with pytest.raises(StageFailed, match="node node1: .* does not end within 1 s"):
        node.run(["sleep", f"4711.{ONE}"], 1)
    until(lambda: not living(f"sleep\x004711.{ONE}"))


def test_a_program_that_is_not_there_is_named(node: ProcessNode) -> None:
    with pytest.raises(EnvironmentLacks, match="node node1: no-such-program: cannot be started"):
        node.run(["no-such-program"], LIMIT_S)
    assert node.run(["sh", "-c", "exit 127"], LIMIT_S).status == 127


def test_a_file_is_put_as_a_whole(node: ProcessNode) -> None:
    path = node.folder / "a $(file) 'name"
    node.put(b"one\0\xff", str(path), 0o640)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one\0\xff", 0o640)
    with pytest.raises(StageFailed, match="none/x"):
        node.put(b"", str(node.folder / "none/x"))


def test_facts(node: ProcessNode) -> None:
    facts = node.facts()
    assert (facts.kernel, facts.uid) == (os.uname().release, os.geteuid())


def test_an_open_program_has_pipes_and_hears_of_signals(node: ProcessNode) -> None:
    words = [
        "sh",
        "-c",
        "trap 'echo heard; exit 7' USR1; echo here; read line; echo $line; while :; do sleep 0.05; done",
    ]
    with (node.folder / "err").open("wb") as err, node.open(words, err) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == b"here\n"
        process.stdin.write(b"there\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"there\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"heard\n"
        assert process.wait(LIMIT_S) == 7


def test_a_program_ends_with_who_opened_it(node: ProcessNode) -> None:
    with (node.folder / "err").open("wb") as err, node.open(["sleep", f"4712.{ONE}"], err) as process:
        until(lambda: living(f"sleep\x004712.{ONE}"))
        process.kill()
    until(lambda: not [pid for pid in living(f"sleep\x004712.{ONE}") if b"inside.py" not in cmdline(pid)])


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_cut_kills_whatever_has_hidden_itself(node: ProcessNode) -> None:
    hidden = f"for i in 1 2 3; do (setsid env -i sleep 4713.{ONE} </dev/null >/dev/null 2>&1 &); done"
    assert node.run(["sh", "-c", hidden], LIMIT_S).status == 0
    until(lambda: len(living(f"sleep\x004713.{ONE}")) == 3)
    node.cut()
    assert (node.alive, living(f"sleep\x004713.{ONE}")) == (False, [])
    with pytest.raises(EnvironmentLacks, match="node node1: is off"):
        node.run(["true"], LIMIT_S)
    node.cut()
    node.boot(LIMIT_S)
    node.boot(LIMIT_S)
    assert node.alive
    assert node.run(["true"], LIMIT_S).status == 0


def test_who_waits_hears_of_a_cut(node: ProcessNode) -> None:
    with (node.folder / "err").open("wb") as err, node.open(["sleep", f"4714.{ONE}"], err) as process:
        until(lambda: [pid for pid in living(f"sleep\x004714.{ONE}") if b"inside.py" not in cmdline(pid)])
        node.cut()
        assert process.wait(LIMIT_S) == 255
    assert (node.folder / "err").read_text() == "node node1: is off, or was cut\n"


def test_all_of_it_ends_with_who_holds_it(folder: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from ascar.testbed.process import ProcessNode\n"
        "folder = Path(sys.argv[1]); node = ProcessNode('a', folder, f'{folder}:test:a:'); node.boot(60)\n"
        f"node.run(['sh', '-c', '(setsid env -i sleep 4715.{ONE} </dev/null >/dev/null 2>&1 &)'], 60)\n"
        "print('up', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program, folder / "a"], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"up\n"
        assert living(f"sleep\x004715.{ONE}") and living(str(folder))
        process.kill()
        until(lambda: not living(f"sleep\x004715.{ONE}") and not living(str(folder)), 10)


FOR_EVER = """
import os, sys, time
end_s = time.monotonic() + 60
while time.monotonic() < end_s:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.utime(sys.argv[1])
"""


def test_a_cut_kills_what_forks_and_ends_all_the_time(node: ProcessNode) -> None:
    beat = node.folder / "beat"
    beat.touch()
    words = ["sh", "-c", 'exec python3 "$@" >/dev/null 2>&1', "sh", "-c", FOR_EVER, str(beat)]
    assert node.run(words, LIMIT_S).status == 0
    begun_ns = beat.stat().st_mtime_ns
    until(lambda: beat.stat().st_mtime_ns > begun_ns)
    node.cut()
    last_ns = beat.stat().st_mtime_ns
    time.sleep(0.5)
    assert beat.stat().st_mtime_ns == last_ns


def test_whoever_removes_what_is_left_finds_what_has_hidden_itself(folder: Path) -> None:
    node = ProcessNode("a", folder / "a", f"{folder}:test:a:")
    hidden = f"for i in 1 2 3; do (setsid env -i sleep 4716.{ONE} </dev/null >/dev/null 2>&1 &); done"
    for _ in range(3):
        node.boot(LIMIT_S)
        assert node.run(["sh", "-c", hidden], LIMIT_S).status == 0
        until(lambda: len(living(f"sleep\x004716.{ONE}")) == 3)
        inside.kill_marked(f"{folder}:test:")
        assert living(f"sleep\x004716.{ONE}") == []
        node.close()


def test_one_who_asks_for_nothing_holds_up_nobody(node: ProcessNode) -> None:
    where = str(node.folder / "node.control.sock")
    with ExitStack() as held:
        silent = [held.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(200)]
        begun_s = time.monotonic()
        for one in silent:
            one.connect(where)
        silent[-1].send(b"\0\0")
        assert node.run(["echo", "there"], LIMIT_S).out == b"there\n"
        assert time.monotonic() - begun_s < 9, "it waited for those who say nothing"
        assert silent[0].recv(100) == b'{"refused": "others ask"}\n'


def test_a_folder_with_a_long_path_is_refused(folder: Path) -> None:
    with pytest.raises(EnvironmentLacks, match="too long for the path of a socket; set ASCAR_RUNTIME_DIR"):
        ProcessNode("a", folder / ("x" * 100), "mark:")


def test_a_first_process_that_does_not_start_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = ProcessNode("a", folder / "a", f"{folder}:test:a:")
    monkeypatch.setattr(ProcessNode, "_surroundings", lambda self, words: ["sh", "-c", "echo why not >&2"])
    with pytest.raises(WorkError, match="node a: does not start: why not"):
        node.boot(LIMIT_S)
    assert not node.alive


def test_all_end_at_the_same_time_and_none_is_left_out() -> None:
    met, ended = threading.Barrier(3, timeout=LIMIT_S), []

    def one(name: str, *, fails: bool) -> machine.TestbedMachine:
        def close() -> None:
            met.wait()
            ended.append(name)
            if fails:
                raise WorkError(f"node {name}: does not end")

        return cast("machine.TestbedMachine", SimpleNamespace(close=close))

    with pytest.raises(WorkError, match="node b: does not end"):
        machine.close_all([one("a", fails=False), one("b", fails=True), one("c", fails=False)])
    assert sorted(ended) == ["a", "b", "c"]
    machine.close_all([])
