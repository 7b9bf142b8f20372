import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascar.errors import InputError
from ascar.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 min", 600),
        ("1.5 h", 5400),
        ("90 s", 90),
        ("90s", 90),
        (" 2 d ", 172_800),
        ("250 ms", 0.25),
        ("30 us", 3e-5),
        ("30 \N{MICRO SIGN}s", 3e-5),
        ("1 h 30 min", 5400),
        ("1h30m", 5400),
        (".5 s", 0.5),
        ("0 s", 0),
        ("3 seconds", 3),
    ],
)
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "no unit: write e.g. '5 s'"),
        ("", "not a duration"),
        ("min", "not a duration"),
        ("-5 s", "not a duration"),
        ("5 mins", "did you mean 'min'"),
        ("5 fortnights", "unknown unit 'fortnights'; allowed: ns, us"),
        ("1e3 s", "unknown unit 'e'"),
        ("1,5 h", "no unit|not a duration"),
        ("inf s", "not a duration"),
        ("nan", "not a duration"),
        ("99999999999 d", "longer than"),
        ("9" * 500 + " s", "too long"),
        (5, "is not a text"),
        (None, "is not a text"),
        ("٣ s", "not a duration"),
    ],
)
def test_wrong_durations(text, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_duration(text)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("512 B", 512),
        ("4k", 4096),
        ("4K", 4096),
        ("256 MiB", 256 * 2**20),
        ("1G", 2**30),
        ("1.5 TiB", 3 * 2**39),
        ("2 MB", 2_000_000),
        ("2mb", 2_000_000),
        ("0.5k", 512),
        ("8191 PiB", 8191 * 2**50),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_sizes(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a size"),
        ("k", "not a size"),
        ("4 q", "unknown unit 'q'; allowed: B, k"),
        ("1k 2k", "one number with one unit"),
        ("-4k", "not a size"),
        ("0.3", "not a whole number of bytes"),
        ("8192 PiB", "more than"),
        ("9" * 60, "more than"),
        (4096, "is not a text"),
    ],
)
def test_wrong_sizes(text, message):
    with pytest.raises(InputError, match=message):
        parse_size(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (2e-05, "20 us"),
        (3e-09, "3 ns"),
        (1e-15, "0 s"),
        (0.99999, "1 s"),
        (0.25, "250 ms"),
        (90, "90 s"),
        (12.34, "12.3 s"),
        (600, "10 min"),
        (725, "12 min 5 s"),
        (5400, "1 h 30 min"),
        (90061, "1 d 1 h"),
        (3600, "1 h"),
    ],
)
def test_formatted_durations(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (4096, "4 KiB"),
        (2**30, "1 GiB"),
        (3 * 2**19, "1536 KiB"),
        (2**30 + 1, "1 GiB"),
        (2000000, "1.907 MiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_formatted_sizes(size, text):
    assert format_size(size) == text


@given(st.floats(min_value=1e-5, max_value=1e9))
@settings(deadline=None)
def test_formatted_durations_read_back_closely(seconds):
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=0.05)


@given(st.integers(0, 2**62))
@settings(deadline=None)
def test_formatted_sizes_read_back_closely(size):
    number, unit = format_size(size).split()
    # Four digits of a large unit need not be whole bytes, so the unit is read alone.
    assert float(number) * parse_size(f"1 {unit}") == pytest.approx(size, rel=1e-3)


@given(st.text(max_size=30))
@settings(deadline=None)
def test_any_text_is_read_or_refused(text):
    for parse in (parse_duration, parse_size):
        message = ""
        try:
            assert parse(text) >= 0
        except InputError as error:
            message = error.message
        assert "\n" not in message


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_no_duration_to_format(wrong):
    with pytest.raises(InputError):
        format_duration(wrong)


def test_no_size_to_format():
    with pytest.raises(InputError):
        format_size(-1)
