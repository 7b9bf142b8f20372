"""A session of the C library decides as `ascar.pilot` does: the same work amounts, the same last round."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from ascar.pilot import Goal, Indicator, Kind, Limits, MeasurementPlan, Round, WorkAmounts, run_session

pytestmark = pytest.mark.timeout(1800)

SCHEDULE = {"short_round_s": 0.5, "longest_round_s": 90.0, "first_result_s": 30.0}


class Recorded:
    """A made-up system whose n-th round is the same for everyone who asks for the same work."""

    def __init__(self, seed, *, units=(), readings=(), between=0.0, warm=0, rho=0.0):
        self.seed, self.units, self.readings = seed, units, readings
        self.between, self.warm, self.rho = between, warm, rho

    def round(self, number, work):
        rng = np.random.default_rng([self.seed, number])
        amount = 60.0 if work is None else work
        seconds = (1.5 + amount / 40) * (1 + 0.03 * rng.normal())
        level = 1 + self.between * rng.normal()
        readings = {name: float(level * (20 + 3 * rng.normal())) for name in self.readings}
        if "failures" in readings:
            readings["failures"] = float(rng.random() < 0.3)
        units = {}
        for name in self.units:
            noise = rng.normal(size=int(amount))
            for index in range(1, len(noise)):
                noise[index] += self.rho * noise[index - 1]
            values = level * (50 + 4 * noise)
            values[: self.warm] *= 1.6
            units[name] = values
        return seconds, readings, units


def _python(system, indicators, goal, work, rounds_max):
    numbers = iter(range(rounds_max + 1))

    def run(amount, left_s):
        seconds, readings, units = system.round(next(numbers), amount)
        return Round(seconds, amount, readings, units)

    schedule = WorkAmounts(*work, **SCHEDULE) if work else None
    plan = MeasurementPlan(indicators, goal, schedule, Limits(1e6, rounds_max))
    return run_session(run, plan)


class CSession:
    """A session of the C library that is fed from a recorded system."""

    def __init__(self, pilot, handle, system, indicators):
        self.pilot, self.handle, self.system = pilot, handle, system
        self.names = [indicator.name for indicator in indicators]
        for indicator in indicators:
            kind = pilot.constants[f"PILOT_{indicator.kind.upper()}"]
            must = int(indicator.goal is not None)
            pilot.call("add_indicator", handle, indicator.name.encode(), kind, must, None)
        self.number = 0
        self.workload = pilot.workload_t(self.round)
        pilot.call("set_workload", handle, self.workload, None)

    def round(self, user, work, round_):
        seconds, readings, units = self.system.round(self.number, work or None)
        self.number += 1
        self.pilot.call("round_seconds", round_, seconds)
        for name, value in readings.items():
            self.pilot.call("round_reading", round_, self.names.index(name), value)
        for name, values in units.items():
            half = len(values) // 2
            for part in (values[:half], values[half:]):
                self.pilot.call("round_unit_readings", round_, self.names.index(name), part, len(part))
        return 0

    def rounds(self, count):
        done = self.pilot.new("done")
        for number in range(count):
            self.pilot.call("done", self.handle, number, done)
            yield done.work_amount, done.seconds, bool(done.used)


QUICK, NARROW, FEW_ROUNDS = Goal(0.2, 12), Goal(0.03, 50, 0.99, 3), Goal(0.04, 30)
LATENCY = Indicator("latency_ms", goal=QUICK)
CASES = {
    "speed": (Recorded(1), (), NARROW, (1.0, 1e6)),
    "speed, readings on the side": (Recorded(2, readings=("latency_ms",)), (LATENCY,), QUICK, (1.0, 1e5)),
    "speed, small range": (Recorded(3), (), QUICK, (1.0, 2000.0)),
    "never: set-up outweighs all the work that is allowed": (Recorded(3), (), QUICK, (1.0, 200.0)),
    "units": (Recorded(4, units=("latency_ms",), warm=20, rho=0.5), (LATENCY,), QUICK, (1.0, 1e5)),
    "units, narrow": (
        Recorded(5, units=("speed",), warm=30, rho=0.8),
        (Indicator("speed", Kind.RATIO, NARROW),),
        NARROW,
        (10.0, 1e5),
    ),
    "rounds differ": (Recorded(6, units=("latency_ms",), between=0.1), (LATENCY,), QUICK, None),
    "readings": (
        Recorded(7, readings=("latency_ms", "speed", "failures"), between=0.02),
        (
            Indicator("latency_ms", goal=FEW_ROUNDS),
            Indicator("speed", Kind.RATIO, FEW_ROUNDS),
            Indicator("failures", Kind.BINARY, None),
        ),
        FEW_ROUNDS,
        None,
    ),
    "binary": (
        Recorded(8, readings=("failures",)),
        (Indicator("failures", Kind.BINARY, QUICK),),
        QUICK,
        None,
    ),
    "never: too noisy": (
        Recorded(9, readings=("latency_ms",), between=0.5),
        (Indicator("latency_ms", goal=NARROW),),
        NARROW,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_rounds_lead_to_the_same_decisions(pilot, session, case):
    system, indicators, goal, work = CASES[case]
    never = case.startswith("never")
    rounds_max = 40 if never else 2000
    told = _python(system, indicators, goal, work, rounds_max)
    assert told.reached != never, told.ended

    pilot.call("set_confidence", session, goal.confidence)
    pilot.call("set_interval_width", session, goal.interval_width)
    pilot.call("set_readings_min", session, goal.readings_min)
    pilot.call("set_rounds", session, goal.rounds_min, rounds_max)
    pilot.call("set_session_limit", session, 1e6)
    pilot.call("set_longest_round", session, SCHEDULE["longest_round_s"])
    pilot.call("set_short_round", session, SCHEDULE["short_round_s"])
    pilot.call("set_first_result", session, SCHEDULE["first_result_s"])
    if work:
        pilot.call("set_work_amount", session, *work, 0)
    mine = CSession(pilot, session, system, indicators)
    pilot.call("run", session)

    summary = pilot.new("summary")
    pilot.call("summary", session, summary)
    assert (summary.rounds, summary.rounds_used) == (len(told.rounds), len(told.used))
    assert bool(summary.reached) == told.reached
    assert bool(summary.speed_decides) == told.speed_decides
    assert summary.why.decode() == told.ended
    for index, (amount, seconds, used) in enumerate(mine.rounds(summary.rounds)):
        assert amount == pytest.approx(told.rounds[index].work_amount or 0.0, rel=1e-9)
        assert seconds == pytest.approx(told.rounds[index].seconds, rel=1e-9)
        assert used == (index in told.used)
    for index, finding in enumerate(told.findings):
        _same_finding(pilot, session, index, finding)
    if work and told.speed is not None:
        speed = pilot.new("speed")
        pilot.call("speed", session, speed)
        ends = (told.speed.work_per_s, told.speed.ci_low, told.speed.ci_high, told.speed.alpha_s)
        mine_ends = (speed.work_per_s, speed.ci_low, speed.ci_high, speed.overhead_s)
        assert mine_ends == pytest.approx(ends, rel=1e-6)
        assert speed.rounds == told.speed.rounds


def _same_finding(pilot, session, index, finding):
    found, told = pilot.new("finding"), finding.measurement
    pilot.call("finding", session, index, found)
    mine = found.measurement
    assert ["readings", "unit readings", "rounds"][found.basis] == finding.basis
    assert bool(found.reached) == finding.reached
    assert (found.readings, found.removed) == (finding.readings, finding.removed)
    assert found.rounds_unstable == finding.rounds_unstable
    assert mine.mean == pytest.approx(told.mean, rel=1e-9)
    assert (mine.ci_low, mine.ci_high) == pytest.approx((told.ci_low, told.ci_high), rel=1e-6)
    assert (mine.n, mine.subsession_size) == (told.n, told.subsession_size)
    assert (mine.stable_start, mine.stable_end) == (told.stable_start, told.stable_end)
    assert mine.independent_samples == told.independent_samples
    assert mine.method.decode() == told.method
    points, count = np.zeros(64, np.uintp), ctypes.c_size_t()
    pilot.call("finding_change_points", session, index, points, 64, count)
    assert tuple(points[: count.value].tolist()) == told.change_points


def _slow(pilot, session, act):
    """A session without end whose rounds do `act(number, round)`."""
    pilot.call("add_indicator", session, b"value", pilot.constants["PILOT_ORDINARY"], 1, None)
    pilot.call("set_rounds", session, 100_000, 100_000)
    numbers = iter(range(100_000))

    def round_(user, work, handle):
        assert work == 0
        pilot.call("round_reading", handle, 0, 1.0)
        return act(next(numbers), handle) or 0

    workload = pilot.workload_t(round_)
    pilot.call("set_workload", session, workload, None)
    return workload


def test_a_stop_from_another_thread_ends_the_round_under_way_and_keeps_it(pilot, session):
    started, go_on = threading.Event(), threading.Event()

    def act(number, handle):
        if number == 2:
            started.set()
            go_on.wait(60)

    keep = _slow(pilot, session, act)
    statuses = []
    thread = threading.Thread(target=lambda: statuses.append(pilot.dll.pilot_run(session)))
    thread.start()
    assert started.wait(60)
    busy = pilot.constants["PILOT_ERROR_BUSY"]
    summary = pilot.new("summary")
    assert pilot.dll.pilot_summary(session, ctypes.addressof(summary)) == busy
    assert "is running" in pilot.last_error()
    assert pilot.dll.pilot_run(session) == busy
    assert pilot.dll.pilot_free(session) == busy
    assert pilot.dll.pilot_set_confidence(session, 0.9) == busy
    assert pilot.dll.pilot_stop(session) == 0
    go_on.set()
    thread.join(60)
    assert statuses == [0]
    pilot.call("summary", session, summary)
    assert (summary.rounds, summary.ended) == (3, pilot.constants["PILOT_ENDED_STOPPED"])
    assert summary.why == b"it was asked to stop"
    del keep


def test_a_session_stopped_before_it_runs_has_no_round_and_the_next_run_has(pilot, session):
    keep = _slow(pilot, session, lambda number, handle: pilot.dll.pilot_stop(session) if number == 3 else 0)
    summary = pilot.new("summary")
    pilot.call("stop", session)
    for rounds in (0, 4):
        pilot.call("run", session)
        pilot.call("summary", session, summary)
        assert summary.rounds == rounds
        finding = pilot.new("finding")
        pilot.call("finding", session, 0, finding)
        assert finding.measurement.n == finding.readings == rounds
        assert bool(finding.measurement.reason)
    del keep


def test_what_a_workload_returns(pilot, session, failed):
    told = {"word": 0}
    keep = _slow(pilot, session, lambda number, handle: told["word"] if number % 3 == 2 else 0)
    summary = pilot.new("summary")
    told["word"] = pilot.constants["PILOT_ROUND_STOP"]
    pilot.call("run", session)
    pilot.call("summary", session, summary)
    assert (summary.rounds, summary.ended) == (2, pilot.constants["PILOT_ENDED_STOPPED"])
    told["word"] = -7
    with pytest.raises(failed, match="WORKLOAD: the workload failed: it returned -7"):
        pilot.call("run", session)
    pilot.call("summary", session, summary)
    assert (summary.rounds, summary.ended) == (2, pilot.constants["PILOT_ENDED_FAILED"])
    finding = pilot.new("finding")
    pilot.call("finding", session, 0, finding)
    assert finding.readings == 2
    del keep


def test_a_reading_that_cannot_be_is_not_passed_over(pilot, session, failed):
    values = np.array([1.0, np.nan])

    def act(number, handle):
        assert pilot.dll.pilot_round_unit_readings(handle, 0, values.ctypes.data, 2) != 0
        assert pilot.dll.pilot_round_unit_readings(handle, 0, values.ctypes.data, 1) == 0
        assert pilot.dll.pilot_round_unit_readings(handle, 0, None, 0) == 0

    keep = _slow(pilot, session, act)
    with pytest.raises(failed, match="gave what cannot be used: reading is NaN of value"):
        pilot.call("run", session)
    del keep


def test_a_session_may_not_be_freed_or_changed_by_its_own_workload(pilot, session):
    busy = pilot.constants["PILOT_ERROR_BUSY"]
    seen = []

    def act(number, handle):
        left = ctypes.c_double()
        pilot.call("round_seconds_left", handle, left)
        seen.append((pilot.dll.pilot_free(session), pilot.dll.pilot_run(session), left.value))
        return pilot.constants["PILOT_ROUND_STOP"]

    keep = _slow(pilot, session, act)
    pilot.call("run", session)
    assert [row[:2] for row in seen] == [(busy, busy)]
    assert 3000 < seen[0][2] <= 3600
    del keep


def test_progress_is_told_after_each_round(pilot, session):
    summaries = []
    kind = pilot.types["pilot_summary_t"]

    def progress(user, summary):
        known = kind.from_address(summary)
        summaries.append((known.rounds, known.ended, user))

    keep = _slow(pilot, session, lambda number, handle: None)
    told = pilot.progress_t(progress)
    pilot.call("set_rounds", session, 3, 3)
    pilot.call("set_progress", session, told, 77)
    pilot.call("run", session)
    # Equal readings are known exactly, but three are fewer than the goal asks for.
    running, rounds = pilot.constants["PILOT_RUNNING"], pilot.constants["PILOT_ENDED_ROUNDS"]
    assert summaries == [(1, running, 77), (2, running, 77), (3, rounds, 77)]
    del keep


def test_the_limit_of_time_ends_a_session(pilot, session):
    keep = _slow(pilot, session, lambda number, handle: None)
    pilot.call("set_session_limit", session, 1e-9)
    pilot.call("run", session)
    summary = pilot.new("summary")
    pilot.call("summary", session, summary)
    assert (summary.rounds, summary.ended) == (1, pilot.constants["PILOT_ENDED_TIME"])
    del keep


def test_many_threads_of_a_workload_may_read(pilot, session):
    values = np.arange(1000.0)

    def act(number, handle):
        def feed():
            for _ in range(20):
                pilot.call("round_unit_readings", handle, 0, values, 1000)

        threads = [threading.Thread(target=feed) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    keep = _slow(pilot, session, act)
    pilot.call("set_rounds", session, 1, 1)
    pilot.call("run", session)
    finding = pilot.new("finding")
    pilot.call("finding", session, 0, finding)
    assert finding.readings == 80_000
    del keep


def test_sessions_in_many_threads_do_not_meet(pilot):
    """Each measures a constant of its own, at once, and a call that fails in one is not told in another."""
    found: dict[int, tuple[float, int, str]] = {}
    together = threading.Barrier(4, timeout=60)

    def measure(number):
        handle = ctypes.c_void_p()
        pilot.call("create", pilot.constants["PILOT_QUICK"], handle)
        pilot.call("add_indicator", handle.value, b"value", pilot.constants["PILOT_ORDINARY"], 1, None)
        values = number + np.random.default_rng(number).normal(size=500) / 100

        def round_(user, work, at):
            if user == 1:
                pilot.dll.pilot_mean_interval(None, 2, 0.95, None)
            together.wait()
            return pilot.dll.pilot_round_unit_readings(at, 0, values.ctypes.data, len(values))

        workload = pilot.workload_t(round_)
        pilot.call("set_workload", handle.value, workload, number)
        pilot.call("run", handle.value)
        finding = pilot.new("finding")
        pilot.call("finding", handle.value, 0, finding)
        found[number] = (finding.measurement.mean, finding.reached, pilot.last_error())
        pilot.call("free", handle.value)

    threads = [threading.Thread(target=measure, args=(number,)) for number in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [1, 2, 3, 4]
    for number, (mean, reached, said) in found.items():
        assert mean == pytest.approx(number, abs=0.01)
        assert reached == 1
        assert bool(said) == (number == 1)


def _ended(pilot, handle, system, indicators, rounds_max=2000):
    """Runs a C session; the summary, and the finding on each indicator."""
    pilot.call("set_rounds", handle, 1, rounds_max)
    pilot.call("run", handle)
    summary = pilot.new("summary")
    pilot.call("summary", handle, summary)
    findings = []
    for index in range(len(indicators)):
        findings.append(pilot.new("finding"))
        pilot.call("finding", handle, index, findings[-1])
    return summary, findings


def _width(measurement):
    return (measurement.ci_high - measurement.ci_low) / measurement.mean


def test_goals_of_single_indicators_lead_to_the_same_decisions(pilot, session, failed):
    system = Recorded(21, readings=("throughput", "latency_p99"))
    goals = {"throughput": Goal(0.06, 12, 0.95), "latency_p99": Goal(0.2, 30, 0.9)}
    indicators = [Indicator(name, goal=goal) for name, goal in goals.items()]
    told = _python(system, indicators, Goal(0.2, 12), None, 2000)
    feed = CSession(pilot, session, system, indicators)
    for index, goal in enumerate(goals.values()):
        pilot.call("set_goal", session, index, goal.interval_width, goal.confidence, goal.readings_min)
    for index, wrong, said in [
        (2, (0.1, 0.95, 1), "indicator is 2"),
        (0, (0.0, 0.95, 1), "interval width"),
        (0, (float("nan"), 0.95, 1), "interval width"),
        (0, (0.1, 1.0, 1), "confidence"),
        (0, (0.1, 0.95, 0), "readings_min"),
    ]:
        with pytest.raises(failed, match=said):
            pilot.call("set_goal", session, index, *wrong)
    summary, findings = _ended(pilot, session, system, indicators)
    assert told.reached and summary.reached
    assert summary.rounds == len(told.rounds) == feed.number
    for found, known in zip(findings, told.findings, strict=True):
        assert found.measurement.mean == known.measurement.mean
        assert found.measurement.ci_low == known.measurement.ci_low
        assert found.measurement.confidence == known.indicator.goal.confidence
        assert _width(found.measurement) <= known.indicator.goal.interval_width


def test_the_speed_has_a_goal_beside_unit_readings(pilot, session, failed):
    system = Recorded(22, units=("latency_ms",))
    indicators = (LATENCY,)
    CSession(pilot, session, system, indicators)
    pilot.call("set_speed_goal", session, 0.02, 0.95)
    with pytest.raises(failed, match="adjusted"):
        pilot.call("run", session)
    pilot.call("set_work_amount", session, 1.0, 1e5, 0)
    pilot.call("set_short_round", session, 0.5)
    pilot.call("set_session_limit", session, 1e6)
    summary, _ = _ended(pilot, session, system, indicators)
    speed = pilot.new("speed")
    pilot.call("speed", session, speed)
    assert summary.reached and not summary.speed_decides
    assert (speed.ci_high - speed.ci_low) / speed.work_per_s <= 0.02


def test_the_published_rule(pilot, session, failed):
    system = Recorded(23, readings=("ops",))
    indicators = (Indicator("ops", goal=QUICK),)
    CSession(pilot, session, system, indicators)
    pilot.call("set_published", session, pilot.constants["PILOT_QUICK"])
    with pytest.raises(failed, match="allowed: PILOT_QUICK"):
        pilot.call("set_published", session, 3)
    summary, (found,) = _ended(pilot, session, system, indicators)
    assert summary.reached
    assert found.measurement.method == b"faithful"
    assert found.measurement.subsessions >= 30


class MixedUnits(CSession):
    """Reads and writes, told with their kinds and work."""

    kinds_told = 200

    def round(self, user, work, round_):
        rng = np.random.default_rng([99, self.number])
        self.number += 1
        kinds = np.repeat(np.array([7, 9], np.uint32), 100)
        done = rng.choice([1.0, 4.0], 200)
        values = np.where(kinds == 7, 5.0, 50.0) * (1 + 0.05 * rng.normal(size=200))
        self.pilot.call("round_unit_readings", round_, 0, values, 200)
        for part in (slice(0, 100), slice(100, self.kinds_told)):
            count = len(kinds[part])
            self.pilot.call("round_units", round_, 0, kinds[part].copy(), done[part].copy(), count)
        return 0


def test_units_that_differ_are_told_apart(pilot, session, failed):
    indicators = (Indicator("latency_ms", goal=QUICK),)
    feed = MixedUnits(pilot, session, None, indicators)
    summary, (found,) = _ended(pilot, session, None, indicators)
    assert summary.reached
    share, kind, total = ctypes.c_double(), pilot.new("measurement"), 0.0
    for number, level in ((7, 5), (9, 50)):
        pilot.call("finding_kind", session, 0, number, share, kind)
        assert abs(kind.mean / level - 1) < 0.03
        total += share.value * kind.mean
    assert found.measurement.mean == pytest.approx(total)
    with pytest.raises(failed, match="kind is 8"):
        pilot.call("finding_kind", session, 0, 8, share, kind)
    feed.kinds_told = 150
    with pytest.raises(failed, match="kinds of 150 units for 200 readings of latency_ms"):
        pilot.call("run", session)
