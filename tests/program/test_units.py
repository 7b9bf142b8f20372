"""What a line says of the unit that its reading is of."""

from __future__ import annotations

import pytest

from ascar.program import Harvest, Pattern, parse_extractor


def _pattern(source: str) -> Pattern:
    found = parse_extractor("m", f"regex:{source}")
    assert isinstance(found, Pattern)
    return found


@pytest.mark.parametrize(
    ("source", "line", "value", "unit"),
    [
        (r"(?P<unit>\w+) (?P<work>\d+) (?P<value>\d+)", "read 4 7", 7, ("read", 4)),
        (r"(?P<unit>\w+) (\d+)", "write 9", 9, ("write", None)),
        (r"(\d+) in (?P<work>\d+)", "5 in 3", 5, (None, 3)),
        (r"(?P<unit>\w+) (?P<work>-?\d+) (\d+)", "read 0 7", 7, None),
        (r"(?P<unit>\w+) (?P<work>-?\d+) (\d+)", "read -2 7", 7, None),
        (r"(?P<unit>\w*)=(\d+)", "=7", 7, None),
        (r"(?P<work>\d+) x", "none", None, None),
    ],
)
def test_groups_tell_the_kind_and_the_work(source, line, value, unit) -> None:
    pattern = _pattern(source)
    assert pattern.tells_units
    assert pattern.find(line) == value
    assert pattern.unit(line) == unit


def test_other_expressions_tell_no_units() -> None:
    assert not _pattern(r"(?P<value>\d+)").tells_units


def test_a_harvest_keeps_units_beside_their_readings() -> None:
    harvest = Harvest(
        {"x": _pattern(r"(?P<unit>[rw]) (?P<work>\S+) (?P<value>\S+)"), "n": _pattern(r"n (\d+)")}
    )
    harvest.feed(b"r 1 10\nw 4 20\nn 3\nr 0 30\nr nan 40\nw 2 nan\nr 2 50", 1.0)
    harvest.metrics()
    assert harvest.series()["x"].values.tolist() == [10, 20, 50]
    assert harvest.units() == {"x": [("r", 1), ("w", 4), ("r", 2)]}
