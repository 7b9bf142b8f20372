"""Parts of the modern learner."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.capes.knobs import Knob
from ascar.capes.policy import Seen
from ascar.capes.surfaces.candidates import Candidates
from ascar.capes.surfaces.choice import promise
from ascar.capes.surfaces.guard import Guard
from ascar.capes.surfaces.modern import Modern
from ascar.capes.surfaces.regimes import Looks, Regimes
from ascar.capes.surfaces.settling import Settling
from ascar.capes.surfaces.surface import Place, Surface

KNOBS = (Knob("a", 20, 0, 100, 1), Knob("b", 50, 0, 100, 1))
NOTHING = np.zeros((1, 1), np.float32)


@pytest.mark.parametrize("delay", [0, 3, 7])
def test_settling_is_learnt_from_changes(delay):
    rng = np.random.default_rng(3)
    settling = Settling(12)
    for _ in range(20):
        left, entered = rng.uniform(100, 500, 2)
        values = np.r_[np.full(delay, left), np.full(20 - delay, entered)] + rng.normal(0, 20, 20)
        settling.learn(values, left, entered, 20)
    assert settling.ticks in (delay, delay + 1)


def test_changes_that_cannot_be_seen_teach_nothing():
    settling = Settling(12)
    before = settling.probabilities()
    settling.learn(np.random.default_rng(1).normal(100, 20, 20), 100, 101, 20)
    assert settling.probabilities() == pytest.approx(before)
    settling.learn(np.full(20, np.nan), 100, 500, 20)
    assert np.isfinite(settling.probabilities()).all()


def test_a_place_keeps_the_moments_of_its_visits():
    rng = np.random.default_rng(1)
    visits = [rng.normal(5, 2, n) for n in (3, 10, 6)]
    place = Place(np.zeros(1))
    for one in visits:
        place.add(one)
    whole = np.concatenate(visits)
    assert place.ticks == 19
    assert place.mean == pytest.approx(whole.mean())
    assert place.within == pytest.approx(sum(((one - one.mean()) ** 2).sum() for one in visits))


def test_the_surface_finds_a_peak_in_noise():
    rng = np.random.default_rng(2)
    surface = Surface(KNOBS)
    for _ in range(40):
        a, b = (float(one) for one in rng.integers(0, 101, 2))
        truth = 100 - 0.5 * abs(a - 70) - 0.2 * abs(b - 30)
        surface.add((a, b), truth * (1 + 0.1 * rng.standard_normal(8)))
    assert surface.tick_sd() == pytest.approx(0.1, rel=0.25)
    mean, sd = surface.fitted().predict(np.array([[0.7, 0.3], [0.1, 0.9], [0.7, 0.9]]))
    assert mean[0] > mean[2] > mean[1]
    assert (np.abs(mean - [100, 58, 88]) < 4 * sd + 3).all()


def test_the_guard_allows_a_share_of_a_minute():
    guard = Guard(0.05)
    assert guard.allowed(np.array([100.0, 50.0, 0.0]), 100.0, 6).tolist() == [True, True, False]
    guard.spent(np.full(6, 50.0), 0.0)
    assert guard.allowed(np.array([99.9, 50.0]), 100.0, 6).tolist() == [False, False]
    assert guard.allowed(np.array([100.0]), 100.0, 6).tolist() == [True]
    guard.spent(np.full(60, 100.0), 0.0)
    assert guard.allowed(np.array([50.0]), 100.0, 6).tolist() == [True]


def test_a_visit_that_costs_too_much_ends_but_noise_alone_ends_none():
    guard = Guard(0.05)
    assert not guard.exceeded(np.zeros(9), 0.0)  # nothing to compare with yet
    guard.allowed(np.array([100.0]), 100.0, 6)
    assert not guard.exceeded(np.full(5, 50.0), 0.0)
    assert guard.exceeded(np.full(7, 50.0), 0.0)
    assert not guard.exceeded(np.full(7, 50.0), 0.5)
    guard.spent(np.full(4, 50.0), 0.0)
    assert guard.exceeded(np.full(3, 50.0), 0.0)


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
        setting = learner.decide(Seen(tick, 100 - abs(setting[0] - 60), NOTHING, setting))
    learner.freeze()
    chosen = {learner.decide(Seen(tick, 1.0, NOTHING, (20.0, 50.0))) for tick in range(30)}
    assert len(chosen) == 1
    assert abs(chosen.pop()[0] - 60) < 6


def test_knobs_of_one_kin_are_tried_together():
    knobs = tuple(Knob(f"k{at}", 2, 0, 10, 1, kin="k") for at in range(6))
    found = Candidates(knobs, np.random.default_rng(1))
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
        wanted = learner.decide(Seen(tick, value, NOTHING, setting))
        if wanted[1] > 80:  # the checker's no
            refused += 1
        else:
            setting = wanted
    assert np.mean(values[-300:]) > 94
    assert 1 <= refused < 60
    learner = Modern(KNOBS, rng)
    for tick in range(300):
        learner.decide(Seen(tick, np.nan, NOTHING, (20.0, 50.0)))


def test_ten_knobs_at_once():
    rng = np.random.default_rng(5)
    knobs = tuple(Knob(f"k{at}", 2, 0, 10, 1) for at in range(10))
    best = np.array([8, 2, 5, 2, 2, 7, 2, 2, 2, 2.0])
    learner = Modern(knobs, rng)
    setting = tuple(2.0 for _ in knobs)
    values = []
    for tick in range(1200):
        values.append(100 - 2 * np.abs(np.array(setting) - best).sum())
        setting = learner.decide(
            Seen(tick, values[-1] * (1 + 0.02 * rng.standard_normal()), NOTHING, setting)
        )
    assert np.mean(values[-200:]) > 0.5 * (values[0] + 100)


def test_a_visit_that_was_doubted_in_vain_counts():
    """Else the model would go on promising what is not there."""
    rng = np.random.default_rng(1)
    knobs = (Knob("a", 0, 0, 100, 1),)
    regimes = Regimes(knobs)

    def visit(at, level):
        values = level + 0.1 * rng.standard_normal(8)
        return (float(at),), values, Looks.of(np.column_stack([values / 100, np.full(8, at / 100)]))

    for _ in range(20):
        for at, level in ((0, 50.0), (60, 90.0)):
            known = visit(at, level)
            assert regimes.judge(*known) == "usual"
            regimes.surface.add(*known[:2])
    doubted = visit(60, 70.0)
    assert [regimes.judge(*doubted), regimes.judge(*doubted)] == ["odd", "changed"]
    regimes.recognise(*visit(0, 50.0))
    assert regimes.changes == 0
    assert regimes.surface.places[(60.0,)].mean == pytest.approx(70, abs=0.5)
    assert regimes.judge(*visit(60, 70.0)) == "usual"
