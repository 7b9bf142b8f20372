"""Agents in nodes that are kernels: rules and CAPES change knobs there, and all of it goes back."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import MessagingError
from ascar.messaging import find_settings
from ascar.program.node_binary import find_ascard
from ascar.rules import RuleSet
from ascar.sharp import RuleTrial, objective_of
from ascar.sharp.deployment.controller_socket import open_link
from ascar.sharp.deployment.manager import Manager
from ascar.sharp.trials.testbed_bench import TestbedBench as Bench
from ascar.sharp.trials.testbed_places import scenario_on
from ascar.testbed.file import read_testbed
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_parts import KernelParts, RemoteDisk
from ascar.testbed.running import RunningTestbed
from modelled_disk import FLASH
from process_state import alive
from testbed_processes import belonging_to, fio_or_skip
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Ascar = Callable[..., Any]

LIMIT_S = 200.0
KNOB = "vm.dirty_background_ratio"
WINDOW = 6
RULES = f"1,2\n0,2147483647,0,2147483647,100,2147483647,0,{WINDOW}00,0\n"
CLIENTS = ("client1", "client2")
SEARCHED = """
name = "searched"
warmup_s = 0.5
duration_s = 2
[[clients]]
count = 2
workload = "writers"
[[workloads]]
name = "writers"
filesets = [{ name = "part", size_mib = 48 }]
threads = [{ instances = 16, flowops = [{ op = "write", iosize_kib = 64, random = true, directio = true }] }]
[[servers]]
device = { kind = "memory", capacity_gb = 1, request_us = 500 }
"""
BED = """
[testbed]
name = "bed"
[[node]]
name = "server1"
kind = "kernel"
memory_mib = 256
""" + "".join(
    f"""
