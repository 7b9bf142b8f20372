"""Deep Q-learning fed by a process: ticks of the past, actions that were not carried out, a new start."""

import math

import numpy as np
import pytest

import classic_parts as parts
from ascar.capes.axes import Axis
from ascar.capes.classic.hyperparameters import DeepQHyperparameters
from ascar.capes.policy import TickObservation
from ascar.errors import InputError

pytestmark = parts.needs_jax
KNOBS = (Axis("a", 5, 0, 10, 1), Axis("b", 2, 0, 4, 2))
SMALL = DeepQHyperparameters(hidden_size=8, ticks_per_observation=2, minibatch=4, exploration_ticks=50)


@pytest.fixture
def policy():
    return parts.ClassicPolicy(KNOBS, 2, SMALL, np.random.default_rng(1))


def seen(tick, setting, value=1.0):
    return TickObservation(tick, value, np.array([[value, setting[0] / 10]], np.float32), setting)


@pytest.mark.parametrize(
    ("after", "action"),
    [((5, 2), 0), ((6, 2), 1), ((4, 2), 2), ((5, 4), 3), ((5, 0), 4), ((6, 4), None), ((8, 2), None)],
)
def test_what_a_change_was(after, action):
    assert parts.action_between(KNOBS, (5, 2), after) == action


def test_stored_ticks_are_transitions_and_jumps_are_passed_over(policy):
    settings = [(5.0, 2.0), (6.0, 2.0), (6.0, 2.0), (9.0, 2.0), (9.0, 0.0)]
    ticks = [10, 11, 12, 13, 20]  # ticks are missing before the last one
    for tick, setting in zip(ticks, settings, strict=True):
        policy.recall(seen(tick, setting, float(tick)))
    policy.recalled()
    drawn = policy.classic.experience.replay.sample(np.random.default_rng(1), 64, 5)
    assert set(drawn.actions.tolist()) == {0}, "the step up before had not two ticks to look at"
    for tick in range(21, 30):
        policy.recall(seen(tick, (9.0, 0.0) if tick % 2 else (8.0, 0.0), float(tick)))
    drawn = policy.classic.experience.replay.sample(np.random.default_rng(1), 64, 5)
    assert set(drawn.actions.tolist()) == {0, 1, 2}
    assert policy.epsilon == 1.0, "stored ticks are no exploration"


def test_an_action_that_nobody_carried_out_was_none_and_a_refused_one_had_no_effect(policy):
    replay = policy.classic.experience.replay
    for refused, expected in ((True, "kept"), (False, 0)):
        policy = parts.ClassicPolicy(KNOBS, 2, SMALL, np.random.default_rng(2))
        replay = policy.classic.experience.replay
        wanted, tick = (5.0, 2.0), 0
        while wanted == (5.0, 2.0):
            tick += 1
            wanted = policy.decide(seen(tick, (5.0, 2.0), float(tick)))
        action = parts.action_between(KNOBS, (5.0, 2.0), wanted)
        policy.withdraw(wanted, (5.0, 2.0), refused=refused)
        policy.watch(seen(tick + 1, (5.0, 2.0)))
        policy.watch(seen(tick + 2, (5.0, 2.0)))
        drawn = replay.sample(np.random.default_rng(1), 64, 5)
        latest = {
            int(one) for one, state in zip(drawn.actions, drawn.states, strict=True) if state[2] == tick
        }
        assert latest == {action if expected == "kept" else 0}


def test_it_goes_on_where_it_was_written_down(policy):
    for tick in range(1, 60):
        policy.decide(seen(tick, (5.0, 2.0), float(tick % 7)))
    header, arrays = policy.written()
    again = parts.ClassicPolicy(KNOBS, 2, SMALL, np.random.default_rng(9))
    again.read(header, arrays)
    assert again.epsilon == policy.epsilon == pytest.approx(0.05)
    assert again.prediction_error == policy.prediction_error and not math.isnan(again.prediction_error)
    assert again.expected((5.0, 2.0)) is None and again.classic.steps == policy.classic.steps > 0
    for spoilt in ({}, {**header, "steps": "x"}, {**header, "knobs": ["z"]}, {**header, "sizes": [1]}):
        with pytest.raises(InputError):
            again.read(spoilt, arrays)
