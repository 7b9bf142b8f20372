"""A keeper that runs as the user: files and commands, put back whoever dies."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import InputError, KeeperLost, Refused
from ascar.systems.keeper import Keeper, restore_all
from ascar.systems.keeper_process import command

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = "first\n"
CLIENT = """
import sys
from pathlib import Path
from ascar.systems.keeper import Keeper
state, file, log = map(Path, sys.argv[1:])
with Keeper("to be killed", state_dir=state, user=True) as keeper:
    keeper.undo_command(["/bin/sh", "-c", f"cat {file} >> {log}"])
    print(keeper.pid, flush=True)
    for number in range(100_000):
        keeper.file_replace(file, f"number {number}\\n" * 2000)
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "service.conf"
    path.write_text(FIRST)
    path.chmod(0o640)
    return path


@pytest.fixture
def keeper_of(state: Path) -> Callable[..., Keeper]:
    return lambda **options: Keeper("a test", state_dir=state, user=True, **options)


def restored(state: Path, *words: str) -> Any:
    """What `--restore` did, as the user."""
    done = subprocess.run(
        command(None, "--user", "--restore", *words, "--state-dir", str(state)),
        capture_output=True,
        check=False,
    )
    return json.loads(done.stdout)


def drafts(file: Path) -> list[str]:
    return [path.name for path in file.parent.iterdir() if path.name.startswith(f".{file.name}")]


def journals(state: Path) -> list[Path]:
    return sorted(state.glob("*.jsonl"))


def test_a_file_is_replaced_and_put_back(keeper_of: Callable[..., Keeper], file: Path, state: Path) -> None:
    with keeper_of() as keeper:
        assert keeper.file_replace(file, "second\n") == file
        assert keeper.file_replace(file, "third\n") == file
        assert (file.read_text(), file.stat().st_mode & 0o777) == ("third\n", 0o640)
        report = keeper.close()
    assert report is not None
    assert report.restored == (f"file {file}",)
    assert (file.read_text(), file.stat().st_mode & 0o777) == (FIRST, 0o640)
    assert journals(state) == []
    assert [path.name for path in file.parent.glob(".*")] == []


