"""NFS on real kernels: a server and a client of the study's own, and a mount that is there already."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import ascar
from ascar.errors import StageFailed
from ascar.program import Program, run_program
from ascar.systems.asking import apply_checked
from ascar.systems.nfs import Nfs
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_links import star
from ascar.testbed.kernel_parts import KernelParts, NfsExport, NfsMount, NfsServer, NodeDisk
from ascar.testing import TargetContract
from ascar.workloads import LoadTiming, open_workload
from process_state import alive
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = KernelParts(
    "any", address="10.9.0.1/24", disks=(NodeDisk("a", "random-write"),), nfs=NfsServer((NfsExport("a"),))
)
LACK = KernelNode.missing(PARTS)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(LACK is not None, reason=str(LACK))]
FAST = {"disk": "random-write", "disk_size": "512 MiB", "parameters": "wide"}
PACE = LoadTiming(1.0, 2.0, 1.0, lambda series: False)
READS = {"kind": "fio", "options": {"rw": "read", "bs": "64k", "size": "8m", "numjobs": 2}}
CHILD = """
import json, sys
from ascar.systems.nfs import Nfs
with Nfs(json.loads(sys.argv[1])) as target:
    target.apply(target.space.default())
    print(target._nodes.server._kernel.process.pid, target._nodes.place, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keeper's journal is the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def target() -> Iterator[Nfs]:
    with Nfs(FAST) as entered:
        entered.apply(entered.space.default())
        open_workload(READS).prepare(entered.workspace)
        entered.settle()
        yield entered


def set_to(target: Nfs, **changes: Any) -> Any:
    whole = {one.name: one.default for one in target.space.parameters}
    wanted = {**whole, **changes}
    space = target.space.permit_weaker(("durability", "consistency", "integrity"))
    return target.apply(space.nearest(wanted))


class TestNfsContract(TargetContract):
    """On one pair of nodes: each test would boot its own."""

    @pytest.fixture(autouse=True)
    def _kept(self, target: Nfs, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept = target
        monkeypatch.setattr(Nfs, "__enter__", lambda _self: target)
        monkeypatch.setattr(Nfs, "__exit__", lambda *_: None)

    def make(self) -> Nfs:
        return Nfs(FAST)

    def options(self) -> dict[str, Any]:
        return dict(FAST)

    def test_it_applies_configurations_one_after_the_other(self) -> None:
        for configuration in self.kept.space.sample(np.random.default_rng(1), 3):
            assert self.kept.apply(configuration).category in (0, 1, 2)
            self.kept.settle()
            seen = self.kept.workspace
            assert seen.node is not None
            assert self.kept._nodes is not None
            assert self.kept._nodes.client.run(["test", "-d", str(seen.directory)], 30).status == 0


def test_a_mount_is_made_anew_only_where_it_has_to_be(target: Nfs) -> None:
    set_to(target)
    assert "mount" not in set_to(target, bdi_read_ahead_kb=1024, nfsd_threads=16, wdelay=False).step_s
    assert "mount" in set_to(target, rsize=65536, nconnect=2).step_s
    steps = set_to(target, nfsd_max_block_size=131072, rsize=65536, wsize=65536).step_s
    assert {"server", "mount"} <= set(steps)
    found = target.read(["rsize", "nconnect", "nfsd_max_block_size", "bdi_read_ahead_kb"])
    assert found == {
        "rsize": 65536,
        "nconnect": 1,
        "nfsd_max_block_size": 131072,
        "bdi_read_ahead_kb": target.space["bdi_read_ahead_kb"].default,
    }
    set_to(target)


def test_weaker_options_are_in_force_where_they_are_allowed(target: Nfs) -> None:
    weaker = {"hard": False, "cto": False, "actimeo": 60, "sync": False}
    set_to(target, **weaker)
    assert dict(target.read(tuple(weaker))) == weaker
    set_to(target, vers="3", lock=False)
    assert dict(target.read(["vers", "lock", "hard"])) == {"vers": "3", "lock": False, "hard": True}
    set_to(target)


def test_a_window_of_the_client_is_seen_on_the_wire(target: Nfs) -> None:
    """Requests wait in the client, and no more than the window are with the server."""
    load = open_workload({**READS, "options": {**READS["options"], "numjobs": 4, "rw": "randread"}})
    waits: dict[int, float] = {}
    for slots in (1, 64):
        set_to(target, nfs_max_session_slots=slots)
        load.prepare(target.workspace)
        target.settle()
        before = target.sample().counters
        load.run(target.workspace, PACE)
        after = target.sample().counters
        spent = {name: after[name] - before[name] for name in after}
        assert spent["nfs_operations"] > 0
        waits[slots] = spent["nfs_queue_s"] / spent["nfs_operations"]
    assert waits[1] > 3 * waits[64], waits
    set_to(target)


def test_a_load_is_asked_to_end_and_leaves_nothing(target: Nfs) -> None:
    space = target.workspace
    script = "trap 'echo asked; exit 7' INT; echo begun; while :; do sleep 0.1; done"
    program = Program("load", ["sh", "-c", script], 30.0, interrupt_after_s=1.0, environment={"A": "b c"})
    heard: list[bytes] = []
    ended = run_program(program, space, lambda chunk, _: heard.append(chunk) is not None)
    assert (ended.status, ended.interrupted) == (7, True)
    assert b"asked" in b"".join(heard)
    loose = Program("load", ["sh", "-c", "setsid sleep 1000 & exec sleep 1000"], 1.0)
    with pytest.raises(StageFailed, match="ran longer than its limit"):
        run_program(loose, space)
    target.settle()
    assert target._nodes is not None
    assert target._nodes.client.run(["pidof", "sleep"], 30).status == 1


def test_a_load_of_fio_in_the_client_tells_what_it_reads(target: Nfs) -> None:
    set_to(target)
    readings = open_workload(READS).run(target.workspace, PACE)
    assert readings.metrics["read_bytes_per_s"] > 0


def test_a_node_that_dies_is_booted_again_with_its_files(target: Nfs) -> None:
    set_to(target)
    assert target._nodes is not None
    target._nodes.server.cut()
    with pytest.raises(StageFailed):
        target.sample()
    assert "boot" in set_to(target, rsize=32768).step_s
    listed = target._nodes.client.run(["ls", "/mnt/data/load"], 30)
    assert b"load" in listed.out
    assert target.read(["rsize"]) == {"rsize": 32768}
    set_to(target)


def test_words_of_the_command_line_are_those_of_a_real_boot(target: Nfs) -> None:
    set_to(target)
    change = set_to(target, dhash_entries=4096)
    assert change.category == 2
    assert "boot" in change.step_s
    assert target._nodes is not None
    for node in (target._nodes.client, target._nodes.server):
        assert b"dhash_entries=4096" in node.run(["cat", "/proc/cmdline"], 30).out.split()
    assert b"load" in target._nodes.client.run(["ls", "/mnt/data/load"], 30).out, "the disk has its files"
    assert "boot" not in set_to(target, dhash_entries=4096, nfsd_threads=4).step_s
    set_to(target)
    assert target.read(["dhash_entries"]) == {"dhash_entries": 0}


def test_what_the_server_does_not_grant_fails_the_trial(target: Nfs) -> None:
    set_to(target)
    assert target._nodes is not None
    target._nodes.server.run(
        ["sh", "-c", "rpc.nfsd 0; echo 32768 > /proc/fs/nfsd/max_block_size; rpc.nfsd 8"], 60
    )
    with pytest.raises(StageFailed, match="rsize = 524288 was set, but the system reads back 32768"):
        apply_checked(target, target.space.validate({**target.space.default(), "rsize": 524288}))
    set_to(target, nfsd_max_block_size=65536, rsize=65536, wsize=65536)
    set_to(target)


def test_an_agent_in_the_client_reads_its_mount_ten_times_a_second(target: Nfs) -> None:
    assert target._nodes is not None
    client = target._nodes.client
    file = b'node = "client"\ninterval_s = 0.1\nconnection = "none.toml"\n[[collector]]\nkind = "nfs"\n'
    client.put(file, "/tmp/agent.toml")
    done = client.run([client.ascard, "agent", "--config", "/tmp/agent.toml", "--once"], 60)
    assert done.status == 0, done.err
    told = json.loads(done.out)
    assert any(name.startswith("nfs./mnt/data.") for name in json.dumps(told).split('"')), told


def test_a_study_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / f"a directory whose path {'is too long ' * 8}for a socket"
    directory.mkdir()
    short = tempfile.mkdtemp(prefix="ascar-test-")
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps({**FAST, "directory": str(directory)})],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": short},
    )
    assert child.stdout is not None
    assert child.stdin is not None
    pid, place = child.stdout.readline().split(maxsplit=1)
    assert Path(place.rstrip("\n")).parent == directory
    child.send_signal(signal.SIGKILL)
    child.wait()
    until(lambda: not (any(directory.iterdir()) or alive(int(pid)) or any(Path(short).iterdir())), 30)
    Path(short).rmdir()
    child.stdin.close()
    child.stdout.close()


