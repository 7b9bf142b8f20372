from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ascar.errors import EnvironmentLacks, InputError, StageFailed
from ascar.pilot import CommandRunner
from ascar.pilot.command import DURATION, start_cost_s
from ascar.program import running
from process_state import wait_for_end


def _python(code, *arguments):
    return (sys.executable, "-I", "-S", "-c", code, *arguments)


def _run(argv, metrics=None, work=None, left_s=60.0, limit_s=None):
    return CommandRunner(argv, metrics or {}, limit_s)(work, left_s)


def test_how_long_it_ran_is_always_a_reading():
    done = _run(("sleep", "0.05"))
    assert done.readings == {DURATION: done.seconds}
    assert 0.05 <= done.seconds < 30
    assert done.unit_readings == {}


def test_time_before_we_come_to_listen_counts_too(monkeypatch):
    """On a busy machine a program may run long, or be done, before its parent runs again."""

    class Late(running._Watch):
        def __init__(self, *arguments):
            time.sleep(0.05)
            super().__init__(*arguments)

    monkeypatch.setattr(running, "_Watch", Late)
    assert _run(("sleep", "0.02")).seconds >= 0.05


def test_what_is_told_once_is_a_reading_and_what_is_told_often_unit_readings():
    code = "print('once 7.5'); [print('speed', i) for i in range(5)]"
    done = _run(_python(code), {"total": r"once ([\d.]+)", "speed": r"speed (?P<value>\d+)"})
    assert done.readings["total"] == 7.5
    assert done.unit_readings == {"speed": [0.0, 1.0, 2.0, 3.0, 4.0]}


def test_json_is_read_in_lines_and_whole():
    lines = _run(_python('print(\'{"a": {"b": 1}}\'); print(\'{"a": {"b": 2}}\')'), {"b": "json:a.b"})
    assert lines.unit_readings == {"b": [1.0, 2.0]}
    whole = _run(_python('print(\'note\\n{\\n"a": [{"b": 3}]\\n}\')'), {"b": "json:a[0].b"})
    assert whole.readings["b"] == 3.0


def test_the_work_amount_takes_its_place():
    code = "import sys; print('got', sys.argv[1], sys.argv[2])"
    runner = CommandRunner(_python(code, "%WORK_AMOUNT%", "n=%WORK_AMOUNT%"), {"n": r"n=([\d.]+)"})
    assert runner.adjustable
    assert runner(12.0, 60.0).readings["n"] == 12
    done = runner(0.5, 60.0)
    assert (done.readings["n"], done.work_amount) == (0.5, 0.5)
    assert not CommandRunner(("true",)).adjustable


def test_no_shell_reads_the_command(tmp_path):
    done = _run(("echo", f"$(touch {tmp_path}/made); touch {tmp_path}/made", "5"), {"n": r"(\d+)$"})
    assert done.readings["n"] == 5
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("sh", "-c", "echo boom >&2; exit 7"), "exited with 7: boom"),
        (("sh", "-c", "kill -9 $$"), "SIGKILL"),
    ],
)
def test_a_failure_says_how(argv, told):
    with pytest.raises(StageFailed, match=told):
        _run(argv)


def test_a_reading_that_is_missing_shows_what_was_printed_instead():
    with pytest.raises(
        StageFailed, match=r"--metric x = 'v=\(\[0-9\]\+\)' found nothing .* the last: nothing here"
    ):
        _run(("echo", "nothing here"), {"x": "v=([0-9]+)"})


def test_a_round_that_runs_too_long_has_failed():
    start_s = time.monotonic()
    with pytest.raises(StageFailed, match=r"longer than its limit of 0\.2 s"):
        _run(("sleep", "1000"), limit_s=0.2)
    assert time.monotonic() - start_s < 30


def test_a_round_without_unit_readings_that_is_cut_off_is_no_round():
    assert _run(("sleep", "1000"), left_s=0.2) is None


def test_unit_readings_of_a_round_that_is_cut_off_are_kept():
    code = "import time\nfor i in range(10**6):\n print('v', i, flush=True); time.sleep(0.001)"
    for left_s in (1.0, 10.0, 50.0):  # a busy machine may let nothing be printed in a second
        done = _run(_python(code), {"v": r"v (\d+)"}, left_s=left_s)
        if done is not None and len(done.unit_readings["v"]) > 2:
            break
    assert len(done.unit_readings["v"]) > 2
    assert done.readings == {}  # a round that did not end has no duration
    assert done.seconds == left_s


def test_with_adjustable_work_they_are_not_for_the_round_has_no_duration():
    code = "import sys, time\nfor i in range(10**6):\n print('v', i, flush=True); time.sleep(0.001)"
    assert _run(_python(code, "%WORK_AMOUNT%"), {"v": r"v (\d+)"}, work=5.0, left_s=0.5) is None


def test_one_that_ignores_being_asked_is_killed(monkeypatch):
    monkeypatch.setattr("ascar.pilot.command._GRACE_S", 0.2)
    code = "import signal, time\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(1000)"
    assert _run(_python(code), left_s=0.5) is None


def test_what_it_leaves_behind_is_killed(tmp_path):
    note = tmp_path / "pid"
    _run(("sh", "-c", f"setsid sleep 1000 & echo $! > {note}"))
    wait_for_end(int(note.read_text()))


def test_what_becomes_another_program_meanwhile_is_killed_too(tmp_path):
    """Between two programs a process shows no environment, so no mark."""
    changing, pids = tmp_path / "changing", tmp_path / "pids"
    changing.write_text(f"#!/bin/sh\nexec {changing}\n")
    changing.chmod(0o755)
    for _ in range(40):
        _run(("sh", "-c", f"{changing} & echo $! >> {pids}"))
    left = [int(pid) for pid in pids.read_text().split() if _runs(int(pid), changing)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def _runs(pid: int, path: Path) -> bool:
    with suppress(OSError):
        return str(path).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def test_a_huge_output_without_lines_is_no_problem():
    done = _run(("sh", "-c", "head -c 50000000 /dev/zero"))
    assert set(done.readings) == {DURATION}
    with pytest.raises(StageFailed, match="found nothing"):
        _run(("sh", "-c", "head -c 5000000 /dev/zero"), {"x": "v=([0-9]+)"})


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "-", ""])
def test_what_is_no_number_is_no_reading(value):
    with pytest.raises(StageFailed, match="found nothing"):
        _run(("echo", f"v={value}"), {"v": "v=(.*)"})


@pytest.mark.parametrize(
    ("argv", "metrics", "told"),
    [
        ((), {}, "COMMAND is missing"),
        (("",), {}, "COMMAND is missing"),
        (("echo", "a\0b"), {}, "zero byte"),
        (("echo",) * 10_001, {}, "at most 10000 arguments"),
        (("true",), {"a b": "x"}, "--metric a b"),
        (("true",), {DURATION: "x"}, "measured anyway"),
        (("true",), {"x": "("}, "--metric x"),
        (("true",), {"x": "json:"}, "--metric x"),
    ],
)
def test_what_is_wrong_is_refused_before_the_first_round(argv, metrics, told):
    with pytest.raises(InputError, match=told):
        CommandRunner(argv, metrics)


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(EnvironmentLacks, match="no-such-program"):
        CommandRunner(("no-such-program",))


def test_what_starting_a_program_costs_is_known():
    cost_s = start_cost_s(runs=3)
    assert cost_s is not None
    assert 0 < cost_s < 5


def test_without_the_program_for_it_that_is_unknown(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert start_cost_s() is None
