"""Cholesky factors and what is solved with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

if TYPE_CHECKING:
    from numpy.typing import NDArray


def factored(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The lower Cholesky factor."""
    return np.asarray(linalg.cholesky(covariance, lower=True, check_finite=False), np.float64)


def solved_in_place(
    covariance: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """What the evidence needs of a covariance, whose lower triangle alone is read and which is overwritten.

    Returns:
        Half the logarithm of its determinant; its inverse times the right side, (n,); the lower triangle of
        its inverse, (n²,), above which nothing is said.
    """
    # LAPACK stores columns first: the upper triangle that it works on is ours below the diagonal.
    routines = cast("Any", lapack)
    factor, failed = routines.dpotrf(covariance.T, lower=0, clean=0, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError("the covariance is not positive definite")
    half_log = float(np.log(np.diag(factor)).sum())
    solved, _ = routines.dpotrs(factor, right, lower=0)
    inverse, _ = routines.dpotri(factor, lower=0, overwrite_c=1)
    return half_log, np.asarray(solved, np.float64), np.asarray(inverse, np.float64).T.reshape(-1)


def solve(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of the factored matrix, times the right side."""
    return np.asarray(linalg.cho_solve((factor, True), right, check_finite=False), np.float64)


def solve_lower(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The inverse of the factor, times the right side."""
    return np.asarray(linalg.solve_triangular(factor, right, lower=True, check_finite=False), np.float64)
