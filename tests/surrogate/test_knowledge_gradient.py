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


def simulated(model, row, column, draws=4000):
    """Mean fall of the lowest posterior mean, by drawing outcomes and conditioning on each."""
    rng = np.random.default_rng(2)
    seen = model.observations
    at = np.array([[column]])
    joint = model.joint(at, np.array([row]))
    outcomes = joint.mean[0] + np.sqrt(joint.sd[0] ** 2 + model.noise_variance) * rng.normal(size=draws)
    before = look_at_measured(model).mean.min()
    after = []
    for outcome in outcomes:
        if row >= 0:
            loss, repeats = seen.loss.copy(), seen.repeats.copy()
            loss[row], repeats[row] = (loss[row] + outcome) / 2, 2.0
            more = ModelObservations(seen.columns, seen.groups, loss, seen.variance, repeats, seen.scatter)
        else:
            more = ModelObservations(
                np.vstack([seen.columns, at]),
                seen.groups,
                np.append(seen.loss, outcome),
                np.zeros(7),
                np.ones(7),
                np.zeros(7),
            )
        again = GaussianProcess.condition(more, model.hyper)
        after.append(again.joint(more.columns, np.arange(len(more.loss))).mean.min())
    fall = np.minimum(before, joint.mean[0] if row < 0 else before) - np.array(after)
    return fall.mean(), fall.std() / np.sqrt(draws)


@pytest.mark.slow
@pytest.mark.parametrize("column", [0.05, 0.5, 0.95])
def test_of_something_new_it_is_what_simulation_finds(column):
    model = process()
    measured = look_at_measured(model)
    told = knowledge_gradient(model, measured, model.joint(np.array([[column]])))[0]
    mean, error = simulated(model, -1, column)
    assert told == pytest.approx(mean, abs=4 * error + 0.1 * abs(mean) + 2e-3)


@pytest.mark.slow
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
