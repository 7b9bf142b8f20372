"""Running programs: limits, signals, accounts, and that nothing is left behind."""

from __future__ import annotations

import os
import pwd
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.errors import StageFailed
from ascar.program import leftovers
from ascar.program.running import STDERR_BYTES_MAX, Program, ProgramExit, check, run_program
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELL = "/bin/sh"


def shell(script: str, **given: object) -> Program:
    return Program(**{"stage": "load", "argv": [SHELL, "-c", script], "time_limit_s": 60.0, **given})  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    """Whether a process still runs; what was killed has a moment to end, less than it would run by itself."""
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return False
        except OSError:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_output_is_heard_and_the_status_kept(place):
    heard: list[bytes] = []
    ended = run_program(
        shell("echo one; pwd; echo words >&2; exit 3"), place, lambda chunk, _: heard.append(chunk)
    )
    assert b"".join(heard).split() == [b"one", str(place.directory).encode()]
    assert (ended.status, ended.stderr, ended.interrupted) == (3, "words\n", False)


def test_standard_input_reaches_the_program_and_not_the_gate(place):
    heard: list[bytes] = []
    run_program(shell("cat", stdin=b"first\nsecond\n"), place, lambda chunk, _: heard.append(chunk))
    assert b"".join(heard) == b"first\nsecond\n"


def test_arguments_are_never_parsed_by_a_shell(place):
    heard: list[bytes] = []
    hostile = ["$(touch broken)", "; touch broken", "`touch broken`", "a b", "*", ""]
    argv = [sys.executable, "-c", "import sys; print(sys.argv[1:])", *hostile]
    run_program(Program("load", argv, 100), place, lambda chunk, _: heard.append(chunk))
    assert b"".join(heard).decode().strip() == repr(hostile)
    assert list(place.directory.iterdir()) == []


def test_a_program_that_is_not_there_fails_its_stage(place):
    ended = run_program(Program("fill", ["/proc/absent/program"], 5), place)
    assert ended.status == 127
    with pytest.raises(StageFailed, match="fill: program exited with 127"):
        check(Program("fill", ["/proc/absent/program"], 5), ended)


def test_a_directory_that_is_not_there_fails_its_stage(tmp_path):
    with pytest.raises(StageFailed, match="cannot be started"):
        run_program(shell("true"), Workspace(tmp_path / "gone"))


def test_a_program_that_hangs_is_killed_with_all_its_children(place):
    # One child in the program's own group, one in a session of its own (as fio's jobs are), one orphaned.
    children = "sleep 100 & echo $!; setsid sleep 100 & (setsid sleep 100 & echo $!)"
    script = f"{children}; sleep 0.3; trap '' INT TERM; sleep 100"
    heard: list[bytes] = []
    for limit_s in (2.0, 10.0, 30.0):  # a busy machine may take a while until all children run
        heard.clear()
        start_s = time.monotonic()
        with pytest.raises(StageFailed, match=f"ran longer than its limit of {limit_s:g} s and was killed"):
            run_program(shell(script, time_limit_s=limit_s), place, lambda chunk, _: heard.append(chunk))
        assert time.monotonic() - start_s < limit_s + 40
        pids = [int(word) for word in b"".join(heard).split()]
        assert not any(alive(pid) for pid in pids)
        if len(pids) == 2:
            break
    assert len(pids) == 2


def test_a_child_that_is_started_while_children_are_looked_for_is_killed(place):
    """Each starts another and ends: who is listed has ended before it can be looked at."""
    hops = "import os, time\nfor _ in range(100):\n    if os.fork(): os._exit(0)\ntime.sleep(100)"
    name = f"HOPS_{secrets.token_hex(8)}"
    program = Program("load", [sys.executable, "-I", "-S", "-c", hops], 60.0, environment={name: "1"})
    assert run_program(program, place).status == 0
    time.sleep(0.3)  # the last one stays, and can be seen
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if name.encode() in (entry / "environ").read_bytes():
                left.append(int(entry.name))
    assert not any(alive(pid) for pid in left)


