"""The Q-learning step against differences, and on chains small enough to solve by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.learning import QLearner, Replay, Transition, Transitions, forward, gradient, loss, targets
from ascar.learning.network import initialized, views

SIZES = (3, 5, 4, 2)


def batch_of(rng, n=7):
    return Transitions(
        rng.normal(size=(n, 3)).astype(np.float32),
        rng.integers(2, size=n),
        rng.normal(size=n).astype(np.float32),
        rng.normal(size=(n, 3)).astype(np.float32),
        rng.random((n, 2)) < 0.7,
        rng.random(n) < 0.3,
    )


def test_views_follow_their_parameters():
    parameters = initialized(SIZES, np.random.default_rng(1))
    network = views(parameters, SIZES)
    assert [layer.weight.shape for layer in network] == [(3, 5), (5, 4), (4, 2)]
    assert [layer.bias.shape for layer in network] == [(5,), (4,), (2,)]
    before = forward(network, np.ones((1, 3), np.float32))
    parameters += 1
    assert (forward(network, np.ones((1, 3), np.float32)) != before).all()
    assert np.abs(network[0].weight - 1).max() <= (6 / 8) ** 0.5 + 1e-6
    assert (network[1].bias == 1).all()


def test_the_gradient_is_the_slope_of_the_loss():
    rng = np.random.default_rng(2)
    parameters = initialized(SIZES, rng).astype(np.float64)
    batch = batch_of(rng)
    wanted = rng.normal(size=7) * 2  # errors on both sides of 1
    exact = np.concatenate(
        [array.ravel() for layer in gradient(views(parameters, SIZES), batch, wanted) for array in layer]
    )
    for index in range(len(parameters)):
        around = []
        for shift in (1e-6, -1e-6):
            moved = parameters.copy()
            moved[index] += shift
            around.append(loss(views(moved, SIZES), batch, wanted))
        assert exact[index] == pytest.approx((around[0] - around[1]) / 2e-6, abs=1e-7)


def test_targets_look_at_allowed_actions_only_and_not_beyond_the_end():
    network = views(initialized(SIZES, np.random.default_rng(3)), SIZES)
    batch = batch_of(np.random.default_rng(3), 4)._replace(
        allowed=np.array([[True, True], [True, False], [False, False], [True, True]]),
        ends=np.array([False, False, False, True]),
    )
    values = forward(network, batch.following)
    expected = batch.rewards + 0.5 * np.array([values[0].max(), values[1, 0], 0.0, 0.0])
    found = targets(network, batch, 0.5)
    assert found == pytest.approx(expected, abs=1e-6)
    assert found.dtype == np.float32


def test_it_learns_the_values_of_a_chain():
    """Places 0, 1, 2 in a row: action 1 goes on, action 0 stays; arriving at 2 pays 1 and ends."""
    places = np.eye(3, dtype=np.float32)
    replay = Replay(3, 2, 100)
    every, both = np.ones(2, np.bool_), (0, 1)
    for place in (0, 1):
        for action in both:
            after = place + action
            replay.add(Transition(places[place], action, float(after == 2), places[after], every, after == 2))
    learner = QLearner((3, 16, 16, 2), np.random.default_rng(1), 5e-3, 0.5)
    rng = np.random.default_rng(2)
    for step in range(1500):
        learner.step(replay.sample(rng, 16))
        if step % 10 == 0:
            learner.renew()
    assert learner.values(places[0]) == pytest.approx([0.25, 0.5], abs=0.03)
    assert learner.values(places[1]) == pytest.approx([0.5, 1.0], abs=0.03)


def test_the_older_copy_moves_when_told():
    learner = QLearner((3, 4, 2), np.random.default_rng(1), 1e-2, 0.9)
    before = learner.older[0].weight.copy()
    learner.step(batch_of(np.random.default_rng(5)))
    assert (learner.older[0].weight == before).all()
    learner.renew(0.5)
    assert learner.older[0].weight == pytest.approx((before + learner.network[0].weight) / 2, abs=1e-7)
    learner.renew()
    assert (learner.older[0].weight == learner.network[0].weight).all()


def test_a_replay_keeps_the_latest():
    replay = Replay(1, 1, 100)
    for number in range(250):
        replay.add(Transition(np.array([number], np.float32), 0, number, np.zeros(1), np.ones(1), False))
    assert len(replay) == 100
    drawn = replay.sample(np.random.default_rng(1), 5000)
    assert set(drawn.rewards.astype(int)) == set(range(150, 250))
    assert (drawn.states[:, 0] == drawn.rewards).all()
