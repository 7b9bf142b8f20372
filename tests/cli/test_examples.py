"""Every example is a study that can be run; here with shorter loads and less time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascar.capes.session.study import OnlineStudy
from ascar.study import Study

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.toml")))
def test_it_is_a_study_and_says_what_for(example):
    text = (EXAMPLES / example).read_text("utf-8")
    kind = OnlineStudy if "[online]" in text else Study
    assert kind.parse(text).name == example.removesuffix(".toml")
    assert len(text.partition("[study]")[0].splitlines()) > 2, "a comment at its head says what it shows"


@pytest.mark.slow
def test_sqlite(ascar, tmp_path):
    text = (EXAMPLES / "sqlite.toml").read_text("utf-8")
    text = re.sub(r'(load_min|load_max) = ".*?"', r'\1 = "300 ms"', text)
    text = text.replace("trials_without_gain = 25", "trials = 2")
    text = text.replace("latency_ms_p99 <= 500", "latency_ms_p99 <= 1000000")  # however slow the disk is
    file = tmp_path / "sqlite.toml"
    file.write_text(f"{text}\n[verify]\nruns_min = 2\nruns_max = 2\n")
    done = ascar("tune", file, "--json")
    assert done.status in (0, 3), done.err
    assert sum(done.document["counts"].values()) >= 4
