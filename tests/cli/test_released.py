"""What released versions have written, as they wrote it: every later version reads it."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ascar.program.node_binary import find_ascard

RELEASED = Path(__file__).resolve().parents[1] / "data/released"
VERSIONS = sorted(path.name for path in RELEASED.iterdir())


@pytest.fixture(params=VERSIONS)
def written(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of a version, and an empty history besides."""
    for file in (RELEASED / request.param).iterdir():
        if file.suffix == ".gz":
            (tmp_path / file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        else:
            shutil.copy(file, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("ASCAR_HISTORY", str(tmp_path / "empty.sqlite"))
    return tmp_path


def test_there_is_a_version() -> None:
    assert VERSIONS


def test_the_history_opens_and_goes_out_as_it_was(ascar, written, monkeypatch):
    monkeypatch.setenv("ASCAR_HISTORY", str(written / "history.sqlite"))
    session, study = json.loads(ascar("history", "ls", "--json").out)["runs"]
    assert (session["kind"], study["kind"]) == ("session", "study")
    assert study["state"] == "complete"
    assert study["counts"]["complete"] > 10
    out = written / "again.json"
    assert ascar("history", "export", "simulated", "--out", str(out)).status == 0
    before, after = (json.loads(path.read_text()) for path in (written / "runs.json", out))
    assert [trial["score"] for trial in before["runs"][0]["trials"]] == [
        trial["score"] for trial in after["runs"][0]["trials"]
    ]


def test_an_exported_run_comes_in(ascar, written):
    assert ascar("history", "import", str(written / "runs.json")).status == 0
    [run] = json.loads(ascar("history", "ls", "--json").out)["runs"]
    assert run["counts"]["complete"] > 10


def test_a_study_file_is_still_a_study(ascar, written):
    assert ascar("check", str(written / "study.toml")).status == 0


def test_the_replay_database_is_read(written):
    replay, copy = written / "replay.sqlite", written / "copy.sqlite"
    shutil.copy(replay, copy)
    words = [find_ascard(), "interface", "merge", replay, copy, "--into", written / "both.sqlite"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("157 ticks") == 2
