"""Nodes that are kernels: programs in them, their end, and an NFS server whose power is cut."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.nodes import Finished, Node
from ascar.program.node_binary import find_ascard
from ascar.study import convert
from ascar.systems.keeper import Keeper
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_links import mesh, star
from ascar.testbed.kernel_parts import (
    KernelParts,
    LinkShape,
    NfsExport,
    NfsMount,
    NfsServer,
    NodeDisk,
    RemoteDisk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Figures = Callable[[str, object], None]

HOSTS = {"server": "10.9.0.1", **{f"client{number}": f"10.9.0.{number + 1}" for number in range(1, 6)}}
LIMIT_S = 200.0
DISK = """
[[servers]]
device = { kind = "memory", capacity_gb = 2, request_us = 20 }
"""
SERVE = """
import socket, sys
asks, _ = socket.create_server(("", int(sys.argv[1]))).accept()
asks.recv(int(sys.argv[2]), socket.MSG_WAITALL)
asks.sendall(b"all")
"""
ASK = """
import socket, sys, time
serves = socket.create_connection((sys.argv[1], int(sys.argv[2])))
begun_s = time.monotonic()
serves.sendall(bytes(int(sys.argv[3])))
serves.recv(9)
print(time.monotonic() - begun_s)
"""
PORTS = itertools.count(2000)
PARENT = """
import sys, time
from pathlib import Path
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_parts import KernelParts
node = KernelNode(KernelParts("one"), Path(sys.argv[1]))
node.boot(120)
print(node._kernel.process.pid, flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("name", ["with space", "quote'", "x" * 100])
def test_a_folder_that_no_kernel_can_be_told_of_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / name
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    with pytest.raises(EnvironmentLacks, match="set ASCAR_RUNTIME_DIR or TMPDIR to another"):
        KernelNode(KernelParts("one"), tmp_path / "kept")
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("do", [KernelNode.write_out, KernelNode.end_disks])
def test_what_is_not_written_is_told(
    do: Callable[[KernelNode, float], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelNode, "run", lambda *_: Finished(1, b"", "cannot\n"))
    with (
        TemporaryDirectory() as place,
        KernelNode(KernelParts("one"), tmp_path, Path(place)) as node,
        pytest.raises(StageFailed, match="node one: .*: cannot"),
    ):
        do(node, 1.0)


def need(parts: KernelParts) -> None:
    lack = KernelNode.missing(parts)
    if lack is not None:
        pytest.skip(lack)


def sh(node: KernelNode, line: str, limit_s: float = LIMIT_S) -> str:
    done = node.run(["sh", "-c", line], limit_s)
    assert done.status == 0, done
    return done.out.decode().strip()


def boot_all(nodes: Sequence[KernelNode]) -> None:
    with ThreadPoolExecutor(len(nodes)) as pool:
        for _ in pool.map(lambda node: node.boot(LIMIT_S), nodes):
            pass


def nfs_nodes(folder: Path, count: int, version: str = "4.2") -> list[KernelNode]:
    """A server with its data on a modelled disk, and clients that mount it."""
    scenario = folder / "disk.toml"
    scenario.write_text(DISK)
    names = [f"client{number}" for number in range(1, count + 1)]
    links = star("server", names)
    disk = NodeDisk("data", str(scenario), size_bytes=256 << 20)
    server = KernelParts(
        "server",
        memory_mib=256,
        address=f"{HOSTS['server']}/24",
        links=links["server"],
        disks=(disk,),
        nfs=NfsServer((NfsExport("data"),)),
    )
    clients = [
        KernelParts(
            name,
            address=f"{HOSTS[name]}/24",
            links=links[name],
            hosts=HOSTS,
            mounts=(NfsMount("server", "data", version=version),),
        )
        for name in names
    ]
    for parts in (server, *clients):
        need(parts)
    return [KernelNode(parts, folder / parts.name) for parts in (server, *clients)]


@pytest.fixture(scope="module")
def node() -> Iterator[KernelNode]:
    parts = KernelParts("one")
    need(parts)
    with TemporaryDirectory() as folder, KernelNode(parts, Path(folder)) as it:
        it.boot(LIMIT_S)
        yield it


def test_it_is_a_node(node: KernelNode) -> None:
    assert isinstance(node, Node)
    facts = node.facts()
    assert (facts.host, facts.uid) == ("one", 0)
    assert facts.kernel != os.uname().release


def test_status_and_bytes_are_exact(node: KernelNode) -> None:
    content = bytes(range(256)) * 4096 + b"\0\r\n\x04\x11\x13"
    done = node.run(["cat"], 60, content)
    assert (done.status, done.err) == (0, "")
    assert done.out == content
    assert node.run(["sh", "-c", "echo no >&2; exit 255"], 60).err == "no\n"
    for status in (0, 1, 77, 255):
        assert node.run(["sh", "-c", f"exit {status}"], 60).status == status
    assert node.run(["sh", "-c", "kill -SEGV $$"], 60).status == -11
    assert node.run(["printf", "%s.", "", "a b", "'$x'\n"], 60).out == b".a b.'$x'\n."


def test_input_that_nobody_reads_holds_up_nothing(node: KernelNode) -> None:
    assert node.run(["true"], 60, bytes(2 << 20)).status == 0
    assert node.run(["sh", "-c", "exec <&-; sleep 0.2; echo done"], 60, bytes(2 << 20)).out == b"done\n"


def test_programs_run_side_by_side(node: KernelNode) -> None:
    sh(node, "mkfifo /tmp/meet")
    with ThreadPoolExecutor(2) as pool:
        # Neither ends before the other has begun.
        reader = pool.submit(sh, node, "cat /tmp/meet")
        writer = pool.submit(sh, node, "echo met > /tmp/meet")
        assert (reader.result(), writer.result()) == ("met", "")


def test_a_program_that_nobody_listens_to_holds_up_nobody(node: KernelNode) -> None:
    with TemporaryFile() as said:
        process = node.open(["yes"], said)
        try:
            time.sleep(0.5)
            assert sh(node, "echo there") == "there"
        finally:
            process.kill()
            process.communicate()


def test_what_does_not_end_in_time_is_killed(node: KernelNode) -> None:
    with pytest.raises(StageFailed, match="does not end within 1 s"):
        node.run(["sh", "-c", "trap '' TERM INT HUP; touch /tmp/runs; sleep 987"], 1.0)
    assert sh(node, "[ -e /tmp/runs ]; while pgrep -f 'sleep 98[7]' >/dev/null; do sleep 0.05; done") == ""


def test_what_is_not_there_is_said(node: KernelNode) -> None:
    with pytest.raises(EnvironmentLacks, match="nothing-such is not installed there"):
        node.run(["nothing-such"], 60)
    with pytest.raises(EnvironmentLacks, match="cannot be run"):
        node.run(["/etc/passwd"], 60)
    with pytest.raises(StageFailed, match="writes more than"):
        node.run(["cat", "/dev/zero"], 120)


def test_a_file_is_put_as_a_whole(node: KernelNode) -> None:
    node.put(b"\0one\n", "/tmp/file", 0o640)
    assert node.run(["cat", "/tmp/file"], 60).out == b"\0one\n"
    assert sh(node, "stat -c %a /tmp/file; ls /tmp/file*") == "640\n/tmp/file"
    with pytest.raises(StageFailed, match="none"):
        node.put(b"", "/tmp/none/file")


@pytest.mark.parametrize("how", ["close", "kill"])
def test_the_end_of_the_connection_ends_the_input(node: KernelNode, how: str) -> None:
    with TemporaryFile() as said:
        process = node.open(["sh", "-c", f"echo begun; cat >/dev/null; echo ended > /tmp/{how}"], said)
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        if how == "kill":
            process.kill()
        process.stdin.close()
        process.stdout.close()
        process.wait(60)
    assert sh(node, f"until [ -s /tmp/{how} ]; do sleep 0.02; done; cat /tmp/{how}") == "ended"


def test_the_program_here_ends_as_the_one_there(node: KernelNode) -> None:
    words = node.words(["sh", "-c", "cat; echo no >&2; exit 9"])
    done = subprocess.run(words, input=b"\0in", capture_output=True, check=False, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (9, b"\0in", b"no\n")
    assert subprocess.run(node.words(["sh", "-c", "kill -TERM $$"]), check=False).returncode == -15
    none = subprocess.run(node.words(["nothing-such"]), capture_output=True, check=False)
    assert (none.returncode, b"not installed there" in none.stderr) == (127, True)


def test_a_keeper_there_restores_when_the_connection_ends(node: KernelNode) -> None:
    node.put(b"before\n", "/tmp/service.conf")
    keeper = Keeper("a test", ascard=find_ascard(), state_dir=Path("/tmp/state"), user=True, node=node)
    with keeper:
        keeper.file_replace(Path("/tmp/service.conf"), "changed\n")
        assert sh(node, "cat /tmp/service.conf") == "changed"
    assert sh(node, "cat /tmp/service.conf") == "before"


def test_it_has_no_way_out_and_changes_nothing(node: KernelNode, tmp_path: Path) -> None:
    assert sh(node, "ip -o link | cut -d: -f2 | grep -vw -e lo -e sit0 -e tunl0 -e teql0 || true") == ""
    assert node.run(["touch", str(Path(__file__).with_name("new"))], 60).status != 0
    (tmp_path / "here").touch()
    assert node.run(["test", "-e", str(tmp_path / "here")], 60).status == 1


def test_a_cut_ends_all_and_a_boot_begins_anew(tmp_path: Path) -> None:
    need(KernelParts("one"))
    with KernelNode(KernelParts("one"), tmp_path) as node:
        with pytest.raises(EnvironmentLacks, match="boot it first"):
            node.run(["true"], 60)
        node.boot(LIMIT_S)
        sh(node, "touch /tmp/volatile")
        node.boot(LIMIT_S)
        assert sh(node, "ls /tmp/volatile") == "/tmp/volatile"
        group = node._kernel.process.pid
        failed: list[str] = []

        def wait_there() -> None:
            try:
                node.run(["sleep", "1000"], LIMIT_S)
            except EnvironmentLacks as error:
                failed.append(error.message)

        waits = threading.Thread(target=wait_there)
        waits.start()
        time.sleep(0.3)
        node.cut()
        waits.join(60)
        assert failed == ["node one: cannot be reached: it ended while a program ran"]
        assert not node.alive and not is_there(group)
        node.boot(LIMIT_S)
        assert node.alive and node.run(["test", "-e", "/tmp/volatile"], 60).status == 1
        # One that ends by itself is not alive.
        with pytest.raises(EnvironmentLacks):
            node.run(["sh", "-c", "echo o > /proc/sysrq-trigger; sleep 1000"], LIMIT_S)
        assert not node.alive
        folder = node._folder
    assert not folder.exists()


def is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_disk_that_has_died_is_told_and_the_others_end(tmp_path: Path) -> None:
    scenario = tmp_path / "disk.toml"
    scenario.write_text(DISK)
    disks = tuple(NodeDisk(name, str(scenario), 16 << 20, file_system=None) for name in ("a", "b"))
    need(KernelParts("one", disks=disks))
    with KernelNode(KernelParts("one", disks=disks), tmp_path / "kept") as node:
        node.boot(LIMIT_S)
        sh(node, "kill -KILL $(cat /run/disks/a.pid); while [ -e /proc/$(cat /run/disks/a.pid) ]; do :; done")
        other = sh(node, "cat /run/disks/b.pid")
        with pytest.raises(StageFailed, match="end disks: ended before, and lost .*: a$"):
            node.end_disks(60)
        assert node.run(["test", "-e", f"/proc/{other}"], 60).status == 1
        node.end_disks(60)


def test_it_ends_with_the_process_that_booted_it(tmp_path: Path) -> None:
    need(KernelParts("one"))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PARENT, str(tmp_path / "kept")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    group = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    end_s = time.monotonic() + 60
    while is_there(group):
        assert time.monotonic() < end_s, "the kernel stays behind"
        time.sleep(0.02)


@pytest.mark.slow
def test_links_carry_and_are_shaped(tmp_path: Path) -> None:
    names = ("server", "client1", "client2")
    links = mesh(names)
    parts = [KernelParts(name, address=f"{HOSTS[name]}/24", links=links[name], hosts=HOSTS) for name in names]
    need(parts[0])
    nodes = [KernelNode(one, tmp_path / one.name) for one in parts]
    try:
        boot_all(nodes)
        left, middle, right = nodes

        def turn_s(asks: KernelNode, serves: KernelNode, count: int = 1) -> float:
            """What so many bytes and an answer take."""
            port = str(next(PORTS))
            with ThreadPoolExecutor(1) as pool:
                served = pool.submit(serves.run, ["python3", "-c", SERVE, port, str(count)], 60.0)
                sh(serves, f"until ss -ltn | grep -q ':{port} '; do sleep 0.02; done")
                done = asks.run(["python3", "-c", ASK, serves.name, port, str(count)], 60)
                assert done.status == 0, done
                assert served.result().status == 0
            return float(done.out)

        assert min(turn_s(left, middle) for _ in range(3)) < 0.2
        assert min(turn_s(right, middle) for _ in range(3)) < 0.2  # each pair has a link of its own
        left.shape(LinkShape(delay_ms=100))
        assert turn_s(left, middle) >= 0.2  # 100 ms each way
        assert turn_s(right, left) >= 0.2
        assert min(turn_s(right, middle) for _ in range(3)) < 0.2
        left.shape(LinkShape(loss_percent=100))
        unreached = ["timeout", "1", "bash", "-c", "true > /dev/tcp/client1/9"]
        assert left.run(unreached, 60).status == 124
        left.shape(LinkShape(rate_mbit_per_s=2))
        assert turn_s(left, right, 1 << 19) >= 2.0
        left.shape(LinkShape())
        assert turn_s(left, right, 1 << 19) < 2.0
        assert left.run(["ip", "route", "get", "198.51.100.1"], 60).status != 0
    finally:
        for node in nodes:
            node.close()


def test_tables_give_its_parts() -> None:
    table = {
        "name": "server",
        "address": "10.9.0.1/24",
        "shape": {"rate_mbit_per_s": 100, "delay_ms": 0.1},
        "disks": [{"name": "data", "scenario": "flash"}],
        "nfs": {"exports": [{"name": "data"}], "versions": ["4.2"]},
        "mounts": [{"server": "other", "export": "more", "version": "3"}],
    }
    parts = convert(table, KernelParts, "node")
    assert parts.shape == LinkShape(100, 0.1)
    assert parts.nfs == NfsServer((NfsExport("data"),), versions=("4.2",))
    with pytest.raises(StudyError, match="mount.version"):
        convert({**table, "mounts": [{"server": "other", "export": "more", "version": "2"}]}, KernelParts)


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="node.name"):
        KernelParts("No Name")
    with pytest.raises(StudyError, match=r"disk.place = '/etc/x'"):
        NodeDisk("data", "flash", place="/etc/x")
    with pytest.raises(StudyError, match=r"mount.version = 5: must be of 3, 4.2"):
        NfsMount("server", "data", version="5")
    with pytest.raises(StudyError, match="link.loss_percent"):
        LinkShape(loss_percent=101)
    with pytest.raises(StudyError, match="export.options"):
        NfsExport("data", options="rw; true")
    parts = KernelParts("one", disks=(NodeDisk("data", str(tmp_path / "none.toml"), port=10809),))
    need(parts)
    with KernelNode(parts, tmp_path) as node, pytest.raises(StudyError, match="disk.data: .*none.toml"):
        node.boot()


@pytest.mark.slow
@pytest.mark.parametrize("version", ["4.2", "3"])
def test_fsynced_data_outlives_a_cut_of_the_server_and_clients_go_on(
    tmp_path: Path, version: str, record_property: Figures
) -> None:
    server, one, two = nfs_nodes(tmp_path, 2, version)
    with server, one, two:
        boot_all([server, one, two])
        assert f"vers={version}" in sh(one, "grep ' /mnt/data nfs' /proc/mounts")
        write = "dd of=/mnt/data/kept conv=fsync bs=64k 2>/dev/null && echo written"
        content = os.urandom(1 << 20)
        assert one.run(["sh", "-c", write], LIMIT_S, content).out == b"written\n"
        assert two.run(["cat", "/mnt/data/kept"], LIMIT_S).out == content

        # What each line of this says was on the disk is there afterwards.
        work = (
            "n=0; while [ ! -e /tmp/end ]; do n=$((n + 1)); echo $n > /mnt/data/n.new; sync /mnt/data/n.new;"
            " mv /mnt/data/n.new /mnt/data/n; sync /mnt/data; echo $n; done"
        )
        with TemporaryFile() as said, one.open(["sh", "-c", work], said) as worker:
            assert worker.stdin is not None and worker.stdout is not None
            for _ in range(5):
                before = int(worker.stdout.readline())
            server.cut()
            began_s = time.monotonic()
            server.boot(LIMIT_S)
            booted_s = time.monotonic() - began_s
            # The client goes on, and has lost nothing that it was told is on the disk.
            while int(worker.stdout.readline()) < before + 5:
                pass
            went_on_s = time.monotonic() - began_s
            sh(one, "touch /tmp/end")
            last = int(worker.stdout.read().split()[-1])
            assert worker.wait(60) == 0
        assert two.run(["cat", "/mnt/data/kept"], LIMIT_S).out == content
        assert int(sh(two, "cat /mnt/data/n")) == last
        assert sh(server, "cat /srv/data/n") == str(last)
        record_property("server_booted_s", booted_s)
        record_property("client_went_on_s", went_on_s)


@pytest.mark.slow
def test_one_server_and_five_clients(tmp_path: Path, record_property: Figures) -> None:
    nodes = nfs_nodes(tmp_path, 5)
    try:
        began_s = time.monotonic()
        boot_all(nodes)
        up_s = time.monotonic() - began_s
        server, *clients = nodes
        for number, client in enumerate(clients):
            sh(client, f"echo {number} > /mnt/data/{number} && sync /mnt/data/{number}")
        assert sh(server, "cat /srv/data/[0-4]").split() == list("01234")
        memory_mb = [node.memory_bytes() / 1e6 for node in nodes]
        before_s = clients[0].processor_s()
        sh(clients[0], "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done")
        assert before_s + 0.02 < clients[0].processor_s() < before_s + 60
        threads = "cat /proc/fs/nfsd/threads; ps -e | grep -c ' nfsd$' || true"
        assert sh(server, threads).split() == ["8", "8"]
        server.set_nfs_threads(2)
        assert sh(server, threads).split() == ["2", "2"]
        # Counters of a client's operations.
        assert "WRITE:" in sh(clients[0], "cat /proc/self/mountstats")
        record_property("up_s", up_s)
        record_property("memory_mb", memory_mb)
        assert up_s < LIMIT_S
        assert max(memory_mb) < 400
    finally:
        for node in nodes:
            node.close()


@pytest.mark.slow
def test_a_disk_of_another_node_is_attached(tmp_path: Path) -> None:
    links = star("server", ["client1"])
    disk = NodeDisk("raw", "read-ahead-cliff", size_bytes=64 << 20, file_system=None, port=10809)
    remote = RemoteDisk(HOSTS["server"], 10809)
    parts = (
        KernelParts("server", address="10.9.0.1/24", links=links["server"], disks=(disk,)),
        KernelParts("client1", address="10.9.0.2/24", links=links["client1"], attach=(remote,)),
    )
    for one in parts:
        need(one)
    server, client = (KernelNode(one, tmp_path / one.name) for one in parts)
    with server, client:
        boot_all([server, client])
        assert sh(client, "blockdev --getsize64 /dev/nbd15") == str(64 << 20)
        content = os.urandom(1 << 20)
        write = ["dd", "of=/dev/nbd15", "bs=64k", "conv=fsync", "status=none"]
        assert client.run(write, LIMIT_S, content).status == 0
        server.cut()
        assert (tmp_path / "server" / "raw.disk").read_bytes()[: len(content)] == content
