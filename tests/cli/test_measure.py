from __future__ import annotations

import csv
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest
from rich.console import Console

from ascar.cli.measure_progress import showing
from ascar.cli.measure_result import MeasureOutput
from ascar.pilot import (
    CommandRunner,
    Goal,
    Measured,
    MeasurementPlan,
    Round,
    Sampler,
    WorkAmounts,
    run_session,
)

SPEEDS = """
import random, sys
warm, n = 60, 300
random.seed(3)
for i in range(n):
    print("mb_per_s", random.gauss(100, 3) + (40 if i < warm else 0))
print("total", n)
"""
ENDLESS = """
import time
for i in range(10**7):
    print("mb_per_s", 100 + i % 3, flush=True)
    time.sleep(0.005)
"""
FIELDS = (
    *("n", "mean", "ci_low", "ci_high", "confidence", "autocorrelation", "subsession_size", "subsessions"),
    *("stable_start", "stable_end", "change_points", "method", "verdict"),
)
pytestmark = pytest.mark.usefixtures("no_progress_lines")
METRIC = "mb_per_s=mb_per_s ([0-9.]+)"


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "bench.py"
        path.write_text(text)
        return (sys.executable, "-I", "-S", str(path))

    return write


def test_a_command_is_timed_until_the_interval_is_narrow_enough(ascar):
    done = ascar("measure", "--preset", "quick", "--interval-width", "1", "--json", "--", "sleep", "0.02")
    document = done.document
    assert done.status == 0
    assert document["name"] == "duration_s"
    assert document["reached"] is True
    assert document["verdict"] == "reached"
    assert document["command"] == ["sleep", "0.02"]
    assert all(document[key] is not None for key in FIELDS)
    assert document["ci_width_relative"] <= 1
    assert document["ci_low"] <= document["mean"] <= document["ci_high"]
    assert document["mean"] >= 0.02
    assert len(document["rounds"]) == document["indicators"][0]["readings"] >= 20
    assert document["overhead"]["start_cost_s"] > 0
    assert 0 <= document["overhead"]["between_rounds"] <= 1


def test_people_see_everything_there_is_to_know(ascar, program):
    done = ascar("measure", "--metric", METRIC, "--report-only", "duration_s", "--", *program(SPEEDS))
    assert done.status == 0
    assert done.err == ""
    for told in (
        *("done: every goal is reached", "from unit readings", "autocorrelation", "subsessions"),
        *("stable phase", "of 900 readings: warm-up and cool-down of rounds", "verdict", "reported"),
        *("limited by", "measuring cost", "starting a program"),
    ):
        assert told in done.out


def test_unit_readings_lose_their_warm_up(ascar, program):
    done = ascar("measure", "--metric", METRIC, "--json", "--", *program(SPEEDS))
    document = done.document
    assert done.status == 0
    assert document["name"] == "mb_per_s"
    assert document["mean"] == pytest.approx(100, rel=0.01)
    assert document["indicators"][0]["basis"] == "unit readings"
    assert document["indicators"][0]["removed"] >= 3 * 60
    assert [one["unit_readings"] for one in document["rounds"]] == [{"mb_per_s": 300}] * 3


@pytest.mark.slow
def test_a_work_amount_that_can_be_adjusted_tells_the_speed_apart_from_the_start(ascar):
    """A start of 20 ms, then 10,000 units a second."""
    done = ascar(
        *("measure", "--preset", "quick", "--work-amount", "10,100000", "--short-round", "0.3 s"),
        *("--budget", "20 s", "--json", "--", "sleep", "0.02", "%WORK_AMOUNT%e-4"),
    )
    document = done.document
    assert done.status in (0, 3)
    assert document["name"] == "work_per_s"
    assert document["speed"]["work_per_s"] == document["mean"] > 1000
    assert document["method"] == "work per second"
    assert any(not one["used"] for one in document["rounds"])
    amounts = [one["work_amount"] for one in document["rounds"]]
    assert amounts[0] == 10
    # One after another does twice the work while they are short; on a busy machine an early one may be long.
    for done_before, amount in zip(document["rounds"], amounts[1:3], strict=False):
        if done_before["seconds"] >= 0.3:
            break
        assert amount == 2 * done_before["work_amount"]
    assert all(amount == int(amount) for amount in amounts)  # as the range was given in whole numbers


