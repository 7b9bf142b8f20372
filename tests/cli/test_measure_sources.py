"""Several sources in one session: commands at the same time, here and on a node behind a real SSH server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ssh_server import Server, running_server
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("no_progress_lines")
QUICK = ("measure", "--preset", "quick", "--rounds-max", "8", "--json")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture
def nodes(server, tmp_path):
    path = tmp_path / "nodes.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in server.table(name="far").items()]
    path.write_text("\n".join(["[[node]]", *lines, ""]))
    return path


def processes_of(words):
    """Processes whose command line is just these words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (entry / "cmdline").read_bytes().split(b"\0")[:-1] == words.encode().split():
                found.append(entry.name)
        except OSError:
            continue
    return found


def told(done):
    """The message of an error with --json."""
    return json.loads(done.out)["error"]["message"]


def test_sources_run_at_the_same_time_and_each_has_its_metrics(ascar, tmp_path):
    """Each waits for the other: one after the other they would not end."""
    a, b = tmp_path / "a", tmp_path / "b"
    script = 'echo > "$1"; until [ -e "$2" ]; do sleep 0.01; done; sleep 0.1; rm "$1"; echo "mb_per_s $3"'
    document = ascar(
        *(*QUICK, "--budget", "60 s", "--metric", "mb_per_s=mb_per_s ([0-9]+)"),
        *("--source", f"one=sh -c '{script}' sh {a} {b} 7", "--source", f"two=sh -c '{script}' sh {b} {a} 9"),
    ).document
    assert [(one["name"], one["mean"]) for one in document["indicators"]] == [
        ("one.mb_per_s", 7),
        ("two.mb_per_s", 9),
    ]
    assert [(one["name"], one["node"]) for one in document["sources"]] == [("one", None), ("two", None)]
    assert document["command"] == []
    assert document["rounds"][0]["seconds"] >= 0.1
    names = {"one.mb_per_s", "one.duration_s", "two.mb_per_s", "two.duration_s"}
    assert set(document["rounds"][0]["readings"]) == names


def test_names_stand_for_one_source_or_for_all(ascar):
    asked = (
        *(*QUICK, "--metric", "a.x=x ([0-9]+)", "--metric", "y=y ([0-9]+)", "--goal", "y:50%"),
        *("--goal", "a.x:40%", "--kind", "x=ratio"),
    )
    sources = ("--source", "a=echo x 1 y 2", "--source", "b=echo y 3")
    document = ascar(*asked, *sources).document
    widths = {one["name"]: one["goal"]["interval_width_relative"] for one in document["indicators"]}
    assert widths == {"a.x": 0.4, "a.y": 0.5, "b.y": 0.5}
    assert document["indicators"][0]["kind"] == "ratio"
    contradiction = ascar(*asked, "--report-only", "b.y", *sources)
    assert contradiction.status == 2
    assert "--goal 'b.y': contradicts --report-only" in told(contradiction)


def test_a_source_without_metrics_is_timed(ascar):
    document = ascar(*QUICK, "--source", "a=sleep 0.05", "--source", "b=true").document
    means = {one["name"]: one["mean"] for one in document["indicators"]}
    assert means["a.duration_s"] > 0.05
    assert means["b.duration_s"] > 0


def test_a_source_on_a_node_is_timed_there(ascar, nodes):
    document = ascar(
        *(*QUICK, "--nodes", nodes, "--budget", "2 min", "--metric", "near.x=x ([0-9]+)"),
        *("--source", "near=echo x 4", "--source", "far@far=sh -c 'sleep 0.02; test \"$0\" = \"a b\"' 'a b'"),
    ).document
    means = {one["name"]: one["mean"] for one in document["indicators"]}
    assert means["near.x"] == 4
    assert means["far.duration_s"] >= 0.02
    assert [one["node"] for one in document["machines"]] == [None, "far"]
    assert document["machines"][1]["kernel"] == os.uname().release
    assert document["sources"][1]["node"] == "far"


def test_what_fails_on_a_node_is_named(ascar, nodes):
    absent = ascar(*QUICK, "--nodes", nodes, "--source", "a=true", "--source", "b@far=no-such-program")
    assert absent.status == 2
    assert "source b: node far: no-such-program is not installed there" in told(absent)
    failed = ascar(*QUICK, "--nodes", nodes, "--source", "b@far=sh -c 'echo oops >&2; exit 3'")
    assert failed.status == 1
    assert "source b: round: sh exited with 3: oops" in told(failed)


