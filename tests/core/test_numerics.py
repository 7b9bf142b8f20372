"""Cholesky factors and minimisation within bounds, against SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg, optimize

from ascar import _core

# On both sides of where matrices are halved, and primes.
SIZES = (1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 97, 128, 211)


def definite(n: int, seed: int = 1, condition: float = 1e4) -> np.ndarray:
    """A covariance of that condition, with junk below the diagonal, where nobody looks."""
    rng = np.random.default_rng(seed)
    base, _ = np.linalg.qr(rng.normal(size=(n, n)))
    found = base @ np.diag(np.logspace(0, -math.log10(condition), n)) @ base.T
    return np.triu(found) + np.tril(rng.normal(size=(n, n)), -1) * 1e6


def whole(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("condition", [1.0, 1e4, 1e11])
def test_factors_solutions_and_inverses_are_lapacks(n, condition):
    matrix, rng = definite(n, n, condition), np.random.default_rng(n)
    full, right, many = whole(matrix), rng.normal(size=n), rng.normal(size=(n, 7))
    factor = _core.cholesky_factor(matrix)
    assert (np.tril(factor, -1) == 0).all()
    # As good as LAPACK's: backward stable, whatever the condition.
    assert np.abs(factor.T @ factor - full).max() <= 1e-14 * max(n, 10)
    loose = 1e-15 * max(n, 10) * condition
    np.testing.assert_allclose(factor, linalg.cholesky(full), rtol=0, atol=loose)
    exact = linalg.cho_solve((factor, False), right)
    scale = np.abs(exact).max()
    np.testing.assert_allclose(_core.cholesky_solve(factor, right), exact, rtol=0, atol=loose * scale)
    expected = linalg.solve_triangular(factor, many, trans=1)
    for layout in (many, np.asfortranarray(many), many[:, ::-1][:, ::-1]):
        found = _core.cholesky_solve_transposed(factor, layout)
        np.testing.assert_allclose(found, expected, rtol=0, atol=loose * np.abs(expected).max())
        assert np.abs(factor.T @ found - many).max() <= 1e-13 * max(n, 10) * np.abs(found).max()
    inverse = matrix.copy()
    half_log, solution = _core.cholesky_solve_and_invert(inverse, right)
    assert half_log == pytest.approx(np.log(np.diag(factor)).sum(), rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(solution, exact, rtol=0, atol=loose * scale)
    reference = linalg.inv(full)
    np.testing.assert_allclose(whole(inverse), reference, rtol=0, atol=loose * np.abs(reference).max())


def test_any_layout_in_memory_will_do():
    matrix, right = whole(definite(20)), np.arange(40.0)[::2]
    spread = np.zeros((40, 60))
    spread[::2, ::3] = matrix
    expected = linalg.solve(matrix, right)
    for one in (matrix, np.asfortranarray(matrix), spread[::2, ::3], matrix[::-1][::-1]):
        factor = _core.cholesky_factor(one)
        np.testing.assert_allclose(_core.cholesky_solve(factor, right), expected, rtol=1e-9)
        np.testing.assert_allclose(
            _core.cholesky_solve(np.asfortranarray(factor), right), expected, rtol=1e-9
        )
        copy = one.copy(order="K")
        np.testing.assert_allclose(_core.cholesky_solve_and_invert(copy, right)[1], expected, rtol=1e-9)
        np.testing.assert_allclose(whole(copy), np.linalg.inv(matrix), rtol=1e-6, atol=1e-8)
    low, high = np.full((3, 2), -1.0).T[0], np.full((3, 2), 1.0).T[0]
    _, place = _core.minimize_bounded(
        lambda x: (float(x @ x), np.repeat(2 * x, 2)[::2]), np.ones((3, 2))[:, 0], low, high, 40
    )
    assert place == pytest.approx(np.zeros(3), abs=1e-6)


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    for n in (1, 16, 40, 100):
        for place in {0, n // 2, n - 1}:
            for pivot in (0.0, -1e-3, -math.inf, math.nan):
                matrix = np.eye(n)
                matrix[place, place] = pivot
                assert _core.cholesky_factor(matrix) is None, (n, place, pivot)
                assert _core.cholesky_solve_and_invert(matrix, np.ones(n)) is None, (n, place, pivot)
    # Singular but for rounding, as equal rows make a covariance: it takes a little on the diagonal.
    flat = np.full((60, 60), 4.0)
    assert _core.cholesky_factor(flat) is None
    assert _core.cholesky_factor(flat + 1e-8 * np.eye(60)) is not None
    beyond = np.eye(20)
    beyond[3, 7] = math.nan
    assert _core.cholesky_factor(beyond) is None


def test_what_does_not_fit_is_refused_and_nothing_at_all_is_nothing():
    with pytest.raises(ValueError, match="2 rows and 3 columns; allowed: as many"):
        _core.cholesky_factor(np.zeros((2, 3)))
    for function in (_core.cholesky_solve, _core.cholesky_solve_and_invert):
        with pytest.raises(ValueError, match="3 rows; allowed: 2"):
            function(np.eye(2), np.ones(3))
    with pytest.raises(ValueError, match="3 rows; allowed: 2"):
        _core.cholesky_solve_transposed(np.eye(2), np.ones((3, 4)))
    with pytest.raises(TypeError):
        _core.cholesky_factor(np.eye(2, dtype=np.float32))
    assert _core.cholesky_factor(np.zeros((0, 0))).shape == (0, 0)
    assert _core.cholesky_solve_transposed(np.eye(2), np.zeros((2, 0))).shape == (2, 0)
    assert _core.cholesky_solve_and_invert(np.zeros((0, 0)), np.zeros(0))[0] == 0.0


def rosenbrock(x):
    return float(optimize.rosen(x)), np.asarray(optimize.rosen_der(x), float)


def quartic(x):
    return float(((x - 0.3) ** 4).sum() + x @ x), 4 * (x - 0.3) ** 3 + 2 * x


def ill(x):
    scale = np.logspace(0, 6, len(x))
    return float(0.5 * (scale * (x - 1) ** 2).sum()), scale * (x - 1)


def wavy(x):
    return float((x * x + 10 * (1 - np.cos(2 * x))).sum()), 2 * x + 20 * np.sin(2 * x)


def linear(x):
    return float(x.sum()), np.ones(len(x))


WIDE = (-math.inf, math.inf)
PROBLEMS = [
    (rosenbrock, [-1.2, 1.0], [WIDE] * 2),
    (rosenbrock, [-1.2, 1.0], [(-2, 0.5), (-1, 2)]),
    (rosenbrock, [-1.2, 1.0, 3.0, -0.4, 0.2], [(-2, 2)] * 5),
    (rosenbrock, [0.0] * 12, [(-1, 0.8), WIDE, (0, math.inf), (-math.inf, 0.9)] * 3),
    (rosenbrock, [2.0] * 4, [(1.5, 3), (-4, 4), (-4, -1), (0, 0)]),  # bounds that hold, and a fixed variable
    (quartic, np.linspace(-3, 3, 30), [(-1, 2)] * 15 + [(0.5, 4)] * 15),
    (ill, [0.0] * 8, [(-2, 2)] * 4 + [(2, 3)] * 4),
    (ill, [5.0] * 6, [WIDE] * 6),
    (wavy, [2.4, -4.1, 0.3], [(-5, 5)] * 3),
    (linear, [0.2, 0.9, 5.0], [(0, 1), (-2, 2), (-1, 9)]),
]


@pytest.mark.parametrize(("function", "start", "bounds"), PROBLEMS)
@pytest.mark.parametrize("iterations_max", [3, 40, 500])
def test_steps_are_those_of_scipys_l_bfgs_b(function, start, bounds, iterations_max):
    low, high = (np.array(side, float) for side in zip(*bounds, strict=True))
    asked = []

    def counted(x):
        asked.append(x.copy())
        return function(x)

    value, place = _core.minimize_bounded(counted, np.array(start, float), low, high, iterations_max)
    expected = optimize.minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations_max}
    )
    assert all((low <= x).all() and (x <= high).all() for x in asked)
    assert value == function(place)[0]
    assert value == pytest.approx(expected.fun, rel=1e-6, abs=1e-8)
    assert len(asked) == pytest.approx(expected.nfev, rel=0.1, abs=2)
    if iterations_max == 3:  # the same steps, before rounding has grown
        np.testing.assert_allclose(place, expected.x, rtol=1e-7, atol=1e-9)


def test_a_function_that_breaks_or_lies_is_no_trouble():
    low, high = np.full(2, -1.0), np.full(2, 1.0)

    def fails(x):
        raise np.linalg.LinAlgError("not positive definite")

    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        _core.minimize_bounded(fails, np.zeros(2), low, high, 40)
    # Gradients that point the wrong way, no numbers, infinities, a cliff: an end, within the bounds.
    for function in (
        lambda x: (float(x @ x), -2 * x - 1),
        lambda x: (math.nan, np.full(2, math.nan)),
        lambda x: (math.nan, np.ones(2)),
        lambda x: (math.inf, np.ones(2)),
        lambda x: (-math.inf, np.ones(2)),
        lambda x: (float(x.sum()), np.array([1.0, math.inf])),
        lambda x: (math.inf if x[0] < 0.4 else float(x[0]), np.array([1.0, 0.0])),
        lambda x: (0.0, np.zeros(2)),
    ):
        _, place = _core.minimize_bounded(function, np.full(2, 0.5), low, high, 40)
        assert (low <= place).all() and (place <= high).all()
    for wrong in (lambda x: (0.0, np.zeros(3)), lambda x: 0.0, lambda x: (0.0, None)):
        with pytest.raises((ValueError, TypeError)):
            _core.minimize_bounded(wrong, np.zeros(2), low, high, 40)


def test_bounds_that_are_none_are_refused():
    for start, low, high in (
        ([0.0, 0.0], [-1.0], [1.0]),
        ([0.0], [1.0], [-1.0]),
        ([math.nan], [-1.0], [1.0]),
        ([0.0], [math.nan], [1.0]),
    ):
        with pytest.raises(ValueError, match="allowed: as many, no low one above its high one, no NaN"):
            _core.minimize_bounded(rosenbrock, np.array(start), np.array(low), np.array(high), 9)
    # A start outside is brought within.
    value, place = _core.minimize_bounded(quartic, np.array([9.0]), np.array([1.0]), np.array([2.0]), 40)
    assert place == pytest.approx([1.0]) and value == quartic(place)[0]
