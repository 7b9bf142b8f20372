from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from ascar.errors import InputError
from ascar.pilot import Batch, Batches, ShiftDetector, WatchPlan
from ascar.pilot.evidence import EDetector
from ascar.pilot.memory import BatchMemory
from ascar.pilot.onset import onset_of

DAY_S = 86_400.0
READINGS_A_DAY = 8_640  # one every 10 s
A_BATCH = 90  # 15 min


def days_of_readings(seed, days=10, rho=0.9, shift=lambda day: 0 * day):
    """A day's wave with a nightly dip, AR(1) noise of 5 percent, and a relative shift."""
    rng = np.random.default_rng(seed)
    n = days * READINGS_A_DAY
    noise = lfilter([np.sqrt(1 - rho**2)], [1, -rho], rng.standard_normal(n)) * 0.05
    day = np.arange(n) / READINGS_A_DAY
    wave = 1 + 0.1 * np.sin(2 * np.pi * day) - 0.3 * (np.mod(day, 1) < 1 / 24)
    return 100 * wave * (1 + noise) * (1 + shift(day))


def watched(readings, plan):
    watcher = ShiftDetector(plan)
    for index, value in enumerate(readings.reshape(-1, A_BATCH).mean(axis=1)):
        watcher.add(Batch(index, float(value)))
    return watcher


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_false_alarms_stay_within_the_stated_rate(rho):
    plan = WatchPlan(false_alarm_s=40 * DAY_S)
    alarms = sum(bool(watched(days_of_readings(seed, rho=rho), plan).shifts) for seed in range(60))
    assert alarms <= binom.ppf(0.999, 60, 10 / 40)


def test_readings_with_a_heavy_tail_raise_no_more_alarms():
    plan = WatchPlan(false_alarm_s=40 * DAY_S)
    alarms = 0
    for seed in range(40):
        tail = 100 * np.random.default_rng(seed).lognormal(0, 0.5, 10 * READINGS_A_DAY)
        alarms += bool(watched(tail, plan).shifts)
    assert alarms <= binom.ppf(0.999, 40, 10 / 40)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_drift_of_3_percent_over_3_days_is_found(sign):
    found = []
    for seed in range(12):
        readings = days_of_readings(seed, shift=lambda day: sign * 0.03 * np.clip((day - 5) / 3, 0, 1))
        found += [shift for shift in watched(readings, WatchPlan()).shifts if shift.found_s >= 5 * DAY_S][:1]
    assert len(found) >= 11
    assert {shift.direction for shift in found} == {"up" if sign > 0 else "down"}
    assert np.median([shift.found_s for shift in found]) < 7.5 * DAY_S
    began = [(shift.began_low_s or 0.0) <= 5 * DAY_S <= shift.began_high_s for shift in found]
    assert sum(began) >= 9
    true = [sign * 3 * min((shift.found_s / DAY_S - 5) / 3, 1) for shift in found]
    sized = [s.size_low - 0.1 <= size <= s.size_high + 0.1 for s, size in zip(found, true, strict=True)]
    assert sum(sized) >= 9


def test_a_step_is_found_within_hours_and_dated():
    readings = days_of_readings(5, shift=lambda day: 0.3 * (day >= 6.5))
    (shift, *_) = watched(readings, WatchPlan()).shifts
    assert shift.form == "step"
    assert shift.began_s == pytest.approx(6.5 * DAY_S, abs=1_000)
    assert shift.began_low_s is not None
    assert shift.began_low_s <= 6.5 * DAY_S <= shift.began_high_s
    assert shift.found_s < 6.5 * DAY_S + 5 * 3600
    assert shift.relative == pytest.approx(0.3, abs=0.05)


def test_after_a_shift_the_new_level_is_the_normal_one():
    readings = days_of_readings(6, days=16, rho=0.5, shift=lambda day: -0.2 * (day >= 4) + 0.2 * (day >= 10))
    watcher = watched(readings, WatchPlan())
    assert [shift.direction for shift in watcher.shifts] == ["down", "up"]
    assert watcher.shifts[1].before == pytest.approx(watcher.shifts[0].before * 0.8, rel=0.02)
    assert len(watcher.levels) == 2
    assert watcher.level is not None
    assert watcher.level.batches + sum(level.batches for level in watcher.levels) == 16 * 96


def test_a_daily_pattern_is_no_shift_but_without_a_period_it_is():
    readings = days_of_readings(7, rho=0.5)
    assert not watched(readings, WatchPlan()).shifts
    assert watched(readings, WatchPlan(period_s=None)).shifts


def test_without_a_pattern_88_batches_are_learned():
    rng = np.random.default_rng(8)
    watcher = ShiftDetector(WatchPlan(period_s=None))
    for index in range(200):
        watcher.add(Batch(index, float(rng.normal(100 if index < 150 else 90, 1))))
        if not watcher.shifts:
            assert watcher.learning == (index < 88)
    (shift,) = watcher.shifts
    assert shift.direction == "down"
    assert shift.began_s == pytest.approx(150 * 900, abs=1)
    assert shift.found_s < 175 * 900


def test_constant_readings_are_steady_and_leaving_them_is_found():
    watcher = ShiftDetector(WatchPlan(false_alarm_s=10 * DAY_S))
    for index in range(30 * 96):
        assert watcher.add(Batch(index, 0.1)) is None
    found = [watcher.add(Batch(30 * 96 + index, 0.2)) for index in range(40)]
    shifts = [shift for shift in found if shift is not None]
    assert len(shifts) == 1
    assert shifts[0].size == pytest.approx(0.1)
    assert shifts[0].began_s == pytest.approx(30 * DAY_S)