def test_rounds_too_few_for_a_speed_say_so(ascar):
    done = ascar(
        *("measure", "--rounds-max", "1", "--work-amount", "1,1", "--", "echo", "%WORK_AMOUNT%"),
    )
    assert done.status == 1
    assert "1 counted rounds are too few to determine a speed" in done.error


def test_people_see_the_speed_and_the_start(capfd):
    runner = CommandRunner(("true", "%WORK_AMOUNT%"))
    goal = Goal(interval_width=0.2, readings_min=12)
    noise = itertools.cycle([0.99, 1.0, 1.01])
    session = run_session(
        lambda work, left_s: Round((1.5 + work / 50) * next(noise), work),
        plan := MeasurementPlan([], goal, WorkAmounts(10, 100_000)),
        clock=lambda: 0.0,
    )
    with Sampler() as sampler:
        pass
    MeasureOutput(Measured(tuple(runner.argv), plan, session, sampler.used, None)).show()
    out = capfd.readouterr().out
    assert "done: every goal is reached" in out
    assert "from the durations of rounds of different work amounts (WPS)" in out
    assert "s of a round are set-up, warm-up and cool-down" in out
    assert "set aside as too short" in out


def test_a_limit_keeps_and_marks_what_there_is(ascar, tmp_path):
    table = tmp_path / "out.csv"
    done = ascar("measure", "--budget", "5 s", "--json", "--export", table, "--", "sleep", "0.7")
    document = done.document
    assert done.status == 3
    assert document["reached"] is False
    assert document["verdict"] in ("too-few-readings", "no-interval", "too-wide")
    assert document["ended"] == "the limit of 5 s was reached"
    assert document["rounds"]
    assert table.read_text().splitlines()[1].startswith("duration_s,")
    people = ascar("measure", "--rounds-max", "7", "--", "true")
    assert people.status == 3
    assert "PARTIAL: the limit of 7 rounds was reached before every goal was" in people.out


def test_unit_readings_of_a_round_that_the_limit_cuts_off_are_kept(ascar, program):
    done = ascar("measure", "--budget", "2.5 s", "--metric", METRIC, "--json", "--", *program(ENDLESS))
    assert done.status == 3
    assert done.document["reached"] is False
    assert done.document["mean"] == pytest.approx(101, abs=1)
    assert len(done.document["rounds"]) == 1


def test_files_are_written(ascar, program, tmp_path):
    files = {ending: tmp_path / f"out{ending}" for ending in (".csv", ".md", ".svg", ".png", ".jsonl")}
    command = ("--metric", METRIC, "--", *program(SPEEDS))
    assert (
        ascar(
            *("measure", "--preset", "quick", "--export", files[".csv"], "--plot", files[".svg"]),
            *("--readings", files[".jsonl"], *command),
        ).status
        == 0
    )
    assert (
        ascar(
            "measure", "--preset", "quick", "--export", files[".md"], "--plot", files[".png"], *command
        ).status
        == 0
    )
    (cells,) = csv.DictReader(files[".csv"].read_text().splitlines())
    assert cells["name"] == "mb_per_s"
    assert float(cells["ci_low"]) < 100.5
    assert files[".md"].read_text().startswith("| name | mean | ci_low |")
    drawn = files[".svg"].read_text()
    assert "warm-up" in drawn
    assert "change point" in drawn
    assert ascar("measure", "--plot", files[".svg"], *command).status == 0  # three rounds
    assert "warm-up" in files[".svg"].read_text()
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in files[".jsonl"].read_text().splitlines()]
    assert sum("mb_per_s" in line for line in lines) == 300
    assert sum("duration_s" in line for line in lines) == 1
    assert {line["round"] for line in lines} == {0}


