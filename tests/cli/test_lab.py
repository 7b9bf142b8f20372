"""`ascar lab optimizers`, from the command line to its documents, files and plots."""

from __future__ import annotations

import polars as pl
import pytest

from ascar.cli.lab.progress import line_of
from ascar.lab import LabProgress

FIELDS = {
    "evaluations",
    "regret_mean",
    "regret_ci",
    "near_optimal_share",
    "recommended_true_over_best",
    "reported_over_true",
    "ask_tell_ms",
    "seconds_per_run",
}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = [
        f"{x},{y},{fs},{20 * x + 3 * y + (fs == 'b') + again},{x + 1}"
        for x in range(6)
        for y in range(5)
        for fs in "abc"
        for again in range(2)
    ]
    path.write_text("x,y,fs,speed,took_s\n" + "\n".join(rows))
    return path


def arguments(table, *more):
    return [
        "lab", "optimizers", "--table", str(table), "--objective", "speed", "--direction", "max",
        "--ignore", "took_s", "--runs", "3", "--evaluations", "12", "--checkpoints", "6", "--workers", "0",
        *more,
    ]  # fmt: skip


def test_the_document_has_what_is_promised(ascar, table):
    done = ascar(*arguments(table, "--optimizers", "random,genetic", "--json"))
    assert done.status == 0
    document = done.document
    assert [one["name"] for one in document["optimizers"]] == ["random", "genetic"]
    for one in document["optimizers"]:
        assert set(one) == FIELDS | {"name", "runs", "checkpoints"}
        assert (one["runs"], one["evaluations"]) == (3, 12)
        assert [mark["evaluations"] for mark in one["checkpoints"]] == [6, 12]
        assert all(set(mark) == FIELDS for mark in one["checkpoints"])
        assert one["regret_ci"][0] <= one["regret_mean"] <= one["regret_ci"][1]
        assert {key: one[key] for key in FIELDS} == one["checkpoints"][-1]
    (problem,) = document["problems"]
    assert (problem["name"], problem["best"], problem["median"]) == ("table", 113.5, 57.0)
    assert len(document["comparisons"]) == 1
    assert {one["name"] for one in document["ranks"]} == {"random", "genetic"}
    assert document["runs_missing"] == 0


def test_every_method_of_the_default_list_is_there(ascar, table):
    document = ascar(*arguments(table, "--runs", "1", "--json")).document
    names = [one["name"] for one in document["optimizers"]]
    assert names == ["random", "annealing", "genetic", "gp", "trees", "dqn", "auto"]
    assert all(one["regret_ci"] == [None, None] for one in document["optimizers"])


def test_the_same_seed_gives_the_same_document_but_for_time(ascar, table):
    def found(*more):
        document = ascar(*arguments(table, "--optimizers", "genetic", "--json", *more)).document
        return [one["regret_mean"] for one in document["optimizers"][0]["checkpoints"]]

    assert found("--seed", "7") == found("--seed", "7")
    assert found("--seed", "7") != found("--seed", "70")


def test_results_are_kept_and_gone_on_from(ascar, table, tmp_path):
    out = tmp_path / "results"
    more = ("--optimizers", "random", "--noise", "gaussian:0.1", "--results", str(out), "--json")
    ended = ascar(*arguments(table, *more, "--budget", "1 ms", "--runs", "500"))
    assert ended.status == 3
    missing = ended.document["runs_missing"]
    assert 0 < missing <= 500
    done = ascar(*arguments(table, *more))
    assert done.status == 0
    assert done.document["runs_missing"] == 0
    (file,) = out.iterdir()
    frame = pl.read_parquet(file)
    assert set(frame["seed"]) >= {1, 2, 3}
    assert frame.filter(pl.col("seed") == 1).height == 12


def test_people_see_a_table_and_the_tests(ascar, table):
    done = ascar(*arguments(table, "--optimizers", "random,annealing"))
    assert done.status == 0
    for text in ("regret at 6", "regret at 12", "random", "annealing", "reported/true", "is first"):
        assert text in done.out


