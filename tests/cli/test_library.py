"""`ascar library` and `ascar sharp watch` from the outside: documents, files, refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ascar.library import GainEntry, Library
from ascar.sharp import Action, RuleSet
from ascar.sharp.matching import observed
from ascar.simulation import preset

OBJECTIVE = "maximize throughput_mb_per_s"
GOOD = RuleSet.uniform(Action(50, 150, 0))
RECORD = """time_s,thread,flowop,type,file,offset,bytes,latency_us
0.0,1,w,write,/a,0,4096,100
0.5,1,w,write,/a,4096,4096,100
1.0,1,r,read,/a,0,8192,100
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    path = tmp_path / "library.jsonl"
    monkeypatch.setenv("ASCAR_LIBRARY", str(path))
    draw = np.random.default_rng(2)
    kinds = {name: observed(preset(name)) for name in ("random-write", "random-read")}
    with Library.writing(path) as kept:
        for name, features in kinds.items():
            for at in range(6):
                kept.add_workload(
                    f"{name}-{at}", {key: value * (1 + at / 200) for key, value in features.items()}
                )
        key = kept.add_rules(GOOD, "random-write-0", OBJECTIVE, "test").id
        for name in kept.workloads:
            gain = (0.2 if "write" in name else -0.1) + float(draw.normal(0, 0.005))
            kept.add_gain(GainEntry(key, name, OBJECTIVE, gain, gain - 0.01, gain + 0.01, 3))
    return key


def test_a_library_is_listed_and_shown(ascar, library):
    listed = ascar("library", "ls", "--json").document
    assert len(listed["workloads"]) == 12 and listed["gains"] == 12
    assert (listed["solutions"][0]["id"], listed["solutions"][0]["kind"]) == (library, "rules")
    assert listed["solutions"][0]["tried_on"] == 12
    shown = ascar("library", "show", "random-write-1", "--json").document
    assert shown["workload"]["features"]["write_share"] == pytest.approx(1.005)
    assert shown["workload"]["features"]["read_size_bytes_mean"] is None
    assert shown["workload"]["gains"][0]["solution"] == library
    text = ascar("library", "show", library[:5]).out
    assert RuleSet.parse(text) == GOOD
    learned = ascar("library", "show", "--json").document["learned"]
    assert learned["gains"] == 12 and learned["tree"]
    failed = ascar("library", "show", "nothing", "--json")
    assert failed.status == 2
    assert "nothing" in failed.document["error"]["message"]


def test_rules_are_found_or_none(ascar, library, tmp_path):
    out = tmp_path / "rules.txt"
    found = ascar("library", "find", "random-write", "--out", str(out), "--json").document
    assert found["choice"]["rules"] == library and found["choice"]["gain"] == pytest.approx(0.2, abs=0.02)
    assert found["nearest"][0]["workload"].startswith("random-write")
    assert RuleSet.parse(out.read_text()) == GOOD
    assert ascar("library", "find", "random-write", "--out", str(out)).status == 2
    none = ascar("library", "find", "lib:random-read-2", "--json").document
    assert none["choice"] is None and none["out"] is None
    assert "no rules" in ascar("library", "find", "random-read").out
    predicted = ascar("library", "predict", "lib:random-read-2", "--json").document
    assert predicted["predicted"][0]["gain"] == pytest.approx(-0.1, abs=0.02)
    alone = ("library", "predict", "lib:random-read-2", "--rule-set")
    assert ascar(*alone, library[:4], "--json").document["predicted"] == predicted["predicted"][:1]
    assert ascar(*alone, "no-such-id").status == 2


def test_a_trace_and_its_rules_are_added(ascar, library, tmp_path):
    trace, rules = tmp_path / "trace.csv", tmp_path / "other.txt"
    trace.write_text(RECORD)
    rules.write_text(RuleSet.uniform(Action(-1, 0, 9_000)).text())
    added = ascar(
        "library",
        "add",
        str(trace),
        "--name",
        "mine",
        "--rules",
        str(rules),
        "--gain",
        "0.1",
        "--json",
    ).document
    assert added["workload"] == "mine" and added["gain"] == 0.1
    assert len(ascar("library", "ls", "--json").document["solutions"]) == 2
    for arguments, said in (
        ([str(trace), "--name", "mine2", "--gain", "0.1"], "--rules"),
        (["/nowhere"], "/nowhere"),
        ([str(rules), "--name", "x"], "trace"),
    ):
        failed = ascar("library", "add", *arguments, "--json")
        assert failed.status == 2
        assert said in failed.document["error"]["message"]


def test_a_bootstrap_ends_with_its_budget_and_says_so(ascar, tmp_path):
    path = str(tmp_path / "new.jsonl")
    short = (
        "--only",
        "random-write",
        "--altered",
        "0",
        "--evaluations",
        "3",
        "--pairs",
        "1",
        "--library",
        path,
    )
    cut = ascar("library", "bootstrap", *short, "--budget", "1 ms", "--json")
    assert cut.status == 3
    cut = cut.document
    assert not cut["complete"]
    whole = ascar("library", "bootstrap", *short, "--json").document
    assert whole["complete"] and (whole["workloads"], whole["rules"], whole["gains"]) == (1, 1, 1)
    failed = ascar("library", "bootstrap", "--only", "dance", "--json")
    assert failed.status == 2
    assert "dance" in failed.document["error"]["message"]


def test_a_load_is_watched(ascar, library):
    seen = ascar(
        "sharp", "watch", "random-write", "--budget", "60 s", "--observe", "5 s", "--json", "--quiet"
    ).document
    assert [one["kind"] for one in seen["events"]][:2] == ["observed", "deployed"]
    assert seen["events"][-1]["kind"] in ("verified", "same")
    assert seen["in_force"]["rules"][0]["b_x100"] == 150
    arguments = ("--budget", "60 s", "--observe", "5 s", "--moved", "1", "--json", "--quiet")
    still = ascar("sharp", "watch", "random-write", *arguments).document
    assert "changed" not in [one["kind"] for one in still["events"]]
    words = ascar("sharp", "watch", "random-write", "--budget", "4 min", "--observe", "5 s")
    assert re.search(r"s: rules on trial: [0-9a-f]{12}, made for .*, \+.* expected", words.err)
    assert re.search(r"s: shown to be better, kept: [0-9a-f]{12}", words.err)
    assert words.err.count("the workload is the one that it was") == 1  # however often it was looked at
    assert re.search(r"seconds: rules [0-9a-f]{12} are in force", words.out)
    failed = ascar("sharp", "watch", "random-write", "--objective", "latency:99", "--json")
    assert failed.status == 2
    assert "latency_ms_p99" in failed.document["error"]["message"]
