"""Knobs: checked, journaled, written, read back, put back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ascar.errors import InputError, StageFailed
from ascar.systems.keeper import Keeper, restore_all

DIRTY = Path("/proc/sys/vm")


def queue(loop: Path, name: str) -> Path:
    return Path("/sys/block") / loop.name / "queue" / name


def text(path: Path) -> str:
    return path.read_text().strip()


def test_a_knob_tells_its_value_and_what_is_allowed(keeper, loop):
    swappiness = keeper.knob_read("vm.swappiness")
    assert swappiness.value == int(text(DIRTY / "swappiness"))
    assert (swappiness.minimum, swappiness.maximum, swappiness.choices) == (0, 200, ())
    scheduler = keeper.knob_read(f"block.{loop.name}.scheduler")
    assert scheduler.value in scheduler.choices
    assert "none" in scheduler.choices
    assert scheduler.minimum is None
    sectors = keeper.knob_read(f"block.{loop.name}.max_sectors_kb")
    assert sectors.maximum == int(text(queue(loop, "max_hw_sectors_kb")))


def test_what_is_wrong_is_refused_and_nothing_is_touched(keeper, loop, traces):
    for knob, value, allowed in (
        ("vm.dirty_rati", 10, "vm.dirty_ratio"),
        ("kernel.panic", 1, "allowed are"),
        ("vm.dirty_ratio", 101, r"\[0, 100\]"),
        ("vm.dirty_bytes", 0, r"\[8192, "),
        ("vm.dirty_ratio", "10", r"whole numbers"),
        (f"block.{loop.name}.scheduler", "cfq", "mq-deadline"),
        (f"block.{loop.name}.scheduler", 1, "mq-deadline"),
        (f"block.{loop.name}.max_sectors_kb", 1 << 30, r"\[4, \d+\]"),
        ("block.nosuch.scheduler", "none", "does not have it"),
        (f"ext4.{loop.name}.mb_stats", 1, "does not have it"),
    ):
        with pytest.raises(InputError, match=allowed):
            keeper.knob_write(knob, value)
    assert keeper.status().changes == ()
    assert traces(keeper.pid) == []


def test_the_present_value_is_on_disk_before_the_write(keeper, state, loop):
    knob = f"block.{loop.name}.read_ahead_kb"
    old = int(text(queue(loop, "read_ahead_kb")))
    written = keeper.knob_write(knob, old * 2)
    assert (written.old, written.effective, written.coupled) == (old, old * 2, {})
    (journal,) = state.glob("*.jsonl")
    header, change, found = map(json.loads, journal.read_text().splitlines())
    assert header["schema"] == 5
    assert header["boot_id"] == keeper.hello.boot_id
    assert header["owner"] == "a test"
    assert change["change"] == {
        "n": 0,
        "change": {"kind": "knob", "target": knob, "old": str(old), "expected": str(old * 2)},
    }
    assert found == {"found": {"n": 0, "value": str(old * 2)}}
    assert journal.stat().st_mode & 0o077 == 0
    assert keeper.restore().restored == (knob,)
    assert int(text(queue(loop, "read_ahead_kb"))) == old
    assert list(state.glob("*.jsonl")) == []


def test_many_writes_end_in_the_first_value(keeper, loop):
    old = text(queue(loop, "read_ahead_kb"))
    for value in (64, 256, 1024, int(old), 4, 0):
        assert keeper.knob_write(f"block.{loop.name}.read_ahead_kb", value).effective == value
    keeper.restore()
    assert text(queue(loop, "read_ahead_kb")) == old


def test_a_value_that_is_there_already_changes_nothing(keeper, loop):
    value = int(text(queue(loop, "nomerges")))
    assert keeper.knob_write(f"block.{loop.name}.nomerges", value).effective == value
    assert keeper.status().changes == ()


def test_what_the_kernel_rounds_is_reported_and_still_ours(keeper, loop):
    """Sysfs takes 4 KiB pages; an odd number of KiB is rounded down."""
    knob = f"block.{loop.name}.read_ahead_kb"
    old = text(queue(loop, "read_ahead_kb"))
    assert keeper.knob_write(knob, 131).effective == 128 or keeper.knob_write(knob, 133).effective == 132
    report = keeper.restore()
    assert report.left_alone == ()
    assert text(queue(loop, "read_ahead_kb")) == old


@pytest.mark.usefixtures("schedulers")
def test_a_scheduler_and_all_it_resets_come_back_exactly(state, loop):
    queue(loop, "scheduler").write_text("mq-deadline")
    odd = {
        "nr_requests": "100",
        "iosched/read_expire": "777",
        "iosched/fifo_batch": "5",
        "iosched/async_depth": "33",
    }
    odd |= {"wbt_lat_usec": "1234"} if queue(loop, "wbt_lat_usec").exists() else {}
    for name, value in odd.items():
        queue(loop, name).write_text(value)
    before = {name: text(queue(loop, name)) for name in ("scheduler", *odd)}
    dev = f"block.{loop.name}"
    with Keeper("schedulers", state_dir=state) as keeper:
        written = keeper.knob_write(f"{dev}.scheduler", "bfq")
        assert written.coupled[f"{dev}.nr_requests"] != 100
        keeper.knob_write(f"{dev}.nr_requests", 64)
        keeper.knob_write(f"{dev}.iosched/slice_idle", 0)
        keeper.knob_write(f"{dev}.scheduler", "kyber")
        keeper.knob_write(f"{dev}.iosched/read_lat_nsec", 123456)
        keeper.knob_write(f"{dev}.scheduler", "none")
        keeper.knob_write(f"{dev}.scheduler", "mq-deadline")
        keeper.knob_write(f"{dev}.iosched/fifo_batch", 99)
        report = keeper.restore()
    assert report.failed == ()
    assert report.left_alone == ()
    assert {name: text(queue(loop, name)) for name in ("scheduler", *odd)} == before


def test_a_queue_depth_brings_the_derived_depth_back(keeper, loop):
    queue(loop, "scheduler").write_text("mq-deadline")
    queue(loop, "iosched/async_depth").write_text("7")
    before = [text(queue(loop, name)) for name in ("nr_requests", "iosched/async_depth")]
    keeper.knob_write(f"block.{loop.name}.nr_requests", 17)
    assert keeper.restore().failed == ()
    assert [text(queue(loop, name)) for name in ("nr_requests", "iosched/async_depth")] == before


@pytest.mark.parametrize("prefix", ["dirty", "dirty_background"])
@pytest.mark.parametrize("start", ["ratio", "bytes"])
def test_a_pair_that_zeroes_each_other_comes_back_exactly(keeper, patiently, prefix, start):
    ratio, size = DIRTY / f"{prefix}_ratio", DIRTY / f"{prefix}_bytes"
    patiently(lambda: keeper.lock(f"vm.{prefix}_ratio"))
    original = (text(ratio), text(size))
    other = "bytes" if start == "ratio" else "ratio"
    values = {"ratio": 11, "bytes": 123 << 20}
    try:
        (DIRTY / f"{prefix}_{start}").write_text(str(values[start]))
        before = (text(ratio), text(size))
        written = keeper.knob_write(f"vm.{prefix}_{other}", values[other])
        assert written.old == 0
        assert written.coupled == {f"vm.{prefix}_{start}": 0}
        keeper.knob_write(f"vm.{prefix}_{start}", values[start] + 1)
        keeper.knob_write(f"vm.{prefix}_{other}", values[other] + 1)
        assert (text(ratio), text(size)) != before
        report = keeper.restore()
        assert report.failed == ()
        assert report.left_alone == ()
        assert (text(ratio), text(size)) == before
    finally:
        if original[1] == "0":
            ratio.write_text(original[0])
        else:
            size.write_text(original[1])
    assert (text(ratio), text(size)) == original


def test_somebody_elses_change_is_reported_not_overwritten(keeper, loop):
    ahead, merges = f"block.{loop.name}.read_ahead_kb", f"block.{loop.name}.nomerges"
    old = text(queue(loop, "nomerges"))
    keeper.knob_write(ahead, 512)
    keeper.knob_write(merges, 2)
    queue(loop, "read_ahead_kb").write_text("1024")
    report = keeper.restore()
    assert report.restored == (merges,)
    (left,) = report.left_alone
    assert (left.target, left.expected, left.found) == (ahead, "512", "1024")
    assert report.failed == ()
    assert text(queue(loop, "read_ahead_kb")) == "1024"
    assert text(queue(loop, "nomerges")) == old
    assert keeper.status().changes == ()


def test_a_change_back_to_the_old_value_is_no_ones(keeper, loop):
    old = text(queue(loop, "read_ahead_kb"))
    keeper.knob_write(f"block.{loop.name}.read_ahead_kb", 512)
    queue(loop, "read_ahead_kb").write_text(old)
    report = keeper.restore()
    assert (report.restored, report.left_alone, report.failed) == ((), (), ())


@pytest.mark.usefixtures("schedulers")
def test_a_foreign_scheduler_keeps_its_tunables(keeper, loop):
    dev = f"block.{loop.name}"
    queue(loop, "scheduler").write_text("none")  # whatever the device's last user left
    keeper.knob_write(f"{dev}.scheduler", "bfq")
    keeper.knob_write(f"{dev}.nr_requests", 32)
    queue(loop, "scheduler").write_text("kyber")
    depth = text(queue(loop, "nr_requests"))
    report = keeper.restore()
    assert f"{dev}.scheduler" in [left.target for left in report.left_alone]
    assert text(queue(loop, "nr_requests")) == depth
    assert "[kyber]" in text(queue(loop, "scheduler"))
    queue(loop, "scheduler").write_text("none")


@pytest.mark.usefixtures("schedulers")
def test_what_a_killed_restore_has_reset_is_not_foreign(keeper, loop):
    """The scheduler is back, and by that the kernel has reset what belongs to it."""
    dev = f"block.{loop.name}"
    queue(loop, "scheduler").write_text("kyber")
    queue(loop, "nr_requests").write_text("99")
    keeper.knob_write(f"{dev}.scheduler", "bfq")
    keeper.knob_write(f"{dev}.nr_requests", 32)
    queue(loop, "scheduler").write_text("kyber")
    assert text(queue(loop, "nr_requests")) != "99"
    report = keeper.restore()
    assert report.left_alone == ()
    assert text(queue(loop, "nr_requests")) == "99"
    queue(loop, "scheduler").write_text("none")


def test_a_knob_that_went_away_is_no_trouble(keeper, device):
    keeper.format("ext4")
    keeper.mount("ext4")
    keeper.knob_write(f"ext4.{device.name}.mb_group_prealloc", 1024)
    keeper.unmount()
    report = keeper.restore()
    assert report.failed == ()
    assert report.left_alone == ()


def test_ext4_knobs_take_powers_of_two_where_the_kernel_does(keeper, device):
    keeper.format("ext4")
    keeper.mount("ext4")
    knob = f"ext4.{device.name}.inode_readahead_blks"
    assert keeper.knob_write(knob, 64).effective == 64
    with pytest.raises(InputError, match="powers of two"):
        keeper.knob_write(knob, 65)


def test_a_queue_depth_that_the_device_cannot_do_is_the_kernels_refusal(keeper, loop):
    queue(loop, "scheduler").write_text("none")
    old = text(queue(loop, "nr_requests"))
    with pytest.raises(StageFailed, match="the kernel refuses it"):
        keeper.knob_write(f"block.{loop.name}.nr_requests", 1_000_000)
    assert text(queue(loop, "nr_requests")) == old


def test_held_knobs_stay_until_everything_is_asked_back(state, loop):
    knob, file = f"block.{loop.name}.read_ahead_kb", queue(loop, "read_ahead_kb")
    old = text(file)
    for value in (256, 512):
        with Keeper("apply", state_dir=state, hold=True) as keeper:
            keeper.knob_write(knob, value)
        assert text(file) == str(value)
    with Keeper("a study", state_dir=state) as keeper:
        assert keeper.hello.restored.restored == ()
        keeper.knob_write(knob, 1024)
    assert text(file) == "512"
    assert restore_all(state_dir=state).restored == ()
    assert text(file) == "512"
    assert restore_all(state_dir=state, everything=True).restored == (knob, knob)
    assert text(file) == old
    assert list(state.glob("*.jsonl")) == []


def test_a_holding_keeper_whose_client_dies_holds_nothing(raw, state, loop):
    file = queue(loop, "read_ahead_kb")
    old = text(file)
    session = raw("--hold")
    assert "ok" in session.ask("knob_write", knob=f"block.{loop.name}.read_ahead_kb", value=256)
    assert session.end() == (0, "")
    assert text(file) == old


def test_a_holding_keeper_only_sets_knobs(raw, images):
    reply = raw("--hold").ask("image_create", path=str(images / "image"), size_bytes=1 << 26)
    assert reply["error"]["kind"] == "refused"
    assert list(images.iterdir()) == []


def test_a_full_disk_under_the_journal_changes_nothing(tmp_path, loop, small_disk):
    disk = small_disk(1)
    with Keeper("no room", state_dir=disk / "state") as keeper:
        (disk / "state").mkdir(mode=0o700, exist_ok=True)
        with (disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
            while True:
                filler.write(b"x" * 4096)
        old = text(queue(loop, "read_ahead_kb"))
        with pytest.raises(StageFailed, match="journal"):
            keeper.knob_write(f"block.{loop.name}.read_ahead_kb", 512)
        assert text(queue(loop, "read_ahead_kb")) == old
        (disk / "filler").unlink()
        assert keeper.knob_write(f"block.{loop.name}.read_ahead_kb", 512).effective == 512
    assert text(queue(loop, "read_ahead_kb")) == old


def test_a_limit_of_a_queue_leaves_the_read_ahead_as_it_is(raw, state, loop):
    """Newer kernels compute it anew with every limit, also with one that a killed restore has put back."""
    limit, ahead = queue(loop, "max_sectors_kb"), queue(loop, "read_ahead_kb")
    ahead.write_text("12")
    before = text(limit)
    session = raw()
    written = session.ask("knob_write", knob=f"block.{loop.name}.max_sectors_kb", value=64)["ok"]
    assert text(ahead) == "12"
    assert written["coupled"] == {f"block.{loop.name}.read_ahead_kb": 12}
    session.process.kill()
    session.process.wait()
    limit.write_text(before)  # and no more: the restore was killed here
    restore_all(state_dir=state)
    assert (text(limit), text(ahead)) == (before, "12")
    assert list(state.glob("*.jsonl")) == []
