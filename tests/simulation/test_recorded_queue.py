"""The elevator `linux-6` beside what a kernel did (`benchmarks.write_back`): batches, waits, ages."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

import pytest
from benchmarks.queue_log import QueueLog
from benchmarks.write_back import WRITERS, began, key, recording, simulated

from ascar.simulation import open_scenario

RECORDING = recording(Path(__file__).parents[1] / "data" / "linux-6-queue.jsonl")


def test_the_preset_has_what_the_kernel_was_set_to():
    queue = open_scenario("random-write@linux-6").servers[0].queue
    for writers in WRITERS:
        recorded = RECORDING[key(writers)]
        assert queue.batch == recorded["fifo_batch"]
        assert queue.write_expire_ms == recorded["write_expire"]
        assert queue.writes_starved == recorded["writes_starved"]


@pytest.mark.parametrize("writers", WRITERS)
def test_batches_and_waits_are_linux(writers):
    recorded = RECORDING[key(writers)]
    linux, ours = QueueLog.read(recorded), simulated(recorded, "linux-6")
    for is_write, longest in ((True, 16), (False, 32)):
        theirs, own = linux.lengths(is_write=is_write), ours.lengths(is_write=is_write)
        assert median(own) == longest
        assert mean(own) == pytest.approx(mean(theirs), rel=0.2)
    assert ours.writes.mean() == pytest.approx(linux.writes.mean(), rel=0.1)
    for share in (0.5, 0.9):
        assert ours.waits_s(share) == pytest.approx(linux.waits_s(share), rel=0.2)


def test_a_write_goes_first_at_the_same_age():
    for writers in WRITERS:
        recorded = RECORDING[key(writers)]
        for log in (QueueLog.read(recorded), simulated(recorded, "linux-6")):
            low_s, high_s = log.age_limit_s()
            assert low_s <= 5.0 + 0.1, writers
            assert high_s >= 5.0, writers


def test_another_elevator_is_told_apart():
    recorded = RECORDING[key(WRITERS[0])]
    thesis = simulated(recorded, "thesis-2014")
    assert median(thesis.lengths(is_write=True)) == 1
    assert thesis.age_limit_s()[1] < 5.0 or thesis.waits_s(0.9) < 0.8 * QueueLog.read(recorded).waits_s(0.9)


def test_reads_are_sorted_by_linux_which_the_preset_leaves_to_the_scenario():
    for writers in WRITERS:
        assert QueueLog.read(RECORDING[key(writers)]).ascending(is_write=False) > 0.9
    assert open_scenario("random-read@linux-6").servers[0].queue.read_order == "arrival"


def test_dirty_data_is_written_when_the_kernel_says():
    recorded = RECORDING["expiry"]
    expire_s, every_s = (recorded[f"dirty_{name}_centisecs"] / 100 for name in ("expire", "writeback"))
    assert all(expire_s <= age_s <= expire_s + every_s + 0.5 for age_s in recorded["ages_s"])
    assert min(recorded["ascending"]) > 0.9
    recorded = RECORDING["background"]
    dirty_mib, share_mib = began(recorded["samples"])
    assert share_mib < dirty_mib < recorded["limit_mib"]
