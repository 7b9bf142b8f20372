"""The deep Q-network: its actions, and what it makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import StudyError
from ascar.optimizers import Evaluation
from ascar.optimizers.dqn import DeepQNetwork
from ascar.optimizers.moves import Moves
from ascar.results.trial import TrialState
from ascar.space import ChangeCost, Range, Space, floating, integer
from ascar.testing.optimizers import sloped
from ascar.testing.spaces import branching, continuous, grid, tiny

SPACES = (branching(), grid(), continuous())


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)
def test_an_allowed_action_leads_to_another_valid_configuration(space):
    moves, rng = Moves.of(space), np.random.default_rng(1)
    for one in space.sample(rng, 20):
        for action in np.flatnonzero(moves.allowed(one)):
            after = moves.taken(one, int(action), rng)
            assert space.validate(after) == after


@pytest.mark.parametrize("space", [tiny(), grid()], ids=lambda space: space.name)
def test_every_configuration_can_be_walked_to(space):
    moves, rng = Moves.of(space), np.random.default_rng(1)
    known, border = {space.default()}, [space.default()]
    while border:
        one = border.pop()
        found = {moves.taken(one, int(action), rng) for action in np.flatnonzero(moves.allowed(one))}
        border += found - known
        known |= found
    assert known == set(space.enumerate())


def test_ranges_move_up_and_down_and_special_values_lead_back():
    cost = ChangeCost.DYN_APP
    space = Space(
        (
            floating("share", (0.0, 1.0), default=0.5, cost=cost),
            integer("size", (1, 100), special={"0": "automatic"}, default=0, cost=cost),
        )
    )
    moves, rng = Moves.of(space), np.random.default_rng(1)
    assert isinstance(space.domain("size"), Range)
    shares = sorted(
        moves.taken(space.default(), int(action), rng)["share"]
        for action in np.flatnonzero(moves.allowed(space.default()))
        if moves.codes.names[moves.gene[action]] == "share"
    )
    assert shares == pytest.approx([0.2, 0.45, 0.55, 0.8])
    sizes = {
        moves.taken(space.default(), int(action), rng)["size"]
        for action in np.flatnonzero(moves.allowed(space.default()))
        if moves.codes.names[moves.gene[action]] == "size"
    }
    assert len(sizes) == 1
    assert 40 <= sizes.pop() <= 60


def test_it_begins_at_the_default():
    assert DeepQNetwork(grid(), seed=4).ask() == grid().default()


def test_each_proposal_differs_from_a_known_one_in_one_parameter():
    space, loss = grid(), sloped(grid())
    optimizer, known = DeepQNetwork(space, seed=2), []
    for _ in range(30):
        one = optimizer.ask()
        if known:
            assert min(sum(one[name] != old[name] for name in space.names) for old in known) == 1
        known.append(one)
        optimizer.tell(Evaluation(one, TrialState.COMPLETE, loss(one)))


def test_it_learns_where_to_go():
    """Without random actions it finds a better place than a walk that never learns."""
    space = continuous()
    loss = sloped(space)

    def mean_best(**options):
        best = []
        for seed in range(6):
            optimizer, losses = DeepQNetwork(space, seed=seed, options=options), []
            for _ in range(100):
                one = optimizer.ask()
                losses.append(loss(one))
                optimizer.tell(Evaluation(one, TrialState.COMPLETE, losses[-1]))
            best.append(np.mean(losses[-40:]))
        return np.mean(best)

    assert mean_best() < 0.8 * mean_best(epsilon=1.0)


@pytest.mark.parametrize(
    ("key", "value"),
    [("epsilon", 1.5), ("discount", 1.0), ("width", 0), ("rate", 0.0), ("batch", 0), ("renewal", 0)],
)
def test_options_out_of_range_are_refused(key, value):
    with pytest.raises(StudyError, match=rf"optimizer\.{key} = .*must be from"):
        DeepQNetwork(grid(), options={key: value})
