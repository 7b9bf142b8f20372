"""A Redis that serves, set for a while by CONFIG SET and a key of its file; by its user, without root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.space.study_table import study_space
from ascar.study import Study
from ascar.systems import open_target
from ascar.systems.keeper import restore_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STUDY = """
[study]
name = "cache"
objective = "maximize ops_per_s"
budget = "1 min"
[target]
kind = "program"
apply = ["redis-cli", "-e", "-p", "PORT", "config", "set", "{name}", "{value}"]
check = ["redis-cli", "-p", "PORT", "config", "get", "{name}"]
restart = { dyn-app = ["true"] }
[[target.file]]
path = "FILE"
[target.file.keys]
timeout = "{timeout}"
[space.parameters.hz]
kind = "integer"
low = 1
high = 500
default = 10
cost = "dyn-app"
[space.parameters.timeout]
kind = "integer"
low = 0
high = 900
default = 0
cost = "dyn-app"
[workload]
kind = "command"
argv = ["true"]
metrics = { ops_per_s = "regex:([0-9]+)" }
"""
BEFORE = "# ours\nport 1\ntimeout 0\n"


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Asks a server of the test's own."""
    server, client = shutil.which("redis-server"), shutil.which("redis-cli")
    if server is None or client is None:
        pytest.skip("needs the Debian packages redis-server and redis-tools; install them")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)

    def ask(*asked: str) -> str:
        done = subprocess.run([client, "-p", str(port), *asked], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    end_s = time.monotonic() + 30
    while ask("ping") != "PONG":
        assert time.monotonic() < end_s
        time.sleep(0.05)
    ask.port = port
    yield ask
    process.terminate()
    process.wait(30)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "redis.conf"
    path.write_text(BEFORE)
    return path


@pytest.fixture
def run(
    redis: Any, file: Path, keep_run: Callable[..., int], monkeypatch: Any, tmp_path: Path
) -> Iterator[int]:
    """A run that recommends another `hz` and another `timeout`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # What root's keeper has in force is that of other tests.
    monkeypatch.setattr("ascar.systems.keeper.ROOTS_STATE", tmp_path / "of-root")
    study = Study.parse(STUDY.replace("PORT", str(redis.port)).replace("FILE", str(file)))
    space = study_space(study, open_target(study.target).space)
    best = space.validate({**space.default(), "hz": 100, "timeout": 300})
    yield keep_run(study, space, best, {"target": "program"})
    restore_all(everything=True)


def value(redis: Callable[..., str], name: str) -> str:
    return redis("config", "get", name).splitlines()[-1]


def becomes(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.1)


def journals(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "state/ascar/journal").glob("*.jsonl"))


def test_a_server_and_its_file_are_as_before_when_nobody_confirms(ascar, redis, file, run, tmp_path):
    document = ascar("apply", run, "--confirm", "3 s", "--json").document
    assert {one["parameter"]: one["before"] for one in document["settings"]} == {"hz": "10", "timeout": "0"}
    assert value(redis, "hz") == "100"
    assert file.read_text() == BEFORE.replace("timeout 0", "timeout 300")
    becomes(lambda: value(redis, "hz") == "10" and file.read_text() == BEFORE)
    becomes(lambda: not journals(tmp_path))
    assert ascar("confirm", run).status == 1
    assert ascar("drift", run, "--json").document["in_force"] is False


def test_it_stays_once_it_is_confirmed_and_drift_names_what_somebody_changed(ascar, redis, file, run):
    ascar("apply", run, "--confirm", "10 min")
    assert ascar("confirm", run, "--json").document["changes"] >= 2
    document = ascar("drift", run, "--json").document
    assert document["in_force"] is True, document
    redis("config", "set", "hz", "33")
    changed = [one for one in ascar("drift", run, "--json").document["settings"] if not one["in_force"]]
    assert [(one["parameter"], one["wanted"], one["found"]) for one in changed] == [("hz", "100", "33")]
    file.write_text(file.read_text() + "# somebody's\n")
    document = ascar("restore", "--json").document
    assert [one["target"] for one in document["left_alone"]] == [str(file)]
    assert "timeout 300" in file.read_text(), "a file that somebody changed is left alone"
    assert value(redis, "hz") == "10"


def test_files_of_an_earlier_boot_go_back_and_confirmed_ones_stay(ascar, redis, file, run, tmp_path):
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

    def reboot() -> None:
        """What the journal looks like after one."""
        for journal in journals(tmp_path):
            draft = journal.with_suffix(".draft")
            draft.write_text(journal.read_text().replace(boot_id, "another"))
            draft.replace(journal)

    ascar("apply", run, "--confirm", "10 min")
    reboot()
    assert ascar("restore", "--keep-applied", "--json").document["failed"] == []
    becomes(lambda: file.read_text() == BEFORE and not journals(tmp_path))  # whoever saw it first
    ascar("apply", run, "--confirm", "10 min")
    ascar("confirm", run)
    reboot()
    assert ascar("restore", "--keep-applied", "--json").document["restored"] == []
    assert "timeout 300" in file.read_text()


def test_a_server_that_does_not_take_a_value_leaves_the_file_as_it_was(ascar, redis, file, run):
    redis("acl", "setuser", "default", "-config|set")
    done = ascar("apply", run, "--confirm", "10 min")
    assert done.status == 1
    assert file.read_text() == BEFORE
    waiting = ascar("doctor", "--json").document["unconfirmed"]
    assert not [one for one in waiting if "(cache)" in one["owner"]]
    redis("acl", "setuser", "default", "+config|set")
    assert ascar("restore", "--keep-applied", "--json").document["failed"] == [], (
        "what could not be undone is"
    )
    assert os.environ["XDG_STATE_HOME"] in str(file.parent / "state")
