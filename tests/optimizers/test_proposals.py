"""The queue of proposals: what waits comes first, and everything says where it comes from."""

from __future__ import annotations

import pytest

from ascar.errors import Exhausted
from ascar.optimizers import Evaluation, RandomSearch
from ascar.optimizers.proposals import Proposal, Proposals
from ascar.results.trial import Origin, TrialState
from ascar.space import Configuration, Space, integer

SPACE = Space((integer("depth", (1, 4), default=2),))


def of(depth):
    return Configuration({"depth": depth})


def test_what_waits_comes_before_the_optimizer_and_in_order():
    queue = Proposals(RandomSearch(SPACE, seed=1))
    queue.put(Proposal(of(3), Origin.RETRY, "the machine went down"))
    queue.put(Proposal(of(1), Origin.SIMILAR))
    found = [queue.take() for _ in range(3)]
    assert [one.configuration for one in found[:2]] == [of(3), of(1)]
    assert [one.origin for one in found] == [Origin.RETRY, Origin.SIMILAR, Origin.OPTIMIZER]


def test_a_start_configuration_keeps_its_origin_the_first_time_only():
    start = Proposal(of(4), Origin.KNOWN, "start.configurations[0]")

    class Repeating:
        def ask(self):
            return of(4)

    queue = Proposals(Repeating(), [start])
    assert queue.take() == start
    again = queue.take()
    assert again.configuration == of(4)
    assert again.origin is Origin.OPTIMIZER


def test_the_optimizers_reason_and_origin_are_kept():
    class Telling:
        origin = Origin.EXTERNAL
        reason = ""

        def ask(self):
            self.reason = "the neighbour of the best"
            return of(1)

    assert Proposals(Telling()).take() == Proposal(of(1), Origin.EXTERNAL, "the neighbour of the best")


def test_nothing_left_is_said_once_the_queue_is_empty():
    optimizer = RandomSearch(SPACE, seed=1)
    queue = Proposals(optimizer)
    for depth in range(1, 5):
        optimizer.tell(Evaluation(of(depth), TrialState.COMPLETE, 1.0))
    queue.put(Proposal(of(2), Origin.RETRY))
    assert queue.take().configuration == of(2)
    with pytest.raises(Exhausted):
        queue.take()
