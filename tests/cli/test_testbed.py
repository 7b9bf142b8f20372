"""`ascar testbed`: up, used, cut, booted, down; nothing is left, whoever is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from ascar.testbed import control
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_parts import KernelParts, NfsServer
from ascar.testbed.namespace import lacks
from data_plane_peers import needed
from modelled_disk import FLASH
from testbed_processes import belonging_to
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

BED = """
version = 1
[testbed]
name = "bed"
[[node]]
name = "server1"
kind = "KIND"
[[node]]
name = "client1"
kind = "KIND"
LINK
[[disk]]
name = "disk1"
node = "server1"
scenario = "disk.toml"
size = "64MiB"
file = "disk1.img"
[[proxy]]
node = "client1"
disks = ["disk1"]
window = 4
"""
KERNELS = """
version = 1
[testbed]
name = "bed"
[[node]]
name = "server1"
kind = "kernel"
memory_mib = 256
nfs = { exports = [{ name = "disk2" }] }
[[node]]
name = "client1"
kind = "kernel"
link = { rate_mbit_per_s = 100, delay_ms = 1 }
mounts = [{ server = "server1", export = "disk2" }]
[[disk]]
name = "disk1"
node = "server1"
scenario = "disk.toml"
size = "64MiB"
[[disk]]
name = "disk2"
node = "server1"
scenario = "disk.toml"
size = "256MiB"
file_system = "ext4"
[[proxy]]
node = "client1"
disks = ["disk1"]
window = 4
"""
FIO = (
    "fio", "--name=load", "--ioengine=nbd", "--uri=nbd+unix:///disk1?socket=disk1.sock", "--rw=randwrite",
    "--bs=4k", "--iodepth=16", "--time_based", "--output-format=json",
)  # fmt: skip


@pytest.fixture(params=["process", "namespace"])
def file(request: pytest.FixtureRequest, tmp_path: Path, runtime: Path, ascard: Path) -> Path:
    """A testbed file."""
    del ascard
    if request.param == "namespace" and (missing := lacks()):
        pytest.skip(missing)
    link = "link = { rate_mbit_per_s = 1000 }" if request.param == "namespace" else ""
    (tmp_path / "disk.toml").write_text(FLASH)
    path = tmp_path / "bed.toml"
    path.write_text(BED.replace("KIND", request.param).replace("LINK", link))
    return path


def devices() -> set[str]:
    """Network devices of this machine."""
    return {path.name for path in Path("/sys/class/net").iterdir()}


def running_fio(runtime_s: int) -> tuple[str, ...]:
    needed("fio", "fio")
    return (*FIO, f"--runtime={runtime_s}")


def loaded(done: Any) -> dict[str, Any]:
    assert done.status == 0, done.err + done.out
    return json.loads(done.out[done.out.index("{") :])["jobs"][0]["write"]


def under_load(node: str) -> subprocess.Popen[bytes]:
    """A load that is at work on a node."""
    command = [sys.executable, "-m", "ascar", "testbed", "exec", node, "--", *running_fio(120)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(
        lambda: any(line.startswith("fio ") for line in belonging_to(Path(os.environ["ASCAR_RUNTIME_DIR"]))),
        60,
    )
    time.sleep(0.3)
    return process


def test_from_up_to_down(ascar: Callable[..., Any], file: Path, runtime: Path, tmp_path: Path) -> None:
    before = devices()
    up = ascar("testbed", "up", file, "--json")
    assert up.status == 0, up.err
    schema = json.loads(ascar("schema", "testbed-up").out)
    jsonschema.validate(json.loads(up.out), schema)
    bed = up.document
    assert [one["alive"] for kind in ("nodes", "disks", "proxies") for one in bed[kind]] == [True] * 4
    assert devices() == before

    again = ascar("testbed", "up", file)
    assert again.status == 2
    assert (
        again.error == f"testbed 'bed': is up already, process {bed['pid']}; `ascar testbed down bed` ends it"
    )

    shown = ascar("testbed", "status")
    assert shown.status == 0 and "disk disk1" in shown.out and "off" not in shown.out

    ran = ascar("testbed", "exec", "client1", "--testbed", str(file), "--", "sh", "-c", "echo x; pwd; exit 5")
    assert (ran.status, ran.out) == (5, f"x\n{runtime}/testbeds/bed/client1\n")
    assert loaded(ascar("testbed", "exec", "client1", "--", *running_fio(1)))["total_ios"] > 100
    watched = json.loads((runtime / "testbeds/bed/up.json").read_text())
    assert watched["pid"] == bed["pid"]

    load = under_load("client1")
    cut = ascar("testbed", "cut", "server1", "--json").document
    assert [one["alive"] for one in cut["nodes"]] == [False, True]
    assert [one["alive"] for kind in ("disks", "proxies") for one in cut[kind]] == [False, True]
    assert ascar("testbed", "exec", "server1", "--", "true").status == 255

    booted = ascar("testbed", "boot", "server1", "--json").document
    assert [one["alive"] for kind in ("nodes", "disks", "proxies") for one in booted[kind]] == [True] * 4
    if bed["nodes"][0]["kind"] == "namespace":
        load.kill()  # nobody says anything to who waits for an answer, as after a real power cut
        until(lambda: not any(line.startswith("fio ") for line in belonging_to(runtime)), 60)
    assert load.wait(60) != 0
    assert loaded(ascar("testbed", "exec", "client1", "--", *running_fio(1)))["total_ios"] > 100

    down = ascar("testbed", "down", "bed", "--json")
    assert (down.status, down.document["pid"]) == (0, bed["pid"])
    assert (tmp_path / "disk1.img").exists()
    assert list((runtime / "testbeds").iterdir()) == [] and belonging_to(runtime) == []
    second = ascar("testbed", "down", "bed")
    assert second.status == 2
    assert second.error == "testbed 'bed': is not up; `ascar testbed up FILE` starts one"
    assert ascar("testbed", "status").status == 2


def test_all_is_gone_when_the_process_that_holds_it_is_killed_under_load(
    ascar: Callable[..., Any], file: Path, runtime: Path
) -> None:
    before = devices()
    pid = ascar("testbed", "up", file, "--json").document["pid"]
    seconds = f"4721.{os.getpid()}"  # the same test may run beside this one, on another kind of nodes
    hide = f"for i in $(seq 20); do (setsid env -i sleep {seconds} <&- >&- 2>&- &); done"
    assert ascar("testbed", "exec", "client1", "--", "sh", "-c", hide).status == 0
    until(lambda: len(sleeping(seconds)) == 20)
    load = under_load("client1")
    assert len(belonging_to(runtime)) > 4
    os.kill(pid, signal.SIGKILL)
    until(lambda: not belonging_to(runtime) and not (runtime / "testbeds/bed").exists(), 10)
    assert load.wait(30) != 0
    assert devices() == before
    assert sleeping(seconds) == []
    assert ascar("testbed", "down", "bed").status == 2


def test_what_is_left_when_all_guards_are_killed_too_is_found(
    ascar: Callable[..., Any], file: Path, runtime: Path
) -> None:
    pid = ascar("testbed", "up", file, "--json").document["pid"]
    (remover,) = [
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if f"inside.py\0remove\0{runtime}".encode() in command_of(path)
    ]
    hide = "(setsid sleep 4720 </dev/null >/dev/null 2>&1 &)"
    if "namespace" not in file.read_text():
        assert ascar("testbed", "exec", "client1", "--", "sh", "-c", hide).status == 0
        first = next(
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if f"inside.py\0first\0{runtime}/testbeds/bed/client1".encode() in command_of(path)
        )
        for one in (remover, first, pid):
            os.kill(one, signal.SIGSTOP)
        for one in (remover, first, pid):
            os.kill(one, signal.SIGKILL)
        until(lambda: any("sleep 4720" in line for line in belonging_to(runtime)))
    else:
        os.kill(remover, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    assert (runtime / "testbeds/bed").exists()
    down = ascar("testbed", "down", "bed", "--json")
    assert (down.status, down.document["pid"] in {None, pid}) == (0, True)
    assert belonging_to(runtime) == []
    assert not (runtime / "testbeds/bed").exists()


def sleeping(seconds: str) -> list[str]:
    """Processes of this test that sleep so long, whatever they have done to hide."""
    paths = Path("/proc").glob("[0-9]*")
    return [path.name for path in paths if command_of(path) == f"sleep\0{seconds}\0".encode()]


NEVER_UP = """
import sys
import time

