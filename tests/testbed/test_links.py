"""Networks of nodes of kind "namespace": names, links, and nothing that leads out of them."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks
from ascar.testbed.file import testbed_of as bed_of
from ascar.testbed.folder import TestbedFolder as Folder
from ascar.testbed.namespace import lacks
from ascar.testbed.running import RunningTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING = lacks()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

RECEIVE = """
import socket
with socket.create_server(("0.0.0.0", 7000)) as server:
    print("ready", flush=True)
    line, _ = server.accept()
    with line:
        while line.recv(1 << 16): pass
        line.sendall(b"all")
"""
SEND = """
import socket, sys, time
begun = time.monotonic()
with socket.create_connection(("server1", 7000)) as line:
    line.sendall(bytes(int(sys.argv[1])))
    line.shutdown(socket.SHUT_WR)
    assert line.recv(3) == b"all"
print(time.monotonic() - begun)
"""


@pytest.fixture
def folder(in_memory: Path | None) -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as path:
        yield Path(path)


def bed(link: dict[str, Any]) -> Any:
    nodes = [{"name": "server1", "kind": "namespace"}, {"name": "client1", "kind": "namespace", "link": link}]
    return bed_of({"testbed": {"name": "bed"}, "node": nodes}, Path("/"))


def seconds_for(up: RunningTestbed, count: int) -> float:
    """How long it takes to send so many bytes."""
    with (up.folder_of("server1") / "err").open("wb") as err:
        server = up.machine("server1").open(["python3", "-c", RECEIVE], err)
        with server:
            assert server.stdout and server.stdout.readline() == b"ready\n"
            sent = up.machine("client1").run(["python3", "-c", SEND, str(count)], 60)
            assert sent.status == 0, sent.err
            assert server.wait(60) == 0
    return float(sent.out)


def test_a_link_has_its_rate(folder: Path) -> None:
    with Folder(folder / "bed") as place, RunningTestbed(bed({"rate_mbit_per_s": 16}), place) as up:
        assert 0.8 < seconds_for(up, 2_000_000) < 10
    with Folder(folder / "bed") as place, RunningTestbed(bed({}), place) as up:
        # A machine of any pace: sooner or later it is faster than the link was.
        assert min(seconds_for(up, 2_000_000) for _ in range(5)) < 0.8


def test_a_link_has_its_delay_or_the_kernel_is_said_to_lack_it(folder: Path) -> None:
    said = "as it should be: sch_netem"
    try:
        with Folder(folder / "bed") as place, RunningTestbed(bed({"delay_ms": 100}), place) as up:
            assert seconds_for(up, 1) > 0.3
    except EnvironmentLacks as lack:
        said = lack.message
    assert "sch_netem" in said
    assert "\n" not in said
    assert not (folder / "bed").exists()


def test_there_is_no_way_out(folder: Path) -> None:
    with Folder(folder / "bed") as place, RunningTestbed(bed({}), place) as up:
        node = up.machine("client1")
        shown = node.run(["ip", "-brief", "link"], 60).out.decode().split("\n")
        assert sorted(line.split()[0].partition("@")[0] for line in shown if line) == ["eth0", "lo"]
        assert node.run(["ip", "route", "get", "192.0.2.1"], 60).status != 0
        assert node.run(["hostname"], 60).out == b"client1\n"
        assert node.run(["getent", "hosts", "server1"], 60).out.split()[0] == b"10.77.0.1"


def test_a_cut_says_nothing_and_a_boot_brings_the_network_back(folder: Path) -> None:
    with Folder(folder / "bed") as place, RunningTestbed(bed({}), place) as up:
        for _ in range(3):
            up.cut("server1")
            assert [node.alive for node in up.nodes()] == [False, True]
            up.boot("server1")
            begun_s = time.monotonic()
            assert seconds_for(up, 1000) < 30
            assert time.monotonic() - begun_s < 60
