"""The order of a sweep: passes, groups, the subset that is measured more often."""

from collections import Counter

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.space import ChangeCost, Choices, Parameter, Range, Space
from ascar.sweep import SweepPlan, in_cheap_order, part_of, passes, subset_of


def parameter(name, values, cost):
    return Parameter(name=name, domain=Choices(tuple(values)), default=values[0], cost=cost)


@pytest.fixture
def space():
    """4 formats x 3 schedulers."""
    formats = parameter("format", ["a", "b", "c", "d"], ChangeCost.REFORMAT_RESTORE)
    scheduler = parameter("scheduler", ["none", "bfq", "kyber"], ChangeCost.DYN_KERNEL)
    return Space((scheduler, formats))


def formats_of(configurations):
    """The formats in the order in which they are made."""
    made = []
    for configuration in configurations:
        if not made or made[-1] != configuration["format"]:
            made.append(configuration["format"])
    return made


def test_every_pass_measures_everything_once_and_formats_least_often(space):
    planned = passes(space, SweepPlan(4), seed=1)
    for start in range(0, 48, 12):
        one = planned[start : start + 12]
        assert set(one) == set(in_cheap_order(space))
        assert len(formats_of(one)) == 4
    assert len(planned) == 48


def test_the_first_pass_is_in_order_and_the_others_in_orders_of_their_own(space):
    planned = passes(space, SweepPlan(5), seed=1)
    orders = [tuple(formats_of(planned[start : start + 12])) for start in range(0, 60, 12)]
    assert orders[0] == ("a", "b", "c", "d")
    assert len(set(orders)) >= 4
    assert planned == passes(space, SweepPlan(5), seed=1), "resuming needs the same order again"
    assert planned != passes(space, SweepPlan(5), seed=2)


def test_more_passes_leave_the_earlier_ones_as_they_were(space):
    assert passes(space, SweepPlan(3), seed=1) == passes(space, SweepPlan(5), seed=1)[:36]


def test_the_subset_is_measured_more_often_and_last(space):
    planned = passes(space, SweepPlan(2, subset=5, subset_replicates=6), seed=1)
    assert planned[:24] == passes(space, SweepPlan(2), seed=1)
    times = Counter(planned)
    chosen = subset_of(space, 5, seed=1)
    assert len(set(chosen)) == 5
    assert {times[one] for one in chosen} == {6}
    assert sorted(times.values()) == [2] * 7 + [6] * 5
    assert all(set(planned[start : start + 5]) == set(chosen) for start in range(24, 44, 5))


def test_a_subset_spreads_over_the_values(space):
    chosen = subset_of(space, 8, seed=3)
    counts = Counter(one["format"] for one in chosen)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_a_subset_as_large_as_the_space_is_the_space(space):
    assert subset_of(space, 12, seed=1) == in_cheap_order(space)
    assert subset_of(space, 1000, seed=1) == in_cheap_order(space)


def test_a_subset_of_an_endless_space_is_all_that_is_measured():
    depth = Parameter(name="depth", domain=Range(1.0, 9.0), default=1.0, cost=ChangeCost.DYN_KERNEL)
    formats = parameter("format", ["a", "b"], ChangeCost.REFORMAT_RESTORE)
    space = Space((depth, formats))
    planned = passes(space, SweepPlan(0, subset=10, subset_replicates=3), seed=0)
    assert set(Counter(planned).values()) == {3}
    assert len(set(planned)) == 10
    assert len(formats_of(planned[:10])) == 2
    strata = np.sort([one["depth"] for one in set(planned)])
    assert np.all(np.abs(strata - np.linspace(1.4, 8.6, 10)) <= 0.4 + 1e-9), "one sample a stratum"
    with pytest.raises(InputError, match=r"endlessly many valid configurations.*--subset"):
        passes(space, SweepPlan(1), seed=0)


@pytest.mark.parametrize(
    ("plan", "named"),
    [
        (SweepPlan(-1), "--replicates = -1"),
        (SweepPlan(1001), "--replicates = 1001"),
        (SweepPlan(0), "--replicates = 0"),
        (SweepPlan(1, subset=-1, subset_replicates=2), "--subset = -1"),
        (SweepPlan(1, subset=5), "--subset-replicates = 0"),
        (SweepPlan(1, subset_replicates=5), "--subset = 0"),
        (SweepPlan(3, subset=5, subset_replicates=3), "measured 3 times anyway"),
        (SweepPlan(1, subset=5, subset_replicates=1001), "--subset-replicates = 1001"),
    ],
)
def test_plans_that_cannot_be(plan, named):
    with pytest.raises(InputError, match=named):
        plan.check()


def test_parts_share_every_pass_between_them(space):
    plan = SweepPlan(3, subset=5, subset_replicates=6)
    whole = passes(space, plan, seed=1)
    parts = [passes(space, SweepPlan(3, None, 5, 6, (part, 3)), seed=1) for part in (1, 2, 3)]
    assert Counter(one for part in parts for one in part) == Counter(whole)
    for one in parts:
        assert 0 < len(one) < len(whole) / 2
    for configuration in set(whole):
        assert sum(configuration in part for part in parts) >= 2, "replicates are from different ones"


def test_parts_are_read_and_checked():
    assert part_of("2/3") == (2, 3)
    for text in ("", "2", "2/", "/2", "a/b", "-1/2", "1/2/3", "1/9999999999", "\u0661/2"):
        with pytest.raises(InputError, match="--part"):
            part_of(text)
    for part in ((0, 1), (2, 1), (1, 0), (1, 1001)):
        with pytest.raises(InputError, match="--part"):
            SweepPlan(part=part).check()
