"""A configuration in force for a while: confirmed or put back; and whether it has drifted."""

from __future__ import annotations

import os
import pty
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from applied_disk import ascar, disk, keep, queue_of
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ascar", "disk", "keep"]  # fixtures

pytestmark = [pytest.mark.machine, pytest.mark.root]


def read_ahead(device: Path) -> Path:
    return Path("/sys/block", device.name, "queue/read_ahead_kb")


def becomes(file: Path, value: str, limit_s: float = 30.0) -> None:
    end_s = time.monotonic() + limit_s
    while file.read_text().strip() != value:
        assert time.monotonic() < end_s, file.read_text()
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def restored(ascar: Callable[..., Any], tmp_path: Path) -> Iterator[None]:
    yield
    ascar("restore", "--json")


def test_what_is_not_confirmed_is_put_back(ascar, keep, disk):
    device, mountpoint = disk
    run = keep(block_read_ahead_kb=512)
    before = queue_of(device)
    done = ascar("apply", "disk", "--mountpoint", mountpoint, "--confirm", "4 s")
    assert f"unless you confirm it: ascar confirm {run}" in done.out
    assert queue_of(device)["read_ahead_kb"] == "512"
    becomes(read_ahead(device), before["read_ahead_kb"])
    late = ascar("confirm", "disk")
    assert late.status == 1
    assert "was put back at" in late.error


def test_what_is_confirmed_stays(ascar, keep, disk):
    device, mountpoint = disk
    run, other = keep(block_read_ahead_kb=512), keep(block_read_ahead_kb=64)
    before = queue_of(device)
    document = ascar("apply", run, "--mountpoint", mountpoint, "--confirm", "5 s", "--json").document
    assert 0 <= document["until_unix_s"] - time.time() <= 6
    wrong = ascar("confirm", other)
    assert wrong.status == 2
    assert f"apply {run} (disk) (" in wrong.error
    second = ascar("apply", other, "--mountpoint", mountpoint)
    assert second.status == 2
    assert "waits for its confirmation" in second.error
    assert ascar("confirm", run, "--json").document["changes"] == 1
    assert ascar("confirm", run).status == 2, "nothing waits any more"
    time.sleep(5.5)
    assert queue_of(device)["read_ahead_kb"] == "512"
    assert ascar("restore").status == 0
    assert queue_of(device) == before


def test_a_restore_puts_back_before_the_time_is_over(ascar, keep, disk):
    device, mountpoint = disk
    run = keep(block_scheduler="kyber", block_nr_requests=64, block_read_ahead_kb=512)
    before = queue_of(device)
    ascar("apply", run, "--mountpoint", mountpoint, "--confirm", "10 min")
    assert queue_of(device)["scheduler"] == "kyber"
    (waiting,) = ascar("doctor", "--json").document["unconfirmed"]
    assert waiting["owner"] == f"apply {run} (disk)"
    changes = waiting["changes"]
    assert changes >= 3, "and what the new scheduler has changed"
    told = ascar("restore", "--keep-applied").out
    assert f"apply {run} (disk): {changes} changes in force, put back in 9:" in told
    assert ascar("restore").status == 0
    assert queue_of(device) == before
    assert ascar("confirm", run).status == 1


def test_it_is_put_back_when_the_terminal_is_closed(keep, disk):
    device, mountpoint = disk
    run = keep(block_read_ahead_kb=512)
    before = queue_of(device)["read_ahead_kb"]
    words = [sys.executable, "-m", "ascar", "apply", run, "--mountpoint", mountpoint, "--confirm", "8 s"]
    pid, terminal = pty.fork()
    if pid == 0:  # the shell of the terminal, which ends with it
        os.execv("/bin/sh", ["sh", "-c", shlex.join(map(str, words)) + "; echo done; read line"])
    said = b""
    while b"done" not in said:
        said += os.read(terminal, 4096)
    os.close(terminal)
    os.waitpid(pid, 0)
    time.sleep(1.0)
    assert read_ahead(device).read_text().strip() == "512", "in force until the time is over"
    becomes(read_ahead(device), before)


@pytest.mark.parametrize("given", ["0 s", "8 d", "soon", "5"])
def test_a_time_that_is_none_is_refused(ascar, keep, disk, given):
    run = keep(block_read_ahead_kb=512)
    before = queue_of(disk[0])
    done = ascar("apply", run, "--mountpoint", disk[1], "--confirm", given)
    assert done.status == 2
    assert "--confirm" in done.error
    assert queue_of(disk[0]) == before