def test_what_was_measured_can_be_analysed_and_compared_later(ascar, program, tmp_path):
    path = tmp_path / "readings.jsonl"
    command = ("--metric", METRIC, "--report-only", "duration_s", "--", *program(SPEEDS))
    assert ascar("measure", "--preset", "quick", "--readings", path, *command).status == 0
    document = ascar("analyze", path, "--column", "mb_per_s", "--json").document
    assert document["mean"] == pytest.approx(100, rel=0.02)
    assert document["readings"] == 300


def test_kinds_are_told_by_name(ascar, program):
    code = "import random; print('x', random.choice([50, 200]))"
    done = ascar(
        *("measure", "--rounds-max", "40", "--metric", r"x=x (\d+)", "--kind", "x=ratio", "--json"),
        *("--", *program(code)),
    )
    assert done.document["indicators"][0]["kind"] == "ratio"
    assert done.document["method"].startswith("harmonic")


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
def test_fio_is_measured_by_its_json(ascar, tmp_path):
    done = ascar(
        *("measure", "--rounds-max", "7", "--metric", "iops=json:jobs[0].write.iops", "--json", "--"),
        *("fio", "--name=job", f"--filename={tmp_path}/file", "--size=2m", "--rw=randwrite", "--bs=64k"),
        *("--ioengine=psync", "--output-format=json"),
    )
    assert done.status in (0, 3)
    assert done.document["name"] == "iops"
    assert done.document["mean"] > 1
    assert done.document["indicators"][0]["readings"] == 7


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "COMMAND"),
        (["--", "no-such-program"], "no-such-program"),
        (["--metric", "x", "--", "true"], "--metric = 'x'"),
        (["--metric", "x=(", "--", "true"], "--metric x"),
        (["--metric", "x=a", "--metric", "x=b", "--", "true"], "names 'x' twice"),
        (["--metric", "duration_s=a", "--", "true"], "measured anyway"),
        (["--kind", "x=ratio", "--", "true"], "--kind 'x': must be one of duration_s"),
        (["--kind", "duration_s=odd", "--", "true"], "ordinary, ratio, binary"),
        (["--report-only", "duration_s", "--", "true"], "no metric is left to decide"),
        (["--report-only", "y", "--", "true"], "--report-only 'y'"),
        (["--work-amount", "1,5", "--", "true"], "%WORK_AMOUNT%"),
        (["--", "echo", "%WORK_AMOUNT%"], "--work-amount"),
        (["--work-amount", "5", "--", "echo", "%WORK_AMOUNT%"], "MIN,MAX"),
        (["--work-amount", "5,1", "--", "echo", "%WORK_AMOUNT%"], "0 < least <= most"),
        (["--work-amount", "nan,1", "--", "echo", "%WORK_AMOUNT%"], "0 < least <= most"),
        (["--preset", "huge", "--", "true"], "quick, normal, strict"),
        (["--interval-width", "0", "--", "true"], "--interval-width"),
        (["--confidence", "1", "--", "true"], "confidence"),
        (["--budget", "soon", "--", "true"], "--budget"),
        (["--round-limit", "-1 s", "--", "true"], "--round-limit"),
        (["--rounds-max", "0", "--", "true"], "--rounds-max"),
        (["--plot", "x.pdf", "--", "true"], ".svg or .png"),
        (["--export", "/no/such/x.csv", "--", "true"], "does not exist"),
        (["--readings", "x.csv", "--", "true"], ".jsonl"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(ascar, arguments, told):
    done = ascar("measure", *arguments)
    assert done.status == 2
    assert told in done.error
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--", "sh", "-c", "echo boom >&2; exit 7"], "exited with 7: boom"),
        (
            ["--metric", "x=v=([0-9]+)", "--", "echo", "nothing"],
            "found nothing in the 1 lines that echo printed",
        ),
        (["--round-limit", "0.2 s", "--", "sleep", "1000"], "ran longer than its limit of 0.2 s"),
        (["--budget", "0.3 s", "--", "sleep", "1000"], "no round ended"),
        (
            [
                *("--rounds-max", "2", "--work-amount", "1,1000000", "--short-round", "60 s"),
                *("--", "echo", "%WORK_AMOUNT%"),
            ],
            "no round was long enough",
        ),
    ],
)
def test_a_command_that_fails_ends_with_status_1_and_one_line(ascar, arguments, told):
    done = ascar("measure", *arguments)
    assert done.status == 1
    assert told in done.error
    document = ascar("measure", "--json", *arguments).document
    assert document["error"]["exit_status"] == 1
    assert told in document["error"]["message"]