# A mount that is there already: ascar itself runs in the client's node, as root.

SLOTS = "/sys/module/nfs/parameters/max_session_slots"
EXISTING = """
import json, os, sys
from ascar.systems.nfs.existing import ExistingNfs
from ascar.errors import AscarError
told = []
try:
    with ExistingNfs(json.loads(sys.argv[1])) as target:
        told.append(dict(target.space.default()))
        for changes in json.loads(sys.argv[2]):
            for file, value in changes.pop("somebody else", {}).items():
                with open(file, "w") as changed:
                    changed.write(value)
            if changes.pop("die", False):
                os.kill(os.getpid(), 9)
            target.apply(target.space.validate({**target.space.default(), **changes}))
            told.append({**target.read(target.space.names), "dir": target.workspace.directory.is_dir()})
        told.append(target.sample().counters["nfs_operations"] > 0)
        if len(sys.argv) > 3:
            os.kill(os.getpid(), 9)
except AscarError as error:
    told.append(error.message)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelNode]:
    """A client that has a file system of another node mounted."""
    links, hosts = star("server", ["client"]), {"server": "10.9.0.1", "client": "10.9.0.2"}
    disk = NodeDisk("data", "random-write", size_bytes=256 << 20)
    server = KernelParts(
        "server",
        memory_mib=256,
        address="10.9.0.1/24",
        links=links["server"],
        hosts=hosts,
        disks=(disk,),
        nfs=NfsServer((NfsExport("data"),)),
    )
    client = KernelParts(
        "client",
        memory_mib=512,
        address="10.9.0.2/24",
        links=links["client"],
        hosts=hosts,
        mounts=(NfsMount("server", "data", options="hard,nconnect=2"),),
        visible=(str(Path(ascar.__file__).parents[2]), sys.prefix),
    )
    folder = tmp_path_factory.mktemp("kept")
    with ExitStack() as stack:
        nodes = [stack.enter_context(KernelNode(one, folder / one.name)) for one in (server, client)]
        for node in nodes:
            node.boot(120)
        # Where the keeper of root's has its journal.
        assert nodes[1].run(["mount", "-t", "tmpfs", "tmpfs", "/var/lib"], 30).status == 0
        yield nodes[1]


def in_node(node: KernelNode, *arguments: str) -> tuple[int, Any]:
    path = str(Path(ascar.__file__).parents[1])
    environment = [
        f"PYTHONPATH={path}",
        "XDG_STATE_HOME=/tmp/state",
        "HOME=/tmp",
        "PYTHONDONTWRITEBYTECODE=1",
    ]
    done = node.run(["env", *environment, sys.executable, "-c", EXISTING, *arguments], 300)
    last = done.out.decode().strip().splitlines()[-1:] or ["null"]
    assert done.status in (0, -9), done.err
    return done.status, json.loads(last[0])


def state_of(node: KernelNode) -> tuple[set[str], list[bytes]]:
    mount = node.run(["sh", "-c", "grep ' /mnt/data ' /proc/mounts"], 30).out.decode()
    files = [SLOTS, "/proc/sys/sunrpc/tcp_max_slot_table_entries"]
    slots = node.run(["cat", *files], 30).out.split()
    number = node.run(["sh", "-c", "cat /sys/class/bdi/$(mountpoint -d /mnt/data)/read_ahead_kb"], 30).out
    options = mount.split()[3:4] or [""]  # nothing is mounted there in the moment of putting it back
    return set(options[0].split(",")), [*slots, number]


def test_a_mount_of_this_machine_is_tuned_and_put_back(there: KernelNode) -> None:
    before = state_of(there)
    options = {"server": "existing", "path": "/mnt/data", "remounts": "allowed"}
    changes = [{"nconnect": 4, "nfs_max_session_slots": 2}, {"rsize": 16384, "bdi_read_ahead_kb": 512}]
    _, told = in_node(there, json.dumps(options), json.dumps(changes))
    assert isinstance(told[0], dict), told
    assert told[0]["nconnect"] == 2
    assert (told[1]["nconnect"], told[1]["nfs_max_session_slots"], told[1]["dir"]) == (4, 2, True)
    assert (told[2]["nconnect"], told[2]["rsize"], told[2]["bdi_read_ahead_kb"]) == (2, 16384, 512)
    assert told[3] is True
    assert state_of(there) == before
    assert there.run(["ls", "/mnt/data"], 30).out == b"lost+found\n"


def test_a_mount_of_a_killed_study_is_put_back(there: KernelNode) -> None:
    before = state_of(there)
    options = {"server": "existing", "path": "/mnt/data", "remounts": "allowed"}
    status, _ = in_node(there, json.dumps(options), json.dumps([{"nconnect": 5, "rsize": 16384}]), "die")
    assert status == -signal.SIGKILL
    until(lambda: state_of(there) == before, 60)


@pytest.mark.parametrize("how", ["ends", "die"])
def test_what_somebody_else_changes_in_mid_study_stays(there: KernelNode, how: str) -> None:
    """The old values are put back all the same, also after `kill -9`."""
    before = state_of(there)
    options = {"server": "existing", "path": "/mnt/data", "remounts": "allowed"}
    tuned = {"nconnect": 4, "nfs_max_session_slots": 2, "bdi_read_ahead_kb": 512}
    theirs = {**tuned, "somebody else": {SLOTS: "33"}}
    try:
        if how == "die":
            theirs["die"] = True
        status, told = in_node(there, json.dumps(options), json.dumps([tuned, theirs]))
        assert status == (-signal.SIGKILL if how == "die" else 0)
        if how == "ends":
            assert "nfs.max_session_slots: is '33' on /mnt/data: somebody else changed it" in told[-1]
        until(lambda: state_of(there) == (before[0], [b"33", *before[1][1:]]), 60)
    finally:
        there.run(["sh", "-c", f"echo {before[1][0].decode()} > {SLOTS}"], 30)


def test_another_mount_of_the_server_keeps_the_connections(there: KernelNode) -> None:
    """What a new mount asks of them takes no effect, so that no study searches it."""
    before = state_of(there)
    other = "mkdir -p /mnt/other && mount -t nfs -o nconnect=2 server:/data /mnt/other"
    assert there.run(["sh", "-c", other], 60).status == 0
    try:
        third = "mkdir -p /mnt/third && mount -t nfs -o nconnect=6 server:/data /mnt/third"
        there.run(["sh", "-c", third], 60)
        told = there.run(["sh", "-c", "grep ' /mnt/third ' /proc/mounts; umount /mnt/third"], 60).out
        assert b"nconnect=2," in told
        options = {"server": "existing", "path": "/mnt/data", "remounts": "allowed"}
        _, told = in_node(there, json.dumps(options), json.dumps([{"rsize": 16384}]))
        assert not {"nconnect", "nfs_max_session_slots"} & set(told[0])
        assert told[1]["rsize"] == 16384
    finally:
        there.run(["umount", "/mnt/other"], 60)
    assert state_of(there) == before


def test_a_mount_in_use_is_refused_and_stays(there: KernelNode) -> None:
    before = state_of(there)
    options = {"server": "existing", "path": "/mnt/data"}
    there.run(["sh", "-c", "cd /mnt/data && setsid sleep 1000 >/dev/null 2>&1 </dev/null &"], 30)
    try:
        _, told = in_node(there, json.dumps({**options, "remounts": "allowed"}), "[]")
        assert "/mnt/data is in use by sleep" in told[0]
        _, told = in_node(there, json.dumps(options), json.dumps([{"bdi_read_ahead_kb": 64}]))
        assert told[1]["bdi_read_ahead_kb"] == 64, "what takes effect at once needs no new mount"
    finally:
        there.run(["sh", "-c", "kill $(pidof sleep)"], 30)
    assert state_of(there) == before