def test_children_that_outlive_the_program_are_killed_and_do_not_delay_its_end(place):
    heard: list[bytes] = []
    start_s = time.monotonic()
    ended = run_program(
        shell("setsid sleep 60 & echo $!; exit 0"), place, lambda chunk, _: heard.append(chunk)
    )
    assert time.monotonic() - start_s < 40
    assert ended.status == 0
    assert not alive(int(b"".join(heard)))


def test_a_child_that_really_has_no_environment_delays_the_end_by_little(place):
    start_s = time.monotonic()
    heard: list[bytes] = []
    command = "env -i sleep 6 & echo $!; exit 0"
    assert run_program(shell(command), place, lambda chunk, _: heard.append(chunk)).status == 0
    seconds = time.monotonic() - start_s
    with suppress(ProcessLookupError):
        os.kill(int(b"".join(heard)), signal.SIGKILL)
    assert seconds < 4.5


def test_children_are_looked_for_only_after_a_program_that_can_have_some(place, monkeypatch):
    looks = []
    marked = leftovers._marked
    monkeypatch.setattr(leftovers, "_marked", lambda mark, unseen: looks.append(mark) or marked(mark, unseen))

    def looked(script):
        looks.clear()
        assert run_program(shell(script), place).status == 0
        return bool(looks)

    # Whatever begins beside it on this machine is a reason to look, too.
    assert any(not looked("exit 0") for _ in range(500))
    assert all(looked("sleep 0 & exit 0") for _ in range(20))


def test_nothing_is_left_when_hearing_fails(place):
    pids: list[int] = []

    class Unexpected(Exception):
        pass

    def hear(chunk, seconds):
        pids.append(int(chunk))
        raise Unexpected

    with pytest.raises(Unexpected):
        run_program(shell("echo $$; sleep 60"), place, hear)
    assert not alive(pids[0])


def test_hearing_enough_asks_the_program_to_end(place):
    script = "trap 'echo asked; exit 5' INT; echo ready; while :; do sleep 0.05; done"
    heard: list[bytes] = []

    def hear(chunk, seconds):
        heard.append(chunk)
        return b"ready" in chunk

    ended = run_program(shell(script), place, hear)
    assert ended.interrupted
    assert ended.status == 5
    assert b"asked" in b"".join(heard)
    check(shell(script), ended)  # a status that our own signal caused is no failure


def test_a_program_that_ignores_the_request_is_killed(place):
    with pytest.raises(StageFailed, match=r"did not end within 0\.3 s of being asked to and was killed"):
        run_program(shell("trap '' INT; echo x; sleep 60", grace_s=0.3), place, lambda *_: True)


def test_the_request_comes_by_itself_after_so_long(place):
    ended = run_program(
        shell("trap 'exit 0' INT; while :; do sleep 0.05; done", interrupt_after_s=0.4), place
    )
    assert ended.interrupted
    assert 0.4 <= ended.seconds < 20


def test_output_without_end_is_stopped(place):
    with pytest.raises(StageFailed, match="wrote more than 1000000 bytes to its standard output"):
        run_program(shell("exec yes", output_bytes_max=1_000_000), place, lambda *_: False)


def test_only_the_tail_of_standard_error_is_kept(place):
    ended = run_program(shell("yes | head -c 300000 >&2; echo last >&2"), place)
    assert len(ended.stderr) == STDERR_BYTES_MAX
    assert ended.stderr.endswith("last\n")


def test_a_signal_that_killed_it_is_named(place):
    program = shell("kill -KILL $$")
    with pytest.raises(StageFailed, match="sh was killed by SIGKILL"):
        check(program, run_program(program, place))


def test_failures_carry_the_last_words():
    ended = ProgramExit(status=2, stderr="first\ndisk on fire\n", seconds=1.0, interrupted=False)
    with pytest.raises(StageFailed, match="sh exited with 2: disk on fire") as failed:
        check(shell(""), ended)
    assert failed.value.stderr == "first\ndisk on fire\n"