def test_readings_around_zero_have_no_relative_size():
    rng = np.random.default_rng(9)
    watcher = ShiftDetector(WatchPlan(batch_s=3600))
    for index in range(24 * 20):
        watcher.add(Batch(index, float(rng.normal(0, 1) + 5 * (index > 24 * 10))))
    assert watcher.shifts[0].size == pytest.approx(5, abs=1)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"batch_s": 0.0}, "batch"),
        ({"batch_s": float("nan")}, "batch"),
        ({"batch_s": 7_000.0}, "period"),
        ({"batch_s": 1.0}, "period"),
        ({"period_s": float("inf")}, "period"),
        ({"false_alarm_s": 3_600.0}, "false-alarm"),
        ({"false_alarm_s": -1.0}, "false-alarm"),
    ],
)
def test_plans_that_cannot_be_watched_are_refused(keys, named):
    with pytest.raises(InputError, match=f"^{named} = "):
        WatchPlan(**keys)


def test_evidence_is_fair_while_nothing_changes():
    # E[M_n] = n: after one step the mixture's mean over many streams is 1.
    rng = np.random.default_rng(10)
    values = []
    for step in rng.standard_t(3, 4_000):
        evidence = EDetector()
        evidence.add(float(step))
        values.append(np.exp(evidence.log))
    assert np.mean(values) == pytest.approx(1, abs=0.02)


def test_no_step_counts_for_more_than_twice():
    evidence = EDetector()
    evidence.add(1e300)
    assert np.exp(evidence.log) == pytest.approx(1.0)  # half of the bets doubled, half lost
    assert evidence.upwards
    for _ in range(5):
        evidence.add(-1e300)
    assert not evidence.upwards
    assert np.isfinite(evidence.log)


def test_memory_is_bounded_and_keeps_the_means():
    memory = BatchMemory(96)
    rng = np.random.default_rng(11)
    values = rng.normal(10, 1, 20_000)
    for index, value in enumerate(values):
        memory.add(index, float(value))
    places, means, bins, width = memory.series()
    assert len(places) <= 2_048
    assert bins * width == 96
    assert means[:-1].mean() == pytest.approx(values[: int(places[-1]) * width].mean())
    odd = BatchMemory(9)
    for index in range(5_000):
        odd.add(index, 1.0)
    places, _, bins, width = odd.series()
    assert (bins, width, int(places[-1])) == (9, 1, 4_999)
    assert len(places) <= 2_048


def test_a_drift_and_a_step_are_told_apart_where_the_noise_allows():
    at = np.arange(400.0)
    season = np.tile(np.linspace(0, 5, 20), 20)
    rng = np.random.default_rng(12)
    drift = season + rng.normal(0, 0.1, 400) + np.maximum(at - 250, 0) / 149 * 3
    found = onset_of(at, drift, 20, upwards=True)
    assert found.form == "drift"
    assert found.began_low is not None
    assert found.began_low <= 250 <= found.began_high
    assert found.size == pytest.approx(3, abs=0.2)
    step = onset_of(at, season + rng.normal(0, 0.1, 400) - 3 * (at >= 250), 20, upwards=False)
    assert step.form == "step"
    assert step.began == 250
    assert step.size == pytest.approx(-3, abs=0.1)
    assert step.before == pytest.approx(2.5, abs=0.1)


def test_nodes_are_brought_together_batch_by_batch():
    batches = Batches(10.0, ("a", "b"))
    done = []
    for second in range(100):
        done += batches.add(float(second), 100.0, "a")
        if second % 2 == 0 and not 40 <= second < 60:
            done += batches.add(float(second), 50.0, "b")
    done += batches.close()
    assert [batch.index for batch in done] == [0, 1, 2, 3, 6, 7, 8, 9]
    assert {batch.value for batch in done} == {150.0}
    assert batches.left_out == 2
    mean = Batches(10.0, ("a", "b"), "mean")
    both = [*mean.add(0.0, 1.0, "a"), *mean.add(0.0, 3.0, "b"), *mean.close()]
    assert both == [Batch(0, 2.0)]


def test_a_node_that_says_nothing_does_not_hold_the_others_up_for_ever():
    batches = Batches(10.0, ("a", "b"))
    batches.add(0.0, 1.0, "b")
    for second in range(1_000):
        assert batches.add(float(second), 1.0, "a") == []
    assert batches.left_out >= 90
    assert len(batches._pending) <= 6


def test_a_batch_with_few_readings_is_left_out():
    batches = Batches(10.0)
    done = []
    for second in [*range(30), 31, *range(40, 60)]:
        done += batches.add(float(second), 1.0)
    done += batches.close()
    assert [batch.index for batch in done] == [0, 1, 2, 4, 5]
    assert batches.left_out == 1


def test_readings_that_become_rare_for_good_are_readings_still():
    batches = Batches(10.0)
    done = []
    for second in [*range(100), *range(100, 10_000, 9)]:
        done += batches.add(float(second), 1.0)
    assert len(done) > 700


@pytest.mark.parametrize(
    ("at_s", "value", "named"),
    [
        (float("nan"), 1.0, "the time"),
        (float("inf"), 1.0, "the time"),
        (4.0, 1.0, "the time"),
        (1e300, 1.0, "the time"),
        (6.0, float("nan"), "a reading"),
        (6.0, 1e200, "a reading"),
    ],
)
def test_hostile_readings_are_refused(at_s, value, named):
    batches = Batches(10.0)
    batches.add(5.0, 1.0)
    with pytest.raises(InputError, match=named):
        batches.add(at_s, value)
