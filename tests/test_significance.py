"""Tests of significance: held to hand calculations and to what they must not claim."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ascar.significance import holm, share, signed_rank_p_value


def test_holm_adjusts_step_by_step():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.4, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([0.7, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_signed_ranks_see_a_shift_and_no_side_of_equal_pairs():
    rng = np.random.default_rng(1)
    assert signed_rank_p_value(rng.normal(1.0, 1.0, 40)) < 1e-4
    assert signed_rank_p_value(np.zeros(5)) == 1.0
    few = np.array([1.0, 2.0, 3.0])
    assert signed_rank_p_value(np.concatenate([few, np.zeros(20)])) > signed_rank_p_value(few)


def test_signed_ranks_are_scipys_with_ties_and_equal_pairs():
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 40):
        for digits in (0, 1, 9):
            differences = np.round(rng.normal(0.3, 1, n), digits)
            expected = stats.wilcoxon(differences, zero_method="zsplit", method="asymptotic").pvalue
            if differences.any():
                assert signed_rank_p_value(differences) == pytest.approx(expected, rel=1e-12)


def test_exact_interval_of_a_share():
    # Clopper and Pearson, 9 of 10: e.g. R's binom.test(9, 10).
    assert share(9, 10) == pytest.approx((0.9, 0.5549839, 0.9974714), abs=1e-6)
    assert share(0, 10)[1] == 0
    assert share(10, 10)[2] == 1
    assert share(0, 0)[1:] == (0.0, 1.0)
