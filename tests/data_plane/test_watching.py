"""Rules on a proxy are watched: good ones stay, others are taken back, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import MessagingError
from ascar.library import GainEntry, Library
from ascar.messaging import MessageServer
from ascar.pilot.turns import PairTest
from ascar.program.node_binary import find_ascard
from ascar.rules import Action, RuleSet
from ascar.sharp import objective_of
from ascar.sharp.deployment import rules_id
from ascar.sharp.deployment.messages import controller_user, manager_user
from ascar.sharp.matching import Chooser, RuleWatcher, WatchOptions, observed, watched
from ascar.simulation import preset
from data_plane_peers import disk_of, needed, until
from nbd_peers import RawClient, RawServer, answering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ascar.sharp.matching import WatchEvent
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


def watcher(library: Path, system: Any, events: list[WatchEvent]) -> RuleWatcher:
    chooser = Chooser(Library.read(library), OBJECTIVE.text)
    return RuleWatcher(system, chooser, OBJECTIVE, SHORT, TEST, listener=events.append)


@pytest.mark.slow
def test_good_rules_are_found_verified_and_stay(
    busy: Proxy, library: Path, record_property: Callable[[str, object], None]
) -> None:
    events: list[WatchEvent] = []
    with watched(None, "blocks", busy.folder / "connection.toml", SHORT) as system:
        watcher(library, system, events).run(150.0)
    kinds = [one.kind for one in events]
    record_property("kinds", kinds)
    assert kinds[:2] == ["observed", "deployed"], kinds
    (verified,) = [one for one in events if one.kind == "verified"]
    gain = verified.shown.gain
    assert gain.gain_relative > 0.3
    assert not {"doubted", "rolled-back", "replaced"} & set(kinds), events
    assert "same" in kinds
    assert in_force(busy) == rules_id(TURNS)
    assert not busy.ask({"message": "rules.show/1"})["on_trial"]


@pytest.mark.slow
def test_rules_that_let_nothing_pass_are_taken_back_within_a_minute(busy: Proxy, library: Path) -> None:
    deployed(busy, STANDING, "--keep-for", "1 h")
    assert in_force(busy) == rules_id(STANDING)
    with ascar(busy, "watch", "--budget", "50 s", "--library", str(library), "--json") as done:
        told, said = done.communicate(timeout=200)
    assert done.returncode == 0, said
    events = json.loads(told)["events"]
    taken = next(one for one in events if one["kind"] == "rolled-back")
    assert taken["rules"] == rules_id(STANDING) and taken["at_s"] < 60
    assert taken["reason"].startswith("the throughput is 0")
    assert "nobody has verified them here" in said and "in force before" in said
    assert in_force(busy) != rules_id(STANDING)