def test_what_was_measured_before_a_failure_is_shown(ascar, tmp_path):
    count = tmp_path / "count"
    script = f'echo >> {count}; test $(wc -l < {count}) -lt 9 || {{ echo "worn out" >&2; exit 5; }}'
    done = ascar("measure", "--", "sh", "-c", script)
    assert done.status == 1
    assert "PARTIAL: interrupted" in done.out
    assert "worn out" in done.error


def test_hostile_output_is_only_text(ascar):
    hostile = "printf '\\033[31m[bold]v=1[/bold]\\n\\377\\376v=2\\000\\nv=3\\n'; printf 'v=4%065536d\\n' 0"
    done = ascar(
        "measure", "--rounds-max", "3", "--metric", "v=v=([0-9])", "--json", "--", "sh", "-c", hostile
    )
    assert done.status == 3
    assert done.document["indicators"][0]["readings"] == 12


def test_what_the_command_prints_does_not_reach_stdout(process):
    done = process("measure", "--rounds-max", "2", "--json", "--", "sh", "-c", "echo loud; echo louder >&2")
    assert done.status == 3
    assert json.loads(done.out)["schema"] == "ascar/measure/1"
    assert "loud" not in done.err


def test_piped_progress_is_a_line_now_and_then(ascar, monkeypatch):
    monkeypatch.setattr("ascar.cli.measure_progress._LINE_EVERY_S", 0.0)
    done = ascar("measure", "--rounds-max", "9", "--budget", "60 s", "--", "true")
    lines = done.err.splitlines()
    assert len(lines) == 8  # not after the last
    assert lines[0].startswith("round 1: duration_s ")
    assert "at most" in lines[-1]
    assert "\x1b" not in done.err
    assert ascar("measure", "--rounds-max", "9", "--quiet", "--", "true").err == ""


@dataclass(frozen=True)
class _State:
    ended: str


def test_on_a_terminal_names_with_brackets_are_shown_as_they_are(monkeypatch):
    seen = io.StringIO()
    terminal = Console(file=seen, force_terminal=True, width=120)
    monkeypatch.setattr("ascar.cli.measure_progress.notes", lambda: terminal)
    with showing(lambda state: "round 1: [/bold] [red]x ahead") as told:
        told.take(_State(""))
        terminal.print("")  # draws the line once more
        told.take(_State("done"))
    assert "[/bold] [red]x ahead" in seen.getvalue()
    assert told.last == _State("done")


def test_interrupted_it_shows_what_there_is_and_leaves_nothing_running(tmp_path):
    count = tmp_path / "count"
    noise = f"echo >> {count}; echo v $(od -An -N1 -tu1 /dev/urandom); sleep 0.02"
    command = ["measure", "--metric", "x=v +([0-9]+)", "--interval-width", "0.001", "--", "sh", "-c", noise]
    for options, status_line in (
        (command, "PARTIAL: interrupted"),
        (["measure", "--json", *command[1:]], "error"),
    ):
        count.write_text("")
        process = subprocess.Popen(
            [sys.executable, "-m", "ascar", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline_s = time.monotonic() + 200
        while count.stat().st_size < 8:
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 130
        assert status_line in out
        assert err.splitlines()[-1] == "error: interrupted; nothing of the command is left running"
    assert json.loads(out)["error"]["kind"] == "Interrupted"


def test_measuring_a_command_loads_no_heavy_library():
    code = (
        "import sys; from ascar.cli import main\n"
        "sys.argv = ['ascar', 'measure', '--rounds-max', '3', '--quiet', '--', 'true']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=300
    )
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "ascar.pilot.session" in loaded
    assert not loaded & {"numpy", "scipy", "polars", "matplotlib", "sqlalchemy"}