def test_plots_are_drawn(ascar, table, tmp_path):
    done = ascar(
        *arguments(
            table, "--duration-column", "took_s", "--optimizers", "random,genetic",
            "--plots", str(tmp_path / "plots"), "--sweep", "genetic.mutation=0.02,0.2",
            "--restrict", "fs=a,x", "--json",
        )
    )  # fmt: skip
    assert done.status == 0
    names = {path.name for path in (tmp_path / "plots" / "table").iterdir()}
    assert names == {
        f"{name}.svg"
        for name in (
            "best-so-far", "best-so-far-time", "near-99", "near-99-time", "near-99.5", "near-99.5-time",
            "instantaneous", "regret", "stopping-window", "stopping-diversity", "alleles", "restricted",
            "sweep-genetic.mutation", "sweep-genetic.mutation-regret",
        )
    }  # fmt: skip
    assert len(done.document["plots"]) == len(names)
    assert [one["name"] for one in done.document["problems"]] == ["table", "table with fs, x fixed"]
    (sweep,) = done.document["sweeps"]
    assert [one["name"] for one in sweep["optimizers"]] == ["genetic mutation=0.02", "genetic mutation=0.2"]
    text = (tmp_path / "plots" / "table" / "best-so-far.svg").read_text()
    assert text.startswith("<?xml")
    assert "genetic" in text


def test_a_benchmark_is_run_over_its_problems(ascar, table, tmp_path):
    bench = tmp_path / "bench.toml"
    bench.write_text(
        'checkpoints_evaluations = [5, 10]\nseeds = 2\n[[table]]\nname = "one"\nfile = "table.csv"\n'
        'objective = "maximize speed"\nignore = ["took_s"]\nnoise = "replicates"\n'
        '[[synthetic]]\nname = "two"\nparameters = 6\neffective = 2\nseed = 1\nnoise = "gaussian:0.1"\n'
    )
    command = (
        "lab",
        "optimizers",
        "--benchmark",
        str(bench),
        "--optimizers",
        "random,annealing",
        "--workers",
        "0",
    )
    document = ascar(*command, "--json").document
    assert [one["name"] for one in document["problems"]] == ["one", "two"]
    assert [one["runs"] for one in document["optimizers"]] == [4, 4]
    for index in range(2):
        means = [problem["optimizers"][index]["regret_mean"] for problem in document["problems"]]
        assert document["optimizers"][index]["regret_mean"] == pytest.approx(sum(means) / 2)
    only = ascar(*command, "--problems", "two", "--json").document
    assert [one["name"] for one in only["problems"]] == ["two"]
    assert "mean rank" in ascar(*command).out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--direction", "up"), "--direction = 'up': must be min or max"),
        (("--objective", "sped"), "'sped' is not a column"),
        (("--objective", "fs"), "must be numeric"),
        (("--noise", "loud"), "must be 'replicates'"),
        (("--optimizers", "random,genetics"), "did you mean 'genetic'"),
        (("--optimizers", ","), "must be names"),
        (("--sweep", "genetic.mutation=2"), "optimizer.mutation = 2"),
        (("--sweep", "genetic.mutations=0.1"), "mutations: unknown key"),
        (("--sweep", "genetic"), "KIND.OPTION"),
        (("--restrict", "z=1"), "'z' is not a parameter"),
        (("--start", "fs=zfs"), "must be one of a, b, c"),
        (("--checkpoints", "0"), "--checkpoints"),
        (("--parameters", "x"), "--parameters and --ignore"),
        (("--budget", "soon"), "--budget"),
        (("--plot-format", "gif"), "must be svg or png"),
        (("--benchmark", "b.toml"), "leave it out with --benchmark"),
        (("--tables", "d"), "apply only to --benchmark"),
    ],
)
def test_bad_input_is_refused(ascar, table, more, message):
    done = ascar(*arguments(table, *more))
    assert done.status == 2
    assert message in done.err


def test_what_is_missing_is_asked_for(ascar, table):
    assert "--table" in ascar("lab", "optimizers").err
    assert "--objective is missing" in ascar("lab", "optimizers", "--table", str(table)).err


def test_a_line_of_progress_has_the_time_left():
    assert line_of(LabProgress(5, 20, 30.4, "gp on t")) == " 25%  5 of 20 runs, about 30 s left  (gp on t)"
    assert "left" not in line_of(LabProgress(0, 20, None, "gp on t"))
    assert "about 2 h left" in line_of(LabProgress(0, 20, 7200.0, "gp on t"))
