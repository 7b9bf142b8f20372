from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.importance import (
    Factor,
    Observations,
    SelectionOptions,
    conditional_importance,
    correlation,
    importance,
    interaction,
    relative_deviation,
    select,
)


def observed(values, **columns):
    factors = [
        Factor(name, np.array(codes, np.intp), tuple(map(str, range(max(codes) + 1))))
        for name, codes in columns.items()
    ]
    return Observations(tuple(factors), np.array(values, float))


@pytest.fixture
def by_hand():
    # P = 0: 1, 3; P = 1: 5, 11. Mean 5, variance (16 + 4 + 0 + 36) / 4 = 14; inside 1 and 9, weighted 5.
    return observed([1, 3, 5, 11], p=[0, 0, 1, 1], q=[0, 1, 0, 1])


def rng(seed=1):
    return np.random.default_rng(seed)


def test_importance_is_the_reduction_in_variance(by_hand):
    assert importance(by_hand, "p") == pytest.approx(14 - 5)
    # Q = 0: 1, 5, variance 4; Q = 1: 3, 11, variance 16; weighted 10.
    assert importance(by_hand, "q") == pytest.approx(14 - 10)


def test_conditional_importance_is_the_greatest_over_the_values(by_hand):
    # P = 0: variance 1, none left; P = 1: variance 9, none left.
    assert conditional_importance(by_hand, "q", ["p"]) == pytest.approx(9)
    assert conditional_importance(by_hand, "q", ["p"], "mean") == pytest.approx(5)


def test_two_parameters_may_be_given():
    everything = [(p, q, r) for p in (0, 1) for q in (0, 1) for r in (0, 1)]
    p, q, r = zip(*everything, strict=True)
    # R matters by 8 where P and Q are 1 alone: there the variance is 16, and none is left.
    observations = observed([100 * a + 10 * b + 8 * a * b * c for a, b, c in everything], p=p, q=q, r=r)
    assert conditional_importance(observations, "r", ["p", "q"]) == pytest.approx(16)
    assert conditional_importance(observations, "r", ["p", "q"], "mean") == pytest.approx(4)
    assert importance(observations, "r") == pytest.approx(1)
    assert interaction(observations, "p", "q") == pytest.approx(1)  # 8ab averaged over r: 4ab, variance 1
    assert select(observations, SelectionOptions(rsd_max=0, evidence=False), rng()).selected == (
        "p",
        "q",
        "r",
    )


def test_a_parameter_that_applies_to_some_rows_is_judged_by_those():
    # fs explains 100 and 0; mode applies where fs = 1 and explains 4 there, half of the rows.
    observations = observed(
        [0, 0, 0, 0, 8, 12, 8, 12], fs=[0, 0, 0, 0, 1, 1, 1, 1], mode=[-1, -1, -1, -1, 0, 1, 0, 1]
    )
    assert importance(observations, "fs") == pytest.approx(25)
    assert importance(observations, "mode") == pytest.approx(4 / 2)
    assert conditional_importance(observations, "mode", ["fs"]) == pytest.approx(4)
    assert conditional_importance(observations, "fs", ["mode"]) == pytest.approx(0)


def test_r_squared_is_the_explained_share(by_hand):
    assert correlation(by_hand) == pytest.approx({"p": 9 / 14, "q": 4 / 14})
    assert correlation(by_hand, ["p"]) == pytest.approx({"q": 1.0})
    # The same by least squares on dummy variables.
    dummies = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], float)
    rest = np.linalg.lstsq(dummies, by_hand.values, rcond=None)[1][0]
    assert correlation(by_hand)["p"] == pytest.approx(1 - rest / 56)


def test_relative_deviation_divides_once():
    assert relative_deviation(np.array([9.0, 11.0])) == pytest.approx(np.sqrt(2) / 10)
    assert relative_deviation(np.array([-9.0, -11.0])) == pytest.approx(np.sqrt(2) / 10)
    assert relative_deviation(np.array([5.0])) == 0
    assert relative_deviation(np.array([1.0, -1.0])) == np.inf
    # Many rows of the same spread have the same deviation; eq. 7.5 as printed would have a thousandth.
    many = np.tile([9.0, 11.0], 500_000)
    assert relative_deviation(many) == pytest.approx(0.1, rel=1e-5)


