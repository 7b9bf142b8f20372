"""Simulated annealing beyond the contract: schedules, acceptance, neighbours, replay."""

from __future__ import annotations

import pytest
from ask_and_tell import run

from ascar.errors import StudyError
from ascar.optimizers import Evaluation
from ascar.optimizers.annealing import AnnealingOptions, SimulatedAnnealing
from ascar.results.trial import TrialState
from ascar.testing import branching, grid
from ascar.testing.optimizers import sloped


def made(space, seed=1, **options):
    return SimulatedAnnealing(space, seed=seed, options=options)


def test_schedules_fall_as_written():
    linear = AnnealingOptions(cooling="linear", temperature=2.0, steps=10)
    assert [linear.at(moves) for moves in (0, 5, 10, 20)] == [2.0, 1.0, 0.0, 0.0]
    geometric = AnnealingOptions(cooling="geometric", temperature=2.0, rate=0.5)
    assert [geometric.at(moves) for moves in (0, 1, 3)] == [2.0, 1.0, 0.25]


def test_it_begins_at_the_default_and_moves_to_neighbours():
    space = grid()
    optimizer = made(space)
    first, second = (one.configuration for one in run(optimizer, sloped(space), 2))
    assert first == space.default()
    assert sum(first[name] != second[name] for name in space.names) == 1


def test_cold_it_only_accepts_what_is_not_worse():
    space, loss = grid(), sloped(grid())
    optimizer = made(space, temperature=0.0)
    best = loss(space.default())
    optimizer.tell(Evaluation(optimizer.ask(), TrialState.COMPLETE, best))
    place = space.default()
    for _ in range(60):
        asked = optimizer.ask()
        if sum(asked[name] != place[name] for name in space.names) == 1 and loss(asked) <= best:
            place, best = asked, loss(asked)
        optimizer.tell(Evaluation(asked, TrialState.COMPLETE, loss(asked)))
        assert optimizer._place is not None
        assert optimizer._place[1] <= best


def test_hot_it_accepts_worse_ones_about_as_often_as_metropolis_says():
    space = grid()
    loss = {True: 0.0, False: 1.0}
    accepted = 0
    runs = 400
    for seed in range(runs):
        optimizer = made(space, seed, temperature=2.0, steps=10_000)
        optimizer.tell(Evaluation(optimizer.ask(), TrialState.COMPLETE, loss[True]))
        worse = optimizer.ask()
        optimizer.tell(Evaluation(worse, TrialState.COMPLETE, loss[False]))
        accepted += optimizer._place is not None and optimizer._place[0] == worse
    # The spread of the losses 0 and 1 is 0.5, so T = 2 * 0.5 = 1, and exp(-1) of them are accepted.
    assert accepted / runs == pytest.approx(0.368, abs=0.08)


def test_replay_goes_on_exactly_after_every_prefix():
    space = branching()
    whole = run(made(space), sloped(space), 40)
    for stop in (1, 2, 15, 29):
        rebuilt = made(space)
        for evaluation in whole[:stop]:
            rebuilt.tell(evaluation)
        assert [one.configuration for one in run(rebuilt, sloped(space), 10)] == [
            one.configuration for one in whole[stop : stop + 10]
        ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cooling": "fast"}, "optimizer.cooling"),
        ({"temperature": -1.0}, "optimizer.temperature = -1.0: must be from 0"),
        ({"steps": 0}, "optimizer.steps = 0: must be from 1"),
        ({"rate": 1.5}, "optimizer.rate = 1.5: must be from 0 to 1"),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(StudyError, match=message):
        made(grid(), **options)
