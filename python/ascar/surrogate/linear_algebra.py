"""Cholesky factors and what is solved with them: a covariance is Uᵀ U, U upper triangular."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ascar import _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Found = TypeVar("_Found")


def factored(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The upper Cholesky factor U, (n, n); only the covariance's upper triangle is read.

    Raises:
        LinAlgError: the covariance is not positive definite.
    """
    return _definite(_core.cholesky_factor(covariance))


def solved_in_place(
    covariance: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """What the evidence needs of a covariance, whose upper triangle alone is read.

    It gives way to that of its inverse; what is below then means nothing.

    Returns:
        Half the logarithm of its determinant; its inverse times the right side, (n,).

    Raises:
        LinAlgError: the covariance is not positive definite.
    """
    return _definite(_core.cholesky_solve_and_invert(covariance, right))


def solve(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,): the inverse of the factored matrix, times the right side."""
    return _core.cholesky_solve(factor, right)


def solve_transposed(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, m): the inverse of the factor's transpose, times the right side."""
    return _core.cholesky_solve_transposed(factor, right)


def _definite(found: _Found | None) -> _Found:
    if found is None:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    return found
