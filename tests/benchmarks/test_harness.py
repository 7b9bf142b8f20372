"""Budget, resuming and intervals of the benchmarks."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path

import pytest

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
