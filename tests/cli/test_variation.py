from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace

from ascar.history import History
from ascar.results.measurement import Series
from ascar.results.trial import Purpose, TrialState
from ascar.study import Study
from studies import SMALL

NAMES = [
    *("range-mean", "across", "boxes", "cumulative", "bands"),
    *("windows", "instantaneous", "latencies", "correlations"),
]


@pytest.fixture
def table(tmp_path):
    """Two file systems under two loads, five runs each; ext4 varies most; the runs get slower."""
    rng = np.random.default_rng(0)
    rows = [
        (load, fs, size, number, 1000 * (1 - 0.02 * number) * rng.normal(1, 0.08 if fs == "ext4" else 0.005))
        for number in range(5)
        for load in ("mail", "web")
        for fs in ("ext4", "xfs")
        for size in (512, 1024, 2048, 4096)
    ]
    path = tmp_path / "table.csv"
    pl.DataFrame(rows, ["load", "fs", "size", "number", "iops"], orient="row").write_csv(path)
    return path


def words(table, *more):
    return ("variation", "--table", table, "--objective", "iops", *more)


def test_a_table_with_a_trend(ascar, table, tmp_path):
    document = ascar(
        *words(table, "--order", "number", "--by", "load", "--plots", tmp_path / "plots", "--json")
    ).document
    assert document["configurations"] == 16 and document["runs"] == 80
    assert document["goes_with"][0]["parameter"] == "fs"
    assert {one["configuration"]["fs"] for one in document["most_varying"][:4]} == {"ext4"}
    assert {one["cause"] for one in document["advice"]} & {"order", "first-run"}
    assert all(one["p_adjusted"] <= 0.05 for one in document["checks"] if one["held"])
    figures = {one["name"]: one for one in document["figures"]}
    assert list(figures) == NAMES
    drawn = {name for name, one in figures.items() if one["path"]}
    assert drawn == {"range-mean", "across", "boxes"}
    for name, one in figures.items():
        if name in drawn:
            assert "<svg" in (tmp_path / "plots" / f"{name}.svg").read_text()
        else:
            assert one["left_out"]


def test_people_read_numbers_and_advice(ascar, table):
    out = ascar(*words(table, "--order", "number")).out
    assert "16 configurations, 80 runs, 5 each" in out
    assert "Variation goes with fs" in out
    assert "evidence:" in out and "do:" in out and "p " in out
    assert "fs=ext4" in out


def test_order_is_no_parameter(ascar, table):
    document = ascar(*words(table, "--ignore", "number", "--json")).document
    assert document["configurations"] == 16
    assert document["checks"] == [] or all(one["cause"] != "order" for one in document["checks"])


@pytest.mark.slow
def test_the_datasets_of_the_project_together(ascar, tmp_path):
    document = ascar(
        "variation", "--table", "dataset:storage-v5-fileserver", "--table", "dataset:storage-v5-mailserver",
        "--objective", "operations", "--first-runs", 2, "--averaging", 1, "--averaging", 5,
        "--plots", tmp_path, "--json",
    ).document  # fmt: skip
    assert document["by"] == "source" and document["configurations"] == 320 and document["runs"] == 640
    fileserver, mailserver = document["groups"]
    assert "fileserver" in fileserver["name"] and fileserver["configurations"] == 160
    # docs/dataset.md has the same numbers.
    assert fileserver["range"]["median"] > mailserver["range"]["median"]
    assert document["goes_with"][0]["p_adjusted"] < 1e-6
    assert {one["window_s"] for one in document["windows"]} == {1.0, 5.0}
    by_group = [
        [w["range"]["median"] for w in document["windows"] if w["group"] == g["name"]]
        for g in document["groups"]
    ]
    assert all(short > long for short, long in by_group)
    assert all(one["path"] for one in document["figures"])
    assert "lazy-initialization" not in {one["cause"] for one in document["checks"]}


@pytest.fixture
def history(space, trial_of):
    """Four runs each of two configurations, with readings; a search's lucky trial, a failed one."""
    study = Study.parse(SMALL)
    rng = np.random.default_rng(0)
    configurations = list(space.enumerate())[:2]
    with History() as history, history.begin(study, space, {}) as run:
        number = 0
        for _ in range(4):
            for one in configurations:
                number += 1
                values = 100 * rng.normal(1, 0.1, 40)
                trial = trial_of(
                    number, one, float(values.mean()), purpose=Purpose.VERIFY,
                    series={"throughput_ops_per_s": Series(np.arange(1, 41) * 0.5, values)},
                    started_at=f"2030-01-01T00:{number:02d}:00.000+00:00",
                )  # fmt: skip
                run.start_trial(replace(trial, state=TrialState.RUNNING))
                run.finish_trial(trial)
        for purpose in (Purpose.SEARCH, Purpose.BIAS):
            number += 1
            lucky = trial_of(number, configurations[0], 1000.0, purpose=purpose)
            run.start_trial(replace(lucky, state=TrialState.RUNNING))
            run.finish_trial(lucky)


