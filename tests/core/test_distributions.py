"""Distribution functions and quantiles against SciPy's: wide ranges, both tails, arguments that are none."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from ascar import _core

TAILS = np.concatenate([10.0 ** -np.linspace(0.4, 300, 60), [5e-324, 1e-17]])
PROBABILITIES = np.concatenate([TAILS, np.linspace(0.01, 0.99, 99), 1 - 10.0 ** -np.arange(1.0, 16.0)])
BESIDE_HALF = 0.5 + np.array([1e-3, -1e-6, 1e-10, -1e-13, 1e-16])
PLACES = np.concatenate(
    [-np.logspace(-8, 3, 60), [0.0, 3.999999, 4.0, -3.999999, -4.0], np.logspace(-8, 3, 60)]
)
DEGREES = (0.7, 1.0, 2.0, 3.5, 9.0, 40.0, 299.0, 1e4, 1e6)
NONE = (math.nan, math.inf, -math.inf, -1.0, 0.0, -0.0, 1.0, 2.0, 5e-324, 1e300, -1e300)


def close(found, expected, rel=1e-12, abs_=0.0):
    np.testing.assert_allclose(found, expected, rtol=rel, atol=abs_)


def test_the_normal_distribution_is_scipys():
    # Below 1e-308 numbers have fewer digits; half an ulp of x² / 2 = 700 is 1e-13 of a probability.
    near = PLACES[np.abs(PLACES) < 37]
    close(_core.normal_below(near), special.ndtr(near))
    close(_core.normal_below_log(PLACES), special.log_ndtr(PLACES))
    close(_core.mills_ratio(near), math.sqrt(math.pi / 2) * special.erfcx(near / math.sqrt(2)))
    above = np.abs(PLACES)
    close(_core.mills_ratio(above), math.sqrt(math.pi / 2) * special.erfcx(above / math.sqrt(2)))
    for p in (PROBABILITIES, BESIDE_HALF):
        close(_core.normal_quantile(p), special.ndtri(p))
    assert _core.normal_below(-40.0) == 0.0 < _core.normal_below(-38.0)
    assert _core.normal_below(9.0) == 1.0


@pytest.mark.parametrize("dof", DEGREES)
def test_students_quantile_is_scipys(dof):
    # Below a tail of 1e-30 SciPy's own is off for few degrees; there the tail of what is found is asked for.
    usual = PROBABILITIES[(PROBABILITIES > 1e-30)]
    close(_core.student_t_quantile(usual, dof), stats.t.ppf(usual, dof), 1e-10)
    beside = _core.student_t_quantile(BESIDE_HALF, dof)
    close(beside, (BESIDE_HALF - 0.5) / stats.t.pdf(0, dof), 1e-5)
    assert _core.student_t_quantile(0.5, dof) == 0.0
    deep = 1e-100
    if dof >= 3:
        close(stats.t.cdf(_core.student_t_quantile(deep, dof), dof), deep, 1e-9)


@pytest.mark.parametrize("dof", DEGREES)
def test_chi_squared_is_scipys(dof):
    x = (
        dof * np.array([1e-3, 0.1, 0.5, 0.9, 0.999, 1.0, 1.001, 1.1, 2.0, 5.0])
        + np.array([0, 1, 30])[:, None]
    )
    expected = special.chdtrc(dof, x)
    counted = expected > 1e-290
    # A digit is lost where the place itself, not the sum, is rounded: dof ulps of it.
    close(_core.chi_squared_above(x, dof)[counted], expected[counted], 1e-12 * max(1.0, dof / 1e3))
    usual = PROBABILITIES[PROBABILITIES > 1e-280]
    close(_core.chi_squared_quantile_above(usual, dof), special.chdtri(dof, usual), 1e-10)


@pytest.mark.parametrize(("dof1", "dof2"), list(itertools.product((1.0, 2.0, 5.0, 60.0), DEGREES[1:])))
def test_f_is_scipys(dof1, dof2):
    x = np.array([1e-9, 1e-3, 0.3, 0.9, 1.0, 1.1, 2.0, 7.0, 40.0, 1e3, 1e8])
    expected = special.fdtrc(dof1, dof2, x)
    counted = expected > 1e-280
    tolerance = 1e-12 * max(1.0, dof2 / 1e3)
    found = _core.f_above(x, np.full(11, dof1), np.full(11, dof2))
    close(found[counted], expected[counted], tolerance)


@pytest.mark.parametrize(("a", "b"), list(itertools.product((0.5, 1.0, 2.0, 30.0, 5e3), repeat=2)))
def test_betas_quantile_is_scipys(a, b):
    for p in (1e-12, 1e-3, 0.025, 0.3, 0.5, 0.7, 0.975, 1 - 1e-3):
        close(_core.beta_quantile(p, a, b), special.betaincinv(a, b, p), 1e-10)


@pytest.mark.parametrize("dof", [1.0, 2.0, 3.0, 9.0, 30.0, 200.0, 999.0])
def test_noncentral_t_is_scipys(dof):
    for x, share in itertools.product(
        (-3.0, -0.1, 0.0, 0.5, 2.0, 10.0, 100.0), (-0.5, 0.0, 0.3, 0.8, 1.0, 1.2, 2.0)
    ):
        for noncentrality in (share * x, share):
            expected = float(stats.nct.cdf(x, dof, noncentrality)) if noncentrality else stats.t.cdf(x, dof)
            if not math.isnan(expected):  # as SciPy's is for few degrees far from the middle
                close(_core.noncentral_t_below(x, dof, noncentrality), expected, 0.0, 1e-11)


def test_noncentral_t_tends_to_its_limit_for_a_large_noncentrality():
    # T <= δ r if the deviation is at least 1 / r, but for 1 / δ²: where SciPy's own is off by 1e-8.
    for dof in (1.0, 2.0, 9.0, 300.0):
        for ratio in (0.8, 1.0, 1.3):
            found = _core.noncentral_t_below(3e6 * ratio, dof, 3e6)
            close(found, special.chdtrc(dof, dof / ratio**2), 0.0, 1e-10)


FUNCTIONS = {
    "normal_below": 1,
    "normal_below_log": 1,
    "normal_quantile": 1,
    "mills_ratio": 1,
    "student_t_quantile": 2,
    "chi_squared_above": 2,
    "chi_squared_quantile_above": 2,
    "f_above": 3,
    "beta_quantile": 3,
    "noncentral_t_below": 3,
}


@pytest.mark.parametrize(("name", "count"), FUNCTIONS.items())
def test_whatever_is_asked_there_is_an_answer(name, count):
    function = getattr(_core, name)
    for arguments in itertools.product(NONE, repeat=count):
        found = function(*arguments)
        assert isinstance(found, float)
        if any(math.isnan(one) for one in arguments):
            assert math.isnan(found), (arguments, found)
        if name.endswith(("below", "above")) and "quantile" not in name:
            assert math.isnan(found) or 0.0 <= found <= 1.0, (arguments, found)


def test_what_is_outside_is_no_number_and_the_ends_are_the_ends():
    assert _core.normal_quantile(0.0) == _core.student_t_quantile(0.0, 3) == -math.inf
    assert _core.normal_quantile(1.0) == _core.student_t_quantile(1.0, 3) == math.inf
    assert _core.chi_squared_quantile_above(1.0, 3) == 0.0
    assert _core.chi_squared_quantile_above(0.0, 3) == math.inf
    assert (_core.beta_quantile(0.0, 2, 3), _core.beta_quantile(1.0, 2, 3)) == (0.0, 1.0)
    assert _core.f_above(math.inf, 2, 3) == _core.chi_squared_above(math.inf, 2) == 0.0
    assert _core.f_above(-1.0, 2, 3) == _core.chi_squared_above(-1.0, 2) == 1.0
    for p in (-1e-300, 1.0000000001):
        assert math.isnan(_core.normal_quantile(p)) and math.isnan(_core.student_t_quantile(p, 3))
        assert math.isnan(_core.beta_quantile(p, 2, 3)) and math.isnan(_core.chi_squared_quantile_above(p, 2))
    for dof in (0.0, -1.0):
        assert math.isnan(_core.student_t_quantile(0.3, dof)) and math.isnan(_core.f_above(1.0, dof, 2))
        assert math.isnan(_core.chi_squared_above(1.0, dof)) and math.isnan(
            _core.noncentral_t_below(1.0, dof, 2)
        )


def test_an_array_has_an_answer_for_each_element_in_its_own_shape():
    x = np.arange(24.0).reshape(2, 3, 4) / 10
    assert _core.normal_below(x).shape == (2, 3, 4)
    close(_core.normal_below(x[:, ::-1].T), special.ndtr(x[:, ::-1].T))
    assert _core.normal_below(np.zeros((0, 3))).shape == (0, 3)
    assert _core.normal_below(np.array(0.0)).shape == ()
    assert _core.normal_below(np.array([1.0])).shape == (1,)
    close(_core.chi_squared_quantile_above(np.array([0.1, 0.9]), 7), special.chdtri(7, [0.1, 0.9]))
    with pytest.raises(ValueError, match=r"shape \[3\].*allowed: arrays of one shape"):
        _core.f_above(np.ones(2), np.ones(3), 1.0)
    for wrong in ("1", None, [1.0], np.ones(2, int), np.ones(2, np.float32)):
        with pytest.raises(TypeError):
            _core.normal_below(wrong)
