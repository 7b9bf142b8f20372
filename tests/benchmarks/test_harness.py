"""Budget, resuming and intervals of the benchmarks."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

SOURCE = Path(__file__).parents[2] / "benchmarks" / "harness.py"


@pytest.fixture(scope="module")
def harness():
    spec = importlib.util.spec_from_file_location("benchmarks_harness", SOURCE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def pieces(harness, done, names=("a", "b", "c")):
    def run(name):
        done.append(name)
        return {"value": len(done)}

    return [harness.Piece(name, lambda name=name: run(name)) for name in names]


def test_goes_on_where_it_was_cut_off(harness, tmp_path):
    done = []
    path = tmp_path / "results.jsonl"
    first = harness.Benchmark(60.0, path, harness.re.compile("a|b"), "one").run(pieces(harness, done))
    assert done == ["a", "b"]
    assert list(first) == ["a", "b"]
    with path.open("a") as file:
        file.write('{"key": "c", "build": "o')  # the run was killed while it wrote
    with path.open("a") as file:
        file.write("\n")
    second = harness.Benchmark(60.0, path, build="one").run(pieces(harness, done))
    assert done == ["a", "b", "c"]
    assert [found["value"] for found in second.values()] == [1, 2, 3]


def test_results_of_another_build_are_kept_but_not_used(harness, tmp_path):
    done = []
    path = tmp_path / "results.jsonl"
    harness.Benchmark(60.0, path, build="one").run(pieces(harness, done))
    harness.Benchmark(60.0, path, build="two").run(pieces(harness, done))
    assert done == ["a", "b", "c"] * 2
    builds = [json.loads(line)["build"] for line in path.read_text().splitlines()]
    assert builds == ["one"] * 3 + ["two"] * 3


def test_what_was_recorded_is_shown_of_every_build_with_its_days(harness, tmp_path, capsys):
    path, done = tmp_path / "results.jsonl", []
    path.write_text('{"key": "a", "build": "zero", "value": 1}\n')
    harness.Benchmark(60.0, path, harness.re.compile("b"), "one").run(pieces(harness, done))
    harness.Benchmark(60.0, path, harness.re.compile("b"), "two").run(pieces(harness, done))
    before = path.read_text()
    capsys.readouterr()
    benchmark = harness.Benchmark(60.0, path, build="three", recorded=True)
    found = benchmark.run(pieces(harness, done))
    assert [(key, one["build"]) for key, one in found.items()] == [("a", "zero"), ("b", "two")]
    assert done == ["b", "b"]
    assert path.read_text() == before
    today = datetime.now(UTC).date().isoformat()
    benchmark.tell_days()
    told = f"measured before: 2 pieces, on {today}, a day that was not recorded, by builds: 2\n"
    assert capsys.readouterr().out == told


def test_a_piece_may_have_a_build_of_its_own(harness, tmp_path):
    done = []
    path = tmp_path / "results.jsonl"

    def run(build):
        done.append(build)
        return {"value": len(done)}

    def found(whole, own):
        piece = harness.Piece("a", lambda: run(own), own)
        return harness.Benchmark(60.0, path, build=whole).run([piece])["a"]["value"]

    assert [found("one", "x"), found("two", "x"), found("two", "y"), found("one", "x")] == [1, 1, 2, 1]


def test_a_crate_is_compiled_from_its_own_sources_and_those_of_what_it_needs(harness):
    of_python = {file.relative_to(harness.ROOT).as_posix() for file in harness.crate_sources("python")}
    assert {"Cargo.lock", "crates/python/src/lib.rs", "crates/random/src/lib.rs"} <= of_python
    assert not [file for file in of_python if file.startswith("crates/interface/")]
    assert set(harness.crate_sources("random")) < set(harness.crate_sources("python"))


def test_a_digest_covers_what_is_imported(harness, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_a.py").write_text("from mine_b import x\nfrom json import loads\n")
    (tmp_path / "mine_b.py").write_text("x = 1\n")
    before = harness.sources("mine_a", within=("mine_",))
    assert before == harness.sources("mine_a", "mine_b", within=("mine_",))
    (tmp_path / "mine_b.py").write_text("x = 2\n")
    assert before != harness.sources("mine_a", within=("mine_",))


def test_begins_nothing_after_its_budget(harness, tmp_path):
    done = []
    assert harness.Benchmark(0.0, tmp_path / "results.jsonl").run(pieces(harness, done)) == {}
    assert done == []


def test_what_cannot_be_done_is_left_out_with_its_reason(harness, tmp_path, capsys):
    def cannot():
        raise RuntimeError("no such machine")

    wanted = [harness.Piece("x", cannot), *pieces(harness, [])]
    found = harness.Benchmark(60.0, tmp_path / "results.jsonl").run(wanted)
    assert list(found) == ["a", "b", "c"]
    assert "x is left out: no such machine" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10min", 600), ("1.5 h", 5400)])
def test_reads_times(harness, text, seconds):
    assert harness.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "-1s", "10 parsecs", "nan s"])
def test_refuses_other_times(harness, text):
    with pytest.raises(argparse.ArgumentTypeError, match="90s, 10min"):
        harness.seconds(text)


def test_ratio_of_pairs_is_geometric(harness):
    center, low, high = harness.ratio([2.0, 8.0, 4.0], [1.0, 1.0, 1.0])
    assert center == pytest.approx(4.0)
    assert low < center < high


def test_results_are_gathered_by_key_and_by_batch(harness):
    found = {
        "a, 5%, 0": {"v": 1},
        "a, 5%, 200": {"v": 2},
        "a, 10%, 0": {"v": 3},
        "b 0": {"v": 4},
        "b x": {"v": 5},
    }
    assert harness.present(found, ["b 0", "c", "a, 5%, 0"]) == [{"v": 4}, {"v": 1}]
    assert harness.batches(found, "a, 5%") == [{"v": 1}, {"v": 2}]
    assert harness.batches(found, "b") == [{"v": 4}]


def test_gains_and_shares_have_paired_intervals(harness):
    rng = np.random.default_rng(1)
    theirs = -10 - rng.random(12)  # means below zero: better is still above
    ours = theirs + 1 + 0.1 * rng.random(12)
    half = stats.t.ppf(0.975, 11) * stats.sem(ours - theirs) / -theirs.mean()
    center = (ours - theirs).mean() / -theirs.mean()
    assert harness.gain(ours, theirs) == pytest.approx((center, center - half, center + half))
    center, low, high = harness.share_of(0.5 * theirs, theirs)
    assert (center, low, high) == pytest.approx((0.5, 0.5, 0.5))
    part = harness.share_of(ours, theirs)
    half = stats.t.ppf(0.975, 11) * stats.sem(ours - part[0] * theirs) / -theirs.mean()
    assert part == pytest.approx((part[0], part[0] - half, part[0] + half))
    assert math.isnan(harness.share_of([1.0], [2.0])[1])


def test_percentages_leave_out_an_interval_that_there_is_not(harness):
    assert harness.percent((0.951, 0.94, 0.96)) == "95.1% (94.0 to 96.0)"
    assert harness.signed((0.051, -0.04, 0.062)) == "+5.1% (-4.0 to +6.2)"
    assert harness.signed((0.051, math.nan, math.nan), 0) == "+5%"
    assert harness.percent((math.nan, math.nan, math.nan)) == "-"


def test_a_command_that_fails_is_told_by_its_words(harness):
    assert harness.called("echo", "yes") == "yes\n"
    with pytest.raises(RuntimeError, match=r"^sh -c echo no >&2; exit 3: no$"):
        harness.called("sh", "-c", "echo no >&2; exit 3")
