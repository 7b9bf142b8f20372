"""Starting, greeting, locking, ending."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from ascar.errors import EnvironmentLacks, InputError, KeeperLost, Refused
from ascar.program.node_binary import find_ascard
from ascar.systems.keeper import Keeper, restore_all


def test_hello_tells_who_and_what(keeper):
    hello = keeper.hello
    assert hello.uid == os.getuid()
    assert hello.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert "ascard" in Path(f"/proc/{hello.pid}/cmdline").read_text()
    assert "ext4" in hello.capabilities.file_systems
    assert "none" in hello.capabilities.schedulers
    assert hello.capabilities.kernel == os.uname().release
    assert hello.restored.restored == ()


def test_it_starts_in_milliseconds(state):
    times = []
    for _ in range(10):
        started = time.monotonic()
        with Keeper("quick", state_dir=state):
            times.append(time.monotonic() - started)
    assert min(times) < 1, "0.02 s on a quiet machine, mostly Python; the keeper itself takes a millisecond"


def test_the_owner_must_be_printable(state):
    for owner in ("", "a\nb", "x" * 201, "\x1b[31m"):
        with pytest.raises(InputError, match="owner"):
            Keeper(owner, state_dir=state).start()


def test_a_lock_is_refused_with_its_holder_until_the_holder_ends(state, tmp_path):
    name = f"test.{os.getpid()}"
    with Keeper("the second", state_dir=state) as second:
        with Keeper("the first", state_dir=state) as first:
            first.lock(name, "test.other")
            first.lock(name)
            with pytest.raises(
                Refused, match=rf'{name} is locked by "the first" \(keeper {first.pid}, for \d+ s\)'
            ):
                second.lock(name)
        second.lock(name)


def test_a_coupled_knob_is_locked_along(state, loop):
    dev = loop.name
    with Keeper("the first", state_dir=state) as first, Keeper("the second", state_dir=state) as second:
        first.knob_write(f"block.{dev}.scheduler", "mq-deadline")
        for knob, value in ((f"block.{dev}.nr_requests", 64), (f"block.{dev}.iosched/fifo_batch", 8)):
            with pytest.raises(Refused, match='is locked by "the first"'):
                second.knob_write(knob, value)
        second.knob_write(f"block.{dev}.read_ahead_kb", 256)


@pytest.mark.parametrize("name", ["", ".hidden", "a b", "a\0b", "x" * 200, "ä"])
def test_a_lock_has_a_plain_name(keeper, name):
    with pytest.raises(InputError, match="allowed are"):
        keeper.lock(name)


def test_a_name_with_dots_and_slashes_stays_in_its_directory(keeper):
    keeper.lock("test/../../../../tmp/escaped")
    assert not Path("/tmp/escaped.lock").exists()
    assert not Path("/tmp/escaped").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_it_with_everything_back(state, images, gone, number):
    keeper = Keeper("signalled", state_dir=state).start()
    pid = keeper.pid
    keeper.image_create(images / "image", 1 << 26)
    keeper.image_attach(images / "image")
    keeper.cgroup_create(1 << 26)
    os.kill(pid, number)
    gone(pid)
    with pytest.raises(KeeperLost, match="it is gone"):
        keeper.status()
    keeper.close()


def test_a_client_that_dies_is_noticed_even_if_somebody_holds_its_pipe(raw, state, images, gone):
    """The pipe alone is not enough: a child of the client may have inherited its end."""
    reader, writer = os.pipe()
    client = subprocess.Popen(
        [
            "python3",
            "-c",
            "import subprocess, sys, time\n"
            "p = subprocess.Popen(sys.argv[1:], stdin=0, stdout=1)\n"
            "time.sleep(1000)",
            str(find_ascard()),
            "keeper",
            "--state-dir",
            str(state),
        ],
        stdin=reader,
        stdout=subprocess.PIPE,
    )
    os.close(reader)
    assert client.stdout is not None
    os.write(writer, b'{"id": 1, "op": "hello", "version": 1, "owner": "orphan"}\n')
    assert b'"ok"' in client.stdout.readline()
    request = f'{{"id": 2, "op": "image_create", "path": "{images}/image", "size_bytes": 67108864}}\n'
    os.write(writer, request.encode())
    assert b'"ok"' in client.stdout.readline()
    client.kill()
    gone()
    os.close(writer)
    client.wait()
    client.stdout.close()


def test_a_killed_keeper_is_lost(state):
    keeper = Keeper("to be killed", state_dir=state).start()
    os.kill(keeper.pid, signal.SIGKILL)
    with pytest.raises(KeeperLost, match="exit status -9"):
        keeper.status()
    with pytest.raises(KeeperLost, match="is not running"):
        keeper.status()
    assert keeper.close() is None


def test_a_stopped_keeper_is_given_up_at_the_deadline(state, monkeypatch):
    monkeypatch.setattr("ascar.systems.keeper.GRACE_S", 0.2)
    monkeypatch.setattr("ascar.systems.keeper_process.EXIT_PATIENCE_S", 0.2)
    keeper = Keeper("to be stopped", state_dir=state).start()
    pid, process = keeper.pid, keeper._process
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(KeeperLost, match="no reply in time"):
            keeper.drop_caches(timeout_s=0.2)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert process._process.wait(100) == 0


@pytest.mark.anybody
def test_without_a_binary_the_error_says_how_to_build_it(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="`pip install ascard` or `make setup` installs it"):
        Keeper("nothing").start()


@pytest.mark.anybody
def test_without_root_and_sudo_the_error_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="needs root: sudo is not installed"):
        Keeper("nobody", ascard=Path("/bin/true")).start()


@pytest.mark.anybody
def test_a_sudo_that_asks_for_a_password_is_quoted(monkeypatch, tmp_path):
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(EnvironmentLacks, match="needs root: sudo: a password is required: run this as root"):
        Keeper("nobody", ascard=Path("/bin/true")).start()
    with pytest.raises(EnvironmentLacks, match="needs root: sudo: a password is required"):
        restore_all(ascard=Path("/bin/true"), state_dir=tmp_path)


@pytest.mark.anybody
def test_a_restore_that_takes_its_time_says_how_much_is_left_at_most(monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\nsleep 1.2\necho \'{"restored": ["vm.swappiness"]}\'\n')
    slow.chmod(0o755)
    told: list[float] = []
    report = restore_all(ascard=slow, state_dir=tmp_path, listener=told.append)
    assert report.restored == ("vm.swappiness",)
    assert len(told) >= 3
    assert told == sorted(told, reverse=True)


@pytest.mark.anybody
def test_who_is_interrupted_leaves_no_restore_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    slow, running = tmp_path / "slow", tmp_path / "running"
    slow.write_text(f"#!/bin/sh\necho $$ > {running}\nexec sleep 60\n")
    slow.chmod(0o755)

    def interrupt(left_s: float) -> None:
        if running.exists() and running.read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        restore_all(ascard=slow, state_dir=tmp_path, listener=interrupt)
    assert not Path(f"/proc/{running.read_text().strip()}").exists()


@pytest.mark.anybody
def test_an_interrupt_is_no_complaint_about_a_restore_that_only_root_may_end(monkeypatch, tmp_path):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 1\n")
    slow.chmod(0o755)

    started: list[subprocess.Popen[bytes]] = []

    def refuse(process: subprocess.Popen[bytes]) -> None:
        started.append(process)
        raise PermissionError(1, "Operation not permitted")

    def interrupt(left_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "kill", refuse)
    with pytest.raises(KeyboardInterrupt):
        restore_all(ascard=slow, state_dir=tmp_path, listener=interrupt)
    assert started[0].wait() == 0


@pytest.mark.anybody
def test_a_program_that_is_no_keeper_is_lost(monkeypatch, tmp_path):
    talker = tmp_path / "talker"
    talker.write_text("#!/bin/sh\nread line\necho nonsense\nread line\n")
    talker.chmod(0o755)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(KeeperLost, match="exit status"):
        Keeper("wrong", ascard=Path("/bin/true")).start()
    with pytest.raises(KeeperLost, match="cannot be understood"):
        Keeper("wrong", ascard=talker).start()


def test_bad_arguments_are_refused(state):
    ascard = find_ascard()
    for arguments in (["--x"], ["--all"], ["--hold", "--restore"], ["--state-dir"], ["extra"]):
        done = subprocess.run([ascard, "keeper", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2, arguments
        assert arguments[0] in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.anybody
def test_the_binary_explains_itself():
    ascard = find_ascard()
    for arguments, status, said in (
        (["--help"], 0, "keeper"),
        (["--version"], 0, "ascard 0."),
        (["--version"], 0, "keeper, load, proxy)"),
        (["keeper", "--help"], 0, "--restore"),
        ([], 2, "Usage"),
        (["dance"], 2, "unknown command"),
    ):
        done = subprocess.run([ascard, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert said in done.stdout + done.stderr


def test_a_journal_directory_open_to_others_is_refused(tmp_path):
    place = tmp_path / "open"
    place.mkdir()
    place.chmod(stat.S_IRWXU | stat.S_IWOTH)
    with pytest.raises(KeeperLost, match="may be written by others"):
        Keeper("careless", state_dir=place).start()
