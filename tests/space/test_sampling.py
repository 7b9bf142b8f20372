import itertools
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import chisquare, kstest
from space_strategies import satisfiable, spaces

from ascar.errors import SpaceError
from ascar.space import ChangeCost, Guarantee, Space, boolean, categorical, floating, integer, ordinal, preset

COST = ChangeCost.DYN_KERNEL


def linear(space):
    return all(not getattr(parameter.domain, "log", False) for parameter in space.parameters)


@given(spaces())
@settings(max_examples=25, deadline=None)
def test_samples_are_uniform_over_the_valid_configurations(space):
    if not satisfiable(space) or not linear(space) or space.count() > 100:
        return
    n = 40 * space.count()
    counts = Counter(space.sample(np.random.default_rng(7), n))
    observed = [counts[configuration] for configuration in space.enumerate()]
    assert sum(observed) == n
    if len(observed) > 1:
        assert chisquare(observed).pvalue > 1e-5


@given(spaces())
@settings(max_examples=25, deadline=None)
def test_samples_are_valid_and_repeat_with_the_seed(space):
    if not satisfiable(space):
        return
    samples = space.sample(np.random.default_rng(3), 20)
    assert all(space.is_valid(configuration) for configuration in samples)
    assert samples == space.sample(np.random.default_rng(3), 20)


def test_storage_v3_has_a_quarter_of_its_samples_in_1k_blocks():
    samples = preset("storage-v3").permit_weaker(Guarantee).sample(np.random.default_rng(1), 12_000)
    counts = Counter(configuration["block_size_bytes"] for configuration in samples)
    expected = [12_000 * part / 3888 for part in (972, 1458, 1458)]
    assert chisquare([counts[size] for size in (1024, 2048, 4096)], expected).pvalue > 1e-4


def test_samples_of_a_huge_constrained_space_are_uniform():
    # Neighbours in a chain of 60 must differ: 3 * 2**59 configurations, of which rejection would find none.
    names = [f"x{index}" for index in range(60)]
    parameters = tuple(
        ordinal(name, (0, 1, 2), default=index % 2, cost=COST) for index, name in enumerate(names)
    )
    space = Space(parameters, tuple(f"{a} != {b}" for a, b in itertools.pairwise(names)))
    assert space.count() == 3 * 2**59
    samples = space.sample(np.random.default_rng(5), 2000)
    for name in ("x0", "x30", "x59"):
        counts = Counter(configuration[name] for configuration in samples)
        assert chisquare([counts[value] for value in (0, 1, 2)]).pvalue > 1e-4


def test_wide_integers_weigh_what_they_count():
    # With "wide" there are 1,000 configurations, without it one.
    space = Space(
        (
            boolean("wide", default=False, cost=COST),
            integer("x", (1, 1000), default=1, cost=COST, when="wide"),
        )
    )
    assert space.count() == 1001
    samples = space.sample(np.random.default_rng(5), 4000)
    assert sum(not configuration["wide"] for configuration in samples) < 20
    drawn = [configuration["x"] for configuration in samples if configuration["wide"]]
    assert chisquare(np.histogram(drawn, bins=10)[0]).pvalue > 1e-4


def test_continuous_parameters_do_not_outweigh_their_absence():
    space = Space(
        (boolean("on", default=False, cost=COST), floating("x", (0, 1), default=0, cost=COST, when="on"))
    )
    samples = space.sample(np.random.default_rng(5), 4000)
    drawn = [configuration["x"] for configuration in samples if configuration["on"]]
    assert abs(len(drawn) - 2000) < 200
    assert kstest(drawn, "uniform").pvalue > 1e-4


def test_logarithmic_integers_are_uniform_on_their_scale_inside_and_outside_constraints():
    for constraints in ((), ("x + y != 70",)):
        space = Space(
            (
                integer("x", (1, 64), log=True, default=1, cost=COST),
                integer("y", (0, 3), default=0, cost=COST),
            ),
            constraints,
        )
        samples = space.sample(np.random.default_rng(5), 4000)
        below = sum(configuration["x"] < 8 for configuration in samples)
        assert 0.5 < below / 4000 < 0.62  # log(7.5/0.5) / log(64.5/0.5) is 0.557


def test_constraints_on_continuous_ranges_are_met_by_rejection():
    space = Space(
        (
            floating("x", (0, 1), default=0, cost=COST),
            floating("y", (0, 1), default=0.5, cost=COST),
            ordinal("z", (1, 2), default=1, cost=COST),
        ),
        ("x + y <= 1", "x <= y"),
    )
    assert space.count() is None
    samples = space.sample(np.random.default_rng(5), 3000)
    assert all(
        configuration["x"] <= min(configuration["y"], 1 - configuration["y"]) for configuration in samples
    )
    # Uniform over the triangle: its density in x falls linearly from 0 to 1/2.
    assert kstest([c["x"] for c in samples], lambda x: 1 - (1 - 2 * np.asarray(x)) ** 2).pvalue > 1e-4


def test_what_rejection_never_finds_is_said_to_be_unsatisfiable():
    space = Space((floating("x", (0, 1), default=0, cost=COST),), ("x > 2",))
    with pytest.raises(SpaceError, match="in 10000 draws: constraints 'x > 2' cannot"):
        space.sample(np.random.default_rng(5), 1)
    with pytest.raises(SpaceError, match="x > 2"):
        space.default()


def test_a_range_too_wide_for_the_diagram_is_met_by_rejection():
    space = Space(
        (
            integer("x", (0, 10**6), default=0, cost=COST),
            categorical("mode", ("a", "b"), default="a", cost=COST),
        ),
        ('mode != "b" or x < 500000',),
    )
    assert space.count() is None
    samples = space.sample(np.random.default_rng(5), 3000)
    assert abs(sum(c["mode"] == "b" for c in samples) - 1000) < 120


def test_storage_v5_is_counted_and_sampled_fast():
    start = time.perf_counter()
    space = preset("storage-v5").permit_weaker([])
    count = space.count()
    counted_s = time.perf_counter() - start
    assert count > 10**8
    samples = space.sample(np.random.default_rng(5), 1)
    start = time.perf_counter()
    samples = space.sample(np.random.default_rng(5), 2000)
    sampled_s = time.perf_counter() - start
    assert len(set(samples)) > 1990
    # A hundred times what they take on a quiet machine; to enumerate the configurations would take days.
    assert counted_s < 5
    assert sampled_s / 2000 < 5e-3
