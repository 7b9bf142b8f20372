"""What released versions have written, as they wrote it: every later version reads it."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ascar.program.node_binary import find_ascard
from ascar.rules import RuleSet

RELEASED = Path(__file__).resolve().parents[1] / "data/released"
VERSIONS = sorted(path.name for path in RELEASED.iterdir())
TRACE = """time_s,thread,flowop,type,file,offset,bytes,latency_us
0.0,1,w,write,/a,0,4096,100
0.5,1,w,write,/a,4096,4096,100
1.0,1,r,read,/a,0,8192,100
"""


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
    monkeypatch.setenv("ASCAR_LIBRARY", str(tmp_path / "library.jsonl"))
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


def test_rules_and_the_library_are_read(ascar, written):
    rules = RuleSet.read(written / "rules.txt", "rules.txt")
    listed = ascar("library", "ls", "--json").document
    assert [one["name"] for one in listed["workloads"]] == ["recorded"]
    [known] = listed["solutions"]
    assert (known["kind"], known["tried_on"]) == ("rules", 1)
    assert RuleSet.parse(ascar("library", "show", known["id"]).out) == rules
    trace = written / "trace.csv"
    trace.write_text(TRACE)
    added = ("library", "add", trace, "--name", "again", "--rules", written / "rules.txt", "--json")
    assert ascar(*added).document["rules"] == known["id"], "the same rules have the same name"


def merged(written: Path) -> subprocess.CompletedProcess[str]:
    """Two copies of the replay database, put together."""
    replay, copy = written / "replay.sqlite", written / "copy.sqlite"
    shutil.copy(replay, copy)
    words = [find_ascard(), "interface", "merge", replay, copy, "--into", written / "both.sqlite"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_the_replay_database_is_read(written):
    done = merged(written)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("157 ticks") == 2


# Going back to a version that is older than the files: one line that says so, and the files stay as they are.


def in_database(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_a_newer_history_is_refused_in_one_line(ascar, written, monkeypatch):
    file = written / "history.sqlite"
    in_database(file, "UPDATE schema_version SET version = 99")
    monkeypatch.setenv("ASCAR_HISTORY", str(file))
    before = file.read_bytes()
    for words in (("history", "ls"), ("tune", written / "study.toml"), ("apply", "simulated", "--dry-run")):
        refused = ascar(*words)
        assert refused.status == 1, words
        assert "version 99" in refused.error and "\n" not in refused.error
    assert file.read_bytes() == before


def test_a_newer_library_is_refused_in_one_line(ascar, written):
    file = written / "library.jsonl"
    head, rest = file.read_text().split("\n", 1)
    file.write_text(json.dumps(json.loads(head) | {"version": 99}) + f"\n{rest}")
    before = file.read_bytes()
    trace = written / "trace.csv"
    trace.write_text(TRACE)
    for words in (("ls",), ("add", trace, "--name", "again", "--rules", written / "rules.txt")):
        refused = ascar("library", *words)
        assert refused.status == 2, words
        assert "version 99" in refused.error and "\n" not in refused.error
    assert file.read_bytes() == before


def test_a_newer_exported_run_is_refused_in_one_line(ascar, written):
    file = written / "runs.json"
    runs = json.loads(file.read_text())
    runs["runs"] = [one | {"version": 99} for one in runs["runs"]]
    file.write_text(json.dumps(runs | {"version": 99}))
    refused = ascar("history", "import", str(file))
    assert refused.status == 2
    assert "version 99" in refused.error and "\n" not in refused.error
    assert json.loads(ascar("history", "ls", "--json").out)["runs"] == []


def test_a_newer_replay_database_is_refused_in_one_line(written):
    in_database(written / "replay.sqlite", "PRAGMA user_version = 99")
    refused = merged(written)
    assert refused.returncode == 2
    assert "is of version 99" in refused.stderr and refused.stderr.count("\n") == 1
    assert not (written / "both.sqlite").exists()
