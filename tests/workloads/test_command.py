"""Any program as a load."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager

import pytest

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.testing import WorkloadContract
from ascar.workloads import LoadTiming, open_workload
from ascar.workloads.command import Command
from ascar.workspace import Workspace

# Reports every 50 ms until its time is over; ends in good order when interrupted.
REPORTER = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
start = time.monotonic()
while time.monotonic() - start < float(sys.argv[1]):
    time.sleep(0.05)
    print(f"at {time.monotonic() - start:.3f} ops {1000 + len(sys.argv)}", flush=True)
print("total 12345")
"""
REPORTING = {
    "argv": [sys.executable, "-c", REPORTER, "{seconds}"],
    "metrics": {"throughput_ops_per_s": r"regex:ops (\d+)"},
}


def never(series):
    return False


def pace(load_max_s=1.0, may_end=never, load_min_s=0.2):
    return LoadTiming(load_min_s, load_max_s, 0.1, may_end)


def shell(script, **options):
    return Command({"argv": ["/bin/sh", "-c", script], **options})


class TestCommandContract(WorkloadContract):
    @pytest.fixture(autouse=True)
    def _directory(self, directory):
        self.directory = directory

    def make(self):
        return Command(REPORTING)

    @contextmanager
    def place(self):
        yield Workspace(self.directory)


def test_it_is_the_kind_command():
    assert isinstance(open_workload({"kind": "command", **REPORTING}), Command)


def test_lines_become_readings_and_the_last_line_the_whole(place, with_readings):
    load = Command(REPORTING | {"metrics": {**REPORTING["metrics"], "total": r"regex:total (\d+)"}})
    readings = with_readings(3, lambda load_s: load.run(place, pace(load_s)))
    assert set(readings.series) == {"throughput_ops_per_s"}
    assert readings.metrics["total"] == 12345
    assert 1.0 <= readings.metrics["duration_s"] < 60
    assert readings.ended == "time"
    assert "total 12345" in readings.notes


def test_a_time_column_dates_the_readings(place):
    script = "echo at 7.125 ops 10; echo at 8.25 ops 11"
    metrics = {"throughput_ops_per_s": r"regex:ops (\d+)"}
    readings = shell(script, metrics=metrics, time=r"regex:at ([0-9.]+)").run(place, pace())
    assert readings.series["throughput_ops_per_s"].seconds.tolist() == [7.125, 8.25]


def test_a_json_document_tells_the_whole_run(place):
    script = """printf '{\\n "jobs": [{"ops": 10}, {"ops": 20, "lat": {"p99": 1.5}}]\\n}\\n'"""
    load = shell(script, metrics={"ops_per_s": "json:jobs[1].ops", "latency_ms_p99": "json:jobs[-1].lat.p99"})
    readings = load.run(place, pace())
    assert (readings.metrics["ops_per_s"], readings.metrics["latency_ms_p99"]) == (20, 1.5)
    assert readings.series == {}
    assert readings.ended == "program"


def test_it_runs_in_the_workspace_and_placeholders_are_text(place):
    script = 'import sys, os; print(sys.argv[1:], os.getcwd() == sys.argv[1]); print("x 1")'
    argv = [
        sys.executable,
        "-c",
        script,
        "{directory}",
        "--time={seconds}",
        "{second}",
        "$(id) {directory}/a b",
    ]
    readings = Command({"argv": argv, "metrics": {"x": r"regex:x (\d)"}}).run(place, pace(1.4))
    at = str(place.directory)
    assert readings.notes.splitlines()[0] == f"{[at, '--time=2', '{second}', f'$(id) {at}/a b']} True"


def test_prepare_fills_the_workspace(place):
    load = shell(
        "wc -c < data", prepare=["/bin/sh", "-c", "echo 12345 > data"], metrics={"bytes": r"regex:(\d+)"}
    )
    load.prepare(place)
    assert load.run(place, pace()).metrics["bytes"] == 6


def test_a_failing_fill_fails_its_stage(place):
    with pytest.raises(StageFailed, match="sh exited with 3: no luck") as failed:
        shell("true", prepare=["/bin/sh", "-c", "echo no luck >&2; exit 3"]).prepare(place)
    assert failed.value.stage == "fill"


def test_without_a_fill_there_is_nothing_to_prepare(place):
    Command(REPORTING).prepare(place)
    assert list(place.directory.iterdir()) == []


