import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.errors import SpaceError
from ascar.space import Choices, Range

ranges = st.builds(
    lambda low, width, step, log, whole: Range(
        low, low + width, step=step if whole else None, log=log, integer=whole
    ),
    st.integers(1, 50),
    st.integers(0, 200),
    st.integers(1, 7),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choices(()), "the list is empty"),
        (lambda: Choices((1, 2, 1)), "1 appears twice"),
        (lambda: Choices((True, 1)), "appears twice"),
        (lambda: Choices((1, "1")), "written alike"),
        (lambda: Choices((1, math.nan)), "must be finite"),
        (lambda: Choices((2**60,)), "at most 2\\*\\*53"),
        (lambda: Choices(("a\nb",)), "printable"),
        (lambda: Choices(("a" * 300,)), "at most 200 characters"),
        (lambda: Choices(([],)), "must be a string, a number"),
        (lambda: Choices(tuple(range(20_000))), "at most 10000"),
        (lambda: Range(3, 1), "low <= high must hold, but got low = 3, high = 1"),
        (lambda: Range(0, 1, log=True), "starts above zero"),
        (lambda: Range(0, 1, step=0), "above zero"),
        (lambda: Range(0, 1, step=-1), "above zero"),
        (lambda: Range(0, 10, step=0.5, integer=True), "must be an integer"),
        (lambda: Range(0.5, 10, integer=True), "must be an integer"),
        (lambda: Range(0, math.inf), "must be finite"),
        (lambda: Range("0", 3), "must be a number"),
        (lambda: Range(False, 3), "must be a number"),
        (lambda: Range(0, 1, step=1e-300), "too small"),
        (lambda: Range(0, 10, special=(5,)), "lies inside"),
    ],
)
def test_impossible_domains_are_refused(make, message):
    with pytest.raises(SpaceError, match=message):
        make()


def test_choices_canonical():
    domain = Choices((1, 2.5, "x", False))
    assert domain.canonical(1.0) == 1
    assert isinstance(domain.canonical(1.0), int)
    assert domain.canonical(False) is False
    for wrong in (True, 0, 2, "X", None, [1]):
        with pytest.raises(SpaceError, match=r"is not allowed; allowed: 1, 2\.5, 'x', False"):
            domain.canonical(wrong)


@pytest.mark.parametrize("wrong", [0, 11, 4.5, "4", True, None, math.nan, math.inf])
def test_range_canonical_refuses(wrong):
    with pytest.raises(SpaceError, match="allowed: integers from 1 to 10"):
        Range(1, 10, integer=True).canonical(wrong)


def test_range_canonical_kinds():
    assert isinstance(Range(1, 10, integer=True).canonical(4.0), int)
    assert isinstance(Range(1, 10).canonical(4), float)
    assert Range(0, 1, step=0.1).canonical(0.30000000000000004) == 0.3
    assert Range(1, 10, integer=True, special=(-1,)).canonical(-1) == -1
    with pytest.raises(SpaceError, match="between two steps"):
        Range(0, 10, step=4, integer=True).canonical(3)


def test_decimal_grid():
    domain = Range(0, 1, step=0.1)
    assert list(domain.each()) == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert domain.size == 11


def test_high_snaps_to_the_grid():
    assert Range(1, 10, step=4, integer=True).high == 9


@given(ranges, st.floats(0, 1, exclude_max=True))
def test_draws_and_quantiles_are_values(domain, share):
    for value in (domain.draw(share), domain.quantile(share), domain.nearest(share)):
        assert domain.canonical(value) == value


@given(ranges, st.floats(0, 1))
def test_position_and_nearest_are_inverse(domain, share):
    value = domain.nearest(share)
    assert domain.nearest(domain.position(value)) == pytest.approx(value)
    assert 0 <= domain.position(value) <= 1


@given(ranges)
def test_shares_add_up_and_match_the_quantiles(domain):
    if domain.size is None:
        return
    shares = {value: domain.share(value) for value in domain.each()}
    assert sum(shares.values()) == pytest.approx(1)
    n = 2000
    counts = Counter(domain.quantile((index + 0.5) / n) for index in range(n))
    for value, share in shares.items():
        assert abs(counts[value] - share * n) <= 2


def test_logarithmic_draws_are_uniform_in_the_logarithm():
    domain = Range(1, 1000, log=True)
    rng = np.random.default_rng(1)
    drawn = np.array([domain.draw(share) for share in rng.random(9000)])
    decades = np.histogram(np.log10(drawn), bins=[0, 1, 2, 3])[0]
    assert all(abs(count - 3000) < 200 for count in decades)


def test_special_values_are_drawn_as_often_as_others():
    domain = Range(1, 9, integer=True, special=(0,))
    rng = np.random.default_rng(1)
    counts = Counter(domain.draw(share) for share in rng.random(10_000))
    assert set(counts) == set(range(10))
    assert all(abs(count - 1000) < 150 for count in counts.values())


def test_huge_ranges_are_not_listed():
    domain = Range(0, 2**53, integer=True)
    assert domain.size == 2**53 + 1
    assert next(domain.each()) == 0
    assert domain.canonical(2**53 - 1) == 2**53 - 1
