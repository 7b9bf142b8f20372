"""The benchmark of first studies: each can be opened, and what a study leaves behind is seen."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from benchmarks.first_studies import STUDIES, FirstStudy, first_study, left_behind, machine, ranked, row

from ascar.errors import EnvironmentLacks
from ascar.prepared_study import PreparedStudy
from ascar.study import Study

needs_losetup = pytest.mark.skipif(shutil.which("losetup") is None, reason="needs losetup")


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_a_first_study_is_what_init_writes_and_can_be_opened(name, tmp_path):
    path = tmp_path / "study.toml"
    subprocess.run([sys.executable, "-m", "ascar", "init", STUDIES[name].system, "--out", path], check=True)
    table = STUDIES[name].table(tomllib.loads(path.read_text()), "first", {})
    try:
        prepared = PreparedStudy.open(Study.of(table))
    except EnvironmentLacks as lack:
        pytest.skip(lack.message)
    assert prepared.study.name == "first"
    assert prepared.study.target["kind"] == STUDIES[name].system


@needs_losetup
def test_what_is_left_behind_is_named(monkeypatch):
    monkeypatch.setattr("benchmarks.first_studies._RESTORED_S", 0.0)
    before = machine()
    assert not [one for one in before if "drop_caches" in one]
    with tempfile.TemporaryDirectory(prefix="ascar-left-") as folder:
        assert f"file {folder}" in left_behind(before)
    stands_in = Path(folder).with_name("redis-server-that-is-left")
    shutil.copy(shutil.which("sleep") or "", stands_in)
    try:
        left = subprocess.Popen([stands_in, "60"])
        try:
            assert f"process {left.pid} redis-server-th" in left_behind(before)
        finally:
            left.kill()
            left.wait()
    finally:
        stands_in.unlink()


@needs_losetup
@pytest.mark.slow
def test_a_short_study_of_sqlite_has_its_row(monkeypatch):
    monkeypatch.setattr("benchmarks.first_studies._RESTORED_S", 0.0)
    found = first_study("sqlite", FirstStudy("sqlite", {"study": {"budget": "20 s"}}))
    line = row("sqlite", found)
    assert line[0] == "sqlite"
    assert 0.1 < float(line[1]) < 5
    assert line[2] == found["verdict"]["kind"]
    assert found["ranking"] is None


def test_a_ranking_tells_shares_of_the_variance():
    one = {
        "parameter": "osd_op_num_shards",
        "importance": 30.0,
        "ci_low": 10.0,
        "ci_high": 55.0,
        "first_share": 0.8,
        "selected": True,
    }
    other = {**one, "parameter": "debug_osd", "ci_low": None, "ci_high": None, "first_share": None}
    assert ranked({"variance": 100.0, "ranking": [one, {**other, "selected": False}]}) == [
        ["osd_op_num_shards", "30.0%", "10.0% to 55.0%", "80%", "chosen"],
        ["debug_osd", "30.0%", "-", "-", ""],
    ]