def test_the_program_is_admitted_before_it_begins(tmp_path):
    order: list[str] = []

    def admit(pid: int) -> None:
        order.append("admitted")
        assert Path(f"/proc/{pid}").exists()
        assert not (tmp_path / "began").exists()
        time.sleep(0.2)
        assert not (tmp_path / "began").exists()

    ended = run_program(shell("touch began"), Workspace(tmp_path, admit=admit))
    assert ended.status == 0
    assert order == ["admitted"]
    assert (tmp_path / "began").exists()


def test_a_program_that_cannot_be_admitted_never_begins(tmp_path):
    def admit(pid: int) -> None:
        raise StageFailed("load", "no such group")

    with pytest.raises(StageFailed, match="no such group"):
        run_program(shell("touch began"), Workspace(tmp_path, admit=admit))
    assert not (tmp_path / "began").exists()


def test_an_unknown_account_fails(tmp_path):
    with pytest.raises(StageFailed, match="there is no user 'nobody-at-all'"):
        run_program(shell("true"), Workspace(tmp_path, user="nobody-at-all"))


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs a program as another user")
def test_the_program_runs_as_the_workspaces_user(tmp_path):
    entry = pwd.getpwnam("nobody")
    heard: list[bytes] = []
    directory = Path("/")  # a directory that anybody may enter
    run_program(
        shell("id -u; id -g; id -G; echo $HOME"),
        Workspace(directory, user="nobody"),
        lambda c, _: heard.append(c),
    )
    uid, gid, groups, home = b"".join(heard).decode().splitlines()
    assert (int(uid), int(gid), home) == (entry.pw_uid, entry.pw_gid, entry.pw_dir)
    assert "0" not in groups.split()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")
def test_only_root_can_run_as_somebody_else():
    script = (
        "import os\n"
        "from pathlib import Path\n"
        "from ascar.program import Program, run_program\n"
        "from ascar.workspace import Workspace\n"
        "from ascar.errors import StageFailed\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try: run_program(Program('load', ['/bin/true'], 5), Workspace(Path('/'), user='root'))\n"
        "except StageFailed as failed: print(failed)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "only root can run a load as user 'root'" in done.stdout


class There:
    """A node whose programs run here."""

    name = "there"

    def __init__(self, last_words: str | None = None) -> None:
        self.last_words = last_words
        self.words: list[str] = []
        self.marks: list[str] = []

    def load_words(self, argv: Sequence[str], *, group: bool) -> list[str]:
        self.words = [*argv, "group" if group else "alone"]
        return list(argv)

    def end_load(self, mark: str) -> None:
        self.marks.append(mark)


def test_a_program_of_a_node_is_given_its_place_group_and_mark(tmp_path):
    node, load, group = There(), tmp_path / "load", tmp_path / "group"
    load.mkdir()
    group.mkdir()
    heard: list[bytes] = []
    there = Workspace(load, environment={"A": "b c"}, node=node, group=group)
    script = shell('pwd; echo "$A"; echo "$ASCAR_LOAD"; echo $$', interrupt_group=False)
    ended = run_program(script, there, lambda chunk, _: heard.append(chunk) is not None)
    assert ended.status == 0, ended.stderr
    place, given, mark, pid = b"".join(heard).decode().splitlines()
    assert (place, given) == (str(load), "b c")
    assert node.marks == [f"ASCAR_LOAD={mark}"], "what it has left is looked for by its mark"
    assert (group / "cgroup.procs").read_text().split() == [pid]
    assert node.words[-1] == "alone"


def test_the_account_of_a_load_in_a_node_is_taken_there_and_not_here(tmp_path):
    node, entry = There(), pwd.getpwnam("nobody")
    with suppress(StageFailed):  # who is not root here becomes nobody else
        run_program(shell("true"), Workspace(tmp_path, user="nobody", node=node))
    at = node.words.index("setpriv")
    words = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups", SHELL]
    assert node.words[at + 1 : at + 5] == words
    assert f"HOME={entry.pw_dir}" in node.words[:at]


def test_a_node_that_dies_fails_the_load_with_the_end_of_its_console(tmp_path):
    with pytest.raises(StageFailed, match="load: node there: it is gone") as caught:
        run_program(shell("echo late >&2"), Workspace(tmp_path, node=There("Kernel panic\n")))
    assert caught.value.stderr == "Kernel panic\nlate\n"
