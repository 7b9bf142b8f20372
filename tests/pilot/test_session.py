"""Sessions of synthetic rounds on a synthetic clock: no test here runs anything or waits."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot import Goal, Indicator, Kind, Limits, MeasurementPlan, Round, WorkAmounts, run_session

GOAL = Goal(interval_width=0.1, readings_min=30)


class Bench:
    """A benchmark on a synthetic clock.

    Args:
        round_of: gives a round for its number and work amount.
    """

    def __init__(self, round_of):
        self.now_s = 0.0
        self.rounds = []
        self._round_of = round_of

    def clock(self):
        return self.now_s

    def __call__(self, work_amount, left_s):
        done = self._round_of(len(self.rounds), work_amount)
        if done.seconds > left_s:
            self.now_s += left_s
            return None
        self.now_s += done.seconds
        self.rounds.append(done)
        return done

    def session(self, plan, on_round=None):
        return run_session(self, plan, on_round, self.clock)


def _readings(seed=0, mean=100.0, sd=5.0, seconds=2.0, **more):
    rng = np.random.default_rng(seed)
    return Bench(lambda number, work: Round(seconds, work, {"x": rng.normal(mean, sd), **more}))


def _units(seed=0, between=0.0, n=300, warm=60):
    """Rounds that warm up; their means differ by `between` standard deviations of a reading."""
    rng = np.random.default_rng(seed)

    def make(number, work):
        values = rng.normal(100, 3, n) + 3 * between * rng.normal()
        values[:warm] += 40
        return Round(10.0, work, {"x": float(values[-1])}, {"x": values})

    return Bench(make)


def test_readings_one_a_round_end_when_the_interval_is_narrow_enough():
    session = _readings(sd=10).session(MeasurementPlan([Indicator("x", goal=GOAL)], GOAL))
    (finding,) = session.findings
    assert session.reached
    assert session.ended == "every goal is reached"
    assert finding.basis == "readings"
    assert finding.measurement.ci_width_relative <= 0.1
    assert finding.measurement.n >= 30
    assert session.seconds == 2.0 * len(session.rounds)
    assert session.left_s is None
    assert session.speed is None


def test_noisier_readings_take_longer():
    few, many = (
        len(_readings(sd=sd).session(MeasurementPlan([Indicator("x", goal=GOAL)], GOAL)).rounds)
        for sd in (5, 40)
    )
    assert few < 60
    assert many > 4 * few


def test_the_interval_at_the_end_covers_the_mean_as_often_as_it_promises():
    covered = 0
    for seed in range(200):
        session = _readings(seed, sd=20).session(MeasurementPlan([Indicator("x", goal=GOAL)], GOAL))
        found = session.findings[0].measurement
        covered += found.ci_low <= 100 <= found.ci_high
    assert covered >= 180  # 190 are promised; the standard deviation of that is 3.1


def test_the_limit_ends_it_with_what_there_is():
    bench = _readings(sd=40)
    session = bench.session(MeasurementPlan([Indicator("x", goal=GOAL)], GOAL, limits=Limits(session_s=25)))
    assert not session.reached
    assert session.ended == "the limit of 25 s was reached"
    assert len(session.rounds) == 12
    assert session.seconds == 25
    assert session.findings[0].readings == 12


def test_no_round_at_all_may_end_before_the_limit():
    session = _readings(seconds=100).session(
        MeasurementPlan([Indicator("x", goal=GOAL)], GOAL, limits=Limits(50))
    )
    assert not session.reached
    assert session.rounds == ()
    assert session.findings[0].measurement is None


def test_the_number_of_rounds_is_limited_too():
    session = _readings(sd=40).session(
        MeasurementPlan([Indicator("x", goal=GOAL)], GOAL, limits=Limits(1e9, rounds_max=9))
    )
    assert session.ended == "the limit of 9 rounds was reached"
    assert len(session.rounds) == 9


def test_warm_up_is_removed_from_every_round():
    goal = Goal(interval_width=0.1, readings_min=200, rounds_min=3)
    session = _units().session(MeasurementPlan([Indicator("x", goal=goal)], goal))
    (finding,) = session.findings
    assert session.reached
    assert len(session.rounds) == 3
    assert finding.basis == "unit readings"
    assert finding.readings == 900
    assert 180 <= finding.removed <= 270  # some more beside each change, for its place is uncertain
    assert finding.measurement.mean == pytest.approx(100, rel=0.01)


def test_rounds_that_differ_are_the_samples_themselves():
    """Inside a round the mean is known to 0.2, but rounds differ by 30: only more rounds tell."""
    goal = Goal(interval_width=0.1, readings_min=30, rounds_min=3)
    session = _units(between=10.0).session(MeasurementPlan([Indicator("x", goal=goal)], goal))
    (finding,) = session.findings
    assert finding.basis == "rounds"
    assert finding.measurement.method == "means of rounds"
    assert session.reached
    assert len(session.rounds) >= 20
    assert finding.measurement.ci_low < 100 < finding.measurement.ci_high


def test_every_indicator_has_to_reach_its_goal():
    rng = np.random.default_rng(1)
    bench = Bench(lambda n, w: Round(1.0, w, {"calm": rng.normal(10, 0.1), "wild": rng.normal(10, 5)}))
    calm, wild = Indicator("calm", goal=GOAL), Indicator("wild", goal=GOAL)
    both = bench.session(MeasurementPlan([calm, wild], GOAL))
    assert both.reached
    assert all(finding.reached for finding in both.findings)
    assert len(both.rounds) > 200
    bench.rounds.clear()
    reported = Indicator("wild", goal=None)
    one = bench.session(MeasurementPlan([calm, reported], GOAL))
    assert one.reached
    assert len(one.rounds) < 60
    assert one.findings[1].measurement.n > 0


def test_speeds_over_equal_work_have_a_harmonic_mean():
    """Half of the rounds at 50, half at 200: the work is done at 80, not at 125."""
    bench = Bench(lambda n, w: Round(1.0, w, {"x": 50.0 if n % 2 else 200.0}))
    goal = Goal(interval_width=0.4, readings_min=30)
    session = bench.session(
        MeasurementPlan([Indicator("x", Kind.RATIO, goal)], goal, limits=Limits(rounds_max=400))
    )
    assert session.findings[0].measurement.mean == pytest.approx(80, rel=0.1)
    assert session.findings[0].measurement.method.startswith("harmonic")


def test_shares_of_outcomes_have_wilsons_interval():
    rng = np.random.default_rng(2)
    bench = Bench(lambda n, w: Round(1.0, w, {"x": float(rng.random() < 0.9)}))
    session = bench.session(MeasurementPlan([Indicator("x", Kind.BINARY, GOAL)], GOAL))
    found = session.findings[0].measurement
    assert session.reached
    assert found.method == "Wilson"
    assert found.ci_high < 1
    assert found.ci_low < 0.9 < found.ci_high


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (Kind.ORDINARY, float("inf"), "finite"),
        (Kind.RATIO, 0.0, "above 0"),
        (Kind.BINARY, 0.5, "0 or 1"),
    ],
)
def test_a_reading_of_another_kind_is_refused(kind, value, told):
    bench = Bench(lambda n, w: Round(1.0, w, {"x": value}))
    with pytest.raises(InputError, match=told):
        bench.session(MeasurementPlan([Indicator("x", kind, GOAL)], GOAL))


def test_what_is_told_after_each_round_foresees_the_end():
    seen = []
    session = _readings(sd=30, seed=4).session(
        MeasurementPlan([Indicator("x", goal=GOAL)], GOAL), seen.append
    )
    assert len(seen) == len(session.rounds)
    assert all(not state.ended and not state.reached for state in seen[:-1])
    halfway = seen[len(seen) // 2]
    really_s = session.seconds - halfway.seconds
    assert really_s / 4 < halfway.left_s < really_s * 4


def test_time_left_is_never_more_than_the_limit_allows():
    seen = []
    _readings(sd=90).session(
        MeasurementPlan([Indicator("x", goal=GOAL)], GOAL, limits=Limits(100)), seen.append
    )
    assert all(state.left_s is None or state.left_s <= 100 - state.seconds for state in seen)


def _adjustable(seed=0, alpha_s=1.5, speed=50.0, noise=0.03):
    """Work at a constant speed after a start of `alpha_s`, with noise in proportion to the time."""
    rng = np.random.default_rng(seed)
    return Bench(lambda n, work: Round((alpha_s + work / speed) * (1 + noise * rng.normal()), work))


def test_without_unit_readings_the_speed_is_told_by_rounds_of_different_work():
    bench = _adjustable()
    session = bench.session(MeasurementPlan([], GOAL, WorkAmounts(1, 100_000, whole=True)))
    assert session.reached
    assert session.speed_decides
    assert session.speed.ci_low < 50 < session.speed.ci_high
    assert session.speed.alpha_s == pytest.approx(1.5, abs=0.5)
    # A mean of work over time would be lower by the start: no round does more than it takes.
    naive = np.mean([done.work_amount / done.seconds for done in session.rounds])
    assert naive < session.speed.ci_low


def test_trial_rounds_double_until_one_is_long_enough_and_are_set_aside():
    bench = _adjustable(alpha_s=0.0, speed=100.0, noise=0.0)
    session = bench.session(
        MeasurementPlan([], GOAL, WorkAmounts(1, 1e6, whole=True, short_round_s=1.0), Limits(rounds_max=12))
    )
    amounts = [done.work_amount for done in session.rounds]
    assert amounts[:8] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert session.used[0] == 7
    assert all(done.seconds >= 1.0 for index, done in enumerate(session.rounds) if index in session.used)


def test_wps_intervals_cover_the_speed_as_often_as_they_promise():
    covered, sessions = 0, 60
    for seed in range(sessions):
        session = _adjustable(seed).session(MeasurementPlan([], GOAL, WorkAmounts(1, 100_000)))
        covered += session.speed.ci_low <= 50 <= session.speed.ci_high
    assert covered >= 0.85 * sessions  # 57 are promised; the standard deviation of that is 1.7


def test_work_that_gives_unit_readings_ends_by_them():
    rng = np.random.default_rng(3)

    def make(number, work):
        values = rng.normal(50, 5, int(work))
        return Round(0.5 + work / 50, work, {}, {"x": values})

    goal = Goal(interval_width=0.1, readings_min=50, rounds_min=3)
    session = Bench(make).session(
        MeasurementPlan([Indicator("x", goal=goal)], goal, WorkAmounts(1, 10_000, whole=True))
    )
    assert session.reached
    assert not session.speed_decides
    assert session.findings[0].basis == "unit readings"
    assert session.findings[0].measurement.ci_low < 50 < session.findings[0].measurement.ci_high


def test_a_plan_needs_something_to_measure():
    with pytest.raises(InputError, match="nothing to measure"):
        MeasurementPlan([], GOAL)
    with pytest.raises(InputError, match="'x' is named twice"):
        MeasurementPlan([Indicator("x"), Indicator("x")], GOAL)


@pytest.mark.parametrize("values", [{"session_s": 0}, {"session_s": float("nan")}, {"rounds_max": 0}])
def test_limits_are_checked(values):
    with pytest.raises(InputError):
        Limits(**values)
