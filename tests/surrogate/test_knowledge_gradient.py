"""The knowledge gradient against simulation of what it foretells."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.surrogate.hyperparameters import KernelHyperparameters
from ascar.surrogate.knowledge_gradient import knowledge_gradient
from ascar.surrogate.observations import ModelObservations
from ascar.surrogate.process import GaussianProcess


def process(noise=0.3, rough=0.05):
    rng = np.random.default_rng(1)
    columns = rng.random((6, 1))
    loss = np.sin(5 * columns[:, 0]) + 0.3 * rng.normal(size=6)
    seen = ModelObservations(columns, np.arange(1), loss, np.zeros(6), np.ones(6), np.zeros(6))
    hyper = KernelHyperparameters(np.log([6.0]), 0.0, np.log(rough), np.log(noise))
    return GaussianProcess.condition(seen, hyper)


def look_at_measured(model):
    return model.joint(model.observations.columns, np.arange(6))


def conditioned(model, row, column, outcome):
    """The posterior means at all that was measured, once an outcome is known as well."""
    seen = model.observations
    if row >= 0:
        loss, repeats = seen.loss.copy(), seen.repeats.copy()
        loss[row], repeats[row] = (loss[row] + outcome) / 2, 2.0
        more = ModelObservations(seen.columns, seen.groups, loss, seen.variance, repeats, seen.scatter)
    else:
        more = ModelObservations(
            np.vstack([seen.columns, [[column]]]),
            seen.groups,
            np.append(seen.loss, outcome),
            np.zeros(7),
            np.ones(7),
            np.zeros(7),
        )
    again = GaussianProcess.condition(more, model.hyper)
    return again.joint(more.columns, np.arange(len(more.loss))).mean


def simulated(model, row, column, draws=100_000):
    """Mean fall of the lowest posterior mean, by drawing outcomes and conditioning on each.

    The means are linear in the outcome: two outcomes tell them for all, and others that this is so.
    """
    rng = np.random.default_rng(2)
    joint = model.joint(np.array([[column]]), np.array([row]))
    outcomes = joint.mean[0] + np.sqrt(joint.sd[0] ** 2 + model.noise_variance) * rng.normal(size=draws)
    base = conditioned(model, row, column, 0.0)
    slope = conditioned(model, row, column, 1.0) - base
    for outcome in outcomes[:20]:
        assert conditioned(model, row, column, outcome) == pytest.approx(base + slope * outcome, abs=1e-9)
    before = look_at_measured(model).mean.min()
    after = (base + slope * outcomes[:, None]).min(axis=1)
    fall = np.minimum(before, joint.mean[0] if row < 0 else before) - after
    return fall.mean(), fall.std() / np.sqrt(draws)


@pytest.mark.parametrize("column", [0.05, 0.5, 0.95])
def test_of_something_new_it_is_what_simulation_finds(column):
    model = process()
    measured = look_at_measured(model)
    told = knowledge_gradient(model, measured, model.joint(np.array([[column]])))[0]
    mean, error = simulated(model, -1, column)
    assert told == pytest.approx(mean, abs=4 * error + 0.1 * abs(mean) + 2e-3)


@pytest.mark.parametrize("row", [0, 3, 5])
def test_of_something_measured_it_is_what_simulation_finds(row):
    model = process()
    measured = look_at_measured(model)
    told = knowledge_gradient(model, measured, measured)[row]
    mean, error = simulated(model, row, model.observations.columns[row, 0])
    assert told == pytest.approx(mean, abs=4 * error + 0.1 * abs(mean) + 2e-3)


def test_without_noise_and_roughness_measuring_again_is_worth_nothing():
    model = process(noise=1e-9, rough=1e-12)
    measured = look_at_measured(model)
    assert knowledge_gradient(model, measured, measured) == pytest.approx(0.0, abs=1e-3)


def test_it_is_never_negative_but_for_rounding():
    model = process()
    candidates = model.joint(np.linspace(0, 1, 101)[:, None])
    assert (knowledge_gradient(model, look_at_measured(model), candidates) > -1e-9).all()
