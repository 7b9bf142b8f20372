"""The library's file: what is kept, what is refused, what a kill leaves."""

from __future__ import annotations

import fcntl
import json
import math

import pytest

from ascar.errors import InputError, Refused
from ascar.library import GainEntry, Library, default_path, nearest
from ascar.sharp import Action, RuleSet

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
    assert kept.solution_named(key[:4]).id == key
    assert kept.solutions[key].rule_set.bare() == RULES
    with pytest.raises(InputError, match="no solutions"):
        kept.solution_named("zz")


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
        (b'{"type":"gain","solution":"x","workload":"a","objective":"o","gain":1}\n', "line 7.*above it"),
        (b'{"type":"gain","rules":"x","workload":"a","objective":"o","gain":1}\n', "line 7.*unknown"),
        (
            b'{"type":"solution","id":"0","kind":"rules","content":"x","workload":"a","objective":"o"}\n',
            "line 7",
        ),
        (
            b'{"type":"solution","id":"0","kind":"rules","content":{},"workload":"a","objective":"o"}\n',
            "line 7.*the text of a rule file",
        ),
        (
            b'{"type":"solution","id":"0","kind":"setting","content":{"a":1},"workload":"a","objective":"o"}\n',
            "line 7.*not that of the content",
        ),
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
        ({"format": "ascar-library", "version": 99}, "version 99"),
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


def version_1(path):
    """The library of `fill` as version 1 of the format wrote it."""
    key = fill(path)
    head, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    head |= {"format": "ascar-rule-library", "version": 1}
    for one in lines:
        if one["type"] == "solution":
            one |= {"type": "rules", "text": one["content"]}
            del one["kind"], one["content"], one["system"]
        elif one["type"] == "gain":
            one["rules"] = one.pop("solution")
    path.write_text("".join(json.dumps(one) + "\n" for one in (head, *lines)))
    return key


def test_a_library_of_version_1_is_read_and_rewritten_by_the_next_writer(path):
    key = version_1(path)
    before = path.read_bytes()
    kept = Library.read(path)
    assert kept.solutions[key].rule_set.bare() == RULES and kept.gain(key, "b", OBJECTIVE).gain == 0.1
    assert path.read_bytes() == before
    with Library.writing(path) as kept:
        found = kept.add_configuration({"cache_size_kib": 64, "journal_mode": "WAL"}, "a", "o", "sqlite")
    assert path.read_bytes().count(b"\n") == before.count(b"\n") + 1
    again = Library.read(path)
    assert again.solutions[found.id].values == {"cache_size_kib": 64, "journal_mode": "WAL"}
    assert set(again.rules) == {key} and again.gain(key, "b", OBJECTIVE).gain == 0.1
    assert not list(path.parent.glob("*.new"))


def test_a_damaged_library_of_version_1_is_left_as_it_is(path):
    version_1(path)
    path.write_bytes(path.read_bytes() + b"rubbish\n")
    before = path.read_bytes()
    with pytest.raises(InputError, match="line 7"), Library.writing(path):
        pass
    assert path.read_bytes() == before


def test_a_writer_that_waits_writes_to_the_file_that_took_the_place_of_the_old_one(path, monkeypatch):
    fill(path)
    lock = fcntl.flock

    def replaced(file, operation):
        """Another process upgrades the library after this one has opened it."""
        monkeypatch.setattr(fcntl, "flock", lock)
        copy = path.with_name("copy")
        copy.write_bytes(path.read_bytes())
        copy.replace(path)
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", replaced)
    with Library.writing(path) as kept:
        kept.add_workload("late", {"read_share": 0.1})
    assert "late" in Library.read(path).workloads


def test_one_configuration_of_two_systems_is_two_solutions(path):
    with Library.writing(path) as kept:
        kept.add_workload("a", {})
        one, two = (kept.add_configuration({"depth": 1}, "a", "o", system) for system in ("x", "y"))
        assert one.id != two.id
        assert kept.add_configuration({"depth": 1}, "a", "o", "x") is one
        with pytest.raises(InputError, match="'b'"):
            kept.add_configuration({"depth": 1}, "b", "o", "x")


def test_the_earlier_name_of_the_variable_is_refused_and_the_earlier_file_found(tmp_path, monkeypatch):
    monkeypatch.delenv("ASCAR_LIBRARY", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "ascar" / "library.jsonl"
    (tmp_path / "ascar").mkdir()
    (tmp_path / "ascar" / "rule-library.jsonl").touch()
    assert default_path().name == "rule-library.jsonl"
    monkeypatch.setenv("ASCAR_RULE_LIBRARY", "/x")
    with pytest.raises(InputError, match="ASCAR_LIBRARY"):
        default_path()


def test_the_nearest_workloads_come_first_within_a_bound():
    known = {"far": 9.0, "b": 1.0, "a": 1.0, "near": 2.5}
    found = nearest(2.0, known, lambda one, wanted: abs(one - wanted), within=3.0)
    assert [tuple(one) for one in found] == [("near", 0.5), ("a", 1.0), ("b", 1.0)]
