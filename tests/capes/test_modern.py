"""Parts of the modern learner."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ascar.capes.axes import Axis, initial
from ascar.capes.environments.game import Game, drawn
from ascar.capes.modern.axis_levels import AxisLevels
from ascar.capes.modern.learner import Modern
from ascar.capes.modern.loss_budget import LossBudget
from ascar.capes.modern.loss_scale import LossScale
from ascar.capes.modern.settling import SettlingDelay
from ascar.capes.modern.surface import REACH, Surface, VisitedSetting
from ascar.capes.modern.visit_value import CandidateSettings, ChoiceCriteria, paying, promise
from ascar.capes.modern.workload_models import WorkloadModels
from ascar.capes.policy import TickObservation
from ascar.library import IndicatorSummary

KNOBS = (Axis("a", 20, 0, 100, 1), Axis("b", 50, 0, 100, 1))
NOTHING = np.zeros((1, 1), np.float32)


@pytest.mark.parametrize("delay", [0, 3, 7])
def test_settling_is_learnt_from_changes(delay):
    rng = np.random.default_rng(3)
    settling = SettlingDelay(12)
    for _ in range(20):
        left, entered = rng.uniform(100, 500, 2)
        values = np.r_[np.full(delay, left), np.full(20 - delay, entered)] + rng.normal(0, 20, 20)
        settling.learn(values, left, entered, 20)
    assert settling.ticks in (delay, delay + 1)


def test_changes_that_cannot_be_seen_teach_nothing():
    settling = SettlingDelay(12)
    before = settling.probabilities()
    settling.learn(np.random.default_rng(1).normal(100, 20, 20), 100, 101, 20)
    assert settling.probabilities() == pytest.approx(before)
    settling.learn(np.full(20, np.nan), 100, 500, 20)
    assert np.isfinite(settling.probabilities()).all()


def test_a_place_keeps_the_moments_of_its_visits():
    rng = np.random.default_rng(1)
    visits = [rng.normal(5, 2, n) for n in (3, 10, 6)]
    place = VisitedSetting(np.zeros(1))
    for one in visits:
        place.add(one)
    whole = np.concatenate(visits)
    assert place.ticks == 19
    assert place.mean == pytest.approx(whole.mean())
    assert place.within == pytest.approx(sum(((one - one.mean()) ** 2).sum() for one in visits))


def test_the_surface_finds_a_peak_in_noise():
    rng = np.random.default_rng(2)
    surface = Surface(KNOBS, compresses=False)
    for _ in range(40):
        a, b = (float(one) for one in rng.integers(0, 101, 2))
        truth = 100 - 0.5 * abs(a - 70) - 0.2 * abs(b - 30)
        surface.add((a, b), truth * (1 + 0.1 * rng.standard_normal(8)))
    assert surface.tick_sd() == pytest.approx(0.1, rel=0.25)
    mean, sd = surface.fitted().predict(np.array([[0.7, 0.3], [0.1, 0.9], [0.7, 0.9]]))
    assert mean[0] > mean[2] > mean[1]
    assert (np.abs(mean - [100, 58, 88]) < 4 * sd + 3).all()


def test_the_loss_budget_allows_a_share_of_a_minute():
    budget = LossBudget(0.05)
    assert budget.allowed(np.array([100.0, 50.0, 0.0]), 100.0, 6).tolist() == [True, True, False]
    budget.spent(np.full(6, 50.0), 0.0)
    assert budget.allowed(np.array([99.9, 50.0]), 100.0, 6).tolist() == [False, False]
    assert budget.allowed(np.array([100.0]), 100.0, 6).tolist() == [True]
    budget.spent(np.full(60, 100.0), 0.0)
    assert budget.allowed(np.array([50.0]), 100.0, 6).tolist() == [True]


def test_a_visit_that_costs_too_much_ends_but_noise_alone_ends_none():
    budget = LossBudget(0.05)
    assert not budget.exceeded(np.zeros(9), 0.0)  # nothing to compare with yet
    budget.allowed(np.array([100.0]), 100.0, 6)
    assert not budget.exceeded(np.full(5, 50.0), 0.0)
    assert budget.exceeded(np.full(7, 50.0), 0.0)
    assert not budget.exceeded(np.full(7, 50.0), 0.5)
    budget.spent(np.full(4, 50.0), 0.0)
    assert budget.exceeded(np.full(3, 50.0), 0.0)


def test_the_loss_budget_allows_what_noise_hides():
    budget = LossBudget(0.05)
    low = np.array([100.0, 50.0, 0.0])
    assert budget.allowed(low, 100.0, 6, 0.1).tolist() == [True, True, False]
    assert budget.allowed(low, 100.0, 6, 0.5).tolist() == [True, True, True]  # a minute's mean varies by 6.5%
    assert budget.allowed(low, 100.0, 13, 0.5).tolist() == [True, True, False]
    assert budget.exceeded(np.zeros(9), 0.1)
    assert not budget.exceeded(np.zeros(9), 0.5)


@pytest.mark.parametrize(("noise", "reach"), [(0.05, REACH), (0.5, 2 * REACH)])
def test_the_surface_is_smoother_where_ticks_are_noisy(noise, reach):
    rng = np.random.default_rng(2)
    surface = Surface(KNOBS)
    for a in np.repeat(np.arange(0.0, 101.0, 10.0), 2):
        surface.add((float(a), 50.0), (100 - abs(a - 70)) * (1 + noise * rng.standard_normal(10)))
        surface.fitted()
    fitted = surface.fitted()
    assert fitted.reach == reach
    mean = fitted.loss_scale.plain(fitted.predict(np.array([[0.7, 0.5], [0.1, 0.5]]))[0])
    assert mean[0] - mean[1] == pytest.approx(60, abs=5 + 40 * noise)


def test_under_noise_it_settles_after_a_while():
    """Surfaces drawn from the posterior would send it about 30 to 60 times in the last third."""
    game = Game(drawn("hard", 0.5, 3, 40_001))
    learner = Modern(game.knobs, np.random.default_rng(1))
    setting, settings = initial(game.knobs), []
    for _ in range(3600):
        settings.append(setting)
        setting = learner.decide(game.step(setting))
    assert sum(one != other for one, other in pairwise(settings[2400:])) < 25
    assert np.mean(game.near[1200:]) > 0.95


def test_what_cannot_be_shown_by_a_visit_promises_nothing():
    mean, sd = np.array([100.0, 100.0, 90.0]), np.array([10.0, 10.0, 0.0])
    sure = promise(mean, sd, 100.0, 0.0)
    noisy = promise(mean, sd, 100.0, 1e6)
    assert sure[0] == pytest.approx(10 / np.sqrt(2 * np.pi))
    assert (noisy < 0.05).all()
    assert sure[2] == pytest.approx(0)


def test_a_frozen_learner_stays_at_the_best_setting_known():
    learner = Modern(KNOBS, np.random.default_rng(6))
    setting = (20.0, 50.0)
    for tick in range(400):
        setting = learner.decide(TickObservation(tick, 100 - abs(setting[0] - 60), NOTHING, setting))
    learner.freeze()
    chosen = {learner.decide(TickObservation(tick, 1.0, NOTHING, (20.0, 50.0))) for tick in range(30)}
    assert len(chosen) == 1
    assert abs(chosen.pop()[0] - 60) < 6


def test_knobs_of_one_group_are_tried_together():
    knobs = tuple(Axis(f"k{at}", 2, 0, 10, 1, group="k") for at in range(6))
    found = AxisLevels(knobs, np.random.default_rng(1))
    assert found.designed == 5
    assert all(len(set(found.design_point(at))) == 1 for at in range(1, 5))
    around = found.columns(found.around(np.linspace(0, 1, 6)))
    together = [row for row in around if len(set(row)) == 1]
    assert len({row[0] for row in together}) >= 5


def test_missing_measurements_and_refused_settings_do_no_harm():
    rng = np.random.default_rng(4)
    learner = Modern(KNOBS, rng)
    setting, refused, values = (20.0, 50.0), 0, []
    for tick in range(1500):
        truth = 100 - abs(setting[0] - 60)
        values.append(truth)
        value = np.nan if tick % 7 == 0 else truth * (1 + 0.05 * rng.standard_normal())
        wanted = learner.decide(TickObservation(tick, value, NOTHING, setting))
        if wanted[1] > 80:  # the checker's no
            refused += 1
        else:
            setting = wanted
    assert np.mean(values[-300:]) > 94
    assert 1 <= refused < 60
    learner = Modern(KNOBS, rng)
    for tick in range(300):
        learner.decide(TickObservation(tick, np.nan, NOTHING, (20.0, 50.0)))


def test_ten_knobs_at_once():
    rng = np.random.default_rng(5)
    knobs = tuple(Axis(f"k{at}", 2, 0, 10, 1) for at in range(10))
    best = np.array([8, 2, 5, 2, 2, 7, 2, 2, 2, 2.0])
    learner = Modern(knobs, rng)
    setting = tuple(2.0 for _ in knobs)
    values = []
    for tick in range(1200):
        values.append(100 - 2 * np.abs(np.array(setting) - best).sum())
        setting = learner.decide(
            TickObservation(tick, values[-1] * (1 + 0.02 * rng.standard_normal()), NOTHING, setting)
        )
    assert np.mean(values[-200:]) > 0.5 * (values[0] + 100)


def test_an_outlier_without_a_shift_counts():
    """Else the model would go on promising what is not there."""
    rng = np.random.default_rng(1)
    knobs = (Axis("a", 0, 0, 100, 1),)
    workloads = WorkloadModels(knobs)

    def visit(at, level):
        values = level + 0.1 * rng.standard_normal(8)
        return (
            (float(at),),
            values,
            IndicatorSummary.of(np.column_stack([values / 100, np.full(8, at / 100)])),
        )

    for _ in range(20):
        for at, level in ((0, 50.0), (60, 90.0)):
            known = visit(at, level)
            assert workloads.judge(*known) == "expected"
            workloads.surface.add(*known[:2])
    outlier = visit(60, 70.0)
    assert [workloads.judge(*outlier), workloads.judge(*outlier)] == ["outlier", "shift"]
    workloads.identify(*visit(0, 50.0))
    assert workloads.changes == 0
    assert workloads.surface.places[(60.0,)].mean == pytest.approx(70, abs=0.5)
    assert workloads.judge(*visit(60, 70.0)) == "expected"


def test_losses_are_bent_and_back():
    loss_scale = LossScale(100.0, 100.0, 0.15)
    plain = np.array([120.0, 100.0, 99.0, 90.0, 50.0, 0.0])
    compressed = loss_scale.compressed(plain)
    assert compressed[:3] == pytest.approx([120, 100, 99], abs=0.05)
    assert (np.diff(compressed) < 0).all()
    assert (compressed > 85).all()
    assert loss_scale.plain(compressed) == pytest.approx(plain, abs=1e-9)
    assert loss_scale.plain(np.array([-1e9])) == pytest.approx(0, abs=1e-9)
    step = 1e-4
    assert loss_scale.slope(plain[3:]) == pytest.approx(
        (loss_scale.compressed(plain[3:] + step) - loss_scale.compressed(plain[3:] - step)) / (2 * step),
        rel=1e-3,
    )


def test_a_disaster_does_not_hide_a_small_gain():
    """One setting that loses 60% would make the model take differences of 4% for noise."""
    levels = {0: 103, 13: 106.5, 25: 100.5, 38: 100, 77: 79}
    gains = {True: [], False: []}
    for compresses, found in gains.items():
        for seed in range(8):
            rng = np.random.default_rng(seed)
            surface = Surface(KNOBS, compresses=compresses)
            for a, level in levels.items():
                for b, ticks in ((0, 9), (20, 3)):
                    surface.add((a, b), level * (1 + 0.04 * rng.standard_normal(ticks)))
            surface.add((0, 20), 103 * (1 + 0.04 * rng.standard_normal(100)))
            surface.add((0, 100), 40 * (1 + 0.04 * rng.standard_normal(3)))
            mean, _ = surface.fitted().predict(np.array([[0.13, 0.0], [0.0, 0.2]]))
            found.append(mean[0] - mean[1])
    assert np.mean(gains[True]) > np.mean(gains[False]) + 0.3
    assert np.mean(gains[True]) > 1


def test_the_loss_budget_counts_what_is_yet_to_come():
    budget = LossBudget(0.05)
    budget.allowed(np.array([100.0]), 100.0, 6)
    low = np.full(3, 50.0)
    assert not budget.exceeded(low, 0.0)
    assert budget.exceeded(low, 0.0, tail=4)  # when it ends, four more ticks will be as bad
    assert not budget.exceeded(low, 0.5, tail=4)
    assert budget.recovered()
    budget.spent(low, 0.0)
    assert budget.recovered()
    budget.spent(low, 0.0, tail=4)
    assert not budget.recovered()
    budget.spent(np.full(60, 100.0), 0.0, tail=4)
    assert budget.recovered()
    assert budget.fair(99.0)
    assert not budget.fair(90.0)  # the setting left may be what costs
    assert not budget.fair(None)


class WithoutEarlyEnds(Modern):
    """Waits until a first visit has settled, whatever it loses."""

    def _trusts_ticks(self):
        return False


def _minutes(make, seed):
    """Means of all minutes, where every third setting costs 60%, after a delay of two ticks."""
    rng = np.random.default_rng(seed)
    learner = make(KNOBS, rng)
    setting, before, values = (20.0, 50.0), [(20.0, 50.0)] * 2, []
    for tick in range(700):
        before.append(setting)
        a, b = before[-3]
        values.append((40.0 if a > 65 else 100.0 + 0.1 * (b > 50)) * (1 + 0.02 * rng.standard_normal()))
        setting = learner.decide(TickObservation(tick, values[-1], NOTHING, setting))
    return np.convolve(values, np.ones(60) / 60, "valid")


def test_no_minute_pays_more_for_first_visits_than_a_tenth():
    with_it = min(_minutes(Modern, seed).min() for seed in range(3))
    without = min(_minutes(WithoutEarlyEnds, seed).min() for seed in range(3))
    assert with_it > 90
    assert without < with_it


def test_what_is_not_surely_better_is_not_worth_leaving_the_initial_setting():
    terms = ChoiceCriteria(3, 2, 300, 0.05, 0.5, 0.01, 1.0, rest=False)
    allowed = np.ones(4, bool)

    def chosen(mean, sd, terms=terms):
        mean = np.array(mean)
        return paying(CandidateSettings(mean, np.array(sd), mean, allowed, 3), terms)

    # The current one, the initial one, another one that was visited, a new one.
    assert chosen([101.5, 100, 101.5, 90], [0.8, 0.2, 0.8, 0.1]) in (0, 2)  # what it is remains to be seen
    assert chosen([101.5, 100, 101.5, 90], [0.1, 0.1, 0.1, 0.1]) == 0  # it is better
    assert chosen([100.5, 100, 100.5, 90], [0.1, 0.1, 0.1, 0.1]) == 1  # not by 1%
    assert chosen([100.0, 100, 100, 99], [0.1, 0.1, 0.1, 9.0]) == 3  # who knows
    resting = ChoiceCriteria(3, 2, 300, 0.05, 0.5, 0.01, 1.0, rest=True)
    assert chosen([100.0, 100, 100, 99], [0.1, 0.1, 0.1, 9.0], resting) == 1
    assert chosen([106.0, 100, 106, 99], [0.1, 0.1, 0.1, 9.0], resting) == 3


def test_a_knob_that_is_an_indicator_is_no_other_workload():
    workloads = WorkloadModels(KNOBS)
    rng = np.random.default_rng(2)

    def visit(at):
        looks = np.column_stack([0.5 + 0.01 * rng.standard_normal(6), np.full(6, at / 100)])
        return (at, 50.0), 100 + rng.standard_normal(6), IndicatorSummary.of(looks)

    for at in (20.0, 20.0, 20.0, 24.0, 23.0, 20.0, 22.0):
        setting, values, looks = visit(at)
        assert workloads.judge(setting, values, looks) == "expected"
        workloads.surface.add(setting, values)
    assert workloads.changes == 0
