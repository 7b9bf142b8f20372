"""A slow disk that leaves nothing behind, and what an order of requests says."""

from __future__ import annotations

import math
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks.queue_log import QueueLog
from benchmarks.write_back import began
from benchmarks.write_back_disk import LIMITS, slow_disk


def log(kinds: str, waited_s: list[float], places: list[int] | None = None) -> QueueLog:
    """Requests that go every second."""
    numbers = np.arange(len(kinds))
    writes = np.array([kind == "W" for kind in kinds])
    return QueueLog(writes, numbers.astype(float), np.array(waited_s), np.array(places or numbers))


def test_a_log_is_read_as_it_was_written():
    before = log("RWWR", [0.25, 1.5, 0.0, 12.0], [7, 65535, 0, 3])
    after = QueueLog.read(before.written())
    for name in ("writes", "went_s", "waited_s", "places"):
        assert getattr(after, name).tolist() == getattr(before, name).tolist()
    assert after.cut(1.0, 2.0).written()["kinds"] == "WW"


def test_runs_are_those_that_are_not_cut():
    found = log("RRWWWRRRRWWR", [0.0] * 12, [1, 2, 9, 4, 5, 1, 2, 3, 4, 8, 9, 1])
    assert found.lengths(is_write=True) == [3, 2]
    assert found.lengths(is_write=False) == [4]
    assert found.ascending(is_write=True) == pytest.approx(2 / 3)
    assert found.ascending(is_write=False) == 1.0
    assert found.interval_s == 1.0


def test_the_age_from_which_a_write_goes_first_lies_between_two():
    # The write that goes at 9 s came at 0 s; those before it went first, though it was older.
    waited = {1: 0.5, 3: 2.0, 5: 4.0, 7: 5.0, 9: 9.0, 11: 0.1, 20: 6.0}
    found = log("RW" * 6 + "R" * 8 + "WR", [waited.get(at, 0.0) for at in range(22)])
    expected = [(1, False), (3, False), (5, False), (7, False), (9, True), (0.1, True)]
    assert found.oldest_first() == [(pytest.approx(age_s), is_first) for age_s, is_first in expected]
    assert found.age_limit_s() == (7.0, 9.0)
    assert log("RWRWR", [0.0] * 5).age_limit_s() == (0.0, math.inf)


def test_write_back_began_after_the_last_sample_without():
    samples = [[0, 10, 0, 20], [50, 30, 900, 21], [100, 28, 5120, 22], [150, 90, 5120, 23]]
    assert began(samples) == (30, 21)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loop devices")
@pytest.mark.skipif(not LIMITS[0].exists(), reason="needs the control group blkio, version 1")
def test_a_slow_disk_tells_its_requests_and_leaves_nothing_behind():
    before = [file.read_text() for file in LIMITS]
    with pytest.raises(ZeroDivisionError), slow_disk(64 << 20) as disk:
        folder = disk.trace.parents[2]
        disk.limit(50 << 16)
        assert disk.elevator()["fifo_batch"] > 0
        with disk.tracing("insert", "issue"):
            begun_s = time.monotonic()
            file = os.open(disk.device, os.O_WRONLY)
            os.pwrite(file, bytes(1 << 20), 4 << 20)
            os.fsync(file)
            os.close(file)
        events = [event for event in disk.events() if event.is_write]
        assert {event.kind for event in events} == {"insert", "issue"}
        assert all(begun_s <= event.at_s <= time.monotonic() for event in events)
        came = [event for event in events if event.kind == "insert" and event.sectors]
        assert sum(event.sectors for event in came) == (1 << 20) // 512
        assert min(event.sector for event in came) == (4 << 20) // 512
        assert disk.written()[2] >= (1 << 20) // 512
        _ = 1 / 0
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    for there in (loops, Path("/proc/mounts").read_text()):
        assert str(folder) not in there
    assert not folder.exists()
    assert [file.read_text() for file in LIMITS] == before
