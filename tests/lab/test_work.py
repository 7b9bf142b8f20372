"""Experiments: what is kept, what is simulated again, in which order, within which budget."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from ascar.errors import StudyError, WorkError
from ascar.lab import (
    Archive,
    Budget,
    Conduct,
    Contender,
    Experiment,
    NoiseModel,
    TableSpecification,
    carry_out,
)
from ascar.lab import work as work_module
from ascar.lab.identity import sources_of
from ascar.systems.recording_columns import TableColumns

HERE = Conduct(workers=0)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{x},{y},{10 * x + y + again}" for x in range(6) for y in range(4) for again in range(2)]
    path.write_text("x,y,speed\n" + "\n".join(rows))
    return TableSpecification(str(path), "speed", True, TableColumns(("x", "y")), NoiseModel(replicates=True))


def experiment(table, kind="random", runs=3, evaluations=8, seed=1, **options):
    return Experiment(table, Contender(kind, options), Budget(runs, evaluations, (4,), seed))


def alike(one, two):
    return one.seed == two.seed and all(
        np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)
        for name in ("truth", "observed", "seconds", "ask_tell_s", "mutations", "recommended")
    )


@pytest.fixture
def counted(monkeypatch):
    """Seeds that were simulated, in order."""
    seeds, simulated = [], work_module.simulate

    def counting(specification, contender, budget, workers):
        seeds.append((contender.label, budget.seed))
        return simulated(specification, contender, budget, workers)

    monkeypatch.setattr(work_module, "simulate", counting)
    return seeds


def test_a_finished_run_is_never_simulated_again(table, tmp_path, counted):
    one = experiment(table, runs=3)
    first = carry_out([one], Archive(tmp_path / "out"), HERE)[one]
    assert counted == [("random", 1), ("random", 2), ("random", 3)]
    counted.clear()
    more = experiment(table, runs=5)
    then = carry_out([more], Archive(tmp_path / "out"), HERE)[more]
    assert counted == [("random", 4), ("random", 5)]
    assert [run.seed for run in then] == [1, 2, 3, 4, 5]
    assert all(alike(old, new) for old, new in zip(first, then, strict=False))


def test_runs_come_back_from_the_archive_as_they_were(table, tmp_path):
    for kind, evaluations in (("genetic", 20), ("random", 100)):  # 24 configurations: random is exhausted
        one = experiment(table, kind, evaluations=evaluations)
        first = carry_out([one], Archive(tmp_path / "out"), HERE)[one]
        again = carry_out([one], Archive(tmp_path / "out"), HERE)[one]
        assert all(alike(old, new) for old, new in zip(first, again, strict=True))
    frame = pl.read_parquet(Archive(tmp_path / "out").path(one))
    assert frame.columns[:4] == ["seed", "evaluation", "truth", "observed"]
    marked = frame.filter(pl.col("recommended_truth").is_not_null())["evaluation"].unique().sort()
    assert marked.to_list() == [4, 24]


def test_the_key_follows_what_matters(table, tmp_path):
    one = experiment(table)
    assert one.key == experiment(table, runs=9, seed=5).key
    others = [
        experiment(table, evaluations=9),
        experiment(table, "genetic"),
        experiment(table, "genetic", mutation=0.5),
        Experiment(table, one.contender, Budget(3, 8, (5,))),
        Experiment(
            TableSpecification(table.file, "speed", True, table.columns, NoiseModel()),
            one.contender,
            one.budget,
        ),
    ]
    assert len({one.key, *(other.key for other in others)}) == 6
    moved = tmp_path / "moved.csv"
    moved.write_bytes((tmp_path / "table.csv").read_bytes())
    there = TableSpecification(str(moved), "speed", True, table.columns, table.noise)
    assert Experiment(there, one.contender, one.budget).key == one.key
    moved.write_text(moved.read_text() + "\n9,9,9")
    assert Experiment(there, one.contender, one.budget).key != one.key


def test_the_code_that_decides_is_part_of_the_key():
    names = {path.name for path in sources_of("ascar.optimizers.trees")}
    assert {"trees.py", "ledger.py", "candidate_search.py", "space.py"} <= names
    assert "gp.py" not in names
    assert any(name.startswith("_core") for name in names)
    assert {"dqn.py", "learner.py"} <= {path.name for path in sources_of("ascar.optimizers.dqn")}


def test_seeds_go_to_all_experiments_alike(table, counted):
    one, two = experiment(table, runs=2), experiment(table, "annealing", runs=2)
    carry_out([one, two], None, HERE)
    assert counted[:2] == [("random", 1), ("annealing", 1)]
    assert sorted(counted) == [("annealing", 1), ("annealing", 2), ("random", 1), ("random", 2)]


def test_a_budget_ends_it_and_what_is_done_is_kept(table, tmp_path):
    one = experiment(table, runs=1000)
    some = carry_out([one], Archive(tmp_path / "out"), Conduct(budget_s=0.0, workers=0))[one]
    assert some == []
    done = carry_out([experiment(table, runs=4)], Archive(tmp_path / "out"), HERE)
    assert len(next(iter(done.values()))) == 4
    again = carry_out([one], Archive(tmp_path / "out"), Conduct(budget_s=0.0, workers=0))[one]
    assert [run.seed for run in again] == [1, 2, 3, 4]


def test_a_slow_optimizer_is_given_fewer_runs(table):
    one = experiment(table, runs=50)
    runs = carry_out([one], None, Conduct(workers=0, slow_s=0.0, runs_slow=3))[one]
    assert 3 <= len(runs) <= 19  # the first task was given out before its speed was known


def test_progress_is_told(table):
    told = []
    carry_out([experiment(table, runs=30)], None, HERE, told.append)
    assert told[-1].done == told[-1].wanted == 30
    assert told[-1].left_s == 0.0
    assert [one.done for one in told] == sorted(one.done for one in told)


def test_processes_give_the_same_runs(table):
    one = experiment(table, "genetic", runs=4)
    here = carry_out([one], None, HERE)[one]
    there = carry_out([one], None, Conduct(workers=2))[one]
    for old, new in zip(here, there, strict=True):
        assert (old.truth == new.truth).all()
        assert (old.observed == new.observed).all()


def test_an_optimizer_that_fails_is_named_and_what_is_done_is_kept(table, tmp_path, monkeypatch):
    one = experiment(table, runs=5)
    simulated = work_module.simulate

    def failing(specification, contender, budget, workers):
        if budget.seed == 3:
            raise ZeroDivisionError("division by zero")
        return simulated(specification, contender, budget, workers)

    monkeypatch.setattr(work_module, "simulate", failing)
    archive = Archive(tmp_path / "out")
    carry_out([experiment(table, runs=2)], archive, HERE)
    with pytest.raises(WorkError, match="'random' failed on 'table', seed 3: ZeroDivisionError"):
        carry_out([one], archive, HERE)
    assert [run.seed for run in archive.load(one)] == [1, 2]


def test_two_laboratories_keep_their_runs_in_one_file(table, tmp_path):
    """Each has read it before the other wrote."""
    one, more = experiment(table, runs=2), experiment(table, runs=4)
    first, second = Archive(tmp_path / "out"), Archive(tmp_path / "out")
    assert first.load(more) == second.load(more) == []
    carry_out([one], first, HERE)
    carry_out([more], second, HERE)
    first.keep(one, carry_out([one], None, HERE)[one])
    assert [run.seed for run in Archive(tmp_path / "out").load(more)] == [1, 2, 3, 4]


def test_files_that_are_not_ours_are_refused(table, tmp_path):
    one, archive = experiment(table), Archive(tmp_path / "out")
    archive.path(one).write_text("no parquet")
    with pytest.raises(StudyError, match="cannot be read as Parquet"):
        archive.load(one)
    pl.DataFrame({"seed": [1]}).write_parquet(archive.path(one))
    with pytest.raises(StudyError, match="does not have the columns"):
        archive.load(one)
    with pytest.raises(StudyError, match="--results = "):
        Archive(archive.path(one))
