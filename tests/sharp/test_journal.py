"""The journal of a search: what was run is never lost, and never mistaken for something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError, Refused
from ascar.sharp import About, Action, Journal, RuleRun, RuleSet, RuleTrial

if TYPE_CHECKING:
    from pathlib import Path

ABOUT = About("1", "system", "maximize tp", "sharp", "rules")
RULES = RuleSet.uniform(Action(100, 0, 20_000))
RESULT = RuleRun({"tp": 0.1 + 0.2}, (1.0, 1 / 3), RULES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rules.journal"
    with Journal(path, ABOUT) as journal:
        journal.add(RuleTrial(RULES), RESULT, 1.5)
        journal.add(RuleTrial(None, 7), RuleRun({}, (), None), 2.5)
    return path


def test_runs_come_back_bit_for_bit(path: Path) -> None:
    with Journal(path, ABOUT, "resume") as journal:
        assert journal.known(RuleTrial(RULES)) == RESULT
        assert journal.known(RuleTrial(None, 7)) == RuleRun({}, (), None)
        assert journal.known(RuleTrial(RULES, 1)) is None
        assert (len(journal), journal.elapsed_s) == (2, 2.5)


def test_a_line_cut_off_by_a_kill_is_dropped_and_the_rest_goes_on(path: Path) -> None:
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (0, len(lines[0]) - 1, len(lines[0]), len(whole) - 1):
        path.write_bytes(whole[:cut])
        with Journal(path, ABOUT, "resume") as journal:
            assert len(journal) == max(0, whole[:cut].count(b"\n") - 1)
            journal.add(RuleTrial(None, 8), RuleRun({}, (), None), 3.0)
        with Journal(path, ABOUT, "resume") as journal:
            assert journal.known(RuleTrial(None, 8)) is not None


def test_a_journal_there_or_not_there(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="already exists; go on with --resume"):
        Journal(path, ABOUT)
    with pytest.raises(InputError, match="does not exist; leave --resume out"):
        Journal(tmp_path / "other", ABOUT, "resume")
    with Journal(path, ABOUT, "anew") as journal:
        assert len(journal) == 0
    with pytest.raises(InputError, match="name another --out"):
        Journal(tmp_path, ABOUT, "resume")


def test_two_processes_cannot_share_one(path: Path) -> None:
    with Journal(path, ABOUT, "resume"):
        for begin in ("resume", "anew"):
            with pytest.raises(Refused, match="another process"):
                Journal(path, ABOUT, begin)
    with Journal(path, ABOUT, "resume") as journal:
        assert len(journal) == 2


@pytest.mark.parametrize("name", ["ascar", "system", "objective", "schedule", "start"])
def test_another_search_is_refused(path: Path, name: str) -> None:
    values = {key: getattr(ABOUT, key) for key in About.__struct_fields__} | {name: "other"}
    with pytest.raises(InputError, match=f"its search had {name} = "):
        Journal(path, About(**values), "resume")


@pytest.mark.parametrize(
    ("line", "text", "told"),
    [
        (1, b"{}", "line 1"),
        (1, b"\xff\xfe", "line 1"),
        (1, b"[" * 100_000, "line 1"),
        (2, b"null", "line 2"),
        (2, b'{"rules": 1}', "line 2"),
        (
            2,
            b'{"rules":null,"repeat":0,"metrics":{"tp":"x"},"readings":[],"observed":null,"elapsed_s":0}',
            "metrics",
        ),
        (
            2,
            b'{"rules":null,"repeat":0,"metrics":{},"readings":[],"observed":"2,2\\n","elapsed_s":0}',
            "rule set",
        ),
    ],
)
def test_damage_is_named(path: Path, line: int, text: bytes, told: str) -> None:
    lines = path.read_bytes().splitlines()
    lines[line - 1] = text
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(InputError) as error:
        Journal(path, ABOUT, "resume")
    assert told in error.value.message
    assert "damaged" in error.value.message


def test_a_newer_journal_is_refused(path: Path) -> None:
    head, *rest = path.read_text().splitlines()
    changed = json.loads(head) | {"version": 2, "news": True}
    path.write_text("\n".join([json.dumps(changed), *rest]) + "\n")
    with pytest.raises(InputError, match="has version 2; this ascar reads up to 1"):
        Journal(path, ABOUT, "resume")