[[node]]
name = "{name}"
kind = "kernel"
attach = [{{ server = "server1", port = {10_808 + at} }}]
[[disk]]
name = "disk{at}"
node = "server1"
scenario = "disk.toml"
size = "64MiB"
[[agent]]
node = "{name}"
interval_s = 0.2
contact_s = 4
collectors = ["block", "vm"]
knobs = [{{ name = "{KNOB}", minimum = 1, maximum = 9 }}]
windows = {{ devices = ["nbd15"], maximum = 64 }}
"""
    for at, name in enumerate(CLIENTS, 1)
)
PROXIED = """
[testbed]
name = "bed"
[[node]]
name = "server1"
kind = "kernel"
memory_mib = 256
[[node]]
name = "client1"
kind = "kernel"
[[disk]]
name = "disk1"
node = "server1"
scenario = "disk.toml"
size = "64MiB"
[[proxy]]
node = "client1"
disks = ["disk1"]
[[agent]]
node = "client1"
"""
INTERFACE = f"""
session = "bed"
interval_s = 0.2
connection = "CONNECTION"
database = "replay.sqlite"
mode = "automatic"
[[knob]]
name = "{KNOB}"
minimum = 1
maximum = 9
step = 1
[[metric]]
name = "read_bytes_per_s"
indicators = ["block.nbd15.read_bytes_per_s"]
"""
LEARNER = """
session = "bed"
connection = "CONNECTION"
objective = "maximize read_bytes_per_s"
"""
READ = "while :; do dd if=/dev/nbd15 of=/dev/null bs=64k count=64 iflag=direct 2>/dev/null; done"


class Bed:
    """A testbed with agents that is up."""

    def __init__(self, ascar: Ascar, folder: Path, text: str) -> None:
        self.ascar, self.folder = ascar, folder
        (folder / "disk.toml").write_text(FLASH)
        (folder / "rules.txt").write_text(RULES)
        (folder / "bed.toml").write_text(text)
        up = ascar("testbed", "up", folder / "bed.toml", "--json")
        assert up.status == 0, up.err
        self.standing = up.document
        self.connections: dict[str, str] = self.standing["connections"]
        self.started: list[subprocess.Popen[bytes]] = []

    def read(self, node: str, path: str) -> int:
        done = self.ascar("testbed", "exec", node, "--", "cat", path)
        assert done.status == 0, done.err
        return int(done.out.split()[0])

    def window(self, node: str) -> int:
        return self.read(node, "/sys/block/nbd15/queue/nr_requests")

    def knob(self, node: str) -> int:
        return self.read(node, "/proc/sys/" + KNOB.replace(".", "/"))

    def start(self, *words: object) -> None:
        """A command that is killed at the end."""
        self.started.append(subprocess.Popen(list(map(str, words)), cwd=self.folder, start_new_session=True))

    def load(self, node: str) -> None:
        self.start(sys.executable, "-m", "ascar", "testbed", "exec", node, "--", "sh", "-c", READ)

    def config(self, name: str, text: str, user: str) -> Path:
        path = self.folder / f"{name}.toml"
        path.write_text(text.replace("CONNECTION", self.connections[user]))
        return path

    def sharp(self, *words: object) -> Any:
        done = self.ascar("sharp", *words, "--connection", self.connections["manager"], "--json")
        assert done.status == 0, done.err
        return done.document

    def capes(self) -> Any:
        """How the session stands; None while nobody says."""
        words = ("status", "bed", "--connection", self.connections["viewer"], "--json")
        done = self.ascar("capes", *words)
        return done.document if done.status == 0 else None

    def end(self) -> None:
        for one in self.started:
            one.kill()
            one.wait()


@pytest.fixture
def kernels(runtime: Path, ascard: Path) -> None:
    """Skips where there is nothing to boot."""
    del ascard, runtime
    if missing := KernelNode.missing(KernelParts("any", attach=(RemoteDisk("10.9.0.1", 10_809),))):
        pytest.skip(missing)


@pytest.fixture
def bed(ascar: Ascar, kernels: None, tmp_path: Path) -> Iterator[Callable[[str], Bed]]:
    """Starts a testbed."""
    del kernels
    started: list[Bed] = []

    def start(text: str) -> Bed:
        started.append(Bed(ascar, tmp_path, text))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.mark.slow
def test_rules_set_the_windows_of_kernels_and_go_with_them(bed: Callable[[str], Bed], runtime: Path) -> None:
    up = bed(BED)
    assert [one["alive"] for one in up.standing["agents"]] == [True, True]
    before = {name: up.window(name) for name in CLIENTS}
    assert min(before.values()) > WINDOW
    for name in CLIENTS:
        up.load(name)

    done = up.sharp("deploy", up.folder / "rules.txt", "--floor", "0%", "--least", "2")
    assert done["controllers"] == list(CLIENTS)
    until(lambda: [up.window(name) for name in CLIENTS] == [WINDOW] * 2, LIMIT_S)
    (workload,) = up.sharp("show")["workloads"]
    assert [one["controller"] for one in workload["controllers"]] == list(CLIENTS)
    assert workload["rule_set"]["rules"][0]["used_times"] >= 2

    # Who would record hears why that cannot be, and the rules stay.
    with pytest.raises(MessagingError, match=r"client1: refused: rules\.record: .*CONFIG_BLK_DEV_IO_TRACE"):
        asyncio.run(recorded(Path(up.connections["manager"])))
    assert [up.window(name) for name in CLIENTS] == [WINDOW] * 2

    # A power cut takes the rules of its node along, and of no other.
    assert up.ascar("testbed", "cut", "client1", "--json").document["agents"][0]["alive"] is False
    booted = up.ascar("testbed", "boot", "client1", "--json").document
    assert [one["alive"] for one in booted["agents"]] == [True, True]
    assert (up.window("client1"), up.window("client2")) == (before["client1"], WINDOW)
    up.load("client1")
    up.sharp("deploy", up.folder / "rules.txt", "--floor", "0%", "--least", "2")
    until(lambda: [up.window(name) for name in CLIENTS] == [WINDOW] * 2, LIMIT_S)

    # With nobody to take them back, they end by themselves.
    (server,) = [pid for pid in pids_of("nats-server") if alive(pid)]
    os.kill(server, signal.SIGSTOP)
    try:
        until(lambda: all(up.window(name) == before[name] for name in CLIENTS), LIMIT_S)
    finally:
        os.kill(server, signal.SIGCONT)

    def deployed_again() -> bool:
        words = ("deploy", up.folder / "rules.txt", "--floor", "0%", "--least", "2")
        return up.ascar("sharp", *words, "--connection", up.connections["manager"]).status == 0

    until(deployed_again, LIMIT_S)
    until(lambda: [up.window(name) for name in CLIENTS] == [WINDOW] * 2, LIMIT_S)
    up.sharp("down")
    assert {name: up.window(name) for name in CLIENTS} == before
    assert up.ascar("testbed", "down").status == 0
    assert belonging_to(runtime) == []


@pytest.mark.slow
def test_the_learner_hears_agents_in_kernels_and_sets_their_knobs(bed: Callable[[str], Bed]) -> None:
    up = bed(BED)
    before = {name: up.knob(name) for name in CLIENTS}
    for name in CLIENTS:
        up.load(name)
    ascard = find_ascard()
    up.start(ascard, "interface", "--config", up.config("interface", INTERFACE, "interface"))
    until(lambda: sum(one["is_here"] for one in (up.capes() or {"nodes": []})["nodes"]) == 2, LIMIT_S)

    where = ("--session", "bed", "--connection", up.connections["operator"])
    value = 7 if before["client1"] != 7 else 8
    done = up.ascar("capes", "control", "set", f"{KNOB}={value}", *where)
    assert done.status == 0, done.err
    # The answer says that the orders leave, not that every node has obeyed.
    until(lambda: [up.knob(name) for name in CLIENTS] == [value] * 2, LIMIT_S)

    # One that comes back has its own values until the interface says what the session's are.
    up.ascar("testbed", "cut", "client2")
    assert up.ascar("testbed", "boot", "client2").status == 0
    until(lambda: up.knob("client2") == value, LIMIT_S)
    up.load("client2")

    learner = up.config("learner", LEARNER, "learner")
    up.start(sys.executable, "-P", "-m", "ascar", "capes", "train", "--config", learner)
    until(lambda: ((up.capes() or {}).get("learner") or {}).get("changes"), LIMIT_S)
    assert (up.capes() or {})["objective"] == "maximize read_bytes_per_s"
    assert up.ascar("capes", "control", "kill", "--why", "enough", *where).status == 0
    until(lambda: {name: up.knob(name) for name in CLIENTS} == before, LIMIT_S)


@pytest.mark.slow
def test_a_proxy_in_a_kernel_is_reached_through_its_agent(bed: Callable[[str], Bed]) -> None:
    up = bed(PROXIED)
    done = up.sharp("deploy", up.folder / "rules.txt", "--floor", "0%", "--least", "1")
    assert done["controllers"] == ["client1"]
    assert up.sharp("down")["controllers"] == ["client1"]


@pytest.fixture
def searched(kernels: None, tmp_path: Path) -> Path:
    """The file of a testbed whose clients have work of their own, for a second or two."""
    del kernels
    fio_or_skip()
    (tmp_path / "disk.toml").write_text(SEARCHED)
    (tmp_path / "bed.toml").write_text(BED)
    return tmp_path / "bed.toml"


@pytest.mark.slow
def test_rules_are_searched_for_on_kernels(process: Ascar, searched: Path) -> None:
    out = searched.with_name("rules.txt")
    words = ("--evaluations", 12, "--real-runs", 6, "--out", out, "--json")
    done = process("sharp", "search", searched, *words)
    assert done.status in (0, 3), done.err
    proof = done.document["testbed"]
    assert (proof["nodes"], proof["runs"], proof["failures"]) == (["kernel"], 6, [])
    assert all(one["real"]["runs"] == proof["turns"] >= 2 for one in proof["contenders"])
    rules = RuleSet.parse(out.read_text()).rules
    assert {one.action.tau_us for one in rules} == {0}
    # What agents counted while it was in force.
    assert sum(one.observed.used_times for one in rules if one.observed) > 0
    again = process("sharp", "search", searched, *words, "--resume")
    assert again.document["testbed"]["contenders"] == proof["contenders"]


@pytest.mark.slow
def test_a_run_has_the_windows_of_its_rules_and_fails_by_the_name_of_an_agent_that_dies(
    searched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = read_testbed(searched)
    bench = Bench(wanted, scenario_on(wanted), objective_of("throughput"))
    whole, windows, kills = RunningTestbed.look, set[bytes](), False

    def look(testbed: RunningTestbed) -> None:
        whole(testbed)
        node = testbed.machine("client1")
        windows.add(node.run(["cat", "/sys/block/nbd15/queue/nr_requests"], LIMIT_S).out.strip())
        if kills and len(windows) > 1:
            node.run(["sh", "-c", "kill -9 $(pidof ascard)"], LIMIT_S)

    monkeypatch.setattr(RunningTestbed, "look", look)
    rules = RuleSet.parse(RULES)
    (made,) = bench.run([RuleTrial(rules)])
    assert (made.failed, str(WINDOW).encode() in windows) == ("", True)
    assert made.rules is not None and made.rules.rules[0].observed is not None
    assert made.rules.rules[0].observed.used_times > 0
    kills = True
    windows.clear()
    (made,) = bench.run([RuleTrial(rules)])
    assert made.failed == "agent of client1: ended in the run"


def test_a_knob_that_there_is_none_of_is_named_before_anything_boots(
    ascar: Ascar, runtime: Path, tmp_path: Path, ascard: Path
) -> None:
    del ascard
    (tmp_path / "disk.toml").write_text(FLASH)
    file = tmp_path / "bed.toml"
    file.write_text(BED.replace(KNOB, "vm.dirty_background_ration"))
    done = ascar("testbed", "up", file)
    assert done.status == 2 and done.error.startswith("agent[0] (client1): "), done.err
    assert "vm.dirty_background_ration" in done.error
    assert list(runtime.glob("testbeds/*")) == [] and belonging_to(runtime) == []


async def recorded(connection: Path) -> None:
    """Asks agents for a recording, as the daemon does that watches a load."""
    async with await open_link(find_settings("manager", connection), name="test") as link:
        await Manager(link).record(CLIENTS, 1.0)


def pids_of(program: str) -> list[int]:
    """Processes of this test's testbeds that run a program."""
    mark = f"ASCAR_TESTBED={os.environ['ASCAR_RUNTIME_DIR']}/".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_it = program in (path / "cmdline").read_text() and mark in (path / "environ").read_bytes()
        except OSError:
            continue
        if is_it:
            found.append(int(path.name))
    return found
