"""The laboratory against problems small enough to know everything about."""

from __future__ import annotations

import numpy as np
import pytest

from ascar.errors import StudyError
from ascar.lab import (
    Budget,
    Contender,
    NoiseModel,
    SyntheticSpecification,
    TableSpecification,
    simulate,
    summarize,
)
from ascar.lab.summary import best_so_far, regrets
from ascar.lab.synthetic import Landscape
from ascar.systems.recording_columns import TableColumns


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = [
        f"{x},{y},{10 * x + y + repetition},{x + 1}"
        for x in range(6)
        for y in range(4)
        for repetition in range(2)
    ]
    path.write_text("x,y,speed,took_s\n" + "\n".join(rows))

    def specify(maximize=True, noise="replicates"):
        return TableSpecification(
            str(path), "speed", maximize, TableColumns(("x", "y"), seconds="took_s"), NoiseModel.parse(noise)
        )

    return specify


def test_a_table_knows_its_truth(table):
    up, down = table().build(), table(maximize=False).build()
    assert (up.sign, up.best, up.median) == (-1, -53.5, pytest.approx(-27.0))
    assert (down.sign, down.best, down.median) == (1, 0.5, pytest.approx(27.0))
    one = up.space.validate({"x": 2, "y": 1})
    assert up.truth(one) == -21.5
    drawn = [up.draw(one, np.random.default_rng(seed)) for seed in range(20)]
    assert {loss for loss, _ in drawn} == {-21.0, -22.0}
    assert {seconds for _, seconds in drawn} == {3.0}


def test_noise_is_what_was_asked_for(table):
    none, gaussian = table(noise="none").build(), table(noise="gaussian:0.2").build()
    one = none.space.validate({"x": 2, "y": 1})
    rng = np.random.default_rng(1)
    assert {none.draw(one, rng)[0] for _ in range(9)} == {-21.5}
    drawn = np.array([gaussian.draw(one, rng)[0] for _ in range(4000)]) / -21.5
    assert drawn.mean() == pytest.approx(1.0, abs=0.02)
    assert drawn.std() == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize(
    "text", ["", "gauss:0.1", "gaussian", "gaussian:-1", "gaussian:x", "gaussian:nan", "none:1"]
)
def test_other_noise_is_refused(text):
    with pytest.raises(StudyError, match="must be 'replicates'"):
        NoiseModel.parse(text)


@pytest.mark.slow
def test_runs_are_the_same_for_any_number_of_workers(table):
    budget = Budget(runs=6, evaluations=10, checkpoints=(5,))
    here, there = (simulate(table(), Contender("random"), budget, workers) for workers in (0, 2))
    assert [run.seed for run in there] == [1, 2, 3, 4, 5, 6]
    for one, two in zip(here, there, strict=True):
        assert (one.truth == two.truth).all()
        assert (one.observed == two.observed).all()
        assert (one.recommended == two.recommended).all()


def test_a_run_tells_what_happened(table):
    told = []
    (run,) = simulate(table(), Contender("random"), Budget(1, 8, (3, 99)), 0, told.append)
    assert told == [run]
    problem = table().build()
    assert len(run.truth) == len(run.observed) == len(run.seconds) == len(run.ask_tell_s) == 8
    assert np.abs(run.truth - run.observed).max() == pytest.approx(0.5)
    lucky = int(np.argmin(run.observed))
    assert run.recommended[1] == pytest.approx([run.truth[lucky], run.observed[lucky]])
    assert run.recommended[0, 1] == run.observed[:3].min()
    assert regrets([run], problem, 1)[0] == pytest.approx((run.truth[lucky] + 53.5) / (53.5 - 27.0))
    assert (np.diff(best_so_far(run)) <= 0).all()


def test_an_exhausted_space_ends_a_run(table):
    (run,) = simulate(table(noise="none"), Contender("random"), Budget(1, 100), 0)
    assert len(run.truth) == 24
    assert run.recommended[0] == pytest.approx([-53.5, -53.5])
    (summary,) = summarize([run], table().build(), [100])
    assert summary.regret_mean == 0.0
    assert summary.near_optimal_share == 1.0
    assert summary.recommended_true_over_best == 1.0
    assert summary.reported_over_true == 1.0


def test_failed_evaluations_are_told_as_failed(tmp_path):
    path = tmp_path / "failing.csv"
    path.write_text("x,speed\n1,5\n2,\n3,7\n")
    specification = TableSpecification(str(path), "speed", True, TableColumns(("x",)))
    (run,) = simulate(specification, Contender("random"), Budget(1, 3), 0)
    assert np.isnan(run.observed).sum() == 1
    assert run.recommended[0, 0] == -7.0


def test_a_search_in_which_all_fails_has_the_middling_regret(tmp_path):
    path = tmp_path / "failing.csv"
    path.write_text("x,speed\n1,5\n2,6\n3,\n")
    specification = TableSpecification(str(path), "speed", True, TableColumns(("x",)))
    problem = specification.build()
    problem.draw = lambda configuration, rng: (float("nan"), 1.0)
    from ascar.lab.simulation import search

    run = search(problem, Contender("random"), Budget(1, 3), 1)
    assert np.isnan(run.recommended).all()
    assert regrets([run], problem, 0).tolist() == [1.0]


def test_a_landscape_s_optimum_is_known():
    landscape = Landscape.make(8, 3, seed=4)
    values = np.array(
        [landscape.value(one) for one in landscape.space.sample(np.random.default_rng(1), 20_000)]
    )
    assert values.max() <= landscape.best * (1 + 1e-12)
    assert values.max() > 0.93 * landscape.best
    assert np.median(values) < 0.8 * landscape.best


def test_only_effective_parameters_matter():
    landscape = Landscape.make(20, 5, seed=2)
    one, two = landscape.space.sample(np.random.default_rng(1), 2)
    mixed = {**two, **{name: one[name] for name in landscape.effective}}
    assert landscape.value(mixed) == landscape.value(one)
    for name in landscape.effective:
        assert landscape.value({**one, name: two[name]}) != landscape.value(one) or one[name] == two[name]


def test_the_same_seed_makes_the_same_problem():
    one, two, other = (SyntheticSpecification("s", 12, 4, seed).build().best for seed in (1, 1, 2))
    assert one == two != other


@pytest.mark.slow
def test_genetic_beats_random_on_a_smooth_problem():
    specification = SyntheticSpecification("s", 12, 4, 3, NoiseModel())
    problem, budget = specification.build(), Budget(12, 80)
    genetic, random = (
        np.mean(regrets(simulate(specification, Contender(kind), budget, 0), problem, 0))
        for kind in ("genetic", "random")
    )
    assert genetic < random
