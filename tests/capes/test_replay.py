"""Replay, rewards, exploration: what deep Q-learning learns from."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from ascar.capes.classic.exploration import EpsilonSchedule
from ascar.capes.classic.hyperparameters import PAPER, THESIS, DeepQHyperparameters, hyperparameters
from ascar.capes.classic.replay_memory import TickReplay
from ascar.capes.classic.reward import Rewards
from ascar.errors import InputError


def _filled(ticks, width=3, stack=4, most=1000):
    replay = TickReplay(width, stack, 0.2, most)
    for tick in range(ticks):
        replay.add(tick, np.full(width, tick, np.float32), float(tick))
        replay.act(tick, tick % 5)
    return replay


@pytest.mark.parametrize("most", [50, 1000])
def test_a_transition_is_of_neighbouring_ticks(most):
    replay = _filled(300, most=most)
    batch = replay.sample(np.random.default_rng(1), 64, 5)
    last = batch.states.reshape(64, 4, 3)[:, -1, 0]
    assert batch.states.reshape(64, 4, 3)[:, :, 1] == pytest.approx(last[:, None] + np.arange(-3, 1))
    assert batch.following.reshape(64, 4, 3)[:, -1, 2] == pytest.approx(last + 1)
    assert batch.rewards == pytest.approx(last + 1)
    assert batch.actions == pytest.approx(last % 5)
    assert last.min() >= max(3, 300 - most)
    assert last.max() <= 298
    assert len(replay) == min(300, most)


def test_every_transition_is_as_likely():
    replay = _filled(24)
    batch = replay.sample(np.random.default_rng(2), 20_000, 5)
    counts = np.bincount(batch.rewards.astype(int), minlength=24)
    assert not counts[:4].any()
    assert counts[4:].min() > 0.8 * 1000
    assert counts[4:].max() < 1.2 * 1000


def test_a_fifth_may_be_missing_and_no_more():
    replay = TickReplay(10, 2, 0.2, 100)
    replay.add(0, np.ones(10, np.float32), 1.0)
    some = np.ones(10, np.float32)
    some[:4] = np.nan
    replay.add(1, some, 1.0)
    assert replay.observation(1) == pytest.approx([1] * 10 + [0] * 4 + [1] * 6)
    some[4] = np.inf
    replay.add(2, some, 1.0)
    assert replay.observation(2) is None


def test_ticks_that_never_came_are_missing():
    replay = _filled(10)
    replay.add(13, np.ones(3, np.float32), 1.0)
    assert len(replay) == 14
    assert replay.observation(13) is None
    batch = replay.sample(np.random.default_rng(1), 200, 5)
    assert batch.rewards.max() == 9
    replay.add(5, np.zeros(3, np.float32), 0.0)
    assert len(replay) == 14
    replay.add(10**9, np.ones(3, np.float32), 1.0)
    assert len(replay) == 1


def test_nothing_is_drawn_where_there_is_too_little():
    assert _filled(3).sample(np.random.default_rng(1), 4, 5) is None
    replay = TickReplay(1, 2, 0.2, 100)
    for tick in range(50):
        replay.add(tick, np.full(1, np.nan, np.float32), 1.0)
        replay.act(tick, 0)
    assert replay.sample(np.random.default_rng(1), 4, 5) is None


def test_what_was_not_acted_on_is_not_drawn():
    replay = TickReplay(1, 2, 0.2, 100)
    for tick in range(50):
        replay.add(tick, np.ones(1, np.float32), 1.0)
    assert replay.sample(np.random.default_rng(1), 4, 5) is None


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("level", [2, 4, math.nan, 8]),
        ("difference", [math.nan, 2, math.nan, 4]),
        ("difference-of-means", [math.nan, 1, math.nan, 14 / 3 - 3]),
        ("difference-of-ewma", [math.nan, 1, math.nan, 2.5]),
    ],
)
def test_rewards_are_new_minus_old(form, wanted):
    rewards = Rewards(form, 3)
    assert [rewards.after(value) for value in (2.0, 4.0, math.nan, 8.0)] == pytest.approx(wanted, nan_ok=True)


def test_epsilon_falls_linearly_and_another_workload_raises_it():
    exploration = EpsilonSchedule(msgspec.structs.replace(THESIS, exploration_ticks=1000))
    seen = []
    for _ in range(1001):
        seen.append(exploration.epsilon)
        exploration.advance()
    assert seen[0] == 1
    assert seen[500] == pytest.approx(0.525)
    assert seen[1000] == 0.05
    exploration.announce()
    assert exploration.epsilon == 0.2
    for _ in range(200):
        exploration.advance()
    assert exploration.epsilon == 0.05


def test_presets_have_the_published_values():
    assert (PAPER.optimizer, PAPER.learning_rate, PAPER.exploration_ticks, PAPER.hidden_size) == (
        "adam",
        1e-4,
        7200,
        600,
    )
    assert (THESIS.optimizer, THESIS.learning_rate, THESIS.rmsprop_decay) == ("rmsprop", 1e-3, 0.9)
    assert (THESIS.exploration_ticks, THESIS.hidden_size) == (72_000, None)
    for preset in (PAPER, THESIS):
        assert (preset.discount, preset.minibatch, preset.missing_tolerance) == (0.99, 32, 0.2)
        assert (preset.ticks_per_observation, preset.target_update, preset.hidden_layers) == (10, 0.01, 2)
        assert (preset.epsilon_initial, preset.epsilon_final, preset.epsilon_workload) == (1, 0.05, 0.2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"discount": 1},
        {"epsilon_final": -0.1},
        {"learning_rate": 0},
        {"minibatch": 0},
        {"hidden_size": 0},
        {"memory_ticks": 5},
        {"learning_rate": math.nan},
    ],
)
def test_hyperparameters_out_of_range_are_refused(wrong):
    (key,) = wrong
    with pytest.raises(InputError, match=rf"{key} = .*must be"):
        DeepQHyperparameters(**wrong)


def test_an_unknown_preset_is_refused():
    with pytest.raises(InputError, match="must be one of paper, thesis, game"):
        hyperparameters("papers")
