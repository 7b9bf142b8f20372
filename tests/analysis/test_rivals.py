from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from scipy.stats import f_oneway

from ascar.analysis.rivals import anova, fanova, permutation
from ascar.errors import EnvironmentLacks
from ascar.importance import Factor, Observations

HERE = importlib.util.find_spec("sklearn") is not None


@pytest.fixture
def observations():
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, k, 300) for k in (2, 3, 4)]
    values = 100 + 20 * codes[0] + 5 * codes[1] + rng.normal(0, 3, 300)
    return Observations(tuple(Factor(n, c, tuple("0123")) for n, c in zip("abc", codes, strict=True)), values)


def test_anova_is_that_of_scipy(observations):
    found = anova(observations)
    for factor in observations.factors:
        groups = [observations.values[factor.codes == one] for one in np.unique(factor.codes)]
        expected = f_oneway(*groups)
        assert found[factor.name].f == pytest.approx(expected.statistic)
        assert found[factor.name].p == pytest.approx(expected.pvalue)


@pytest.mark.skipif(not HERE, reason="scikit-learn is not installed")
@pytest.mark.parametrize("measure", [fanova, permutation])
def test_a_forest_finds_the_same_order(observations, measure):
    found = measure(observations)
    assert sorted(found, key=lambda name: -found[name]) == ["a", "b", "c"]
    assert found["a"] > 5 * found["b"] > 5 * found["c"]


@pytest.mark.skipif(HERE, reason="scikit-learn is installed")
@pytest.mark.parametrize("measure", [fanova, permutation])
def test_without_scikit_learn_it_says_what_to_install(observations, measure):
    with pytest.raises(EnvironmentLacks, match=r"ascar\[rivals\]"):
        measure(observations)
