from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

from ascar.history import History
from ascar.results.trial import Failure, TrialState
from ascar.study import Study
from studies import SMALL


@pytest.fixture
def table(tmp_path):
    """A grid in which a matters most, b where a = on, c not; one trial failed."""
    rows = [
        (a, b, c, r) for a in ("off", "on") for b in (64, 128, 256) for c in (True, False) for r in range(8)
    ]
    noise = np.random.default_rng(0).normal(size=len(rows))
    frame = pl.DataFrame(rows, ["a", "b", "c", "r"], orient="row").with_columns(
        iops=pl.Series(
            [
                1000.0 + 500 * (a == "on") + (a == "on") * b + 2 * n
                for (a, b, _, _), n in zip(rows, noise, strict=True)
            ]
        )
    )
    frame[5, "iops"] = None
    path = tmp_path / "table.csv"
    frame.write_csv(path)
    return path


def test_the_ranking_of_a_table(ascar, table, tmp_path):
    done = ascar(
        "importance", "--table", table, "--objective", "iops", "--direction", "max",
        "--ignore", "r", "--rsd", "1", "--plots", tmp_path / "plots", "--json",
    )  # fmt: skip
    assert done.status == 0
    document = done.document
    assert [one["parameter"] for one in document["ranking"]] == ["a", "b", "c"]
    assert [one["selected"] for one in document["ranking"]] == [True, True, False]
    assert document["ranking"][1]["conditional_on"] == ["a"]
    assert document["stop_reason"] == "rsd" and document["rank_stability"] == 1.0
    assert document["rows"] == 95 and document["rows_failed"] == 1
    assert document["best_values"] == {"a": "on", "b": "256"}
    for path in document["plots"]:
        assert "<svg" in (tmp_path / path).read_text()
    assert len(document["plots"]) == 2


def test_people_read_what_matters(ascar, table):
    done = ascar("importance", "--table", table, "--objective", "iops", "--ignore", "r", "--samples", 48)
    assert done.status == 0
    assert "matter: a, b" in done.out
    assert "48 rows" in done.out and "1 failed trials" in done.out


def test_the_seed_decides_the_sample(ascar, table):
    words = ("importance", "--table", table, "--objective", "iops", "--samples", 24, "--json", "--seed")
    assert ascar(*words, 3).document == ascar(*words, 3).document
    assert ascar(*words, 3).document["mean"] != ascar(*words, 4).document["mean"]


def test_a_dataset_with_conditional_parameters(ascar):
    done = ascar(
        "importance", "--table", "dataset:storage-v5-mailserver", "--objective", "operations", "--json"
    )
    ranking = [one["parameter"] for one in done.document["ranking"]]
    assert ranking[0] == "fs"
    assert "atime" in ranking and "trial.number" not in ranking and "latency_ms_p99" not in ranking


def test_a_run_of_the_history(ascar, space, trial_of):
    study = Study.parse(SMALL)
    with History() as history, history.begin(study, space, {}) as run:
        for number, one in enumerate([*space.enumerate()] * 5, 1):
            rate = 100.0 + 50 * (one["fs"] == "xfs") + number % 2
            trial = trial_of(number, one, rate)
            run.start_trial(replace(trial, state=TrialState.RUNNING))
            run.finish_trial(trial)
        failed = trial_of(
            number + 1, one, None, state=TrialState.FAILED, failure=Failure("load", "no"), measurement=None
        )
        run.start_trial(replace(failed, state=TrialState.RUNNING))
        run.finish_trial(failed)
    document = ascar("importance", "small", "--json").document
    assert document["ranking"][0]["parameter"] == "fs"
    assert document["rows_failed"] == 1 and document["best_values"] == {"fs": "xfs"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "--objective = 'y': the table has no such column; it has a, b"),
        ("a,y\n1,2\n2,fast\n", "column 'y': row 2 holds 'fast'; an objective must hold numbers"),
        ("", "cannot be read"),
        ("a,y\n", "has no rows"),
        ("a,y\n1,\n2,\n", "column 'y'"),
        ("a,y\n1,3\n1,4\n", "0 parameters with more than one value"),
    ],
)
def test_bad_tables_are_refused(ascar, tmp_path, text, said):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    done = ascar("importance", "--table", path, "--objective", "y")
    assert done.status == 2
    assert said in done.error


def test_a_million_categories_are_refused(ascar, tmp_path):
    path = tmp_path / "many.parquet"
    number = pl.arange(1_000_000, eager=True)
    pl.DataFrame({"name": "n" + number.cast(pl.String), "y": number.cast(pl.Float64)}).write_parquet(path)
    done = ascar("importance", "--table", path, "--objective", "y")
    assert done.status == 2
    assert "column 'name': holds text of 1000000 different values, at most 1024" in done.error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a study, or a table"),
        (("small", "--table", "x.csv"), "one of the two"),
        (("--table", "none.csv", "--objective", "y"), "no such file"),
        (("--table", "none.csv"), "--objective"),
        (("small", "--objective", "y"), "applies only to a --table"),
        (("--table", "x.csv", "--objective", "y", "--across", "median"), "max or mean"),
        (("--table", "x.csv", "--objective", "y", "--direction", "up"), "min or max"),
    ],
)
def test_contradictions_are_refused(ascar, words, said):
    done = ascar("importance", *words)
    assert done.status == 2
    assert said in done.error
