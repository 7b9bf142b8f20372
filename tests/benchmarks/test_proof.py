"""The proofs name tests that there are, a share of them is always the same, and what fails is said."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OWN_SERVERS = "tests/own_server_study.py"  # the tests of these classes


@pytest.fixture
def proof(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.proof")


def test_every_test_that_is_named_is_there(proof, monkeypatch):
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    named = [test for one in proof.PROOFS if one not in proof.FEEDS for test in one.tests]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    for test in named:
        assert test in done.stdout
        path, *cls, name = test.split("::")
        text = (ROOT / (OWN_SERVERS if cls else path)).read_text()
        assert re.search(rf"def {name}\([^)]*\bseed\b", text), "draws with the seed"


def test_a_share_is_always_the_same_and_has_something_of_each(proof):
    runner = proof.Runner()
    few = [piece.key for piece in proof.pieces(0.01, runner)]
    assert few == [piece.key for piece in proof.pieces(0.01, runner)]
    assert {key.rpartition(" ")[0] for key in few} == {one.name for one in proof.PROOFS}
    everything = [piece.key for piece in proof.pieces(1.0, runner)]
    assert len(set(everything)) == len(everything) == sum(one.seeds for one in proof.PROOFS)
    assert set(few) < set(everything)
    kills = sum(one.seeds * one.each for one in proof.PROOFS if one.name.startswith("kill"))
    assert kills >= 1000
    wanted = {"Rust": 10**7, "Python": 10**5}
    assert all(one.seeds * one.each >= wanted[one.language] for one in proof.FEEDS)


def test_what_fails_is_not_recorded_and_told_with_its_command(proof):
    runner = proof.Runner()
    one = proof.Proof("kill nobody", 1, 1, ("tests/test_units.py::test_that_is_not_there",))
    with pytest.raises(RuntimeError, match="not found: .*test_that_is_not_there"):
        runner.run(one, 3)
    assert "kill nobody, seed 3: " in runner.failed[0]
    assert "tests/test_units.py::test_that_is_not_there" in runner.failed[0]


def test_what_passes_says_how_much(proof):
    one = proof.Proof("kill nobody", 1, 7, ("tests/test_units.py",))
    found = proof.Runner().run(one, 0)
    assert (found["proof"], found["passed"]) == ("kill nobody", 7)


def test_a_parser_is_fed_and_a_failure_is_told(proof, monkeypatch, tmp_path):
    pytest.importorskip("atheris", reason="there is no Atheris for this machine")
    feeding = importlib.import_module("benchmarks.feeding")
    monkeypatch.setattr(feeding, "GROWN", tmp_path)
    one = next(one for one in proof.FEEDS if one.name == "feed Python units")
    assert feeding.Feed(one.name, one.language, one.parser, 1, 50).passed("") == 0
    runner = proof.Runner()
    found = runner.run(feeding.Feed(one.name, one.language, one.parser, 1, 50), 0)
    assert found["passed"] >= 50
    unknown = feeding.Feed("feed nothing", "Python", "no-such-parser", 1, 50)
    with pytest.raises(RuntimeError, match="'no-such-parser': allowed are "):
        runner.run(unknown, 3)
    assert "feed nothing, seed 3: " in runner.failed[0]