def grid(seed=0, noise=1.0):
    """Effects in the order a, b (which acts where a = 1 alone), c; d has none."""
    codes = np.stack(np.meshgrid(*(range(n) for n in (2, 3, 4, 5)), indexing="ij")).reshape(4, -1)
    a, b, c, d = np.tile(codes, 4)
    values = 1000 + 300 * a + 80 * a * b + 15 * c + noise * np.random.default_rng(seed).normal(size=len(a))
    return observed(values, d=d, c=c, b=b, a=a)


def test_the_order_of_known_effects_is_found():
    found = select(grid(), SelectionOptions(rsd_max=0.005), rng())
    assert found.selected == ("a", "b", "c")
    assert found.stop_reason == "rsd" and found.rsd_left < 0.005 < found.rsd
    assert found.stability == 1.0
    b = found.ranking[1]
    assert b.conditional_on == ("a",) and b.importance > 1.5 * b.importance_alone
    assert [one.conditional_on for one in found.ranking] == [(), ("a",), ("a", "b"), ("a", "b", "c")]
    assert not found.ranking[3].selected


def test_intervals_hold_the_true_importance():
    # The truth, by the values without noise: Var of 300 a + 80 a b over a's means (0 and 380) is 190 squared.
    held = 0
    for seed in range(40):
        one = select(grid(seed, noise=200.0), SelectionOptions(count_max=1), rng(seed)).ranking[0]
        assert one.parameter == "a"
        held += one.ci_low <= 190.0**2 <= one.ci_high
    assert held >= 34


def test_noise_alone_is_no_evidence():
    kept = 0
    for seed in range(40):
        noise = np.random.default_rng(seed)
        columns = {f"p{i}": noise.integers(0, 4, 60) for i in range(8)}
        found = select(observed(noise.normal(100, 20, 60), **columns), SelectionOptions(), rng())
        kept += len(found.selected)
        assert found.stop_reason == "no-evidence" or found.selected
    assert kept <= 5


def test_nothing_is_chosen_where_all_rows_are_alike():
    found = select(observed([100, 101, 100, 101], p=[0, 1, 0, 1], q=[0, 0, 1, 1]), SelectionOptions(), rng())
    assert found.selected == () and found.stop_reason == "rsd"
    assert found.ranking[0].parameter == "p"
    constant = select(observed([7, 7, 7, 7], p=[0, 1, 0, 1]), SelectionOptions(), rng())
    assert constant.stop_reason == "rsd" and constant.ranking[0].importance == 0


def test_parameters_that_split_alike_are_one():
    observations = grid()
    a = observations.factor("a")
    mirrored = Factor("mirrored", 1 - a.codes, a.labels)
    found = select(
        Observations((mirrored, *observations.factors), observations.values), SelectionOptions(), rng()
    )
    assert found.ranking[0].parameter == "mirrored" and found.ranking[0].same_as == ("a",)
    assert "a" not in [one.parameter for one in found.ranking[1:]]


def test_the_same_seed_gives_the_same_and_no_resampling_no_interval():
    assert select(grid(), SelectionOptions(), rng(5)) == select(grid(), SelectionOptions(), rng(5))
    bare = select(grid(), SelectionOptions(resamples=0), rng())
    assert bare.stability is None and bare.ranking[0].ci_low is None
    resampled = select(grid(), SelectionOptions(), rng())
    assert bare.ranking[0].importance == pytest.approx(resampled.ranking[0].importance)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="at least 2 rows"):
        observed([1.0], p=[0])
    with pytest.raises(InputError, match="'r'"):
        importance(grid(), "r")
    with pytest.raises(InputError, match="larger unit"):
        observed([1e300, -1e300], p=[0, 1])
    with pytest.raises(InputError, match="5000 different values, at most 1024"):
        observed(range(5000), p=range(5000))
