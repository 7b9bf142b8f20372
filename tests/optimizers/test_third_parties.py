"""An optimizer of somebody else: a package of its own, found by its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile

import pytest

MODULE = '''
"""Counts down: proposes the configurations of a small space from the last to the first."""

from ascar.errors import Exhausted, StudyError


class Backwards:
    def __init__(self, space, *, seed=0, start=(), options=None):
        for key in options or {}:
            raise StudyError(f"optimizer.{key}: unknown key; backwards has none")
        self._left = [one for one in space.enumerate() if one not in start] + list(reversed(start))

    def ask(self):
        if not self._left:
            raise Exhausted("the first configuration is reached")
        return self._left.pop()

    def tell(self, evaluation):
        if evaluation.configuration in self._left:
            self._left.remove(evaluation.configuration)
'''
METADATA = "Metadata-Version: 2.1\nName: tuner-backwards\nVersion: 1.2.3\n"
ENTRY_POINTS = "[ascar.optimizers]\nbackwards = tuner_backwards:Backwards\n"
STUDY = """
[study]
name = "theirs"
objective = "maximize throughput_ops_per_s"
budget = "3 min"
[target]
kind = "simulated"
metrics = { throughput_ops_per_s = "100 + 10 * depth" }
[space.parameters.depth]
kind = "integer"
low = 1
high = 30
default = 1
cost = "dyn-kernel"
[optimizer]
kind = "backwards"
"""


@pytest.fixture
def theirs(tmp_path):
    """A wheel, built and installed as PEP 427 says: unpacked where Python looks for packages."""
    wheel = tmp_path / "tuner_backwards-1.2.3-py3-none-any.whl"
    info = "tuner_backwards-1.2.3.dist-info"
    files = {
        "tuner_backwards.py": MODULE,
        f"{info}/METADATA": METADATA,
        f"{info}/entry_points.txt": ENTRY_POINTS,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)

    def run(*arguments):
        environment = {
            **os.environ,
            "PYTHONPATH": str(site),
            "ASCAR_HISTORY": str(tmp_path / "history.sqlite"),
        }
        return subprocess.run(
            [sys.executable, "-m", "ascar", *map(str, arguments)],
            env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run


def test_it_tunes_a_study(theirs, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    done = theirs("tune", file, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["recommended"]["depth"] >= 28
    file.write_text(STUDY + "speed = 3\n")
    wrong = theirs("tune", file)
    assert wrong.returncode == 2
    assert "optimizer.speed: unknown key; backwards has none" in wrong.stderr


@pytest.mark.slow
def test_the_laboratory_compares_it_with_ours_on_workers_of_their_own(theirs, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("depth,rate\n" + "".join(f"{depth},{100 + depth}\n" for depth in range(1, 31)))
    done = theirs(
        "lab", "optimizers", "--table", table, "--objective", "rate", "--direction", "max", "--runs", 4,
        "--evaluations", 3, "--optimizers", "backwards,random", "--noise", "none", "--json", "--workers", 2,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["optimizers"]
    assert (first["name"], second["name"]) == ("backwards", "random")
    assert first["regret_mean"] == 0.0  # the last value is the best one
    assert first["near_optimal_share"] == 1.0
    assert second["regret_mean"] > 0.0


def test_without_the_package_the_name_is_refused_with_those_there_are(ascar_alone, tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    done = ascar_alone("tune", file)
    assert done.returncode == 2
    assert "optimizer.kind = 'backwards': must be one of annealing, auto" in done.stderr


@pytest.fixture
def ascar_alone(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "ascar", *map(str, arguments)],
            env={**os.environ, "ASCAR_HISTORY": str(tmp_path / "history.sqlite")},
            cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run
