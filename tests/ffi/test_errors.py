"""Whatever is given to the C library, it says what is wrong and lives."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).resolve().parents[2]
HUGE = 2**64 - 1
GOOD = np.arange(1.0, 101.0) % 17 + 1


def test_versions_agree(pilot, streams):
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version is not None
    header = (ROOT / "crates/ffi/include/pilot.h").read_text()
    numbers = re.findall(r"#define PILOT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header)
    assert pilot.dll.pilot_version().decode() == version[1] == ".".join(numbers)
    assert f'#define PILOT_VERSION "{version[1]}"' in header
    other = (ROOT / "crates/ffi/include/congestion.h").read_text()
    assert re.findall(r"#define ASCAR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", other) == numbers
    assert f'#define ASCAR_VERSION "{version[1]}"' in other
    assert streams.dll.ascar_version().decode() == version[1]


def test_the_library_exports_what_the_headers_declare(pilot, streams, prefix):
    told = subprocess.run(
        ["nm", "-D", "--defined-only", prefix / "lib/libascar.so"], check=True, capture_output=True, text=True
    )
    exported = {line.split()[-1] for line in told.stdout.splitlines()}
    assert exported == {*pilot.prototypes, *streams.prototypes}
    assert len(pilot.prototypes) > 35
    assert len(streams.prototypes) > 15


def _blank(pilot, arguments: str) -> list:
    """Arguments that do for a prototype as far as types go: NULL, 0, 2.0."""
    blank = {"pilot_workload_t": pilot.workload_t(), "pilot_progress_t": pilot.progress_t(), "double": 2.0}
    return [None if "*" in one else blank.get(one.split()[0], 0) for one in arguments.split(",")]


def test_null_is_an_error_everywhere(pilot):
    for name, arguments in pilot.prototypes.items():
        if name in {"pilot_version", "pilot_last_error", "pilot_free"}:
            continue
        given = _blank(pilot, arguments)
        assert getattr(pilot.dll, name)(*given) == pilot.constants["PILOT_ERROR_ARGUMENT"], name
        if name != "pilot_stop":
            assert "is NULL" in pilot.last_error(), name
    assert pilot.dll.pilot_free(None) == 0


def test_null_is_an_error_for_every_stream(streams):
    handle = ctypes.c_void_p()
    streams.call("stream_create", handle)
    for name, arguments in streams.prototypes.items():
        if name in {"ascar_version", "ascar_last_error"}:
            continue
        blank = _blank(streams, arguments)
        expected = 0 if name == "ascar_stream_free" else streams.constants["ASCAR_ERROR_ARGUMENT"]
        assert getattr(streams.dll, name)(*blank) == expected, name
        assert "stream is NULL" in streams.last_error() or not expected, name
        if None in blank[1:]:
            assert getattr(streams.dll, name)(handle.value, *blank[1:]) == expected, name
            assert "is NULL" in streams.last_error(), name
    assert streams.dll.ascar_stream_free(handle.value) == 0


def test_null_after_a_session_is_an_error_too(pilot, session):
    for name, arguments in pilot.prototypes.items():
        others = arguments.removeprefix("pilot_session_t *session, ")
        if others == arguments or not ("*" in others or "workload" in others) or name == "pilot_set_progress":
            continue
        given = [session, *_blank(pilot, arguments)[1:]]
        assert getattr(pilot.dll, name)(*given) == pilot.constants["PILOT_ERROR_ARGUMENT"], name
        assert "is NULL" in pilot.last_error(), name


SERIES = [
    ("analyze", ["{}", None, "measurement"]),
    ("change_points", ["{}", 30, None, 0, "size"]),
    ("edm_change_points", ["{}", None, None, 0, "size"]),
    ("autocorrelation", ["{}", 1, "double"]),
    ("effective_sample_size", ["{}", "double"]),
    ("subsession_size", ["{}", 0.1, "size"]),
    ("mean_interval", ["{}", 0.95, "interval"]),
    ("harmonic_mean_interval", ["{}", 0.95, "interval"]),
    ("percentile_interval", ["{}", 0.5, 0.95, "interval"]),
    ("welch", ["{}", "{}", 0.95, "welch"]),
    ("sequential_compare", ["{}", "{}", 0.05, 0.0, "sequential"]),
    ("work_per_second", ["{}{}", 0.95, "speed"]),
]


def _given(pilot, pattern, values, count):
    places = {"double": ctypes.c_double(-1), "size": ctypes.c_size_t(77)}
    for one in pattern:
        if one == "{}":
            yield from (values, count)
        elif one == "{}{}":
            yield from (values, values, count)
        elif isinstance(one, str):
            yield places.get(one) or pilot.new(one)
        else:
            yield one


@pytest.mark.parametrize(("name", "pattern"), SERIES)
def test_readings_that_cannot_be(pilot, failed, name, pattern):
    pilot.call(name, *_given(pilot, pattern, GOOD, len(GOOD)))
    for value in (math.nan, math.inf, -math.inf, 1e300):
        wrong = GOOD.copy()
        wrong[70] = value
        with pytest.raises(failed, match=r"ARGUMENT: .*at index 70; allowed: finite"):
            pilot.call(name, *_given(pilot, pattern, wrong, len(wrong)))
    for count, said in [(0, "at least"), (HUGE, "at most 1000000000"), (2**61, "at most")]:
        with pytest.raises(failed, match=f"ARGUMENT: .*allowed: {said}"):
            pilot.call(name, *_given(pilot, pattern, GOOD, count))
    with pytest.raises(failed, match="is NULL"):
        pilot.call(name, *_given(pilot, pattern, None, 5))
    with pytest.raises(failed, match="is misaligned"):
        pilot.call(name, *_given(pilot, pattern, GOOD.ctypes.data + 1, 5))


def test_nothing_is_written_on_an_error(pilot):
    interval = pilot.new("interval")
    interval.estimate = 42.0
    assert pilot.dll.pilot_mean_interval(GOOD.ctypes.data, 100, 7.0, ctypes.addressof(interval)) != 0
    assert (interval.estimate, interval.low) == (42.0, 0.0)


def test_options_out_of_their_ranges(pilot, failed):
    found, count = pilot.new("measurement"), ctypes.c_size_t()
    for field, value in [
        ("confidence", 1.0), ("confidence", math.nan), ("autocorrelation_limit", 0.0), ("min_segment", 1),
        ("min_segment", HUGE), ("method", 9), ("method", -1),
    ]:  # fmt: skip
        options = pilot.new("analysis_options")
        options.confidence, options.autocorrelation_limit, options.min_segment = 0.95, 0.1, 30
        setattr(options, field, value)
        with pytest.raises(failed, match=f"ARGUMENT: {field} is .*allowed: "):
            pilot.call("analyze", GOOD, len(GOOD), options, found)
    for field, value in [
        ("min_segment", 0), ("min_segment", HUGE), ("percent", math.nan), ("percent", -1.0), ("degree", 3),
        ("degree", -1),
    ]:  # fmt: skip
        options = pilot.new("edm_options")
        options.min_segment, options.percent, options.degree = 30, 0.25, 1
        setattr(options, field, value)
        with pytest.raises(failed, match=f"ARGUMENT: {field} is .*allowed: "):
            pilot.call("edm_change_points", GOOD, len(GOOD), options, None, 0, count)
    for segment in (0, 1, HUGE, 2**63):
        with pytest.raises(failed, match="min_segment is"):
            pilot.call("change_points", GOOD, len(GOOD), segment, None, 0, count)
    with pytest.raises(failed, match="points is NULL"):
        pilot.call("change_points", GOOD, len(GOOD), 30, None, 5, count)
    number = ctypes.c_double(5)
    pilot.call("autocorrelation", GOOD, len(GOOD), HUGE, number)
    assert number.value == 0
    interval = pilot.new("interval")
    for successes, trials, method in [(1, 0, 0), (5, 4, 0), (1, 2, 2), (HUGE, 1, 1)]:
        with pytest.raises(failed, match="ARGUMENT"):
            pilot.call("proportion_interval", successes, trials, 0.95, method, interval)
    samples = ctypes.c_uint64()
    for numbers in [(1, 1, 1, 1, 0.05, 0.8), (math.nan, 1, 2, 1, 0.05, 0.8), (1, -1, 2, 1, 0.05, 0.8)]:
        with pytest.raises(failed, match="ARGUMENT"):
            pilot.call("welch_sample_size", *numbers, samples)
    for margin in (math.nan, -0.1, 1.0):
        with pytest.raises(failed, match="margin is"):
            pilot.call("sequential_compare", GOOD, 50, GOOD, 50, 0.05, margin, pilot.new("sequential"))


def test_settings_out_of_their_ranges_change_nothing(pilot, session, failed):
    wrong = [
        ("interval_width", 0.0), ("interval_width", math.nan), ("interval_width", math.inf),
        ("confidence", 0.0), ("confidence", 1.0), ("confidence", math.nan), ("readings_min", 0),
        ("rounds", 0, 5), ("rounds", 5, 4), ("session_limit", 0.0), ("session_limit", math.nan),
        ("session_limit", math.inf), ("work_amount", 0.0, 1.0, 0), ("work_amount", 2.0, 1.0, 0),
        ("work_amount", 1.0, math.inf, 0), ("work_amount", math.nan, 1.0, 0), ("work_amount", 1.2, 1.8, 1),
        ("short_round", -1.0), ("short_round", math.nan), ("short_round", 181.0), ("longest_round", 0.0),
        ("longest_round", 0.5), ("first_result", 0.0), ("first_result", math.nan),
    ]  # fmt: skip
    for name, *arguments in wrong:
        with pytest.raises(failed, match="ARGUMENT: .*allowed: "):
            pilot.call(f"set_{name}", session, *arguments)
    with pytest.raises(failed, match="without anything to measure"):
        pilot.call("run", session)
    for preset in (-1, 3, 2**31 - 1):
        handle = ctypes.c_void_p()
        with pytest.raises(failed, match="allowed: PILOT_QUICK"):
            pilot.call("create", preset, handle)
        assert handle.value is None


def test_indicators(pilot, session, failed):
    index = ctypes.c_size_t()
    for number, name in enumerate([b"a", "ops_per_s \u00e9".encode(), b"x" * 255]):
        pilot.call("add_indicator", session, name, 0, 1, index)
        assert index.value == number
    for name, kind, said in [
        (b"a", 0, "already exists"),
        (b"", 0, "0 bytes; allowed: 1 to 255"),
        (b"x" * 256, 0, "256 bytes"),
        (b"\xff\xfe", 0, "not UTF-8"),
        (b"b", 3, "kind is 3"),
        (b"b", -1, "kind is -1"),
    ]:
        with pytest.raises(failed, match=said):
            pilot.call("add_indicator", session, name, kind, 1, None)
    for number in range(3, 1000):
        pilot.call("add_indicator", session, str(number).encode(), 0, 0, None)
    with pytest.raises(failed, match="one too many; allowed: 1000"):
        pilot.call("add_indicator", session, b"b", 0, 0, None)


def test_results_before_a_run_and_beyond_it(pilot, session, failed):
    found, count = pilot.new("finding"), ctypes.c_size_t()
    for name, *arguments in [
        ("summary", pilot.new("summary")),
        ("finding", 0, found),
        ("finding_change_points", 0, None, 0, count),
        ("speed", pilot.new("speed")),
        ("done", 0, pilot.new("done")),
    ]:
        with pytest.raises(failed, match="STATE: the session has not run"):
            pilot.call(name, session, *arguments)
    pilot.call("add_indicator", session, b"v", 0, 1, None)
    with pytest.raises(failed, match="STATE: the session has no workload"):
        pilot.call("run", session)
    workload = pilot.workload_t(lambda user, work, round_: pilot.dll.pilot_round_reading(round_, 0, 1.5))
    pilot.call("set_workload", session, workload, None)
    pilot.call("set_rounds", session, 1, 2)
    pilot.call("run", session)
    with pytest.raises(failed, match="STATE: the session's work cannot be adjusted"):
        pilot.call("speed", session, pilot.new("speed"))
    for name, number, *arguments in [
        ("finding", 1, found), ("finding", HUGE, found), ("finding_change_points", 1, None, 0, count),
        ("done", 2, pilot.new("done")), ("done", HUGE, pilot.new("done")),
    ]:  # fmt: skip
        with pytest.raises(failed, match="ARGUMENT: (indicator|round) is .*allowed: an index below"):
            pilot.call(name, session, number, *arguments)
    pilot.call("finding", session, 0, found)
    assert found.readings == 2


def test_round_calls_that_cannot_be_fail_the_round(pilot, session, failed):
    pilot.call("add_indicator", session, b"ratio", pilot.constants["PILOT_RATIO"], 1, None)
    pilot.call("add_indicator", session, b"binary", pilot.constants["PILOT_BINARY"], 1, None)
    calls = [
        ("reading", (0, 0.0), "0 of ratio; allowed: a finite number above 0"),
        ("reading", (0, math.inf), "inf of ratio"),
        ("reading", (1, 0.5), "0.5 of binary; allowed: 0 or 1"),
        ("reading", (2, 1.0), "indicator is 2; allowed: an index below 2"),
        ("reading", (HUGE, 1.0), "an index below 2"),
        ("unit_readings", (0, None, 3), "values is NULL"),
        ("unit_readings", (0, GOOD.ctypes.data, HUGE), "at most 1000000000"),
        ("seconds", (0.0,), "seconds are 0"),
        ("seconds", (math.nan,), "seconds are NaN"),
        ("seconds_left", (None,), "seconds is NULL"),
    ]
    for name, arguments, said in calls:

        def round_(user, work, handle, name=name, arguments=arguments):
            assert getattr(pilot.dll, f"pilot_round_{name}")(handle, *arguments) != 0
            return 0

        workload = pilot.workload_t(round_)
        pilot.call("set_workload", session, workload, None)
        with pytest.raises(failed, match=f"WORKLOAD: .*gave what cannot be used: .*{re.escape(said)}"):
            pilot.call("run", session)


def test_errors_are_told_in_their_own_thread(pilot):
    assert pilot.dll.pilot_run(None) != 0
    assert "session is NULL" in pilot.last_error()
    other = []
    thread = threading.Thread(target=lambda: other.append(pilot.last_error()))
    thread.start()
    thread.join()
    assert other == [""]
