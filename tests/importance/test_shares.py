"""Shares of the variance add up to at most all of it, and none comes from a handful of rows."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.importance import FOR_PEOPLE, Factor, Observations, select


def observed(columns: dict[str, np.ndarray], values: np.ndarray) -> Observations:
    factors = [
        Factor(name, codes.astype(np.intp), tuple(map(str, range(int(codes.max()) + 1))))
        for name, codes in columns.items()
    ]
    return Observations(tuple(factors), values)


@pytest.mark.parametrize("seed", range(12))
def test_shares_and_interactions_sum_to_at_most_all(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(40, 400))
    columns = {name: rng.integers(0, rng.integers(2, 6), rows) for name in "abcd"}
    columns["e"] = np.where(rng.random(rows) < 0.7, columns["a"], 0)  # tells nearly the same as another
    effect = 3.0 * (columns["a"] == 0) * (columns["b"] == 1) + columns["c"] + 5 * (columns["b"] == 0)
    selection = select(observed(columns, 100 + effect + rng.normal(0, 1, rows)), FOR_PEOPLE, rng)
    shares = selection.shares()
    assert shares
    assert all(own >= 0 and both >= -1e-12 for own, both in shares.values())
    assert sum(own + both for own, both in shares.values()) <= 1 + 1e-9


def test_on_a_grid_an_interaction_is_told_apart_from_the_parameters_by_themselves():
    a, b = (grid.ravel() for grid in np.meshgrid([0, 1], [0, 1]))
    columns = {"a": np.repeat(a, 20), "b": np.repeat(b, 20)}
    values = 10.0 + 4 * columns["a"] + 2 * (columns["a"] == columns["b"])
    shares = select(
        observed(columns, values + 1e-3 * np.sin(np.arange(80))), FOR_PEOPLE, np.random.default_rng(1)
    ).shares()
    assert shares["a"] == pytest.approx((0.8, 0.0), abs=0.001)
    assert shares["b"] == pytest.approx((0.0, 0.2), abs=0.001)


def test_a_value_with_fewer_than_ten_rows_tells_nothing():
    a = np.array([0] * 30 + [1] * 9)
    b = np.arange(39) % 2
    observations = observed({"a": a, "b": b}, np.where(a == 1, 500.0, 100.0) + b)
    assert observations.too_few(10) == ("a",)
    selection = select(observations, FOR_PEOPLE, np.random.default_rng(1))
    assert "a" not in selection.selected
    assert next(one for one in selection.ranking if one.parameter == "a").importance == 0
