"""Expected improvement against its definition, integrated numerically, and far into the tail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from ascar.surrogate.acquisition import (
    ACQUISITIONS,
    confidence_bound,
    expected_improvement,
    log_expected_improvement,
    log_probability_of_improvement,
)


@pytest.mark.parametrize(
    ("mean", "sd", "best"), [(0.0, 1.0, 0.0), (2.0, 0.5, 1.0), (-1.0, 3.0, 1.0), (0.3, 1e-3, 0.2995)]
)
def test_it_is_the_integral_of_the_improvement(mean, sd, best):
    integral, _ = quad(lambda f: (best - f) * norm.pdf(f, mean, sd), mean - 12 * sd, best)
    value = expected_improvement(np.array([mean]), np.array([sd]), best)[0]
    assert value == pytest.approx(integral, rel=1e-7)


def test_a_certain_prediction_improves_by_its_gap_or_not_at_all():
    values = expected_improvement(np.array([1.0, 3.0]), np.zeros(2), 2.0)
    assert values == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("z", [-1.0001, -0.9999, -5.0, -20.0, -100.0, -999.0, -1001.0, -1e5])
def test_the_logarithm_is_exact_in_the_tail(z):
    # With u = (best - f) / sd: EI = φ(z) ∫ u exp(zu - u²/2) du over u > 0, scaled here by 1/z².
    scaled, _ = quad(lambda v: v * np.exp(-v - 0.5 * (v / z) ** 2), 0, 60, epsabs=0, epsrel=1e-12)
    exact = -0.5 * z**2 - 0.5 * np.log(2 * np.pi) + np.log(scaled / z**2)
    value = log_expected_improvement(np.array([-z]), np.array([1.0]), 0.0)[0]
    assert value == pytest.approx(exact, abs=1e-5)


def test_the_order_survives_where_the_plain_value_underflows():
    values = log_expected_improvement(np.array([50.0, 60.0, 70.0]), np.ones(3), 0.0)
    assert values[0] > values[1] > values[2]
    assert np.isfinite(values).all()


def test_the_probability_of_improvement_is_that_of_a_hundredth_below_the_best():
    mean, sd = np.array([0.0, 1.0, 40.0, 0.5, 2.0]), np.array([1.0, 0.5, 1.0, 0.0, 0.0])
    values = log_probability_of_improvement(mean, sd, 1.0)
    assert values[:3] == pytest.approx(norm.logcdf((0.99 - mean[:3]) / sd[:3]))
    assert np.isfinite(values[2]), "far in the tail the order must survive"
    assert values[3:].tolist() == [0.0, -np.inf]


def test_the_confidence_bound_hopes_for_two_deviations():
    assert confidence_bound(np.array([1.0, 3.0]), np.array([0.5, 2.0]), 9.0).tolist() == [0.0, 1.0]


def test_each_prefers_lower_means_and_likes_to_know_less():
    for name, acquisition in ACQUISITIONS.items():
        values = acquisition(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 2.0]), -1.0)
        assert values[0] > values[1], name
        assert values[2] > values[1], name