def test_nothing_to_set_waits_for_nothing(ascar, keep, disk):
    run = keep(block_read_ahead_kb=512)
    assert (
        ascar("apply", run, "--trial", "1", "--confirm", "10 min", "--json").document["until_unix_s"] is None
    )
    dry = ascar("apply", run, "--mountpoint", disk[1], "--confirm", "10 min", "--dry-run", "--json").document
    assert dry["until_unix_s"] is None
    assert ascar("confirm", run).status != 0


def test_drift_names_what_is_not_in_force_any_more(ascar, keep, disk):
    device, mountpoint = disk
    run = keep(block_scheduler="kyber", block_nr_requests=64, block_read_ahead_kb=512)
    before = ascar("drift", run, "--mountpoint", mountpoint, "--json")
    assert before.status == 0
    assert before.document["in_force"] is False
    ascar("apply", run, "--mountpoint", mountpoint, "--confirm", "10 min")
    document = ascar("drift", run, "--mountpoint", mountpoint, "--json").document
    assert (document["in_force"], document["unconfirmed"], document["verdict"]) == (True, True, None)
    assert "in force: 3 of 3 values" in ascar("drift", run, "--mountpoint", mountpoint).out
    ascar("confirm", run)
    read_ahead(device).write_text("96")
    document = ascar("drift", run, "--mountpoint", mountpoint, "--json").document
    (changed,) = [one for one in document["settings"] if not one["in_force"]]
    assert (changed["parameter"], changed["wanted"], changed["found"]) == ("block_read_ahead_kb", "512", "96")
    assert document["unconfirmed"] is False
    assert "block_read_ahead_kb: wanted 512, found 96" in ascar("drift", run, "--mountpoint", mountpoint).out
    read_ahead(device).write_text("512")


def test_drift_says_what_it_cannot_read(ascar, keep, disk):
    run = keep(block_read_ahead_kb=128, atime="noatime")
    done = ascar("drift", run, "--mountpoint", disk[1], "--json")
    assert done.status == 3
    assert done.document["in_force"] is None
    (rest,) = done.document["not_read"]
    assert rest["parameters"] == ["atime"]
    default = ascar("drift", run, "--trial", "1", "--json")
    assert (default.status, default.document["in_force"]) == (0, True)


def test_drift_of_a_trials_value_is_not_read(ascar, keep, disk):
    device, mountpoint = disk
    run = keep(block_read_ahead_kb=512)
    with Keeper("study 'nightly'") as keeper:
        keeper.knob_write(f"block.{device.name}.read_ahead_kb", 512)
        done = ascar("drift", run, "--mountpoint", mountpoint)
    assert done.status == 2
    assert "study 'nightly'" in done.error


def test_a_budget_without_a_comparison_is_refused(ascar, keep):
    keep(block_read_ahead_kb=512)
    done = ascar("drift", "disk", "--budget", "1 min")
    assert done.status == 2
    assert "--measure" in done.error


LOAD = """#!/bin/sh
# As fast as the queue reads ahead.
for turn in 1 2 3 4 5 6 7 8; do echo "rate $(cat /sys/block/$1/queue/read_ahead_kb)"; done
"""
READ_AHEAD = """
[study]
name = "ahead"
objective = "maximize rate"
budget = "20 s"
[target]
kind = "linux"
device = "DEVICE"
settings = ["block.DEV.read_ahead_kb"]
[workload]
kind = "command"
argv = ["./load.sh", "DEVICE"]
[workload.metrics]
rate = 'regex:^rate ([0-9]+)'
[stop]
trials = 8
"""


def test_drift_measures_against_the_default_of_the_beginning(ascar, disk, tmp_path):
    """What is in force now is the configuration itself."""
    device, _ = disk
    load, study = tmp_path / "load.sh", tmp_path / "ahead.toml"
    load.write_text(LOAD)
    load.chmod(0o755)
    study.write_text(READ_AHEAD.replace("DEVICE", device.name))
    tuned = ascar("tune", study, "--json").document
    assert tuned["verdict"]["kind"] == "improved"
    best = str(tuned["recommended"]["block_read_ahead_kb"])
    assert ascar("apply", "ahead").status == 0
    pairs = len(ascar("history", "show", "ahead", "--json").document["trials"])
    done = ascar("drift", study, "--measure", "--budget", "20 s", "--json")
    assert done.status == 0, done.err
    assert done.document["in_force"] is True
    verdict = done.document["verdict"]
    assert verdict["kind"] == "improved"
    assert set(verdict["default_scores"]) == {128.0}
    made = len(ascar("history", "show", "ahead", "--json").document["trials"]) - pairs
    assert made == 2 * verdict["runs_per_side"] > 0, "new runs alone"
    assert read_ahead(device).read_text().strip() == best
    document = ascar("apply", "ahead", "--json").document
    assert document["configuration"] == tuned["recommended"], "the run recommends what it did"
