"""Fits of the default search's model are those that SciPy's linear algebra and optimizer find."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, optimize

from ascar.surrogate.fitting import most_probable
from ascar.surrogate.hyperparameters import KernelHyperparameters
from ascar.surrogate.observations import ModelObservations
from ascar.surrogate.posterior import HyperparameterPosterior
from ascar.surrogate.process import GaussianProcess


def observed(n: int, parameters: int, seed: int) -> ModelObservations:
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, 5, (n, parameters)) / 4 if seed % 2 else rng.random((n, parameters))
    loss = np.sin(4 * columns[:, 0]) + columns[:, -1] ** 2 + 0.2 * rng.normal(size=n)
    loss = (loss - loss.mean()) / loss.std()
    repeats = rng.integers(1, 3, n).astype(float)
    variance = np.full(n, 0.01) if seed % 3 else np.zeros(n)
    return ModelObservations(columns, np.arange(parameters), loss, variance, repeats, 0.02 * (repeats - 1))


@pytest.mark.parametrize(("n", "parameters", "seed"), [(8, 2, 1), (20, 9, 2), (60, 5, 3)])
@pytest.mark.parametrize("rough", [True, False])
def test_a_fit_is_scipys(n, parameters, seed, rough):
    seen = observed(n, parameters, seed)
    posterior = HyperparameterPosterior.of(seen, rough=rough)
    for start in KernelHyperparameters.starts(parameters):
        # The steps are the same but for rounding, which grows with them.
        for iterations_max, apart in ((12, 1e-6), (40, 1e-2)):
            found = most_probable(posterior, [start], iterations_max)
            expected = optimize.minimize(
                posterior.penalty,
                np.clip(start.vector(), posterior.low, posterior.high),
                jac=True,
                method="L-BFGS-B",
                bounds=np.column_stack([posterior.low, posterior.high]),
                options={"maxiter": iterations_max},
            )
            assert found.hyper.vector() == pytest.approx(expected.x, abs=apart)
            assert found.penalty == pytest.approx(expected.fun, abs=1e-3)
            assert found.hyper.rough == rough


def test_the_evidence_is_that_of_scipys_factor():
    seen = observed(70, 6, 2)
    posterior = HyperparameterPosterior.of(seen)
    rng = np.random.default_rng(1)
    for _ in range(5):
        vector = rng.uniform(np.maximum(posterior.low, -4), np.minimum(posterior.high, 2))
        hyper = KernelHyperparameters.of(vector)
        process = GaussianProcess.condition(seen, hyper)
        covariance = process.cholesky.T @ process.cholesky
        factor = linalg.cho_factor(covariance)
        alpha = linalg.cho_solve(factor, seen.loss)
        single = np.exp(hyper.noise_log) + seen.variance * seen.repeats
        value = 0.5 * seen.loss @ alpha + np.log(np.diag(factor[0])).sum()
        value += 0.5 * ((seen.repeats - 1) * np.log(single) + seen.scatter / single).sum()
        value += 0.5 * (((vector - posterior.centre) / posterior.spread) ** 2).sum()
        assert posterior.penalty(vector)[0] == pytest.approx(value, rel=1e-9)
        assert process.weights == pytest.approx(alpha, rel=1e-6, abs=1e-8)


def test_predictions_are_those_of_scipys_factor():
    seen = observed(70, 6, 2)
    process = most_probable(HyperparameterPosterior.of(seen), KernelHyperparameters.starts(6), 40)
    asked = np.random.default_rng(3).random((300, 6))
    joint = process.joint(asked)
    lower = linalg.cholesky(process.cholesky.T @ process.cholesky, lower=True)
    solved = linalg.solve_triangular(lower, lower @ joint.solved, lower=True)
    assert joint.solved == pytest.approx(solved, abs=1e-8)
    known = process.joint(seen.columns, np.arange(70))
    # At what was measured the posterior is nearer the measurement than the prior's deviation.
    assert (known.sd < joint.sd.max()).all()
    assert np.corrcoef(known.mean, seen.loss)[0, 1] > 0.95


def test_a_covariance_that_is_not_positive_definite_is_an_error_as_ever():
    seen = observed(12, 2, 1)
    hyper = KernelHyperparameters(np.full(2, np.nan), 0.0, -30.0, -30.0)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        GaussianProcess.condition(seen, hyper)