def test_a_run_of_the_history(ascar, history, tmp_path):
    document = ascar("variation", "small", "--plots", tmp_path, "--json").document
    assert document["configurations"] == 2 and document["runs"] == 8
    assert max(one["high"] for one in document["most_varying"]) < 200  # what a search chose is no repetition
    assert {one["name"] for one in document["figures"] if one["path"]} >= {
        "cumulative",
        "bands",
        "windows",
        "instantaneous",
    }
    assert "lazy-initialization" not in {one["cause"] for one in document["checks"]}
    assert document["settling"][0]["run_s"] == 20
    # An export says the same.
    assert ascar("history", "export", "small", "--out", tmp_path / "small.parquet").status == 0
    again = ascar(
        "variation", "--table", tmp_path / "small.parquet", "--objective", "throughput_ops_per_s", "--json"
    )
    assert again.status == 2 or again.document["runs"] == 8
    again = ascar(
        "variation", "--table", tmp_path / "small.parquet", "--objective", "trial.score", "--json"
    ).document
    for key in ("groups", "windows", "settling", "checks", "advice"):
        assert again[key] == document[key]


def test_studies_of_different_objectives_are_not_compared(ascar, history, space, trial_of):
    other = Study.parse(SMALL.replace("small", "other").replace("maximize throughput", "minimize latency"))
    with History() as kept, kept.begin(other, space, {}) as run:
        for number in (1, 2):
            trial = trial_of(number, space.default(), 3.0 + number, purpose=Purpose.SWEEP)
            run.start_trial(replace(trial, state=TrialState.RUNNING))
            run.finish_trial(trial)
    done = ascar("variation", "small", "other")
    assert done.status == 2 and "measure different things" in done.error
    assert ascar("variation", "small", "small").status == 2


def test_a_study_without_repetitions(ascar, space, trial_of):
    with History() as history, history.begin(Study.parse(SMALL), space, {}) as run:
        for number, one in enumerate(space.enumerate(), 1):
            trial = trial_of(number, one, 100.0 + number, purpose=Purpose.SWEEP)
            run.start_trial(replace(trial, state=TrialState.RUNNING))
            run.finish_trial(trial)
    done = ascar("variation", "small")
    assert done.status == 2 and "was measured twice" in done.error and "--replicates" in done.error


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--order", "when"), "--order = 'when': the table has no such column; it has load, fs"),
        (("--setup", "image"), "--setup = 'image'"),
        (("--series", "iops"), "--series = 'iops': the table has no readings"),
        (("--by", "nothing", "--ignore", "number"), "--by = 'nothing': is not a parameter"),
        (("--first-runs", "9", "--ignore", "number"), "--first-runs = 9: no configuration has so many runs"),
        ((), "was measured twice"),
        (("--parameters", "fs", "--ignore", "load"), "give one of the two"),
        (("--order", "load", "--ignore", "number"), "must hold numbers or instants"),
        (("--table", "none.csv"), "no such file"),
    ],
)
def test_what_cannot_be_is_refused(ascar, table, more, said):
    done = ascar(*words(table, *more))
    assert done.status == 2
    assert said in done.error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name a study, or a table"),
        (("small", "--table", "x.csv"), "one of the two"),
        (("--table", "x.csv"), "--objective"),
        (("small", "--objective", "y"), "applies only to a --table"),
    ],
)
def test_contradictions_are_refused(ascar, arguments, said):
    done = ascar("variation", *arguments)
    assert done.status == 2 and said in done.error


@pytest.mark.parametrize(
    "record",
    [
        "{", '{"series": {"a": {"seconds": ["x"], "values": [1]}}}', '{"series": 3}', "[" * 100_000,
        '{"change": {"step_s": {"format": "long"}}}',
    ],
)  # fmt: skip
def test_records_that_are_none_are_refused(ascar, tmp_path, record):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [1, 1], "y": [1.0, 2.0], "trial.record": [None, record]}).write_parquet(path)
    done = ascar("variation", "--table", path, "--objective", "y", "--parameters", "a")
    assert done.status == 2
    assert "row 2, trial.record" in done.error


@pytest.mark.parametrize(
    ("seconds", "values"),
    [
        ([1, 2], [1]),
        ([2, 1], [1, 1]),
        ([0, 1], [1, 1]),
        ([1, None], [None, 1]),
        ([], []),
        ([1e308, 1.7e308], [1e308] * 2),
    ],
)
def test_readings_out_of_order_are_left_out(ascar, tmp_path, seconds, values):
    path = tmp_path / "t.parquet"
    record = json.dumps({"series": {"y": {"seconds": seconds, "values": values}}})
    pl.DataFrame({"a": [1, 1], "y": [1.0, 2.0], "trial.record": [record, record]}).write_parquet(path)
    document = ascar(
        "variation",
        "--table",
        path,
        "--objective",
        "y",
        "--parameters",
        "a",
        "--plots",
        tmp_path / "p",
        "--json",
    ).document
    assert document["windows"] == [] and document["settling"] == []


def test_a_directory_that_cannot_be_made(ascar, table, tmp_path):
    (tmp_path / "file").write_text("")
    done = ascar(*words(table, "--ignore", "number", "--plots", tmp_path / "file" / "plots"))
    assert done.status == 1 and "--plots" in done.err
