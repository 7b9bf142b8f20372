"""`ascar check` of a study of the online loop: collectors, metrics and parameters once; all put back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
START = {"batch_requests": 8, "compression": "off"}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    ascard = Path(sys.executable).parent / "ascard"
    if subprocess.run([ascard, "interface", "--help"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    for name in ("capes-application.toml", "capes_application.py"):
        (tmp_path / name).write_text((EXAMPLES / name).read_text())
    return tmp_path / "capes-application.toml"


def checked(study: Path, old: str = "", new: str = "") -> tuple[int, Any]:
    text = study.read_text()
    assert old in text
    study.write_text(text.replace(old, new) if old else text)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ascar", "check", study, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_everything_works_and_is_put_back(study: Path) -> None:
    status, found = checked(study)
    assert (status, found["problems"], found["works"]) == (0, [], True)
    tried = {one["parameter"]: one for one in found["parameters"]}
    assert sorted(tried) == ["batch_requests", "compression"]
    assert all(one["read_back"] == one["tried"] != one["before"] for one in tried.values())
    assert found["sample"]["app.requests_per_s"] > 0
    assert json.loads((study.parent / "application.json").read_text()) == START


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"app.requests_per_s"', '"app.request_per_s"', "no indicator matches 'app.request_per_s'"),
        (
            '"run", "./application.json"',
            '"walk", "./application.json"',
            "no indicator matches 'app.requests_per_s'",
        ),
    ],
)
def test_a_metric_without_indicators_is_named(study: Path, old: str, new: str, words: str) -> None:
    status, found = checked(study, old, new)
    assert status == 1
    assert any(words in problem for problem in found["problems"]), found["problems"]


def test_a_program_that_lies_is_named_and_the_rest_is_tried(study: Path) -> None:
    program = study.parent / "capes_application.py"
    program.write_text(
        program.read_text().replace('tell({"ok": values})', 'tell({"ok": values | {"compression": "off"}})')
    )
    status, found = checked(study)
    assert status == 1
    (problem,) = found["problems"]
    assert "compression = 'on' was set, but the system reads back 'off'" in problem
    assert found["parameters"][0]["problem"] is None


def test_what_is_wrong_in_the_file_touches_nothing(study: Path) -> None:
    status, found = checked(study, "interval_s = 0.2", "interval_s = 0")
    assert status == 2
    assert "online.interval_s" in found["error"]["message"]
    assert not (study.parent / "application.json").exists()
