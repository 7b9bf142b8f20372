"""The library's file: what is kept, what is refused, what a kill leaves."""

from __future__ import annotations

import json
import math

import pytest

from ascar.errors import InputError, Refused
from ascar.sharp import Action, RuleSet
from ascar.sharp.library import GainEntry, Library

OBJECTIVE = "maximize throughput_mb_per_s"
RULES = RuleSet.uniform(Action(-1, 0, 20_000))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sub" / "library.jsonl"


def fill(path):
    with Library.writing(path, clock=lambda: "2026-01-01") as kept:
        kept.add_workload("a", {"read_share": 1.0, "write_size_bytes_mean": math.nan}, "test")
        kept.add_workload("b", {"read_share": 0.5})
        rules = kept.add_rules(RULES, "a", OBJECTIVE, "test")
        kept.add_gain(GainEntry(rules.id, "b", OBJECTIVE, -0.1, -0.2, 0.0, 4))
        kept.add_gain(GainEntry(rules.id, "b", OBJECTIVE, 0.1))
    return rules.id


def test_what_is_added_is_read_again_and_the_last_gain_counts(path):
    key = fill(path)
    kept = Library.read(path)
    assert set(kept.workloads) == {"a", "b"}
    assert math.isnan(kept.workloads["a"].values["write_size_bytes_mean"])
    assert kept.made_for == {("a", OBJECTIVE): [key]}
    assert kept.gain(key, "b", OBJECTIVE).gain == 0.1
    assert kept.rules_named(key[:4]) == key
    assert RuleSet.parse(kept.rules[key].text).bare() == RULES
    with pytest.raises(InputError, match="no rule sets"):
        kept.rules_named("zz")


def test_it_only_grows(path):
    fill(path)
    before = path.read_bytes()
    with Library.writing(path) as kept:
        kept.add_workload("a", {"read_share": 1.0, "write_size_bytes_mean": math.nan})
        kept.add_rules(RULES, "a", OBJECTIVE)
        with pytest.raises(InputError, match="'a'.*another name"):
            kept.add_workload("a", {"read_share": 0.0})
        with pytest.raises(InputError, match="'c'"):
            kept.add_rules(RULES, "c", OBJECTIVE)
        with pytest.raises(InputError, match="'nothing'"):
            kept.add_gain(GainEntry("nothing", "a", OBJECTIVE, 0.1))
        with pytest.raises(InputError, match="finite"):
            kept.add_gain(GainEntry(next(iter(kept.rules)), "a", OBJECTIVE, math.inf))
        assert path.read_bytes() == before
        kept.add_rules(RULES, "b", OBJECTIVE)
    assert path.read_bytes().startswith(before)
    assert len(Library.read(path).rules) == 1


def test_a_line_cut_off_by_a_kill_is_left_out_and_cut_off(path):
    key = fill(path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"gain","rules":"')
    assert Library.read(path).gain(key, "b", OBJECTIVE).gain == 0.1
    with Library.writing(path):
        pass
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"rubbish\n", "line 7"),
        (b'{"type":"gain","rules":"x","workload":"a","objective":"o","gain":1}\n', "line 7.*above it"),
        (b'{"type":"rules","id":"0","text":"x","workload":"a","objective":"o"}\n', "line 7"),
        (b'{"type":"workload","name":"","features":{}}\n', "line 7.*characters"),
        (b'{"type":"dance"}\n', "line 7"),
        (b"[" * 100_000 + b"\n", "line 7"),
    ],
)
def test_a_damaged_line_is_named(path, line, message):
    fill(path)
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(InputError, match=message):
        Library.read(path)


def test_heads_of_other_formats_and_newer_versions_are_refused(path, tmp_path):
    other = tmp_path / "other.jsonl"
    for head, message in (
        ({"format": "ascar-rule-library", "version": 99}, "version 99"),
        ({"format": "else", "version": 1}, "line 1"),
        ({}, "line 1"),
    ):
        other.write_text(json.dumps(head) + "\n")
        with pytest.raises(InputError, match=message):
            Library.read(other)
    with pytest.raises(InputError, match="does not exist"):
        Library.read(tmp_path / "nothing")


def test_one_process_writes_and_others_read(path):
    fill(path)
    with Library.writing(path), pytest.raises(Refused, match="another process"), Library.writing(path):
        pass
    with Library.writing(path):
        assert len(Library.read(path).workloads) == 2
