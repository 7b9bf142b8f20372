"""Gains per second: what evaluations took is learned, cheap changes preferred, equal seconds ignored."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ascar.errors import StudyError
from ascar.history import History
from ascar.loops.offline import tune
from ascar.optimizers import Evaluation
from ascar.optimizers.auto import Auto
from ascar.optimizers.guided.columns import SpaceColumns
from ascar.optimizers.ledger import Ledger
from ascar.optimizers.pricing import Prices, Pricing
from ascar.results.trial import Purpose, TrialState
from ascar.space import ChangeCost, Space, categorical, ordinal
from ascar.study import Study
from ascar.testing import branching, grid
from ascar.testing.optimizers import OptimizerContract, sloped

SLOW, MOUNT, QUICK = ChangeCost.REFORMAT_RESTORE, ChangeCost.REMOUNT, ChangeCost.DYN_KERNEL
CHANGE_S = {SLOW: 300.0, MOUNT: 5.0, QUICK: 1.0, None: 0.0}
LOAD_S = 60.0


def space():
    """Twins: whatever `slow` does, `quick` does as well, and so do `layout` and `mount`."""
    return Space(
        (
            ordinal("slow", [1, 2, 3, 4, 5, 6], default=3, cost=SLOW),
            ordinal("quick", [1, 2, 3, 4, 5, 6], default=3, cost=QUICK),
            categorical("layout", ["a", "b", "c"], default="a", cost=SLOW),
            categorical("mount", ["a", "b", "c"], default="a", cost=MOUNT),
            ordinal("page", [1, 2, 4], default=2, cost=SLOW, when='layout != "a"'),
        ),
        name="twins",
    )


def loss(one):
    uneven = {"a": 0.3, "b": 0.0, "c": 0.5}
    return (
        10
        + 0.1 * ((one["slow"] - 4) ** 2 + (one["quick"] - 4) ** 2)
        + uneven[one["layout"]]
        + uneven[one["mount"]]
    )


def opened(**options):
    return Auto(space(), seed=4, options=options)


def evaluated(before, one, value, load_s=LOAD_S):
    change_s = CHANGE_S[space().change(before, one).cost]
    return Evaluation(one, TrialState.COMPLETE, value, None, change_s + load_s, change_s=change_s)


def run(optimizer, trials, noise=0.3):
    """Told what each change took, from the default on."""
    rng, held, told = np.random.default_rng(1), space().default(), []
    for _ in range(trials):
        one = optimizer.ask()
        told.append(evaluated(held, one, loss(one) + noise * rng.normal()))
        optimizer.tell(told[-1])
        held = one
    return told


def kept(*evaluations):
    """Pricing that was told of evaluations."""
    twins = space()
    pricing = Pricing(Ledger(twins, 1), SpaceColumns.of(twins))
    for one in evaluations:
        pricing.ledger.tell(one)
        pricing.tell(one)
    return pricing


def varied(**values):
    return space().validate({**space().default(), **values})


def test_seconds_of_changes_are_those_that_such_changes_took():
    start = evaluated(space().default(), space().default(), 1.0)
    pricing = kept(
        start,
        Evaluation(varied(slow=1), TrialState.COMPLETE, 1.0, None, 360.0, change_s=300.0),
        Evaluation(varied(slow=2), TrialState.PRUNED, 1.0, None, 330.0, change_s=320.0),
        Evaluation(varied(slow=4), TrialState.COMPLETE, 1.0, None, 960.0, change_s=900.0),  # made slow once
        Evaluation(varied(slow=5), TrialState.FAILED, None, None, 3.0, change_s=3.0),
        Evaluation(varied(slow=5), TrialState.COMPLETE, 1.0, None, 60.5, change_s=0.5),
    )
    assert pricing.change_s(SLOW) == 320.0
    assert pricing.change_s(None) == 0.5


def test_what_was_never_changed_is_expected_to_cost_no_more_than_what_was():
    pricing = kept(evaluated(space().default(), space().default(), 1.0))
    assert [pricing.change_s(cost) for cost in (None, QUICK, MOUNT, SLOW)] == [0.0] * 4
    pricing = kept(
        evaluated(space().default(), space().default(), 1.0),
        evaluated(space().default(), varied(mount="b"), 1.0),
    )
    assert [pricing.change_s(cost) for cost in (None, QUICK, MOUNT, SLOW)] == [0.0, 0.0, 5.0, 5.0]


def test_in_force_is_what_was_asked_for_last_and_is_not_told_of_yet():
    optimizer = opened(per_second=True)
    pricing = optimizer._pricing
    assert pricing.in_force == space().default()
    one, two = optimizer.ask(), optimizer.ask()
    assert pricing.in_force == two
    optimizer.tell(evaluated(space().default(), one, 1.0))
    assert pricing.in_force == two
    optimizer.tell(evaluated(one, two, 1.0))
    assert pricing.in_force == two
    optimizer.tell(evaluated(two, one, 1.0))
    assert pricing.in_force == one


def test_prices_are_those_of_the_dearest_change_and_nothing_is_cheaper_than_no_change():
    default = space().default()
    optimizer = opened(per_second=True)
    steps = [default, default, varied(quick=1), varied(mount="b"), varied(slow=1), default]
    for before, after in pairwise([default, *steps]):
        optimizer.tell(evaluated(before, after, loss(after)))
    prices = optimizer._pricing.prices(optimizer._fitter.present())
    asked = [
        default,
        varied(quick=5),
        varied(mount="c", quick=2),
        varied(slow=4, quick=5),
        varied(layout="b", page=4),
    ]
    expected = [1.0, *(1 + CHANGE_S[cost] / LOAD_S for cost in (QUICK, MOUNT, SLOW, SLOW))]
    # From the third step to the fourth two parameters changed, the dearer a mount; the last two were formats.
    assert prices(optimizer.columns.rows(asked)).tolist() == pytest.approx(expected)


def test_loads_that_take_longer_where_a_parameter_is_high_are_expected_to():
    optimizer = opened(per_second=True, rough=False)
    rng, held = np.random.default_rng(2), space().default()
    for one in space().sample(rng, 40):
        optimizer.tell(evaluated(held, one, float(one["quick"]), load_s=10.0 * one["quick"]))
        held = one
    prices = optimizer._pricing.prices(optimizer._fitter.present())
    short, long = prices(optimizer.columns.rows([held.replaced(quick=1), held.replaced(quick=6)]))
    change = CHANGE_S[QUICK] / 35.0
    assert long - change > 3 * (short - change) > 0


@pytest.mark.parametrize("acquisition", ["knowledge-gradient", "expected-improvement"])
def test_where_gains_are_alike_the_expensive_change_is_avoided(acquisition):
    counts = {}
    for per_second in (False, True):
        told = run(opened(per_second=per_second, acquisition=acquisition), 40)
        configurations = [one.configuration for one in told]
        costs = [space().change(*pair).cost for pair in pairwise(configurations)]
        counts[per_second] = costs.count(SLOW)
    assert counts[True] < 0.7 * counts[False]


def test_the_design_is_measured_whole_with_fewer_expensive_changes():
    designs = {}
    for per_second in (False, True):
        optimizer = opened(per_second=per_second, design=24)
        designs[per_second] = [one.configuration for one in run(optimizer, 24)]
        assert optimizer.reason == "design"
    assert set(designs[True]) == set(designs[False])
    costs = {
        key: [space().change(*pair).cost for pair in pairwise(one)].count(SLOW)
        for key, one in designs.items()
    }
    assert costs[True] < costs[False]


@pytest.mark.slow
@pytest.mark.parametrize("where", [branching, grid])
def test_equal_seconds_change_no_proposal(where):
    """Neither do seconds where they do not count, nor seconds that nobody knows."""

    def proposed(per_second, seconds):
        searched = where()
        optimizer = Auto(searched, seed=3, options={"per_second": per_second})
        rng, asked = np.random.default_rng(3), []
        for number in range(
            24
        ):  # first the default twice, as a study does: what no change takes is known then
            asked.append(searched.default() if number < 2 else optimizer.ask())
            value = sloped(searched)(asked[-1]) + 0.3 * rng.normal()
            optimizer.tell(Evaluation(asked[-1], TrialState.COMPLETE, value, None, *seconds(len(asked))))
        return asked

    def varying(n):
        return float(n), (), 0.5 * n

    plain = proposed(False, lambda _: ())
    assert proposed(False, varying) == plain
    for seconds in (
        lambda _: (),
        lambda _: (7.0,),
        lambda _: (7.0, (), 2.0),
        lambda _: (float("nan"), (), float("nan")),
        lambda _: (float("inf"), (), -1.0),
    ):
        assert proposed(True, seconds) == plain


def test_even_prices_are_one():
    assert Prices.even(3)(np.random.default_rng(1).normal(size=(5, 3))).tolist() == [1.0] * 5


def test_a_search_told_its_history_goes_on_with_the_same_changes():
    whole = run(opened(per_second=True), 30)
    for stop in (5, 14, 25):
        rebuilt = opened(per_second=True)
        for evaluation in whole[:stop]:
            rebuilt.tell(evaluation)
        for evaluation in whole[stop:]:
            assert rebuilt.ask() == evaluation.configuration
            rebuilt.tell(evaluation)


class PerSecond(OptimizerContract):
    """What the contract says of proposals that are made once does not hold."""

    @staticmethod
    def make(space, **arguments):
        return Auto(space, **{**arguments, "options": {"per_second": True}})


@pytest.mark.slow
def test_whatever_becomes_of_batches_proposals_are_valid():
    PerSecond().test_whatever_becomes_of_batches_only_valid_and_new_ones_are_proposed()


@pytest.mark.parametrize("value", [1, "yes", 0.5, None])
def test_what_is_no_truth_value_is_refused(value):
    with pytest.raises(StudyError, match=r"^optimizer\.per_second") as caught:
        opened(per_second=value)
    assert "\n" not in str(caught.value)


TUNED = """
[study]
name = "changes"
objective = "maximize throughput_ops_per_s"
budget = "1 h"
[target]
kind = "simulated"
metrics = { throughput_ops_per_s = "1000 + 40 * depth + 10 * block" }
noise_relative_sd = 0.03
change_s = [0.1, 2, 20, 60]
[measurement]
load_min = "5 s"
load_max = "5 s"
[space.parameters.depth]
kind = "integer"
low = 1
high = 32
default = 1
cost = "dyn-kernel"
[space.parameters.block]
kind = "integer"
low = 0
high = 12
default = 0
cost = "reformat-restore"
[optimizer]
kind = "auto"
per_second = PER_SECOND
"""


@pytest.mark.slow
def test_a_study_makes_more_trials_and_fewer_expensive_changes(tmp_path):
    found = {}
    for per_second in ("false", "true"):
        with History(tmp_path / f"{per_second}.sqlite") as history:
            outcome = tune(Study.parse(TUNED.replace("PER_SECOND", per_second)), history)
            trials = [
                one
                for one in history.run(outcome.run_id).trials()
                if one.purpose is Purpose.DEFAULT or one.purpose.of_search
            ]
        formats = sum(one.change is not None and one.change.category == 3 for one in trials)
        found[per_second] = len(trials), formats / len(trials)
        assert formats > 3
    assert found["true"][0] >= found["false"][0]
    assert found["true"][1] < found["false"][1]
