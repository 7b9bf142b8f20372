from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from space_strategies import satisfiable, spaces

from ascar.errors import SpaceError
from ascar.space import ChangeCost, Guarantee, Space, boolean, categorical, floating, integer, ordinal, preset
from ascar.space.latin_hypercube import share_out

COST = ChangeCost.DYN_KERNEL


def counts(configurations, name):
    return Counter(configuration[name] for configuration in configurations if name in configuration)


def even(counter, values):
    """Whether all values occur equally often, to one."""
    numbers = [counter[value] for value in values]
    return max(numbers) - min(numbers) <= 1


@given(spaces(), st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_all_are_valid_and_repeat_with_the_seed(space, n):
    if not satisfiable(space):
        return
    sample = space.latin_hypercube(np.random.default_rng(3), n)
    assert len(sample) == n
    assert all(space.is_valid(configuration) for configuration in sample)
    assert sample == space.latin_hypercube(np.random.default_rng(3), n)


@given(spaces(), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_unconstrained_parameters_are_perfectly_even(space, n):
    free = Space(space.parameters)
    sample = free.latin_hypercube(np.random.default_rng(4), n)
    for parameter in free.parameters:
        if not getattr(parameter.domain, "log", False):
            assert even(counts(sample, parameter.name), list(parameter.domain.each()))


def test_storage_v3_covers_each_value_evenly_where_simple_sampling_does_not():
    space = preset("storage-v3").permit_weaker(Guarantee)
    sample = space.latin_hypercube(np.random.default_rng(1), 90)
    for parameter in space.parameters:
        assert even(counts(sample, parameter.name), parameter.domain.values), parameter.name
    assert counts(sample, "block_size_bytes") == {1024: 30, 2048: 30, 4096: 30}
    simple = counts(space.sample(np.random.default_rng(1), 9000), "block_size_bytes")
    assert simple[1024] < 0.27 * 9000


def test_storage_v5_is_even_among_the_samples_in_which_a_parameter_is_active():
    space = preset("storage-v5").permit_weaker(Guarantee)
    sample = space.latin_hypercube(np.random.default_rng(2), 60)
    assert counts(sample, "fs") == dict.fromkeys(space["fs"].domain.values, 12)
    for name in (
        "xfs_log_buffers",
        "btrfs_data_mode",
        "ext_commit_interval_s",
        "block_read_ahead_kb",
        "block_scheduler",
    ):
        assert even(counts(sample, name), space[name].domain.values), name


def test_constrained_values_are_as_even_as_validity_allows():
    # b = 2 needs a = 2, which half the samples have: 2 gets its half there, 1 the other.
    space = Space(
        (ordinal("a", (1, 2), default=1, cost=COST), ordinal("b", (1, 2, 3), default=1, cost=COST)),
        ("b == 1 or a == 2",),
    )
    sample = space.latin_hypercube(np.random.default_rng(2), 40)
    assert counts(sample, "a") == {1: 20, 2: 20}
    assert counts(sample, "b") == {1: 20, 2: 10, 3: 10}


@pytest.mark.parametrize("n", [1, 7, 100])
def test_continuous_and_wide_ranges_use_each_stratum_once(n):
    space = Space(
        (
            floating("x", (0, 1), default=0, cost=COST),
            floating("y", (1, 10_000), log=True, default=1, cost=COST),
            integer("z", (0, 10**6 - 1), default=0, cost=COST),
        )
    )
    sample = space.latin_hypercube(np.random.default_rng(2), n)
    assert sorted(int(c["x"] * n) for c in sample) == list(range(n))
    assert sorted(int(np.log(c["y"]) / np.log(10_000) * n) for c in sample) == list(range(n))
    assert sorted(c["z"] * n // 10**6 for c in sample) == list(range(n))


def test_long_ordered_lists_are_cut_into_as_many_strata_as_samples():
    space = Space(
        (integer("x", (0, 99), default=0, cost=COST), boolean("b", default=True, cost=COST)),
        ("b or x != 50",),
    )
    sample = space.latin_hypercube(np.random.default_rng(2), 10)
    assert sorted(configuration["x"] // 10 for configuration in sample) == list(range(10))


def test_ranges_in_a_branch_are_stratified_within_it():
    space = Space(
        (
            categorical("mode", ("a", "b"), default="a", cost=COST),
            floating("x", (0, 1), default=0, cost=COST, when='mode == "a"'),
        )
    )
    sample = [c["x"] for c in space.latin_hypercube(np.random.default_rng(2), 20) if c["mode"] == "a"]
    assert sorted(int(x * 10) for x in sample) == list(range(10))


def test_strata_of_different_parameters_are_paired_at_random():
    space = Space((ordinal("a", (0, 1), default=0, cost=COST), ordinal("b", (0, 1), default=0, cost=COST)))
    pairs = Counter()
    rng = np.random.default_rng(2)
    for _ in range(2000):
        first = space.latin_hypercube(rng, 4)[0]
        pairs[first["a"], first["b"]] += 1
    assert chisquare([pairs[pair] for pair in ((0, 0), (0, 1), (1, 0), (1, 1))]).pvalue > 1e-4


def test_constraints_on_ranges_are_met_and_the_strata_kept_where_exchanges_suffice():
    space = Space(
        (floating("x", (0, 1), default=0, cost=COST), floating("y", (0, 1), default=0.5, cost=COST)),
        ("x <= y + 0.5",),
    )
    n = 50
    sample = space.latin_hypercube(np.random.default_rng(2), n)
    assert all(c["x"] <= c["y"] + 0.5 for c in sample)
    assert sorted(int(c["x"] * n) for c in sample) == list(range(n))
    assert sorted(int(c["y"] * n) for c in sample) == list(range(n))


def test_tight_constraints_on_ranges_are_met_by_drawing_anew():
    space = Space((floating("x", (0, 1), default=0, cost=COST),), ("x < 0.1",))
    sample = space.latin_hypercube(np.random.default_rng(2), 30)
    assert len(sample) == 30
    assert all(c["x"] < 0.1 for c in sample)


def test_unsatisfiable_spaces_say_so():
    space = Space((floating("x", (0, 1), default=0, cost=COST),), ("x > 1",))
    with pytest.raises(SpaceError, match="x > 1"):
        space.latin_hypercube(np.random.default_rng(2), 3)


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True), max_size=7), st.integers(0, 9)
)
@settings(deadline=None)
def test_shares_are_the_most_even_there_are(allowed, seed):
    chosen = share_out(allowed, np.random.default_rng(seed))
    assert all(place in places for place, places in zip(chosen, allowed, strict=True))

    def least(index, numbers):
        """The least sum of squares that any assignment reaches."""
        if index == len(allowed):
            return sum(number * number for number in numbers)
        return min(
            least(index + 1, [*numbers[:place], numbers[place] + 1, *numbers[place + 1 :]])
            for place in allowed[index]
        )

    reached = sum(number * number for number in Counter(chosen).values())
    if len(allowed) <= 5:
        assert reached == least(0, [0] * 5)