def test_one_that_fails_ends_the_others_and_leaves_nothing(ascar, nodes):
    begun_s = time.monotonic()
    done = ascar(
        *(*QUICK, "--nodes", nodes, "--source", "slow=sleep 3731", "--source", "far@far=sleep 3732"),
        *("--source", "bad=sh -c 'sleep 1; exit 7'"),
    )
    assert done.status == 1
    assert "source bad: round: sh exited with 7" in told(done)
    assert time.monotonic() - begun_s < 60
    assert not processes_of("sleep 3731")
    until(lambda: not processes_of("sleep 3732"))


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_ascar_ends_what_it_started_on_the_node(nodes, way):
    words = f"sleep 374{int(way)}"
    command = [sys.executable, "-m", "ascar", *QUICK, "--nodes", str(nodes), "--source", f"far@far={words}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: processes_of(words))
    process.send_signal(way)
    process.communicate(timeout=60)
    until(lambda: not processes_of(words))


def test_a_node_that_is_lost_in_a_round_fails_it(nodes, server):
    command = [sys.executable, "-m", "ascar", *QUICK, "--nodes", str(nodes), "--source", "far@far=sleep 3751"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: processes_of("sleep 3751"))
    server.cut()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "source far: node far: cannot be reached" in json.loads(out)["error"]["message"]
    until(lambda: not processes_of("sleep 3751"))


def test_a_node_that_cannot_be_reached_is_named_before_the_first_round(ascar, nodes, tmp_path):
    text = nodes.read_text()
    port = next(line for line in text.splitlines() if line.startswith("port"))
    away, file = tmp_path / "away.toml", tmp_path / "ran"
    away.write_text(text.replace(port, "port = 1"))
    done = ascar("measure", "--nodes", away, "--source", f"a=touch {file}", "--source", "b@far=true")
    assert done.status == 2
    assert "node far: cannot be reached" in done.error
    assert not file.exists()


def test_unit_readings_that_the_limit_cuts_off_are_kept(ascar):
    loop = "while true; do echo x $((RANDOM % 3 + 100)); sleep 0.01; done"
    document = ascar(
        *("measure", "--budget", "2 s", "--metric", "x=x ([0-9]+)", "--json"),
        *("--source", f'a=bash -c "{loop}"', "--source", f'b=bash -c "{loop}"'),
    ).document
    assert not document["reached"]
    assert [one["name"] for one in document["indicators"]] == ["a.x", "b.x"]
    assert all(99 < one["mean"] < 103 for one in document["indicators"])


def test_one_that_hangs_is_named_within_its_limit_or_the_session_s(ascar):
    hanging = ("--source", "a=true", "--source", "b=sleep 3761")
    limited = ascar(*QUICK, "--budget", "60 s", "--round-limit", "0.5 s", *hanging)
    assert limited.status == 1
    assert "source b: round: sleep ran longer than its limit of 0.5 s and was killed" in told(limited)
    over = ascar(*QUICK, "--budget", "1 s", *hanging)
    assert over.status == 1
    assert "source b: had not ended, so no round did: the limit of 1 s was reached" in told(over)
    assert not processes_of("sleep 3761")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--source", "a=true", "--source", "a=false"], "source 'a' is given twice"),
        (["--source", "true"], "must be NAME=COMMAND or NAME@NODE=COMMAND"),
        (["--source", "=true"], "must be NAME=COMMAND"),
        (["--source", "a@=true"], "must be NAME=COMMAND"),
        (["--source", "a="], "--source a: has no COMMAND"),
        (["--source", "a='x"], "close the quotes"),
        (["--source", "a-b=true"], "a name must be letters, digits and '_'"),
        (["--source", "a=no-such-program"], "no-such-program"),
        (["--source", "a=true", "--metric", "b.x=(.)"], "--metric b.x: 'b' is no source; there are a"),
        (["--source", "a=true", "--", "true"], "COMMAND 'true': leave it out with --source"),
        (["--nodes", "x.toml", "--", "true"], "only --source NAME@NODE=COMMAND runs on a node"),
        (["--source", "a@b=true", "--nodes", "none.toml"], "--nodes = 'none.toml': No such file"),
        (["--source", "a@-oProxyCommand=x"], "node.host = '-oProxyCommand'"),
        (["--source", "a=true", "--goal", "b.duration_s:3%"], "must be one of a.duration_s"),
    ],
)
def test_sources_that_cannot_be_are_refused_in_one_line(ascar, arguments, words):
    done = ascar("measure", *arguments)
    assert done.status == 2
    assert words in done.error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[[node]]\nname = 'b'\nhost = 'h'\n",
            "'far' must be the name of a [[node]] of --nodes; there are b",
        ),
        ("", "there are none; add a [[node]] table"),
        ("node = 3\n", "node: must be tables: write [[node]]"),
        ("[[node]]\nport = 1\n", "node[0].name: missing"),
        ("[[node]]\nname = 'far'\nhost = 'h'\nport = 99999\n", "node.port = 99999"),
        ("[[node]\n", "is not TOML"),
    ],
)
def test_files_of_nodes_that_cannot_be_are_refused_in_one_line(ascar, tmp_path, text, words):
    path = tmp_path / "nodes.toml"
    path.write_text(text)
    done = ascar("measure", "--nodes", path, "--source", "a@far=true")
    assert done.status == 2
    assert words in done.error
