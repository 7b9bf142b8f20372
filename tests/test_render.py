from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ascar
from ascar.render import (
    clock,
    compact,
    count,
    duration_unit,
    estimate,
    in_percent,
    number,
    on_axis,
    p_value,
    percent,
    percentage,
    plain,
    sparkline,
)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (0, "0"),
        (17234.4, "17,234"),
        (1234567.8, "1,234,568"),
        (17.2344, "17.23"),
        (0.012346, "0.01235"),
        (1.5e-9, "1.5e-09"),
        (-3.14159, "-3.142"),
        (9999.96, "10,000"),
    ],
)
def test_numbers_have_four_digits(x, text):
    assert number(x) == text


def test_shares_have_a_sign():
    assert [percent(share) for share in (0.312, -0.02, 0.0, None)] == ["+31.2%", "-2.0%", "+0.0%", "-"]


def test_p_values_are_written_as_usual():
    assert [p_value(p) for p in (0.0312, 2e-9, None)] == ["p = 0.031", "p < 0.0001", "p unknown"]


def test_a_clock_shows_hours_only_when_there_are_any():
    assert [clock(s) for s in (-1, 5, 65.4, 3661)] == ["0:00", "0:05", "1:05", "1:01:01"]


def test_a_sparkline_begins_at_zero_and_skips_what_is_no_number():
    assert sparkline([0, 50, 100]) == "▁▅█"
    assert sparkline([100, 100]) == "██"
    assert sparkline([0.0, float("nan"), 100], unicode=False) == "_ #"
    assert sparkline([float("nan")]) == ""
    assert sparkline([-1, 0]) == "▁█"
    assert sparkline([0, 0]) == "▁▁"


def test_values_are_written_as_in_a_study_file():
    values = (None, True, False, 4096, 0.5, 5.0, "zstd:1")
    assert [plain(x) for x in values] == ["n/a", "true", "false", "4096", "0.5", "5", "zstd:1"]


def test_compact_numbers_end_without_zeros() -> None:
    assert [compact(x) for x in (None, 0.0, 12.3, 1234.56, -0.00001234, 123_456.7)] == [
        "-",
        "0",
        "12.3",
        "1,235",
        "-1.234e-05",
        "123,457",
    ]


def test_one_is_singular() -> None:
    assert [count(n, "pair") for n in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ((0.03, 0.021, 0.04), "+3.0% (+2.1% to +4.0%)"),
        ((-0.5, None, None), "-50.0%"),
        ((0.03, 0.021, None), "+3.0%"),
        ((None, None, None), "-"),
    ],
)
def test_an_estimate_has_its_limits_where_they_are_known(ends: tuple[float | None, ...], shown: str) -> None:
    assert estimate(*ends) == shown


def test_compact_numbers_stay_short_at_every_size() -> None:
    assert [compact(x) for x in (999.96, -17432.6, 1e18, 1e-6, float("nan"), float("inf"))] == [
        "1,000",
        "-17,433",
        "1e+18",
        "1e-06",
        "-",
        "-",
    ]


@pytest.mark.parametrize(
    ("value", "largest", "text"),
    [
        (0, 20_000, "0"),
        (8000, 20_000, "8k"),
        (8000, 9000, "8000"),
        (1.5e6, None, "1.5M"),
        (-2e9, None, "-2G"),
        (3e12, None, "3T"),
        (0.25, None, "0.25"),
    ],
)
def test_numbers_on_axes(value: float, largest: float | None, text: str) -> None:
    assert on_axis(value, largest) == text


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [
        (0.312, None, "31%"),
        (0.0423, None, "4.2%"),
        (0.0999, None, "10%"),
        (12.5, None, "1,250%"),
        (0.312, 1, "31.2%"),
        (0.0423, 0, "4%"),
        (None, None, "-"),
        (float("nan"), 1, "-"),
    ],
)
def test_shares_of_something_have_no_sign(share: float | None, digits: int | None, text: str) -> None:
    assert percentage(share, digits) == text


def test_shares_that_were_given_keep_their_digits() -> None:
    assert [in_percent(share) for share in (0.05, 0.005, 1, 0.07)] == ["5%", "0.5%", "100%", "7%"]


def test_axes_of_durations_have_a_unit_that_suits() -> None:
    assert duration_unit(100) == (1.0, "s")
    assert duration_unit(600) == (60.0, "min")
    assert duration_unit(20_000) == (3600.0, "h")


def test_what_commands_and_pages_print_of_shares_and_durations_comes_from_here() -> None:
    package = Path(ascar.__file__).parent
    own: list[str] = []
    for folder in ("analysis", "api", "cli", "lab", "web"):
        for path in sorted((package / folder).rglob("*.py")):
            text = path.read_text()
            nodes = ast.walk(ast.parse(text)) if "%}" in text or "format_duration" in text else ()
            own += [f"{path.relative_to(package)}:{node.lineno}" for node in nodes if _formats(node)]
    assert own == []


def _formats(node: ast.AST) -> bool:
    """Whether it is a format of a percentage, or the function that durations are written with."""
    match node:
        case ast.FormattedValue(format_spec=ast.JoinedStr() as form):
            return ast.unparse(form).rstrip("'\"").endswith("%")
        case ast.Constant(value=str(text)):
            return re.search(r"\{:[^}]*%\}", text) is not None
        case ast.Name(id="format_duration"):
            return True
        case _:
            return False
