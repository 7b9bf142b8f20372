"""The proofs name tests that there are, a share of them is always the same, and what fails is said."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def proof(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.proof")


def test_every_test_that_is_named_is_there(proof, monkeypatch):
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    named = [test for one in proof.PROOFS for test in one.tests]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    for test in named:
        assert test in done.stdout
        if "::" in test:
            path, _, name = test.partition("::")
            assert re.search(rf"def {name}\([^)]*\bseed\b", (ROOT / path).read_text()), "draws with the seed"
        else:
            assert "@given" in (ROOT / test).read_text()


def test_every_property_of_a_crate_that_is_named_is_there(proof):
    for package, part in (one.crate for one in proof.PROOFS if one.crate[0]):
        folder = ROOT / "crates" / package.removeprefix("ascar-")
        names = [
            name for path in folder.rglob("*.rs") for name in re.findall(r"fn (\w+)\(", path.read_text())
        ]
        assert len([name for name in names if part in name]) >= 2, (package, part)


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
    # At least two properties of each parser.
    assert all(2 * one.seeds * one.each >= 10**7 for one in proof.PROOFS if one.crate[0])


def test_what_fails_is_not_recorded_and_told_with_its_command(proof):
    runner = proof.Runner()
    one = proof.Proof("kill nobody", 1, 1, ("tests/test_units.py::test_that_is_not_there",))
    with pytest.raises(RuntimeError, match="not found: .*test_that_is_not_there"):
        runner.run(one, 3)
    assert "kill nobody, seed 3: " in runner.failed[0]
    assert "tests/test_units.py::test_that_is_not_there" in runner.failed[0]


def test_what_passes_says_how_much(proof):
    one = proof.Proof("kill nobody", 1, 1, ("tests/test_units.py",))
    found = proof.Runner().run(one, 0)
    assert found["proof"] == "kill nobody"
    assert found["tests"] > 10