def test_what_is_not_put_back_is_told(
    keeper_of: Callable[..., Keeper], file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with keeper_of() as keeper:
        keeper.undo_command(["/bin/sh", "-c", "echo cannot >&2; exit 3"])
        keeper.file_replace(file, "second\n")
        file.write_text("somebody's\n")
    assert file.read_text() == "somebody's\n"
    assert "service.conf is" in caplog.text
    assert "left alone" in caplog.text
    assert "could not be put back: " in caplog.text
    assert "run `ascar restore`" in caplog.text


def test_a_file_that_was_not_there_goes_again(keeper_of: Callable[..., Keeper], tmp_path: Path) -> None:
    with keeper_of() as keeper:
        keeper.file_replace(tmp_path / "new.conf", "x")
        assert (tmp_path / "new.conf").read_text() == "x"
    assert not (tmp_path / "new.conf").exists()


def test_bytes_that_are_no_text_come_back(keeper_of: Callable[..., Keeper], tmp_path: Path) -> None:
    binary = tmp_path / "latin.conf"
    binary.write_bytes(b"# gr\xf6\xdfe\r\nsize 1\r\n\x00")
    with keeper_of() as keeper:
        keeper.file_replace(binary, b"# gr\xf6\xdfe\r\nsize 2\r\n\x00")
        assert binary.read_bytes() == b"# gr\xf6\xdfe\r\nsize 2\r\n\x00"
    assert binary.read_bytes() == b"# gr\xf6\xdfe\r\nsize 1\r\n\x00"


def test_a_journal_of_the_version_before_is_restored(file: Path, state: Path) -> None:
    content = '"target":"PATH","old":"first\\n","expected":"7 bytes, MARK","before":"absent","mode":416'
    mark = 0xCBF29CE484222325
    for byte in b"second\n":
        mark = (mark ^ byte) * 0x100000001B3 % 2**64
    content = content.replace("PATH", str(file)).replace("MARK", f"{mark:016x}")
    header = '{"schema":1,"boot_id":"another","owner":"old","pid":1,"uid":0,"started_unix_s":1}'
    state.mkdir(mode=0o700)
    journal = state / "1-1.jsonl"
    journal.write_text(f'{header}\n{{"change":{{"n":0,"change":{{"kind":"content",{content}}}}}}}\n')
    journal.chmod(0o600)
    file.write_text("second\n")
    assert restored(state)["restored"] == [f"file {file}"]
    assert file.read_text() == FIRST
    assert journals(state) == []


@pytest.mark.skipif(not Path("/etc/machine-id").exists(), reason="this machine has no machine-id(5)")
def test_a_journal_of_another_machine_is_left_until_it_is_asked_for(
    keeper_of: Callable[..., Keeper], file: Path, state: Path
) -> None:
    """A home may be shared by several machines, and locks may be each machine's own."""
    keeper = keeper_of().start()
    keeper.file_replace(file, b"second\n")
    os.kill(keeper.pid, signal.SIGKILL)
    with pytest.raises(KeeperLost):
        keeper.status()
    (journal,) = state.glob("*.jsonl")
    here = Path("/etc/machine-id").read_text().strip()
    assert f'"machine":"{here}"' in journal.read_text()
    journal.write_text(journal.read_text().replace(here, "0" * 31 + "1"))
    assert restored(state)["restored"] == []
    with keeper_of() as another:
        assert another.hello.restored.restored == ()
    assert file.read_text() == "second\n"
    assert restored(state, "--all")["restored"] == [f"file {file}"]
    assert file.read_text() == FIRST


def test_a_command_can_be_taken_back(keeper_of: Callable[..., Keeper], file: Path, tmp_path: Path) -> None:
    with keeper_of() as keeper:
        keeper.undo_command(["touch", str(tmp_path / "one")])
        keeper.undo_command(["touch", str(tmp_path / "two")])
        keeper.undo_forget(["touch", str(tmp_path / "one")])
        keeper.undo_forget(["never", "noted"])
    assert not (tmp_path / "one").exists()
    assert (tmp_path / "two").exists()


def test_what_a_command_left_alone_is_in_the_report(keeper_of: Callable[..., Keeper]) -> None:
    said = ["/bin/sh", "-c", "cat >&2"]
    with keeper_of() as keeper:
        keeper.undo_command(said, stdin="hz: is '33', not as ascar left it\n  io: is '4'\n")
        report = keeper.restore()
    assert report.restored == (" ".join(said) + " (hz: is '33', not as ascar left it; io: is '4')",)
    assert report.failed == ()


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_command_reads_more_than_an_argument_may_hold(
    keeper_of: Callable[..., Keeper], state: Path, tmp_path: Path, how: str
) -> None:
    given, kept = '0123456789\u00e9"\n' * 200_000, tmp_path / "kept"
    copy = ["/bin/sh", "-c", f"cat > {kept}"]
    keeper = keeper_of().start()
    keeper.undo_command(copy, stdin="another")
    keeper.undo_command(copy, stdin=given)
    keeper.undo_forget(copy, stdin="another")
    if how == "closed":
        keeper.close()
    else:
        os.kill(keeper.pid, signal.SIGKILL)
        assert not kept.exists()
        assert restored(state)["restored"] == [" ".join(copy)]
        keeper.close()
    assert kept.read_text() == given
    assert journals(state) == []


def test_a_command_that_reads_nothing_has_an_empty_standard_input(
    keeper_of: Callable[..., Keeper], tmp_path: Path
) -> None:
    with keeper_of() as keeper:
        keeper.undo_command(["/bin/sh", "-c", f"cat > {tmp_path}/kept"])
    assert (tmp_path / "kept").read_bytes() == b""


def test_undoing_runs_backwards(keeper_of: Callable[..., Keeper], file: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with keeper_of() as keeper:
        keeper.undo_command(["/bin/sh", "-c", f"cat {file} >> {log}"])
        keeper.undo_command(["/bin/sh", "-c", f"cat {file} >> {log}"])  # the same again is one
        keeper.file_replace(file, "second\n")
        keeper.undo_command(["/bin/sh", "-c", f"cat {file} >> {log}; echo between >> {log}"])
    assert log.read_text() == f"second\nbetween\n{FIRST}"


def test_another_s_edit_is_left_alone_and_named(
    keeper_of: Callable[..., Keeper], file: Path, tmp_path: Path
) -> None:
    with keeper_of() as keeper:
        keeper.undo_command(["touch", str(tmp_path / "reloaded")])
        keeper.file_replace(file, "second\n")
        file.write_text("by hand\n")
        report = keeper.close()
    assert report is not None
    (left,) = report.left_alone
    assert left.target == str(file)
    assert (left.expected.split(",")[0], left.found.split(",")[0]) == ("7 bytes", "8 bytes")
    assert file.read_text() == "by hand\n"
    assert (tmp_path / "reloaded").exists()


def test_what_is_held_stays_until_it_is_asked_back(
    keeper_of: Callable[..., Keeper], file: Path, state: Path
) -> None:
    with keeper_of(hold=True) as keeper:
        keeper.file_replace(file, "kept\n")
    assert file.read_text() == "kept\n"
    assert restored(state) == {"restored": [], "left_alone": [], "failed": [], "unconfirmed": []}
    assert file.read_text() == "kept\n"
    assert restored(state, "--all")["restored"] == [f"file {file}"]
    assert file.read_text() == FIRST


@pytest.mark.slow
@pytest.mark.parametrize("whom", ["client", "keeper", "both"])
def test_whoever_is_killed_whenever_the_file_is_whole_and_comes_back(
    whom: str, file: Path, state: Path, tmp_path: Path
) -> None:
    source = random.Random(whom)
    log = tmp_path / "log"
    for _ in range(12):
        log.unlink(missing_ok=True)
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(state), str(file), str(log)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert client.stdout is not None
        keeper = int(client.stdout.readline())
        time.sleep(source.uniform(0, 0.05))
        if whom in ("keeper", "both"):
            os.kill(keeper, signal.SIGKILL)
        if whom in ("client", "both"):
            client.kill()
        client.wait()
        client.stdout.close()
        text = file.read_text()
        assert text == FIRST or (len(set(text.splitlines())) == 1 and text.count("\n") == 2000)
        end_s = time.monotonic() + 20
        while journals(state) and time.monotonic() < end_s:
            assert restored(state)["failed"] == []
        assert file.read_text() == FIRST
        assert log.read_text() == FIRST, "the command ran after the file was back, and once"
        assert drafts(file) == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_a_killed_writer_left_beside_the_file_goes(file: Path, state: Path) -> None:
    killing = ["strace", "-f", "-q", "-o", "/dev/null", "-e", "inject=renameat:signal=SIGKILL"]
    words = [*killing, *command(None, "--user", "--state-dir", str(state))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as keeper:
        assert keeper.stdin is not None
        asked = [
            {"id": 1, "op": "hello", "version": 1, "owner": "to be killed"},
            {"id": 2, "op": "file_replace", "path": str(file), "content": "second\n"},
        ]
        keeper.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in asked))
        keeper.stdin.flush()
        keeper.wait(60)
    assert len(drafts(file)) == 1
    assert restored(state)["failed"] == []
    assert (file.read_text(), drafts(file)) == (FIRST, [])


def test_a_command_that_fails_or_hangs_is_told_and_tried_again(
    keeper_of: Callable[..., Keeper], file: Path, state: Path, tmp_path: Path
) -> None:
    begun_s = time.monotonic()
    with keeper_of() as keeper:
        keeper.undo_command(["/bin/sh", "-c", f"test -e {tmp_path}/up"])
        keeper.undo_command(["sleep", "60"], limit_s=0.3)
        keeper.file_replace(file, "second\n")
        report = keeper.close()
    assert report is not None
    assert time.monotonic() - begun_s < 20
    assert report.restored == (f"file {file}",)
    assert ["sleep" in one or "sh" in one for one in report.failed] == [True, True]
    assert len(journals(state)) == 1
    (tmp_path / "up").touch()
    again = restored(state)
    assert [one.split()[0] for one in again["restored"]] == ["/bin/sh"]
    assert len(again["failed"]) == 1


def test_wrong_paths_and_contents_are_refused(
    keeper_of: Callable[..., Keeper], file: Path, tmp_path: Path, state: Path
) -> None:
    (tmp_path / "huge").write_text("x" * (512 * 1024 + 1))
    (tmp_path / "nowhere").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with keeper_of() as keeper:
        for path, words in (
            (tmp_path, "is not a regular file"),
            (tmp_path / "huge", "has more than 524288 bytes"),
            (tmp_path / "nowhere", "is a symbolic link to nothing"),
            (tmp_path / "none" / "x", "No such file"),
            (tmp_path / "pipe", "is not a regular file"),
            (tmp_path / "a\0b", "path"),
        ):
            with pytest.raises(InputError) as caught:
                keeper.file_replace(path, "x")
            assert words in caught.value.message, caught.value.message
        with pytest.raises(InputError, match="has 524289 bytes; allowed are 524288"):
            keeper.file_replace(file, "x" * (512 * 1024 + 1))
        with pytest.raises(InputError, match="no such program"):
            keeper.undo_command(["no-such-program"])
        with pytest.raises(InputError, match=r"argv = \[\]"):
            keeper.undo_command([])
        with pytest.raises(
            InputError, match="argv: has 98309 bytes; allowed are 98304: give a program more by"
        ):
            keeper.undo_command(["true", "x" * (98304 - 1)])
        with pytest.raises(InputError, match="request line is longer than 4194304 bytes"):
            keeper.undo_command(["true"], stdin="x" * (5 << 20))
        with pytest.raises(InputError, match="limit_s = 3601"):
            keeper.undo_command(["true"], limit_s=3601)
    assert file.read_text() == FIRST
    assert journals(state) == []


def test_a_link_is_followed_to_the_file_and_stays_a_link(
    keeper_of: Callable[..., Keeper], file: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link with\nnewline"
    link.symlink_to(file)
    with keeper_of() as keeper:
        assert keeper.file_replace(link, "second\n") == file
        assert link.is_symlink()
    assert file.read_text() == FIRST


def test_two_sessions_do_not_share_a_file(keeper_of: Callable[..., Keeper], file: Path) -> None:
    with keeper_of() as one, keeper_of() as other:
        one.file_replace(file, "second\n")
        with pytest.raises(Refused, match='is locked by "a test"'):
            other.file_replace(file, "third\n")
        assert file.read_text() == "second\n"


def test_it_changes_files_and_nothing_else(keeper_of: Callable[..., Keeper], tmp_path: Path) -> None:
    with keeper_of() as keeper:
        for refused in (
            lambda: keeper.knob_read("vm.swappiness"),
            lambda: keeper.knob_write("vm.swappiness", 10),
            lambda: keeper.image_create(tmp_path / "image", 1 << 30),
        ):
            with pytest.raises(Refused, match="--user only changes files"):
                refused()


@pytest.mark.root
def test_the_keeper_of_root_changes_no_files(file: Path, state: Path) -> None:
    with Keeper("a test", state_dir=state) as keeper:
        with pytest.raises(Refused, match="changes no files of users"):
            keeper.file_replace(file, "x")
        with pytest.raises(Refused, match="changes no files of users"):
            keeper.undo_command(["true"])
    assert file.read_text() == FIRST


def test_restore_puts_the_user_s_files_back_without_root(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    with Keeper("a test", user=True, hold=True) as keeper:
        keeper.file_replace(file, "kept\n")
    assert restore_all().restored == ()
    assert file.read_text() == "kept\n"
    assert restore_all(everything=True).restored == (f"file {file}",)
    assert file.read_text() == FIRST
