"""Parameters that do not matter are frozen, on evidence and while it lasts."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import StudyError
from ascar.optimizers import Evaluation
from ascar.optimizers.auto import Auto
from ascar.optimizers.freezing import frozen_parameters
from ascar.optimizers.guided.evidence import gather
from ascar.results.trial import TrialState
from ascar.space import Space, boolean, categorical, integer
from ascar.space.cost import ChangeCost

COST = ChangeCost.DYN_KERNEL


def space():
    return Space(
        (
            categorical("strong", ("a", "b", "c"), default="a", cost=COST),
            integer("middling", (0, 1000), default=0, cost=COST),
            boolean("idle", default=False, cost=COST),
            integer("still", (1, 4), default=1, cost=COST),
            categorical("inner", ("x", "y"), default="x", cost=COST, when="strong != 'c'"),
        )
    )


def loss(configuration, rng, idle=0.0):
    strong = {"a": 0.0, "b": 3.0, "c": 6.0}[configuration["strong"]]
    return strong + configuration["middling"] / 500 + idle * configuration["idle"] + 0.3 * rng.normal()


def told(trials, idle=0.0):
    optimizer, rng = Auto(space(), seed=1), np.random.default_rng(2)
    for one in space().sample(rng, trials):
        optimizer.tell(Evaluation(one, TrialState.COMPLETE, loss(one, rng, idle)))
    return optimizer


def frozen(optimizer, share):
    evidence = gather(optimizer.ledger, optimizer.columns)
    mask = frozen_parameters(evidence, optimizer.columns, share, np.random.default_rng(3))
    return {name for name, out in zip(optimizer.columns.names, mask, strict=True) if out}


def test_what_explains_nothing_is_frozen_and_what_does_is_not():
    assert frozen(told(200), 0.1) == {"idle", "still", "inner"}
    assert frozen(told(200), 0.0) == set()


def test_few_observations_freeze_nothing():
    assert frozen(told(15), 0.5) == set()


def test_evidence_thaws():
    assert "idle" not in frozen(told(200, idle=6.0), 0.1)


def test_a_frozen_parameter_keeps_the_value_of_the_best():
    system = space()
    options = {"design": 1, "freeze": 0.1, "remeasure": False, "hyperparameters": "most-probable"}
    optimizer, rng = Auto(system, seed=1, options=options), np.random.default_rng(2)
    for one in system.sample(rng, 200):
        optimizer.tell(Evaluation(one, TrialState.COMPLETE, loss(one, rng)))
    optimizer.ask()  # the design
    for _ in range(5):
        best = optimizer.recommend().configuration
        one = optimizer.ask()
        assert system.is_valid(one)
        assert (one["idle"], one["still"]) == (best["idle"], best["still"])
        optimizer.tell(Evaluation(one, TrialState.COMPLETE, loss(one, rng)))


def test_a_share_beyond_one_is_refused():
    with pytest.raises(StudyError, match=r"optimizer\.freeze"):
        Auto(space(), options={"freeze": 1.5})
