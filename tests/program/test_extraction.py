"""Numbers out of output."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascar.errors import StudyError
from ascar.program.extraction import JsonPath, Pattern, decode, number, parse_extractor


def pattern(text):
    found = parse_extractor("key", f"regex:{text}")
    assert isinstance(found, Pattern)
    return found


def path(text):
    found = parse_extractor("key", f"json:{text}")
    assert isinstance(found, JsonPath)
    return found


@pytest.mark.parametrize(
    ("text", "line", "value"),
    [
        (r"ops: ([0-9.]+)", "total ops: 12.5 a second", 12.5),
        (r"(ops|iops)=(?P<value>\S+)", "iops=1e3", 1000.0),
        (r"[0-9]+", "took 42 s", 42.0),
        (r"([0-9,.]+) req/s", "1,234,567.5 req/s", 1234567.5),
        (r"ops: (\S+)", "ops: none", None),
        (r"ops: (\S+)", "ops: nan", None),
        (r"ops: (\S+)", "ops: inf", None),
        (r"ops: (\d+)?", "ops: ", None),
        (r"ops", "nothing", None),
    ],
)
def test_a_pattern_finds_a_finite_number_or_nothing(text, line, value):
    assert pattern(text).find(line) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b[0].c", 1.5),
        ("a.b[-1].c", 2.0),
        ("a.b[1]", None),
        ("a.b[7].c", None),
        ("a.b.c", None),
        ("a[0]", None),
        ("missing", None),
        ("text", 3.0),
        ("words", None),
        ("flag", None),
        ("two words", 4.0),
        ("big", None),
    ],
)
def test_a_path_finds_a_finite_number_or_nothing(text, value):
    document = {
        "a": {"b": [{"c": 1.5}, {"c": 2}]},
        "text": "3.0",
        "words": "three",
        "flag": True,
        "two words": 4,
        "big": "1e999",
    }
    assert path(text).find(document) == value


def test_a_path_into_a_list():
    assert path("[1].x").find([{}, {"x": 5}]) == 5


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ops", "must be 'regex:EXPRESSION' or 'json:PATH'"),
        ("", "must be 'regex:EXPRESSION' or 'json:PATH'"),
        ("regex:", "must be 'regex:EXPRESSION' or 'json:PATH'"),
        ("yaml:a.b", "must be 'regex:EXPRESSION' or 'json:PATH'"),
        ("regex:(", "is not a regular expression"),
        ("json:a..b", "cannot be read at"),
        ("json:a[x]", "cannot be read at"),
        ("json:a[", "cannot be read at"),
        ("json:.", "cannot be read at"),
        ("regex:" + "x" * 2000, "must be at most 1000 characters"),
    ],
)
def test_mistakes_name_the_key(text, problem):
    with pytest.raises(StudyError, match=problem) as error:
        parse_extractor("workload.metrics.x", text)
    assert error.value.message.startswith("workload.metrics.x = ")


@given(st.text(max_size=50))
def test_any_path_is_read_or_refused(text):
    try:
        found = parse_extractor("key", f"json:{text}")
    except StudyError:
        return
    assert found.find(json.loads('{"a": [1, {"b": null}]}')) in (None, 1.0)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5), st.lists, max_leaves=5))
def test_only_finite_numbers_are_numbers(found):
    value = number(found)
    assert value is None or value == value  # noqa: PLR0124 - not a number differs from itself


@pytest.mark.parametrize("line", ["", "{", "[1", "\x00", '{"a": }', "[" * 100_000])
def test_what_is_no_json_is_nothing(line):
    assert decode(line) is None
