"""Rules put in force from the command line on a simulated cluster in another process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.cli.connection import roster
from ascar.errors import MessagingError
from ascar.messaging import MessageServer, controller_user, manager_user
from ascar.sharp import Action, RuleSet, split
from ascar.sharp.deployment.manager import Manager
from ascar.simulation import parse_scenario
from process_state import alive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT_S = 90.0
STARTED: list[subprocess.Popen[str]] = []
TWO_LOADS = """
name = "two"
duration_s = 5
[[clients]]
count = 2
workload = "writers"
[[clients]]
count = 1
workload = "readers"
[[workloads]]
name = "writers"
filesets = [{ name = "file", size_mib = 256 }]
[[workloads.threads]]
instances = 4
flowops = [{ op = "write", iosize_kib = 1024, random = true, directio = true }]
[[workloads]]
name = "readers"
filesets = [{ name = "file", size_mib = 256 }]
[[workloads.threads]]
instances = 4
flowops = [{ op = "read", iosize_kib = 1024, random = true, directio = true }]
"""


@dataclass
class Served:
    """A simulated cluster that runs in a process of its own."""

    process: subprocess.Popen[str]
    document: dict[str, Any]

    @property
    def server_pid(self) -> int:
        """Of its nats-server."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = [int(pid) for one in children for pid in one.read_text().split()]
        return next(pid for pid in pids if b"nats-server" in Path(f"/proc/{pid}/cmdline").read_bytes())


