"""What clients of a server in use get, read from statistics that tell of them from time to time."""

from __future__ import annotations

import math
import statistics
import threading
import time

import pytest

from ascar.systems.existing import load
from ascar.systems.existing.activity import THROUGHPUT, ActivityTotals
from ascar.systems.existing.guard import LiveGuard, LiveLimit
from ascar.systems.existing.load import live_readings
from ascar.systems.mariadb.activity import MariaActivity
from ascar.systems.postgresql.activity import PostgresActivity
from ascar.systems.redis.activity import RedisActivity
from ascar.workspace import LoadTiming

RATE, SESSIONS = 400.0, 3


class Told:
    """Statistics of sessions each of which tells of its work once a second, in virtual time.

    Args:
        tells_s: what the reader is told of that.
    """

    session = None

    def __init__(self, tells_s: float) -> None:
        self.tells_s = tells_s
        self.now_s = 100.0
        self.reset_s = 0.0
        self._known, self._counted_s = -1.0, 0.0

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += seconds

    def _of(self, index: int, now_s: float) -> float:
        period_s, phase_s = 1.0 + 0.013 * index, (0.0, 0.13, 0.31)[index]
        told_s = math.floor((now_s - phase_s) / period_s) * period_s
        return told_s * RATE / SESSIONS

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:
        """The statistics now."""
        all_of = sum(self._of(index, self.now_s) for index in range(SESSIONS))
        if self.now_s > self.reset_s > 0:
            all_of -= sum(self._of(index, self.reset_s) for index in range(SESSIONS))
        if all_of != self._known:
            self._known, self._counted_s = all_of, self.now_s
        return ActivityTotals(self.now_s, self._counted_s, all_of, {"select": (all_of, all_of * 0.5)})


def read(told: Told, monkeypatch: pytest.MonkeyPatch) -> tuple[float, list[float], dict[str, float]]:
    """The mean over the load, the readings, and all metrics."""
    monkeypatch.setattr(load.time, "sleep", told.sleep)
    readings = live_readings(told, LoadTiming(10.0, 10.0, 0.25, lambda _: False), "nothing")
    metrics = dict(readings.metrics)
    values = [float(value) for value in readings.series["throughput_ops_per_s"].values]
    return metrics["throughput_ops_per_s"], values, metrics


def test_readings_are_no_shorter_than_clients_take_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    mean, values, metrics = read(Told(1.0), monkeypatch)
    assert mean == pytest.approx(RATE, rel=0.1)
    assert statistics.mean(values) == pytest.approx(RATE, rel=0.1)
    assert statistics.stdev(values) < 0.3 * RATE
    assert 8 <= len(values) <= 10
    assert metrics["latency_ms_mean_select"] == pytest.approx(0.5)
    # Readings of a quarter of a second would have been of one session each, and their mean no mean.
    _, short, _ = read(Told(0.0), monkeypatch)
    assert statistics.mean(short) > 1.2 * RATE
    assert statistics.stdev(short) > 0.5 * RATE


def test_statistics_that_are_reset_meanwhile_count_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(1.0)
    told.reset_s = told.now_s + 5.03
    mean, values, metrics = read(told, monkeypatch)
    assert mean == pytest.approx(RATE, rel=0.2)
    assert statistics.mean(values) == pytest.approx(RATE, rel=0.2)
    assert metrics["latency_ms_mean_select"] == pytest.approx(0.5)


def test_every_server_says_how_often_its_clients_are_counted() -> None:
    told = {one: one.tells_s for one in (PostgresActivity, RedisActivity, MariaActivity)}
    assert list(told.values()) == [1.0, 0.0, 0.0]


class OfPools:
    """The totals of a cluster whose OSDs tell of their work each five seconds, which are read each second.

    At a moment, clients get another rate.
    """

    session, tells_s = None, 7.0

    def __init__(self) -> None:
        self.now_s, self.changed_s = 100.0, 0.0
        self._known, self._counted_s = -1.0, 0.0

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_s += max(1.0, seconds)

    def _work(self, until_s: float) -> float:
        return until_s * RATE + max(0.0, until_s - self.changed_s) * RATE * bool(self.changed_s)

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:
        """What the manager knew at its last tick, of two seconds."""
        tick_s = math.floor(self.now_s / 2) * 2
        told = (math.floor((tick_s - phase_s) / 5) * 5 + phase_s for phase_s in (0.3, 1.9, 4.2))
        all_of = sum(self._work(until_s) for until_s in told) / 3
        if all_of != self._known:
            self._known, self._counted_s = all_of, self.now_s
        return ActivityTotals(self.now_s, self._counted_s, all_of, {})


def test_what_osds_tell_late_is_not_taken_for_what_a_change_did(monkeypatch: pytest.MonkeyPatch) -> None:
    told = OfPools()
    monkeypatch.setattr(load.time, "sleep", told.sleep)
    told.changed_s = told.now_s = 200.0
    readings = live_readings(told, LoadTiming(30.0, 30.0, 1.0, lambda _: False), "nothing")
    values = [float(value) for value in readings.series["throughput_ops_per_s"].values]
    assert readings.metrics["throughput_ops_per_s"] == pytest.approx(2 * RATE, rel=0.12)
    assert statistics.mean(values) == pytest.approx(2 * RATE, rel=0.12)
    assert min(values) > 1.4 * RATE, "none has a part of what was before"
    assert max(values) < 2.7 * RATE
    short = OfPools()
    short.tells_s = 0.0
    short.changed_s = short.now_s = 200.0
    monkeypatch.setattr(load.time, "sleep", short.sleep)
    readings = live_readings(short, LoadTiming(30.0, 30.0, 1.0, lambda _: False), "nothing")
    values = [float(value) for value in readings.series["throughput_ops_per_s"].values]
    assert max(values) > 3 * RATE, "read as if it was told at once, it is wrong by a large factor"


class InParts:
    """Clients who are counted twice a second: most of them, and the others a little later."""

    def __init__(self, tells_s: float) -> None:
        self.tells_s = tells_s
        self._known, self._counted_s = -1.0, 0.0

    @property
    def session(self) -> InParts:
        """Itself."""
        return self

    is_open = True

    def close(self) -> None:
        """Nothing."""

    def totals(self, limit_s: float = 10.0) -> ActivityTotals:
        """The statistics now."""
        now_s = time.monotonic()
        parts = ((0.0, 0.8), (0.2, 0.2))
        all_of = sum(math.floor((now_s - phase_s) / 0.5) * 0.5 * share * RATE for phase_s, share in parts)
        if all_of != self._known:
            self._known, self._counted_s = all_of, now_s
        return ActivityTotals(now_s, self._counted_s, all_of, {})


@pytest.mark.parametrize(("tells_s", "is_judged_by_parts"), [(0.5, False), (0.0, True)])
def test_a_guard_judges_over_times_in_which_all_clients_were_counted(
    tells_s: float, is_judged_by_parts: bool
) -> None:
    limit = LiveLimit(THROUGHPUT, is_floor=True, value=0.7 * RATE, window_s=0.1, hold_s=0.0)
    guard = LiveGuard(lambda: InParts(tells_s), (limit,), lambda session: None, threading.RLock())
    try:
        guard.arm(on=True)
        end_s = time.monotonic() + 1.8
        while time.monotonic() < end_s and guard.violation is None:
            time.sleep(0.05)
        assert (guard.violation is not None) == is_judged_by_parts
    finally:
        guard.stop()
