"""Rules on a proxy are watched: good ones stay, others are taken back, whoever dies meanwhile."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import http_peers
import resp_peers
from ascar.errors import MessagingError
from ascar.library import GainEntry, Library
from ascar.messaging import MessageServer, manager_user
from ascar.pilot.turns import PairTest
from ascar.rules import Action, RuleSet
from ascar.sharp import objective_of
from ascar.sharp.deployment import rules_id
from ascar.sharp.matching import Chooser, RuleWatcher, WatchOptions, observed, watched
from ascar.simulation import preset
from data_plane_peers import disk_of, needed
from nbd_peers import RawClient, RawServer, Session, answering
from proxy_site import Site, agent_user
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ascar.sharp.matching import WatchedSystem, WatchEvent
    from data_plane_peers import Proxy, Starter
    from modelled_disk import ModelledDisk

OBJECTIVE = objective_of("throughput")
READERS = 12
TURNS = RuleSet.parse("1,2,active_files=4\n0,2147483647,0,2147483647,100,2147483647,100,0,0\n")
"""Four streams are active at a time, and the disk reads ahead for eight."""
STANDING = RuleSet.uniform(Action(0, 100, 60_000_000))
"""A request a minute."""
SHORT = WatchOptions(observe_s=4.0, settle_s=1.0, measure_s=3.0, look_s=2.0)
TEST = PairTest(level=0.05, pairs_min=4, pairs_max=8)


class Enough(Exception):
    """What a test waits for has come."""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """One that expects much of turns, whatever the load is."""
    path, features = tmp_path / "library.jsonl", observed(preset("random-write"))
    with Library.writing(path) as kept:
        for at in range(12):
            kept.add_workload(f"load{at}", {key: value * (1 + at) for key, value in features.items()})
        rules = kept.add_rules(TURNS, "load0", OBJECTIVE.text).id
        for name in kept.workloads:
            kept.add_gain(GainEntry(rules, name, OBJECTIVE.text, 0.5))
    return path


@pytest.fixture
def busy(disk: Callable[..., ModelledDisk], start: Starter) -> Iterator[Proxy]:
    """A proxy with more sequential readers than its disk reads ahead for."""
    proxy = start.proxy(disk(Path("read-ahead-cliff")).socket, 'state_directory = "state"\n')
    readers = start.started(
        [
            needed("fio", "fio"), "--name=load", "--ioengine=nbd",
            f"--uri=nbd+unix:///disk?socket={disk_of(proxy)}", "--rw=read", "--bs=128k", "--iodepth=2",
            f"--numjobs={READERS}", "--offset_increment=900M", "--size=800M", "--time_based",
            "--runtime=600", f"--output={proxy.folder}/fio.log",
        ]
    )  # fmt: skip
    until(lambda: len(proxy.streams()) == READERS)
    yield proxy
    readers.terminate()
    readers.wait()


def ascar(proxy: Proxy, *words: str) -> subprocess.Popen[str]:
    """A command on the proxy."""
    own = {**os.environ, "ASCAR_RUNTIME_DIR": str(proxy.folder / "run"), "XDG_STATE_HOME": str(proxy.folder)}
    there = ["--connection", str(proxy.folder / "connection.toml")]
    return subprocess.Popen(
        [sys.executable, "-m", "ascar", "sharp", *words, *there],
        cwd=proxy.folder, env=own, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def deployed(proxy: Proxy, rules: RuleSet, *words: str) -> None:
    (proxy.folder / "rules.txt").write_text(rules.text())
    with ascar(proxy, "deploy", "rules.txt", "--floor", "0%", *words) as done:
        _, said = done.communicate(timeout=60)
    assert done.returncode == 0, said


def in_force(proxy: Proxy) -> str | None:
    return proxy.ask({"message": "rules.show/1"})["rules"]


def watcher(library: Path, system: WatchedSystem, listener: Callable[[WatchEvent], None]) -> RuleWatcher:
    chooser = Chooser(Library.read(library), OBJECTIVE.text)
    return RuleWatcher(system, chooser, OBJECTIVE, SHORT, TEST, listener=listener)


@pytest.mark.slow
def test_good_rules_are_found_verified_and_stay(
    busy: Proxy, library: Path, record_property: Callable[[str, object], None]
) -> None:
    events: list[WatchEvent] = []

    def on_event(event: WatchEvent) -> None:
        events.append(event)
        if event.kind == "same":
            raise Enough

    with (
        pytest.raises(Enough),
        watched(None, "blocks", busy.folder / "connection.toml", SHORT) as system,
    ):
        watcher(library, system, on_event).run(300.0)
    kinds = [one.kind for one in events]
    record_property("kinds", kinds)
    assert kinds[:2] == ["observed", "deployed"], kinds
    (verified,) = [one for one in events if one.kind == "verified"]
    gain = verified.shown.gain
    assert gain.gain_relative > 0.3
    assert not {"doubted", "rolled-back", "replaced"} & set(kinds), events
    assert kinds.index("same") > kinds.index("verified"), kinds
    assert in_force(busy) == rules_id(TURNS)
    assert not busy.ask({"message": "rules.show/1"})["on_trial"]


@pytest.mark.slow
def test_rules_that_let_nothing_pass_are_taken_back_within_a_minute(busy: Proxy, library: Path) -> None:
    taken_back(busy, library)


@pytest.mark.slow
def test_rules_of_objects_and_values_are_watched_too(start: Starter, folder: Path, library: Path) -> None:
    """A proxy with a route of HTTP and one of RESP, whose clients ask one after the other."""
    get = http_peers.request("/bucket/object")
    ended = threading.Event()

    def ask(path: Path, asked: bytes, answer: bytes) -> None:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            reading = client.makefile("rb")
            while not ended.wait(0.002):
                client.sendall(asked)
                reading.read(len(answer))

    with (
        RawServer(folder / "objects.sock", http_peers.answering(OBJECT)) as objects,
        RawServer(folder / "values.sock", answering_values) as values,
    ):
        other = f'[[route]]\nlisten = "unix:values"\nserver = "unix:{values.path}"\nprotocol = "resp"\n'
        proxy = start.proxy(objects.path, terms=f"{http_peers.HTTP}{other}")
        asking = [
            threading.Thread(target=ask, args=words)
            for words in (
                (disk_of(proxy), get, OBJECT),
                (proxy.folder / "values", resp_peers.command("GET", "key"), VALUE),
            )
        ]
        for one in asking:
            one.start()
        try:
            until(lambda: len(proxy.streams()) == 2)
            taken_back(proxy, library)
        finally:
            ended.set()
            proxy.stop()
            for one in asking:
                one.join()


VALUE = b"$65536\r\n%b\r\n" % bytes(65536)
OBJECT = b"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + bytes(65536)


def answering_values(session: Session) -> None:
    for _ in resp_peers.commands(session):
        session.socket.sendall(VALUE)


def taken_back(proxy: Proxy, library: Path) -> None:
    """Puts rules in force that let nothing pass, and sees that a watch takes them back."""
    deployed(proxy, STANDING, "--keep-for", "1 h")
    assert in_force(proxy) == rules_id(STANDING)
    with ascar(proxy, "watch", "--budget", "10 min", "--library", str(library), "--json") as watching:
        assert watching.stderr is not None
        said = [watching.stderr.readline() for _ in range(3)]
        assert in_force(proxy) != rules_id(STANDING)
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=60)
    doubted, tried, taken = said
    assert "nobody has verified them here" in doubted and "in force before" in doubted
    assert "rules on trial" in tried
    assert "taken back" in taken and "the throughput is 0" in taken
    assert int(taken.split(" s: ")[0]) < 60
    assert watching.returncode == 130
    assert in_force(proxy) is None


@pytest.mark.slow
def test_a_proxy_that_is_killed_ends_the_watch_and_its_rules_end_in_time(busy: Proxy, library: Path) -> None:
    deployed(busy, TURNS, "--keep-for", "100 s")
    events: list[WatchEvent] = []

    def on_event(event: WatchEvent) -> None:
        events.append(event)
        if event.kind == "verified":
            busy.again(signal.SIGKILL)

    with (
        pytest.raises(MessagingError, match=r"^client1: ") as raised,
        watched(None, "blocks", busy.folder / "connection.toml", SHORT) as system,
    ):
        watcher(library, system, on_event).run(600.0)
    assert "\n" not in raised.value.message
    kinds = [one.kind for one in events]
    assert kinds[0] == "doubted" and set(kinds[kinds.index("verified") + 1 :]) <= {"idle"}, kinds
    shown = busy.ask({"message": "rules.show/1"})
    assert (shown["rules"], shown["on_trial"]) == (rules_id(TURNS), False), busy.log()
    assert 0 < shown["left_s"] < 100
    until(lambda: in_force(busy) is None, 100)


@pytest.mark.slow
def test_a_watch_whose_proxy_is_gone_says_so_in_a_line(busy: Proxy, library: Path) -> None:
    with ascar(busy, "watch", "--budget", "10 min", "--observe", "4 s", "--library", str(library)) as done:
        assert done.stderr is not None
        assert "rules on trial" in done.stderr.readline()
        busy.stop()
        _, said = done.communicate(timeout=90)
    assert done.returncode == 1
    (line,) = [one for one in said.splitlines() if one.startswith("error: ")]
    assert "client1" in line


@pytest.fixture
def site(start: Starter, folder: Path) -> Iterator[Site]:
    """Two nodes, whose clients read one after the other."""
    ended = threading.Event()

    def read(proxy: Proxy) -> None:
        with contextlib.suppress(OSError, AssertionError), RawClient(disk_of(proxy)) as client:
            client.negotiate()
            for cookie in itertools.count():
                client.read(cookie, 4096, 4096 * (cookie % 1_000))
                if ended.wait(0.005):
                    break

    with (
        RawServer(folder / "server.sock", answering) as target,
        MessageServer(folder / "messages", [manager_user(), agent_user()]) as server,
    ):
        made = Site(start, folder, server)
        for _ in range(2):
            made.node(target.path)
        until(lambda: all("reaches controller client" in made.log(number) for number in (1, 2)))
        clients = [threading.Thread(target=read, args=(one,)) for one in made.proxies]
        for one in clients:
            one.start()
        yield made
        ended.set()
        for one in clients:
            one.join()


@pytest.mark.slow
def test_agents_that_are_killed_and_come_back_are_waited_for(site: Site, library: Path) -> None:
    events: list[WatchEvent] = []

    def killed(number: int) -> None:
        """For three seconds."""
        site.agents[number - 1].kill()
        threading.Timer(3.0, site.agent_again, (number,)).start()

    def on_event(event: WatchEvent) -> None:
        events.append(event)
        if event.kind == "deployed":  # and a trial begins
            killed(2)

    threading.Timer(1.0, killed, (1,)).start()  # while clients are observed
    with watched(None, "blocks", site.server.settings_path("manager"), SHORT) as system:
        assert system.controllers == ("client1", "client2")
        watcher(library, system, on_event).run(60.0)
    assert [one.kind for one in events][:2] == ["observed", "deployed"]
    assert "rolled-back" in [one.kind for one in events], "rules that change nothing"
    until(lambda: all("reaches controller client" in site.log(number) for number in (1, 2)))
    assert site.in_force() == [None, None]


@pytest.mark.slow
def test_an_agent_that_stays_away_ends_the_watch_and_the_trial_ends_by_itself(
    site: Site, library: Path
) -> None:
    def on_event(event: WatchEvent) -> None:
        if event.kind == "deployed":
            threading.Timer(8.0, site.agents[1].kill).start()  # with rules on trial

    with (
        pytest.raises(MessagingError, match="client2"),
        watched(None, "blocks", site.server.settings_path("manager"), SHORT) as system,
    ):
        watcher(library, system, on_event).run(600.0)
    assert site.in_force()[0] is None
    until(lambda: site.in_force() == [None, None], 60)