def start(scenario: object, *options: str) -> Served:
    process = subprocess.Popen(
        [sys.executable, "-m", "ascar", "sim", "serve", str(scenario), "--json", *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    STARTED.append(process)
    assert process.stdout is not None
    text = ""
    while not text.endswith("\n}\n"):
        line = process.stdout.readline()
        assert line, f"ended with {process.wait()}: {text}"
        text += line
    return Served(process, json.loads(text))


def end(served: Served, number: int = signal.SIGTERM) -> int:
    served.process.send_signal(number)
    status = served.process.wait(WAIT_S)
    assert served.process.stdout is not None
    served.process.stdout.close()
    return status


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Not even of a test that fails."""
    yield
    for process in STARTED:
        process.kill()
        process.wait()


@contextmanager
def runtime(folder: Path) -> Iterator[None]:
    """Processes of a test find each other there, and no others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASCAR_RUNTIME_DIR", str(folder / "run"))
        for name in ("ASCAR_NATS_URL", "ASCAR_NATS_CREDENTIALS"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    scenario = folder / "two.toml"
    scenario.write_text(TWO_LOADS)
    with runtime(folder):
        found = start(scenario, "--speed", "50")
        yield found
        assert end(found) == 0  # how it is meant to end


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(RuleSet.uniform(Action(100, 0, 20_000)).text())
    return path


@pytest.fixture
def others(tmp_path: Path) -> Path:
    path = tmp_path / "others.txt"
    path.write_text(split(RuleSet.uniform(Action(90, 100, 5_000))).text())
    return path


def in_force(document: dict[str, Any]) -> dict[str, set[str | None]]:
    return {one["workload"]: {at["rules"] for at in one["controllers"]} for one in document["workloads"]}


def test_from_deployment_to_counts_and_back(
    ascar: Callable[..., Any], served: Served, rules: Path, others: Path, tmp_path: Path
) -> None:
    assert [one["controller"] for one in served.document["controllers"]] == [
        "client-0",
        "client-1",
        "client-2",
    ]
    several = ascar("sharp", "deploy", rules)
    assert (several.status, several.error) == (
        2,
        "--workload: is missing; controllers run readers, writers",
    )
    one = ascar("sharp", "deploy", rules, "--workload", "writers", "--least", "2", "--json")
    assert one.status == 0
    assert one.document["controllers"] == ["client-0", "client-1"]
    two = ascar("sharp", "deploy", others, "--workload", "readers", "--json").document
    assert one.document["rules"] != two["rules"]

    end_s = time.monotonic() + WAIT_S
    while True:  # until the streams have used their rules
        shown = ascar("sharp", "show", "--json")
        assert shown.status == 0
        document = shown.document
        used = {
            at["workload"]: sum(rule["used_times"] for rule in at["rule_set"]["rules"])
            for at in document["workloads"]
        }
        if len(used) == 2 and all(used.values()):
            break
        assert time.monotonic() < end_s
    assert in_force(document) == {"readers": {two["rules"]}, "writers": {one.document["rules"]}}
    assert document["problems"] == []
    means = document["workloads"][1]["rule_set"]["rules"][0]["means"]
    assert means["pt_ratio_x100"] >= 100 and means["ack_ewma_us"] > 0

    with_use = tmp_path / "used.txt"
    assert ascar("sharp", "show", "--workload", "writers", "--out", with_use).status == 0
    assert ascar("sharp", "split", with_use, "--json").document["split_rule"] == 1

    stopped = ascar("sharp", "down", "--workload", "writers", "--json")
    assert stopped.document["controllers"] == ["client-0", "client-1"]
    wanted = {"readers": {two["rules"]}, "writers": {None}}
    end_s = time.monotonic() + WAIT_S  # a controller may answer too late on a busy machine
    while in_force(ascar("sharp", "show", "--json").document) != wanted:
        assert time.monotonic() < end_s
    assert ascar("sharp", "down", "--workload", "readers").status == 0


def test_a_workload_that_nobody_runs_is_not_taken_down(
    ascar: Callable[..., Any], served: Served, rules: Path
) -> None:
    assert ascar("sharp", "deploy", rules, "--workload", "writers", "--least", "2").status == 0
    before = in_force(ascar("sharp", "show", "--json").document)
    words = "workload 'writer': no controller runs it; controllers run readers, writers"
    for option in ((), ("--forget",)):
        done = ascar("sharp", "down", "--workload", "writer", *option)
        assert (done.status, done.error, done.out) == (2, words, "")
    assert in_force(ascar("sharp", "show", "--json").document) == before
    for _ in range(2):  # a workload that runs without rules is as it was asked to be
        done = ascar("sharp", "down", "--workload", "writers", "--json")
        assert (done.status, done.document["controllers"]) == (0, ["client-0", "client-1"])


def test_a_controller_that_does_not_answer_is_not_forgotten(
    ascar: Callable[..., Any], served: Served, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ascar("sharp", "deploy", rules, "--workload", "writers", "--least", "2").status == 0
    expected = roster().expected("writers")
    assert expected is not None

    async def silent(*_: object) -> None:
        raise MessagingError("stop; but not: client-1: does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(Manager, "stop", silent)
        assert ascar("sharp", "down", "--workload", "writers", "--forget").status == 1
    assert roster().expected("writers") == expected
    assert ascar("sharp", "down", "--workload", "writers", "--forget").status == 0
    assert roster().expected("writers") is None


def test_rules_that_leave_a_gap_are_refused_before_anybody_hears(
    ascar: Callable[..., Any], served: Served, tmp_path: Path
) -> None:
    before = in_force(ascar("sharp", "show", "--json").document)
    gap = tmp_path / "gap.txt"
    gap.write_text("1,2\n0,5,0,2147483647,100,2147483647,100,0,0\n")
    done = ascar("sharp", "deploy", gap, "--workload", "writers")
    assert done.status == 2
    assert "gap.txt: rule set: " in done.error
    assert in_force(ascar("sharp", "show", "--json").document) == before


def test_rules_that_slow_all_down_are_refused_on_trial(
    ascar: Callable[..., Any], served: Served, rules: Path, tmp_path: Path
) -> None:
    """One request a minute: what was in force before stays, and nobody is left on trial."""
    slow = tmp_path / "slow.txt"
    slow.write_text(RuleSet.uniform(Action(100, 0, 60_000_000)).text())
    assert ascar("sharp", "deploy", rules, "--workload", "writers", "--floor", "0%").status == 0
    before = in_force(ascar("sharp", "show", "--json").document)
    refused = ascar("sharp", "deploy", slow, "--workload", "writers")
    assert refused.status == 2
    assert " on trial, " in refused.error and "below the floor of 80%" in refused.error
    shown = ascar("sharp", "show", "--json").document
    assert in_force(shown) == before
    assert not any(at["on_trial"] for one in shown["workloads"] for at in one["controllers"])
    rehearsed = ascar("sharp", "deploy", slow, "--workload", "writers", "--rehearse", "random-write")
    assert rehearsed.status == 2 and "the throughput in random-write is" in rehearsed.error
    again = ascar("sharp", "deploy", rules, "--workload", "writers", "--json").document["checked"]
    assert again["before_mb_per_s"] > 0 and again["under_mb_per_s"] > 0.8 * again["before_mb_per_s"]
    assert (again["floor"], again["ticks"]) == (0.8, 10)
    for wrong, words in (
        (("--floor", "120%"), "--floor = 1.2: must be from 0% to 100%"),
        (("--floor", "most"), "--floor = 'most': must be a share"),
        (("--back-after", "2 h"), "--back-after = '2 h': must be from 1 s to 60 min"),
        (("--keep-for", "400 d"), "--keep-for = '400 d': must be from 1 s to 365 d"),
        (("--keep-for", "soon"), "--keep-for = 'soon'"),
        (("--keep-for", "1 h", "--back-after", "1 h"), "--back-after with --keep-for"),
        (("--rehearse", "nothing"), "scenario 'nothing'"),
    ):
        failed = ascar("sharp", "deploy", rules, "--workload", "writers", *wrong)
        assert (failed.status, words in failed.error) == (2, True), failed.error
    assert ascar("sharp", "down", "--workload", "writers").status == 0


def test_rules_with_a_time_limit_end_by_themselves(
    ascar: Callable[..., Any], served: Served, rules: Path, others: Path
) -> None:
    assert ascar("sharp", "deploy", rules, "--workload", "writers", "--floor", "0%").status == 0
    before = in_force(ascar("sharp", "show", "--json").document)["writers"]
    limited = ascar(
        "sharp", "deploy", others, "--workload", "writers", "--floor", "0%", "--back-after", "5 s", "--json"
    ).document  # fmt: skip
    assert limited["ends_after_s"] == 5
    end_s = time.monotonic() + WAIT_S
    while in_force(ascar("sharp", "show", "--json").document)["writers"] != before:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    assert ascar("sharp", "down", "--workload", "writers").status == 0


def test_kept_rules_with_a_time_limit_end_and_none_are_in_force(
    ascar: Callable[..., Any], served: Served, rules: Path, others: Path
) -> None:
    assert ascar("sharp", "deploy", rules, "--workload", "writers", "--floor", "0%").status == 0
    limited = ascar(
        "sharp", "deploy", others, "--workload", "writers", "--floor", "0%", "--keep-for", "5 s", "--json"
    ).document  # fmt: skip
    assert (limited["kept_for_s"], limited["ends_after_s"]) == (5, None)
    shown = ascar("sharp", "show", "--json").document
    assert in_force(shown)["writers"] <= {limited["rules"], None}
    assert not any(at["on_trial"] for one in shown["workloads"] for at in one["controllers"])
    assert all((at["left_s"] or 0) <= 5 for one in shown["workloads"] for at in one["controllers"])
    end_s = time.monotonic() + WAIT_S
    while in_force(ascar("sharp", "show", "--json").document)["writers"] != {None}:
        assert time.monotonic() < end_s
        time.sleep(0.1)
    assert ascar("sharp", "down", "--workload", "writers").status == 0


def test_what_is_set_by_hand_ends_when_the_rules_would_have(
    ascar: Callable[..., Any], served: Served, others: Path
) -> None:
    deployed = ("sharp", "deploy", others, "--workload", "writers", "--floor", "0%", "--keep-for", "1 h")
    assert ascar(*deployed).status == 0
    assert ascar("sharp", "set", "--workload", "writers", "rule1_tau_us=12000").status == 0
    shown = ascar("sharp", "show", "--json").document
    left = [at["left_s"] for one in shown["workloads"] for at in one["controllers"] if at["rules"]]
    assert left and all(3000 < one < 3600 for one in left)
    assert " more" in ascar("sharp", "show").out
    assert ascar("sharp", "down", "--workload", "writers").status == 0


def test_rules_with_a_time_limit_can_be_made_to_stay(
    ascar: Callable[..., Any], served: Served, rules: Path
) -> None:
    """While they are on trial there is nothing to compare with, and the floor is not looked at."""
    limited = ("sharp", "deploy", rules, "--workload", "writers", "--floor", "0%", "--back-after", "2 min")
    assert ascar(*limited).status == 0
    stays = ascar("sharp", "deploy", rules, "--workload", "writers", "--json")
    assert stays.status == 0, stays.err
    assert "--floor is not looked at: " in stays.err and stays.document["checked"] is None
    shown = ascar("sharp", "show", "--json").document
    assert not any(at["on_trial"] for one in shown["workloads"] for at in one["controllers"])
    assert in_force(shown)["writers"] == {stays.document["rules"]}
    assert ascar("sharp", "down", "--workload", "writers").status == 0


def test_the_message_server_is_killed_and_rules_stay(
    ascar: Callable[..., Any], served: Served, rules: Path, others: Path
) -> None:
    first = ascar("sharp", "deploy", rules, "--workload", "writers", "--json").document
    os.kill(served.server_pid, signal.SIGKILL)
    end_s = time.monotonic() + WAIT_S
    while True:  # it comes back where it was, with the same passwords, and the controllers find it
        shown = ascar("sharp", "show", "--json")
        if shown.status == 0 and sum(len(one["controllers"]) for one in shown.document["workloads"]) == 3:
            break
        assert time.monotonic() < end_s, shown.err
        time.sleep(0.1)
    assert in_force(shown.document)["writers"] == {first["rules"]}
    second = ascar("sharp", "deploy", others, "--workload", "writers", "--least", "2", "--json")
    assert second.status == 0, second.err


def test_knobs_of_the_rules_in_force(ascar: Callable[..., Any], served: Served, rules: Path) -> None:
    assert ascar("sharp", "deploy", rules, "--workload", "writers", "--least", "2").status == 0
    done = ascar("sharp", "set", "--workload", "writers", "rule1_tau_us=12000", "rule1_b100=-30", "--json")
    assert done.status == 0, done.err
    assert done.document["controllers"] == ["client-0", "client-1"]
    shown = ascar("sharp", "show", "--workload", "writers", "--json").document["workloads"][0]
    rule = shown["rule_set"]["rules"][0]
    assert (rule["m_x100"], rule["b_x100"], rule["tau_us"]) == (100, -30, 12_000)
    for wrong, words in (
        ("rule1_tau_us=70001", "rule1_tau_us"),
        ("rule9_tau_us=1", "is not a knob"),
        ("rule1_tau_us", "must be KNOB=VALUE"),
        ("rule1_tau_us=fast", "must be KNOB=VALUE"),
    ):
        refused = ascar("sharp", "set", "--workload", "writers", wrong)
        assert (refused.status, words in refused.error) == (2, True)


def test_numbers_learned_over_the_wire(ascar: Callable[..., Any], served: Served, rules: Path) -> None:
    """A few quick ticks: what is told fits the schema, and nobody is left on trial."""
    ascar("sharp", "down", "--workload", "writers")
    none = ascar("sharp", "learn", "--workload", "writers")
    assert (none.status, none.error) == (
        2,
        "rules: no rules are in force; deploy some with `ascar sharp deploy` first",
    )
    before = ascar("sharp", "deploy", rules, "--workload", "writers", "--json").document
    for wrong, words in (
        (("--objective", "latency:99"), "--objective names 'latency_ms_p99'"),
        (("--rule", "2"), "rule 2: there are rules 1 to 1"),
        (("--fields", "window"), "fields: window; allowed"),
    ):
        refused = ascar("sharp", "learn", "--workload", "writers", *wrong)
        assert (refused.status, words in refused.error) == (2, True)
    done = ascar(
        "sharp", "learn", "--workload", "writers", "--budget", "20 s", "--fields", "tau_us", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    document = done.document
    assert document["before"] == before["rules"]
    assert 5 <= document["ticks"] <= 20  # a tick is a second
    shown = ascar("sharp", "show", "--json")
    assert in_force(shown.document)["writers"] == {document["rules"]}
    assert not any(at["on_trial"] for one in shown.document["workloads"] for at in one["controllers"])


@pytest.mark.slow
def test_the_cluster_is_killed_and_who_is_missing_is_told(
    ascar: Callable[..., Any], rules: Path, tmp_path: Path, controllers_here: Callable[..., Any]
) -> None:
    """Controllers that took rules and are gone are named; so is a message server that went with them."""
    scenario = tmp_path / "two.toml"
    scenario.write_text(TWO_LOADS)
    with runtime(tmp_path):
        first = start(scenario, "--speed", "5")
        assert ascar("sharp", "deploy", rules, "--workload", "writers", "--least", "2").status == 0
        server_pid = first.server_pid
        end(first, signal.SIGKILL)
        end_s = time.monotonic() + WAIT_S
        while alive(server_pid):
            assert time.monotonic() < end_s, "the server outlives what started it"
            time.sleep(0.02)
        gone = ascar("sharp", "deploy", rules, "--workload", "writers")
        assert gone.status == 1
        assert "message server nats://127.0.0.1" in gone.error

        fewer = parse_scenario(TWO_LOADS.replace("count = 2", "count = 1"))
        with controllers_here(fewer, tmp_path / "run", 5.0):
            missing = ascar("sharp", "deploy", rules, "--workload", "writers")
            assert missing.status == 1
            assert missing.error.endswith("client-1: does not answer; nothing was changed")
            shown = ascar("sharp", "show")
            assert shown.status == 1
            assert "client-1: is missing; it was to follow" in shown.out
            missed = ascar("sharp", "down", "--workload", "writers")
            assert missed.status == 1
            assert "client-1: does not answer" in missed.error
            assert ascar("sharp", "deploy", rules, "--workload", "writers", "--forget").status == 0


def test_without_anybody(ascar: Callable[..., Any], rules: Path, tmp_path: Path) -> None:
    with runtime(tmp_path):
        for command in (("deploy", rules), ("show",), ("down",), ("learn",)):
            done = ascar("sharp", *command)
            assert done.status == 2
            assert "no message server" in done.error


@pytest.mark.slow
def test_with_a_server_that_runs_elsewhere(ascar: Callable[..., Any], rules: Path, tmp_path: Path) -> None:
    """No server of their own: both sides are told by connection files; ^C ends learning as it began."""
    scenario = tmp_path / "two.toml"
    scenario.write_text(TWO_LOADS)
    with (
        runtime(tmp_path),
        MessageServer(tmp_path / "own", [manager_user(), controller_user("node")]) as server,
    ):
        manager = server.settings_path("manager")
        node = str(server.settings_path("node"))
        there = start(scenario, "--speed", "100", "--prefix", "member", "--connection", node)
        assert there.document["connection_file"] is None
        assert there.document["url"] == server.url
        assert "no message server" in ascar("sharp", "show").error
        before = ascar(
            "sharp",
            "deploy",
            rules,
            "--workload",
            "writers",
            "--least",
            "2",
            "--connection",
            manager,
            "--json",
        ).document
        assert before["controllers"] == ["member-0", "member-1"]
        learning = subprocess.Popen(
            [
                sys.executable, "-m", "ascar", "sharp", "learn", "--workload", "writers",
                "--budget", "10 h", "--connection", str(manager),
            ],
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        with learning:
            assert learning.stderr is not None
            assert "s left" in learning.stderr.readline()  # knobs were turned for a minute
            learning.send_signal(signal.SIGINT)
            told = learning.stderr.read()
            assert learning.wait(WAIT_S) == 130, told
        shown = ascar("sharp", "show", "--workload", "writers", "--connection", manager, "--json").document
        assert in_force(shown) == {"writers": {before["rules"]}}
        assert not any(at["on_trial"] for at in shown["workloads"][0]["controllers"])
        assert end(there) == 0
