"""Patience with what dies, the load's readings, the folder."""

from __future__ import annotations

import json
import signal
import stat
import sys
import time

import numpy as np
import pytest

from ascar.capes.session.best_setting import Record
from ascar.capes.session.folder import Folder, Running, find_folder
from ascar.capes.session.load import BackgroundLoad, ReadingsFile
from ascar.capes.session.processes import ManagedProcess, RestartPolicy, private_log
from ascar.errors import EnvironmentLacks, InputError, Refused, WorkError
from ascar.results.measurement import Series
from ascar.workloads.command import Command
from ascar.workspace import Workspace
from waiting import until


def test_pauses_grow_and_end():
    patience = RestartPolicy()
    waits = [patience.died(0.0) for _ in range(6)]
    assert waits == [0.5, 1, 2, 4, 8, None]
    assert RestartPolicy().died(100.0) == 100.5


def test_who_dies_seldom_is_always_started_again():
    patience = RestartPolicy()
    assert all(patience.died(100.0 * at) is not None for at in range(100))


def test_a_part_that_is_killed_is_started_again_and_one_that_cannot_live_is_given_up(tmp_path):
    part = ManagedProcess("sleeper", [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path)
    part.start()
    first = part.pid
    import os

    os.kill(first, signal.SIGKILL)

    def started_again():
        part.watch()
        return part.pid not in (None, first)

    until(started_again)
    assert part.standing == {"state": "running", "pid": part.pid, "restarts": 1}
    part.end(60)
    assert part.pid is None
    now = [0.0]
    part = ManagedProcess(
        "dead", [sys.executable, "-c", "raise SystemExit('no bread')"], tmp_path, lambda: now[0]
    )
    part.start()
    with pytest.raises(WorkError, match="dead: died 6 times within 120 s, and is given up: no bread"):
        while True:
            if part.pid is None:  # on a slow machine it takes its time to die
                now[0] += 0.2
            part.watch()
            time.sleep(0.005)
    part.end(1)


def test_a_log_that_everybody_could_read_is_closed_to_others_and_stays_open_to_its_group(tmp_path):
    log = tmp_path / "agent.log"
    for before, after in ((None, 0o600), (0o644, 0o640), (0o600, 0o600)):
        if before is not None:
            log.chmod(before)
        with private_log(log) as file:
            file.write(b"a line\n")
        assert stat.S_IMODE(log.stat().st_mode) == after
    assert log.read_text() == "a line\n" * 3


def test_a_load_that_is_killed_is_begun_anew_and_its_totals_go_on(tmp_path):
    import os

    script = "echo $$ > pid.draft; mv pid.draft pid; while :; do echo ops 50; sleep 0.05; done"
    options = {"argv": ["/bin/sh", "-c", script], "metrics": {"throughput_ops_per_s": r"regex:ops (\d+)"}}
    readings = ReadingsFile(tmp_path / "load.jsonl")
    load = BackgroundLoad(Command(options), Workspace(tmp_path), readings, 600.0, 0.1)
    load.start()

    def wait(condition):
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, (load.standing, load.fault)
            time.sleep(0.02)

    def total():
        lines = (tmp_path / "load.jsonl").read_text().splitlines()
        return max((json.loads(line).get("throughput_ops_total", 0) for line in lines), default=0)

    pid = tmp_path / "pid"
    wait(lambda: pid.exists() and total() > 0)
    first, before = int(pid.read_text()), total()
    pid.unlink()
    os.kill(first, signal.SIGKILL)
    wait(lambda: load.restarts == 1)
    assert "SIGKILL" in load.fault
    wait(lambda: pid.exists() and total() > before)
    assert int(pid.read_text()) != first
    assert load.problem is None and load.standing["restarts"] == 1
    assert load.end()


def test_rates_become_totals_and_a_new_run_goes_on(tmp_path):
    readings = ReadingsFile(tmp_path / "load.jsonl")

    def tell(*rates):
        seconds = [0.5 * (at + 1) for at in range(len(rates))]
        readings.take({"ops_per_s": Series.of(seconds, list(rates)), "latency_ms": Series.of([0.5], [7.0])})

    tell(100.0)
    tell(100.0, 50.0)
    readings.begin()
    tell(10.0)
    readings.take({"ops_per_s": Series(np.empty(0), np.empty(0))})
    lines = [json.loads(line) for line in (tmp_path / "load.jsonl").read_text().splitlines()]
    assert [line.get("ops_total") for line in lines] == [50, 75, 80, None]
    assert lines[0]["latency_ms"] == 7


def test_a_long_file_of_readings_is_begun_anew(tmp_path):
    path = tmp_path / "load.jsonl"
    readings = ReadingsFile(path)
    path.write_bytes(b" " * (1 << 20) + b"\n")
    readings.take({"ops_per_s": Series.of([1.0], [5.0])})
    assert json.loads(path.read_text()) == {"ops_total": 5}


def test_a_folder_has_one_session_at_a_time(tmp_path):
    with Folder(tmp_path / "s") as folder:
        assert folder.running() is None
        folder.announce(Running(1234, "s", "study.toml", 0.0))
        assert folder.running().pid == 1234
        with pytest.raises(Refused, match="runs already, process 1234"), Folder(tmp_path / "s"):
            pass
        assert find_folder(None, tmp_path).path == folder.path
        assert find_folder("s", tmp_path).running() is not None
        assert not folder.asked_to_keep()
        Folder(tmp_path / "s").ask_to_stop(keep=True)
        assert folder.asked_to_keep()
        (tmp_path / "s" / "stop.json").write_bytes(b'{"keep": "\xff"}')
        assert not folder.asked_to_keep()
    assert folder.running() is None
    with pytest.raises(EnvironmentLacks, match="no session runs"):
        find_folder(None, tmp_path)
    with pytest.raises(EnvironmentLacks, match="does not run"):
        folder.settings("viewer")
    with Folder(tmp_path / "other") as other:
        other.announce(Running(1234, "other", "study.toml", 0.0))
        with pytest.raises(
            EnvironmentLacks, match="'s': does not run on this machine; those that run: other"
        ):
            folder.runner()


def test_what_a_killed_session_left_counts_for_nothing(tmp_path):
    folder = Folder(tmp_path / "s")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "lock").touch()
    (tmp_path / "s" / "up.json").write_text('{"pid": 1, "session": "s", "study": "x", "started_s": 0}')
    assert folder.running() is None
    with folder:
        (tmp_path / "s" / "up.json").write_text("{")
        assert folder.running() is None


def test_a_folder_that_cannot_be_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="name another one with --folder"), Folder(tmp_path / "file" / "s"):
        pass
    with pytest.raises(InputError, match="session"):
        find_folder("a b")


def test_the_setting_that_did_best_has_been_there_for_a_while():
    record = Record(1)
    assert record.best() is None
    tick = 0
    for depth, count, value in (
        (8, 30, 100.0),
        (16, 30, 150.0),
        (99, 5, 900.0),
        (32, 30, 140.0),
        (64, 30, None),
    ):
        for at in range(count):
            tick += 1
            early = at < 3  # what follows a change does not count
            record.take(tick, {"depth": depth}, value and (1e9 if early else value + at % 2))
    assert record.best() == {"depth": 16}
    least = Record(-1)
    for at in range(60):
        least.take(at, {"depth": at // 20}, [5.0, 3.0, 4.0][at // 20])
    assert least.best() == {"depth": 1}
