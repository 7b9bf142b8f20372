from __future__ import annotations

import pytest

from ascar.render import clock, compact, count, estimate, number, p_value, percent, plain, sparkline


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
