"""Inputs that are wrong, drawn from what docs/reference lists: one line each, and nothing is touched."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broken_inputs import (
    REFERENCE,
    Broken,
    Key,
    broken_studies,
    contradictions,
    good_tables,
    shown,
    study_keys,
    toml_of,
    wrong_options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DRAWN = 100
SEED = 17
# Some words that say what may stand there instead.
ALLOWED = re.compile(
    r"must |allowed|expected|missing|needs |did you mean|one of|at most|at least|in quotes|cannot be given|"
    r"from \S+ to|; (?:add|change|give|leave|make|name|remove|save|set|use|write) |it holds: |there are |"
    r"applies only|Invalid value|Illegal character|is not in the range|valid |in the range|"
    r"Possible options: |write e.g. |"
    r"names an unknown|"
    r"drop or widen|install it|known: |is not between "
)
LENGTH_MAX = 900
RULES = Path(__file__).resolve().parents[2] / "python/ascar/sharp/rulesets/random-write.rules"

STUDIES = broken_studies()
PAIRS = contradictions(Path("/tmp"))
OPTIONS = wrong_options()


def _drawn() -> list[Broken]:
    """Half of it single keys, the rest pairs that exclude each other."""
    chance = random.Random(SEED)
    half = DRAWN // 2
    return [*chance.sample(STUDIES, half), *chance.sample(PAIRS, DRAWN - half - 20)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_kept: None) -> Path:
    """Where the studies stand, beside a file of rules."""
    shutil.copy(RULES, tmp_path / "rules.toml")  # by a name that `nothing_kept` passes over
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check_said(error: str, broken: Broken) -> None:
    """One line that names the key and the value, and says what is allowed."""
    assert broken.key in error, error
    assert not broken.value or any(value in error for value in broken.value), error
    assert ALLOWED.search(error), error
    assert len(error) <= LENGTH_MAX, error


def refused(ascar: Callable[..., Any], place: Path, broken: Broken, command: str = "tune") -> None:
    """Run a command on a study, which must be refused."""
    file = place / "study.toml"
    file.write_text(broken.text.replace("rules.txt", "rules.toml"), "utf-8")
    done = ascar(command, file)
    assert done.status == 2, (done.status, done.out, done.err)
    assert done.out == ""
    check_said(done.error, broken)


@pytest.mark.parametrize("broken", _drawn(), ids=lambda broken: re.sub(r"[^\w.=-]+", " ", broken.label)[:50])
def test_a_broken_study_is_refused_in_one_line(ascar, place, broken):
    refused(ascar, place, broken)


def named(option: str, error: str) -> bool:
    """Whether an error names an option, or the key of a scenario that it stands for."""
    return option in error or f".{option.removeprefix('--').replace('-', '_')}" in error


@pytest.mark.parametrize(
    "wrong", random.Random(SEED).sample(OPTIONS, 20), ids=lambda wrong: " ".join(wrong.words)[:60]
)
def test_a_broken_option_is_refused_in_one_line(ascar, place, wrong):
    (place / "study.toml").write_text(toml_of(good_tables("study", "")))
    done = ascar(*wrong.words)
    assert done.status == 2, (done.status, done.out, done.err)
    assert done.out == ""
    assert named(wrong.option, done.error), done.error
    assert wrong.value in done.error, done.error
    assert ALLOWED.search(done.error), done.error


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken", random.Random(SEED).sample(STUDIES, 4), ids=lambda broken: broken.label[:50]
)
@pytest.mark.parametrize("command", ["tune", "check", "sweep"])
def test_a_broken_study_is_refused_by_a_process(process, place, broken, command):
    refused(process, place, broken, command)


@pytest.mark.slow
def test_every_mistake_of_every_key_is_refused_in_one_line(ascar, place):
    failed: list[str] = []
    for broken in (*STUDIES, *PAIRS):
        try:
            refused(ascar, place, broken)
        except AssertionError as error:
            failed.append(f"{broken.label}: {str(error)[:300]}")
    assert failed == []


@pytest.mark.slow
def test_every_mistake_of_every_option_is_refused_in_one_line(ascar, place):
    failed: list[str] = []
    for wrong in OPTIONS:
        try:
            test_a_broken_option_is_refused_in_one_line(ascar, place, wrong)
        except AssertionError as error:
            failed.append(f"{' '.join(wrong.words)}: {str(error)[:300]}")
    assert failed == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
).filter(lambda value: "None" not in repr(value))
_FUZZED = ("study", "measurement", "start", "stop", "verify", "guard")
TABLES = [one for one in study_keys() if one.table in _FUZZED]


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=st.sampled_from(TABLES), value=VALUES)
def test_any_value_at_any_key_is_taken_or_refused_in_one_line(ascar, tmp_path, key: Key, value: object):
    tables = good_tables(key.table, key.kind)
    tables.setdefault(key.table, {})[key.name] = value
    (tmp_path / "study.toml").write_text(toml_of(tables), "utf-8", newline="")
    done = ascar("tune", tmp_path / "study.toml", "--budget", "20 s", "--quiet")  # of virtual time
    assert done.status in (0, 2, 3), done.err
    if done.status == 2:
        assert len(done.error) <= LENGTH_MAX


def test_the_reference_is_drawn_from():
    assert (REFERENCE / "study-file.md").exists()
    assert len(study_keys()) > 120
    assert len(_drawn()) + 20 == DRAWN
    assert len(STUDIES) > 1500
    assert len({one.label for one in _drawn()}) == len(_drawn())
    assert shown([1])
