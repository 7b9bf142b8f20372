"""The Gaussian process against textbook formulas written out, and against its own derivative."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.surrogate.fitting import fit, most_probable
from ascar.surrogate.hyperparameters import SHORT, WIDE, KernelHyperparameters
from ascar.surrogate.observations import ModelObservations
from ascar.surrogate.posterior import HyperparameterPosterior
from ascar.surrogate.process import GaussianProcess


def observed(n=12, groups=(0, 1, 1), seed=1, noise=0.0):
    rng = np.random.default_rng(seed)
    columns = rng.random((n, len(groups)))
    loss = np.sin(4 * columns[:, 0]) + noise * rng.normal(size=n)
    return ModelObservations(columns, np.array(groups), loss, np.zeros(n), np.ones(n), np.zeros(n))


def test_the_posterior_is_the_textbook_one():
    seen = observed()
    hyper = KernelHyperparameters(np.log([2.0, 0.7]), np.log(1.7), np.log(0.02), np.log(0.05))
    weights = np.array([2.0, 0.7, 0.7])

    def kernel(a, b):
        r = np.sqrt((((a[:, None] - b[None]) ** 2) * weights).sum(2))
        smooth = 1.7 * (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r) + 4.0
        return smooth + 0.02 * (r == 0)

    asked = np.random.default_rng(2).random((5, 3))
    inverse = np.linalg.inv(kernel(seen.columns, seen.columns) + 0.05 * np.eye(12))
    cross = kernel(asked, seen.columns)
    mean, sd = GaussianProcess.condition(seen, hyper).predict(asked)
    assert mean == pytest.approx(cross @ inverse @ seen.loss, abs=1e-5)
    assert sd**2 == pytest.approx(np.diag(kernel(asked, asked) - cross @ inverse @ cross.T), abs=1e-5)


def test_the_gradient_is_the_derivative():
    seen = observed(noise=0.1)
    seen = ModelObservations(
        seen.columns, seen.groups, seen.loss, np.full(12, 0.02), np.arange(1.0, 13.0), np.arange(12) / 5
    )
    posterior = HyperparameterPosterior.of(seen)
    at = np.array([0.3, -1.0, 0.2, -1.5, -2.0])
    _, gradient = posterior.penalty(at)
    for index, slope in enumerate(gradient):
        step = np.eye(5)[index] * 1e-6
        above, below = (posterior.penalty(at + way * step)[0] for way in (1, -1))
        assert slope == pytest.approx((above - below) / 2e-6, rel=1e-4, abs=1e-5)


def test_it_learns_which_parameter_matters_and_how_large_the_noise_is():
    rng = np.random.default_rng(5)
    columns = rng.random((80, 4))
    loss = np.sin(6 * columns[:, 2]) + 0.2 * rng.normal(size=80)
    loss = (loss - loss.mean()) / (spread := loss.std())
    fitted = fit(ModelObservations(columns, np.arange(4), loss, np.zeros(80), np.ones(80), np.zeros(80)))
    assert np.argmax(fitted.hyper.weight_log) == 2
    assert fitted.hyper.weight_log[2] - np.delete(fitted.hyper.weight_log, 2).max() > np.log(20)
    # Without a repetition nothing tells noise from a configuration's own: together they are right.
    apart = np.exp(fitted.hyper.noise_log) + np.exp(fitted.hyper.rough_log)
    assert np.sqrt(apart) * spread == pytest.approx(0.2, rel=0.25)


def test_it_finds_a_short_length_where_a_long_one_is_a_local_optimum():
    # A valley in an ordered parameter of three values, beside a strong category: a fit that starts with long
    # lengths alone takes the valley for noise.
    rng = np.random.default_rng(3)
    place, kind = rng.integers(0, 3, 60) / 2, rng.integers(0, 2, 60).astype(float)
    loss = np.abs(place - 0.5) * 2 + 3 * kind + 0.05 * rng.normal(size=60)
    seen = ModelObservations(
        np.column_stack([place, kind]),
        np.arange(2),
        (loss - loss.mean()) / loss.std(),
        np.zeros(60),
        np.ones(60),
        np.zeros(60),
    )
    fitted = fit(seen)
    mean, _ = fitted.predict(np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]))
    assert mean[1] < min(mean[0], mean[2]) - 0.3


def test_known_variance_and_repeats_count():
    columns = np.array([[0.0], [0.0]])
    hyper = KernelHyperparameters(np.zeros(1), 5.0, -30.0, np.log(0.1))

    def mean_at(variance, repeats):
        seen = ModelObservations(
            columns, np.arange(1), np.array([0.0, 1.0]), np.array(variance), np.array(repeats), np.zeros(2)
        )
        return GaussianProcess.condition(seen, hyper).predict(np.array([[0.0]]))[0][0]

    assert mean_at([0.0, 0.0], [1.0, 1.0]) == pytest.approx(0.5, abs=1e-3)
    assert mean_at([0.9, 0.0], [1.0, 1.0]) == pytest.approx(10 / 11, abs=5e-3)
    assert mean_at([0.0, 0.0], [4.0, 1.0]) == pytest.approx(0.2, abs=1e-3)


def test_equal_losses_and_equal_rows_are_no_trouble():
    for columns in (np.zeros((6, 2)), np.random.default_rng(1).random((6, 2))):
        seen = ModelObservations(columns, np.arange(2), np.zeros(6), np.zeros(6), np.ones(6), np.zeros(6))
        mean, sd = fit(seen).predict(columns)
        assert np.isfinite(mean).all()
        assert np.isfinite(sd).all()
        assert mean == pytest.approx(0.0, abs=1e-6)


def test_repetitions_tell_the_noise_even_where_neighbours_cannot():
    rng = np.random.default_rng(8)
    columns = rng.random((15, 1))
    truth = rng.normal(size=15)  # no structure: each configuration is its own
    evaluations = truth[:, None] + 0.3 * rng.normal(size=(15, 4))
    loss = evaluations.mean(1)
    scatter = ((evaluations - loss[:, None]) ** 2).sum(1)
    seen = ModelObservations(columns, np.arange(1), loss, np.zeros(15), np.full(15, 4.0), scatter)
    fitted = fit(seen)
    assert np.exp(0.5 * fitted.hyper.noise_log) == pytest.approx(0.3, rel=0.25)


def test_what_is_believed_counts_as_one_exact_evaluation_more():
    seen = observed()
    hyper = KernelHyperparameters(np.log([2.0, 0.7]), 0.0, -30.0, np.log(1e-4))
    place = np.full((1, 3), 0.5)
    believed = seen.believing(place, np.array([3.0]))
    assert len(believed.loss) == 13 and believed.repeats[-1] == 1 and len(seen.loss) == 12
    mean, sd = GaussianProcess.condition(believed, hyper).predict(place)
    assert mean[0] == pytest.approx(3.0, abs=0.02) and sd[0] < 0.02
    assert GaussianProcess.condition(seen, hyper).predict(place)[1][0] > 5 * sd[0]


def test_a_prior_of_short_lengths_takes_less_for_known():
    rng = np.random.default_rng(2)
    columns = np.linspace(0, 1, 5)[:, None]
    seen = ModelObservations(
        columns, np.arange(1), 0.3 * rng.normal(size=5), np.full(5, 0.1), np.ones(5), np.zeros(5)
    )
    weights = []
    for lengths in (WIDE, SHORT):
        posterior = HyperparameterPosterior.of(seen, rough=False, lengths=lengths)
        assert posterior.middle.weight_log[0] == pytest.approx(
            KernelHyperparameters.prior(1).weight_log[0] + 2 * np.log(lengths.shorter)
        )
        weights.append(most_probable(posterior, (posterior.middle,), 40).hyper.weight_log[0])
    assert weights[1] > weights[0]  # shorter lengths, larger weights