if "ascar.testbed.supervisor" in sys.orig_argv:
    from ascar.testbed import service

    service.check_disks = lambda disks: time.sleep(600)
"""


def test_one_that_goes_up_can_be_ended(
    ascar: Callable[..., Any], file: Path, runtime: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NEVER_UP)
    command = [sys.executable, "-m", "ascar", "testbed", "up", str(file)]
    slow = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=slow) as up:
        until((runtime / "testbeds/bed/up.json").exists)
        assert "testbed 'bed': is up already, process " in ascar("testbed", "up", file).error
        assert "is not ready: it goes up or ends just now" in ascar("testbed", "status").error
        assert ascar("testbed", "down").status == 0
        _, said = up.communicate()
    assert (up.returncode, said) == (1, "error: testbed 'bed': somebody ended it before it was up\n")
    assert list(runtime.glob("testbeds/*")) == [] and belonging_to(runtime) == []


ENDED_WHILE_IT_LOOKS = """
import os
import signal
import subprocess
import sys

if "ascar.testbed.supervisor" in sys.orig_argv:
    poll, now = subprocess.Popen.poll, os.path.join(os.path.dirname(__file__), "now")

    def interrupted(process):
        # Without this, too, a signal may come between the call that takes the lock and the next one.
        process._waitpid_lock.acquire()
        if os.path.exists(now):
            os.unlink(now)
            os.kill(os.getpid(), signal.SIGTERM)
        process._waitpid_lock.release()
        return poll(process)

    subprocess.Popen.poll = interrupted
