"""`ascar capes game`, from the outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]


def _ascar(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "ascar", "capes", *arguments], capture_output=True, text=True, check=False
    )


def test_the_document_keeps_to_its_schema():
    done = _ascar("game", "--noise", "0.1", "--runs", "2", "--algorithm", "random", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, json.loads((ROOT / "docs" / "schemas" / "capes-game.json").read_text()))
    assert (found["noise"], found["delay"], found["runs"], found["success_rate"]) == (0.1, 3, 2, 0)
    assert found["ticks_median"] is None


def test_people_read_a_few_lines():
    done = _ascar("game", "--noise", "50%", "--game", "thesis", "--algorithm", "sweep", "--runs", "3")
    assert done.returncode == 0, done.stderr
    assert "3 of 3 runs (100%)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--noise", "much"), "--noise 'much'"),
        (("--noise", "-1"), "--noise '-1'"),
        (("--noise", "nan"), "--noise 'nan'"),
        (("--algorithm", "dqn"), "must be one of modern, classic, sweep, random"),
        (("--game", "easy"), "must be one of thesis, hard"),
        (("--delay", "9999"), "delay = 9999"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, words):
    done = _ascar("game", "--runs", "1", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