def test_a_program_that_is_not_told_its_time_ends_by_itself():
    assert shell("echo 1").ends_by_itself
    assert not shell("sleep {seconds}").ends_by_itself


def test_without_metrics_the_duration_is_measured(place):
    readings = shell("sleep 0.3").run(place, pace())
    assert set(readings.metrics) == {"duration_s"}
    assert 0.3 <= readings.metrics["duration_s"] < 30
    assert readings.ended == "program"


def test_it_is_interrupted_when_it_is_enough(place):
    start_s = time.monotonic()
    readings = Command(REPORTING).run(
        place, pace(60, lambda series: len(series.get("throughput_ops_per_s", ())) >= 3)
    )
    assert time.monotonic() - start_s < 50
    assert readings.ended == "enough"


def test_a_program_that_was_not_told_its_time_is_interrupted_at_its_end(place):
    load = Command(REPORTING | {"argv": [sys.executable, "-c", REPORTER, "1000"]})
    readings = load.run(place, pace(5))
    assert readings.ended == "time"
    assert readings.load_s < 50


def test_a_program_that_may_not_be_interrupted_runs_to_its_end(place):
    argv = [sys.executable, "-c", REPORTER, "0.8"]
    load = Command(REPORTING | {"argv": argv, "stop_early": False})
    readings = load.run(place, pace(0.3, lambda series: True))
    assert readings.load_s >= 0.8
    assert readings.ended == "program"


@pytest.mark.parametrize(
    ("script", "options", "problem"),
    [
        ("echo broken >&2; exit 4", {}, "load: sh exited with 4: broken"),
        ("kill -SEGV $$", {}, "load: sh was killed by SIGSEGV"),
        ("sleep 60", {"overrun_limit": "0.2 s"}, r"ran longer than its limit of 0\.5 s and was killed"),
        (
            "echo a; echo b",
            {"metrics": {"x": r"regex:x (\d)"}, "stop_early": False},
            r"workload.metrics.x = .* found nothing in the 2 lines",
        ),
        (
            "true",
            {"metrics": {"x": "json:x"}},
            r"found nothing in the 0 lines that sh printed; the last: \(none\)",
        ),
        ("echo x nan", {"metrics": {"x": r"regex:x (\S+)"}}, "found nothing"),
        ("exec yes", {"metrics": {"x": r"regex:x (\S+)"}, "overrun_limit": "0.5 s"}, "killed|found nothing"),
    ],
)
def test_failures_of_the_program_fail_the_load(place, script, options, problem):
    with pytest.raises(StageFailed, match=problem) as failed:
        shell(script, **options).run(place, pace(0.3))
    assert failed.value.stage == "load"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "workload.argv: missing"),
        ({"argv": []}, "workload.argv = .*: must name a program"),
        ({"argv": [""]}, "must name a program"),
        ({"argv": "ls -l"}, "workload.argv = 'ls -l': must be"),
        ({"argv": ["ls"], "shell": True}, "workload.shell: unknown key"),
        ({"argv": ["ls", "a\0b"]}, "none with a zero byte"),
        ({"argv": ["ls"], "metrics": {"x y": "regex:1"}}, "workload.metrics.x y: must be letters"),
        (
            {"argv": ["ls"], "metrics": {"x": "regex:("}},
            "workload.metrics.x = 'regex:.*is not a regular expression",
        ),
        ({"argv": ["ls"], "metrics": {"x": 1}}, "workload.metrics"),
        ({"argv": ["ls"], "time": "column 1"}, "workload.time = 'column 1'"),
        ({"argv": ["ls"], "dataset_bytes": -1}, "workload.dataset_bytes = -1"),
        ({"argv": ["ls"], "overrun_limit": "a while"}, "workload.overrun_limit"),
    ],
)
def test_mistakes_are_named(options, problem):
    with pytest.raises(StudyError, match=problem) as error:
        Command(options)
    assert "\n" not in error.value.message


@pytest.mark.parametrize("key", ["argv", "prepare"])
def test_a_missing_program_is_named(key):
    with pytest.raises(EnvironmentLacks, match=rf"workload.{key}\[0\] = 'no-such-program'"):
        Command({"argv": ["ls"], key: ["no-such-program", "x"]})


def test_it_describes_what_was_run():
    described = Command(REPORTING | {"dataset_bytes": 5}).describe()
    assert described["argv"] == REPORTING["argv"]
    assert described["dataset_bytes"] == 5