"""


def test_one_that_is_ended_while_it_looks_at_its_processes_ends(
    ascar: Callable[..., Any], file: Path, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(ENDED_WHILE_IT_LOOKS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    assert ascar("testbed", "up", file).status == 0
    (tmp_path / "now").touch()
    until(lambda: not belonging_to(runtime) and not (runtime / "testbeds/bed").exists())


def test_one_whose_process_is_stopped_is_told_and_can_be_ended(
    ascar: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = ascar("testbed", "up", file, "--json").document["pid"]
    monkeypatch.setattr(control, "_STATUS_S", 0.5)
    os.kill(pid, signal.SIGSTOP)
    said = ascar("testbed", "status")
    assert (said.status, said.error) == (
        1,
        f"testbed 'bed': process {pid} does not answer within 0.5 s; `ascar testbed down bed` ends it",
    )
    assert ascar("testbed", "down").status == 0


def test_what_the_file_system_refuses_is_told(ascar: Callable[..., Any], file: Path, runtime: Path) -> None:
    ascar("testbed", "up", file)
    ascar("testbed", "cut", "client1")
    shutil.rmtree(runtime / "testbeds/bed/client1")
    (runtime / "testbeds/bed/client1").touch()
    assert ascar("testbed", "boot", "client1").error == f"{runtime}/testbeds/bed/client1: File exists"
    (runtime / "testbeds/bed/client1").unlink()
    assert ascar("testbed", "boot", "client1").status == 0


def test_a_proxy_that_was_killed_serves_again_when_boot_is_back(
    ascar: Callable[..., Any], file: Path, runtime: Path
) -> None:
    ascar("testbed", "up", file)
    socket = runtime / "testbeds/bed/client1/disk1.sock"
    before = socket.stat().st_ino, socket.stat().st_mtime_ns
    for path in Path("/proc").glob("[0-9]*"):
        if b"ascard\0proxy\0" in command_of(path) and str(runtime).encode() in command_of(path):
            os.kill(int(path.name), signal.SIGKILL)

    def is_off() -> bool:
        return not ascar("testbed", "status", "--json").document["proxies"][0]["alive"]

    until(is_off)
    assert ascar("testbed", "boot", "client1").status == 0
    assert (socket.stat().st_ino, socket.stat().st_mtime_ns) != before


def test_the_folder_of_the_user_is_not_kept_busy(ascar: Callable[..., Any], file: Path) -> None:
    pid = ascar("testbed", "up", file, "--json").document["pid"]
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")


def test_a_folder_that_another_could_have_made_is_left_alone(
    ascar: Callable[..., Any], file: Path, runtime: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "precious").touch()
    beds = runtime / "testbeds"
    beds.mkdir()
    (beds / "bed").symlink_to(own)
    for words in (("up", file), ("down", "bed")):
        assert ascar("testbed", *words).error == (
            f"folder '{beds}/bed': is no folder; set ASCAR_RUNTIME_DIR to one of your own"
        )
    (beds / "bed").unlink()
    beds.chmod(0o777)
    assert "another user owns it, or may write there" in ascar("testbed", "up", file).error
    if os.geteuid() == 0:
        beds.chmod(0o700)
        os.chown(beds, 65534, 65534)
        assert "another user owns it, or may write there" in ascar("testbed", "up", file).error
        os.chown(beds, 0, 0)
    assert (own / "precious").exists()
    for left in beds.glob("bed"):
        left.rmdir()


def command_of(path: Path) -> bytes:
    try:
        return (path / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_node_that_ends_by_itself_is_seen(ascar: Callable[..., Any], file: Path, runtime: Path) -> None:
    ascar("testbed", "up", file)
    first = [
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if f"inside.py\0first\0{runtime}/testbeds/bed/server1".encode() in command_of(path)
    ]
    os.kill(max(first), signal.SIGKILL)

    def standing() -> list[bool]:
        found = ascar("testbed", "status", "--json").document
        return [one["alive"] for kind in ("nodes", "disks") for one in found[kind]]

    until(lambda: standing() == [False, True, False], 60)
    assert not any("ascard disk" in line for line in belonging_to(runtime))
    assert ascar("testbed", "boot", "server1").status == 0
    assert standing() == [True, True, True]


def test_a_disk_keeps_what_was_flushed_when_its_node_is_cut(
    ascar: Callable[..., Any], file: Path, tmp_path: Path
) -> None:
    bed = ascar("testbed", "up", file, "--json").document
    copier = needed("nbdcopy", "libnbd-bin")
    (tmp_path / "data").write_bytes(os.urandom(1 << 20))
    uri = "nbd+unix:///disk1?socket=disk1.sock"
    (tmp_path / "padded").write_bytes((tmp_path / "data").read_bytes() + bytes(63 << 20))
    copied = ascar("testbed", "exec", "client1", "--", copier, "--flush", str(tmp_path / "padded"), uri)
    assert copied.status == 0, copied.err
    ascar("testbed", "cut", "server1")
    ascar("testbed", "boot", "server1")
    back = ascar("testbed", "exec", "client1", "--", copier, uri, str(tmp_path / "back"))
    assert back.status == 0, back.err
    assert (tmp_path / "back").read_bytes()[: 1 << 20] == (tmp_path / "data").read_bytes()
    assert bed["disks"][0]["exports"] == ["disk1"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"disk.toml"', '"no-such-preset"', "disk[0].scenario"),
        ('file = "disk1.img"', 'file = "none/disk1.img"', "disk[0].file"),
        ("window = 4", "window = 1000", "proxy[0].window = 1000: must be from 1 to 256"),
    ],
)
def test_what_is_wrong_is_named_before_anything_starts(
    ascar: Callable[..., Any], file: Path, runtime: Path, old: str, new: str, said: str
) -> None:
    file.write_text(file.read_text().replace(old, new))
    done = ascar("testbed", "up", file)
    assert done.status == 2
    assert said in done.error
    assert list(runtime.glob("testbeds/*")) == []


def test_a_disk_whose_file_is_none_is_refused(
    ascar: Callable[..., Any], file: Path, runtime: Path, tmp_path: Path
) -> None:
    (tmp_path / "disk1.img").mkdir()
    done = ascar("testbed", "up", file)
    assert done.status in {1, 2} and "disk" in done.error
    assert list(runtime.glob("testbeds/*")) == [] and belonging_to(runtime) == []


def test_unknown_nodes_and_testbeds_are_named(ascar: Callable[..., Any], file: Path) -> None:
    assert ascar("testbed", "exec", "server1", "--", "true").error.startswith("no testbed is up in ")
    assert "testbed 'other': is not up" in ascar("testbed", "down", "other").error
    assert "TESTBED = 'No'" in ascar("testbed", "down", "No").error
    ascar("testbed", "up", file, "--quiet")
    for command in ("cut", "boot"):
        done = ascar("testbed", command, "server9")
        assert (done.status, done.error) == (2, "NODE = 'server9': must be one of server1, client1")


def test_nodes_that_are_kernels(
    ascar: Callable[..., Any], runtime: Path, tmp_path: Path, ascard: Path
) -> None:
    if missing := KernelNode.missing(KernelParts("any", nfs=NfsServer(()))):
        pytest.skip(missing)
    (tmp_path / "disk.toml").write_text(FLASH)
    file = tmp_path / "bed.toml"
    file.write_text(KERNELS)
    bed = ascar("testbed", "up", file, "--json").document
    assert [one["alive"] for kind in ("nodes", "disks", "proxies") for one in bed[kind]] == [True] * 5
    assert [one["uris"] for one in bed["disks"]] == [["nbd://10.77.0.1:10809/disk"], []]

    words = "cd /tmp && nbdinfo --size 'nbd+unix:///disk?socket=disk1.sock'"
    if shutil.which("nbdinfo"):
        asked = ascar("testbed", "exec", "client1", "--", "sh", "-c", words)
        assert (asked.status, asked.out) == (0, f"{64 << 20}\n"), asked.err
    write = "echo kept > /mnt/disk2/file && sync /mnt/disk2/file; exit 3"
    assert ascar("testbed", "exec", "client1", "--", "sh", "-c", write).status == 3
    cut = ascar("testbed", "cut", "server1", "--json").document
    assert [one["alive"] for kind in ("nodes", "disks") for one in cut[kind]] == [False, True, False, False]
    assert ascar("testbed", "exec", "server1", "--", "true").status == 255
    booted = ascar("testbed", "boot", "server1", "--json").document
    assert all(one["alive"] for kind in ("nodes", "disks", "proxies") for one in booted[kind])
    read = ascar("testbed", "exec", "client1", "--", "cat", "/mnt/disk2/file")
    assert (read.status, read.out) == (0, "kept\n")

    os.kill(bed["pid"], signal.SIGKILL)
    until(lambda: not belonging_to(runtime) and not (runtime / "testbeds/bed").exists(), 20)


def test_what_kernels_have_written_is_kept_at_the_end(
    ascar: Callable[..., Any], runtime: Path, tmp_path: Path, ascard: Path
) -> None:
    del runtime, ascard
    if missing := KernelNode.missing(KernelParts("any", nfs=NfsServer(()))):
        pytest.skip(missing)
    (tmp_path / "disk.toml").write_text(FLASH)
    file = tmp_path / "bed.toml"
    file.write_text(
        '[testbed]\nname = "bed"\n[[node]]\nname = "one"\nkind = "kernel"\nkept = "kept"\n'
        '[[disk]]\nname = "data"\nnode = "one"\nscenario = "disk.toml"\nsize = "64MiB"\n'
        'file_system = "ext4"\n'
    )
    assert ascar("testbed", "up", file).status == 0
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace('"bed"', '"other"'))
    assert "/kept' is another's already; give each its own" in ascar("testbed", "up", other).error
    words = ("exec", "one", "--", "sh", "-c")
    assert ascar("testbed", *words, "echo unsynced > /srv/data/file").status == 0
    assert ascar("testbed", "down").status == 0
    assert ascar("testbed", "up", file).status == 0
    assert ascar("testbed", *words, "cat /srv/data/file").out == "unsynced\n"


@pytest.mark.root
def test_without_root(as_nobody: tuple[Path, Callable[..., Any]], ascard: Path) -> None:
    home, run = as_nobody
    bed = home / "bed.toml"
    bed.write_text(BED.replace("KIND", "process").replace("LINK", "").replace('file = "disk1.img"\n', ""))
    (home / "disk.toml").write_text(FLASH)
    for path in home.iterdir():
        path.chmod(0o644)
    up = run("testbed", "up", bed, "--json")
    assert up.status == 0, up.err
    try:
        ran = run("testbed", "exec", "client1", "--", "id", "-u")
        assert (ran.status, ran.out) == (0, "65534\n")
        if shutil.which("fio"):
            assert loaded(run("testbed", "exec", "client1", "--", *running_fio(1)))["total_ios"] > 10
    finally:
        down = run("testbed", "down")
    assert down.status == 0, down.err
    bed.write_text(bed.read_text().replace("process", "namespace"))
    refused = run("testbed", "up", bed)
    assert refused.status == 2
    assert refused.error.startswith("needs root: nodes of kind 'namespace'")
