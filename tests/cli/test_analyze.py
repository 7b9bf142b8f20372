from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def run_csv(tmp_path):
    rng = np.random.default_rng(1)
    values = 100 + rng.normal(size=1000)
    values[:200] += 40
    path = tmp_path / "run.csv"
    path.write_text("t,mb_per_s\n" + "".join(f"{i / 2},{value}\n" for i, value in enumerate(values)))
    return path


def test_the_document_has_everything_there_is_to_know(ascar, run_csv):
    done = ascar("analyze", run_csv, "--column", "mb_per_s", "--json")
    document = done.document
    assert done.status == 0
    assert document["readings"] == 1000
    assert document["n"] == document["stable_end"] - document["stable_start"]
    assert document["ci_low"] < 100 < document["ci_high"]
    assert document["change_points"] == [200]
    assert document["verdict"] == "reached"
    assert document["phases"][0]["kind"] == "warm-up"
    assert document["method"] == "corrected"


def test_people_see_what_was_removed_and_why(ascar, run_csv):
    out = ascar("analyze", run_csv, "--column", "mb_per_s").out
    for told in ("mean", "samples", "of 1,000 readings", "autocorrelation", "subsessions", "stable phase"):
        assert told in out
    assert "warm-up, readings 0 to 199: on another level, +40." in out
    assert "verdict" in out


def test_a_series_without_an_interval_is_no_failure_but_says_why(ascar, tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps([*[1.0] * 100, *[50.0] * 100, *[100.0] * 100]))
    done = ascar("analyze", path, "--json")
    assert done.status == 0
    assert done.document["ci_low"] is None
    assert done.document["verdict"] == "no-interval"
    assert "no stable phase" in done.document["reason"]
    assert "no interval: no stable phase" in ascar("analyze", path).out


def test_tables_and_plots_are_written(ascar, run_csv, tmp_path):
    files = {ending: tmp_path / f"out{ending}" for ending in (".csv", ".md", ".svg", ".png")}
    common = ("analyze", run_csv, "--column", "mb_per_s")
    assert ascar(*common, "--export", files[".csv"], "--plot", files[".svg"]).status == 0
    assert ascar(*common, "--export", files[".md"], "--plot", files[".png"]).status == 0
    head, row = files[".csv"].read_text().splitlines()
    cells = dict(zip(head.split(","), row.split(","), strict=True))
    assert cells["name"] == "mb_per_s"
    assert float(cells["ci_low"]) < 100 < float(cells["ci_high"])
    assert files[".md"].read_text().startswith("| name | mean | ci_low |")
    assert "<svg" in files[".svg"].read_text()
    assert files[".png"].read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_many_readings_stays_small(ascar, tmp_path):
    path = tmp_path / "long.csv"
    values = np.random.default_rng(1).normal(100, 1, 100_000)
    path.write_text("v\n" + "\n".join(map(str, values)) + "\n")
    assert ascar("analyze", path, "--plot", tmp_path / "long.svg").status == 0
    assert (tmp_path / "long.svg").stat().st_size < 500_000


def test_nodes_are_added_up(ascar, run_csv, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(run_csv.read_text())
    common = ("analyze", run_csv, other, "--column", "mb_per_s", "--json")
    document = ascar(*common, "--time", "t", "--combine", "sum").document
    assert document["mean"] == pytest.approx(200, rel=0.01)
    assert document["note"] == "sum over 2 nodes"
    assert "--combine" in ascar(*common[:-1]).error
    assert "--time" in ascar(*common[:-1], "--combine", "sum").error
    assert (
        "twice"
        in ascar("analyze", run_csv, run_csv, "--column", "mb_per_s", "--time", "t", "--combine", "sum").error
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--column", "none"), "no column 'none'"),
        (("--preset", "fast"), "preset = 'fast': must be one of quick, normal, strict"),
        (("--method", "best"), "--method = 'best'"),
        (("--confidence", "95"), "confidence"),
        (("--interval-width", "-1"), "--interval-width"),
        (("--autocorrelation-limit", "2"), "autocorrelation_limit"),
        (("--export", "a.xlsx"), "must end in .csv or .md"),
        (("--plot", "a.pdf"), "must end in .svg or .png"),
        (("--plot", "/nowhere/a.svg"), "does not exist"),
    ],
)
def test_wrong_options_are_refused(ascar, run_csv, arguments, told):
    done = ascar("analyze", run_csv, "--column", "mb_per_s", *arguments)
    assert done.status == 2
    assert told in done.error
