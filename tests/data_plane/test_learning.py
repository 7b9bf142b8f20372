"""The numbers of rules learned on a proxy while its clients work; what a proxy cannot do is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.history import History
from ascar.pilot.turns import PairTest
from ascar.rule_learning.task import LearnTask, learn_rules
from ascar.rules import Action, RuleSet
from ascar.sharp import objective_of
from ascar.sharp.deployment import Roster, rules_id
from ascar.sharp.live_comparison import Lengths, in_turns
from data_plane_peers import disk_of, needed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from data_plane_peers import Proxy, Starter
    from modelled_disk import ModelledDisk

OBJECTIVE = objective_of("throughput")
WIDE = RuleSet.uniform(Action(0, 3200, 0))
TICKS_S, TRIAL_S = 60.0, 120.0


@pytest.fixture
def busy(disk: Callable[..., ModelledDisk], start: Starter) -> Iterator[Proxy]:
    """A proxy whose clients write at random, more than the disk's queue has slots for."""
    served = disk(Path("random-write"), "--size", "8GiB")
    proxy = start.proxy(served.socket)
    clients = [
        start.started(
            [
                needed("fio", "fio"), "--name=load", "--ioengine=nbd",
                f"--uri=nbd+unix:///?socket={disk_of(proxy)}",
                "--rw=randwrite", "--bs=1M", "--iodepth=32", f"--offset={2 * number}G", "--size=2G",
                "--time_based", "--runtime=600", "--norandommap", f"--output={proxy.folder}/fio{number}.log",
            ]
        )
        for number in range(4)
    ]  # fmt: skip
    yield proxy
    for one in clients:
        one.kill()


def ascar(proxy: Proxy, *words: str, limit_s: float = 120) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "ASCAR_RUNTIME_DIR": str(proxy.folder / "run"), "XDG_STATE_HOME": str(proxy.folder)}
    there = ["--connection", str(proxy.folder / "connection.toml")]
    return subprocess.run(
        [sys.executable, "-m", "ascar", "sharp", *words, *there],
        cwd=proxy.folder, env=own, capture_output=True, text=True, check=False, timeout=limit_s,
    )  # fmt: skip


def deployed(proxy: Proxy) -> None:
    (proxy.folder / "wide.txt").write_text(WIDE.text())
    done = ascar(proxy, "deploy", "wide.txt", "--floor", "0%")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_numbers_are_learned_while_clients_work(
    busy: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Comparisons are shorter here than they are for users: what is shown is that each step works."""
    monkeypatch.setitem(in_turns.__kwdefaults__, "lengths", Lengths(1.0, 1.0))
    monkeypatch.setitem(in_turns.__kwdefaults__, "test", PairTest(pairs_min=4, pairs_max=6))
    deployed(busy)
    task = LearnTask(
        OBJECTIVE,
        TICKS_S,
        connection=busy.folder / "connection.toml",
        workload="blocks",
        fields=("b100",),
    )
    told: list[tuple[float, int]] = []
    roster = Roster(busy.folder / "roster")
    history = partial(History, tmp_path / "history.db")
    found = learn_rules(task, roster, history, lambda *moment: told.append(moment))
    assert found.before == WIDE
    assert found.ticks >= TICKS_S / 2
    assert found.settings >= 2
    shown = json.loads(ascar(busy, "show", "--json").stdout)["workloads"][0]["controllers"][0]
    assert (shown["rules"], shown["on_trial"]) == (rules_id(found.after), False)
    expected = roster.expected("blocks")
    assert expected is not None and expected.rules == rules_id(found.after)


@pytest.mark.slow
def test_a_learner_that_is_killed_takes_no_rules_away(busy: Proxy) -> None:
    deployed(busy)
    words = [sys.executable, "-m", "ascar", "sharp", "learn", "--fields", "b100", "--budget", "10 min"]
    own = {**os.environ, "ASCAR_RUNTIME_DIR": str(busy.folder / "run"), "XDG_STATE_HOME": str(busy.folder)}
    connection = ["--connection", str(busy.folder / "connection.toml")]
    with subprocess.Popen([*words, *connection], cwd=busy.folder, env=own, stderr=subprocess.PIPE) as learner:
        end_s = time.monotonic() + 60
        while not _shown(busy)["on_trial"]:
            assert learner.poll() is None and time.monotonic() < end_s
            time.sleep(0.1)
        learner.kill()
    shown = _shown(busy)
    assert shown["on_trial"] and shown["rules"] != rules_id(WIDE)
    # The trial ends by the proxy's own clock; whoever wants it sooner takes all rules off.
    assert 0 < busy.ask({"message": "rules.show/1"})["left_s"] <= TRIAL_S
    assert ascar(busy, "down").returncode == 0
    assert _shown(busy)["rules"] is None
    deployed(busy)
    assert (_shown(busy)["rules"], _shown(busy)["on_trial"]) == (rules_id(WIDE), False)


def test_a_proxy_without_rules_has_nothing_to_learn(
    start: Starter, disk: Callable[..., ModelledDisk]
) -> None:
    proxy = start.proxy(disk(Path("random-write"), "--size", "1GiB").socket)
    done = ascar(proxy, "learn", "--budget", "20 s")
    assert done.returncode == 2
    assert "rules: no rules are in force; deploy some with `ascar sharp deploy` first" in done.stderr


def _shown(proxy: Proxy) -> dict[str, Any]:
    return json.loads(ascar(proxy, "show", "--json").stdout)["workloads"][0]["controllers"][0]
