from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

# Each round prints another speed, and every run of the tests the same ones.
PRINTS = """
import random, sys
base, noise = float(sys.argv[1]), float(sys.argv[2])
with open(f"{sys.argv[0]}.{base}", "a") as rounds:
    rounds.write(".")
    random.seed(f"{base} {rounds.tell()}")
print("log: starting")
print("mb_per_s", base * random.gauss(1, noise))
"""
UNITS = """
import random, sys
for i in range(120):
    print("mb_per_s", (float(sys.argv[1]) + (40 if i < 40 else 0)) * random.gauss(1, 0.02))
"""
pytestmark = pytest.mark.usefixtures("no_progress_lines")
METRIC = "mb_per_s=mb_per_s ([0-9.]+)"


@pytest.fixture
def program(tmp_path):
    """A command that prints its speed around what it is told, as one argument."""

    def write(text=PRINTS):
        path = tmp_path / "bench.py"
        path.write_text(text)
        return f"{sys.executable} -I -S {path}"

    return write


@pytest.fixture
def recorded(tmp_path):
    def write(name, mean, n=1000, seed=0):
        values = np.random.default_rng(seed).normal(mean, 5, n)
        path = tmp_path / name
        path.write_text("mb_per_s\n" + "\n".join(map(str, values)) + "\n")
        return path

    return write


def _compare_prints(ascar, command, *options):
    return ascar("compare", "--metric", METRIC, *options, "--", f"{command} 100 0.01", f"{command} 130 0.01")


def test_rounds_of_the_warm_up_are_run_and_not_used(ascar, program):
    document = _compare_prints(ascar, program(), "--warm-up", "3", "--seed", "4", "--json").document
    assert (document["warm_up"], document["seed"]) == (3, 4)
    assert document["ranking"][0]["n"] == document["rounds"]


def test_commands_are_ranked(ascar, program):
    done = _compare_prints(ascar, program(), "--label", "old", "--label", "new", "--json")
    document = done.document
    assert done.status == 0
    assert document["verdict"] == "decided"
    assert document["mode"] == "live"
    assert document["metric"] == "mb_per_s"
    assert document["lower_is_better"] is False
    assert [entry["name"] for entry in document["ranking"]] == ["new", "old"]
    assert [entry["rank"] for entry in document["ranking"]] == [1, 2]
    assert [entry["verdict"] for entry in document["ranking"]] == ["separated", "last"]
    (pair,) = document["pairs"]
    assert pair["ratio_low"] < 1.3 < pair["ratio_high"]
    assert document["ranking"][0]["command"][-2:] == ["130", "0.01"]
    assert document["ranking"][0]["n"] == document["rounds"] == 10
    for key in ("n", "mean", "ci_low", "ci_high", "confidence", "autocorrelation", "subsession_size"):
        assert document["ranking"][0][key] is not None
    for key in ("subsessions", "stable_start", "stable_end", "change_points", "method", "verdict"):
        assert document["ranking"][0][key] is not None


def test_people_see_a_table(ascar, program):
    done = _compare_prints(ascar, program())
    assert done.status == 0
    assert "done: everything is decided; 10 rounds of each" in done.out
    assert "% higher" in done.out
    assert "higher is better" in done.out
    assert "probability of any wrong verdict at most 0.01" in done.out
    assert done.err == ""


def test_equal_ones_end_with_status_0(ascar, program):
    command = program()
    done = ascar("compare", "--metric", METRIC, "--margin", "2%", "--", f"{command} 9 0", f"{command} 9 0")
    assert done.status == 0
    assert "no difference above 2%" in done.out
    assert "(2)" in done.out  # the same command twice gets two names


def test_a_limit_keeps_and_marks_what_there_is(ascar, program):
    options = ("--rounds-max", "4", "--json")
    done = _compare_prints(ascar, program(), *options)
    assert done.status == 3
    assert done.document["verdict"] == "undecided"
    assert done.document["ended"] == "the limit of 4 rounds of each was reached"
    assert done.document["rounds"] == 4
    people = _compare_prints(ascar, program(), "--rounds-max", "4")
    assert people.status == 3
    assert "PARTIAL" in people.out
    assert "not separated yet" in people.out


def test_durations_are_compared_by_default_and_word_by_word_commands_work(ascar):
    done = ascar("compare", "--preset", "quick", "--json", "--", "sleep", "0.3", "---", "sleep", "0.01")
    document = done.document
    assert done.status == 0
    assert document["metric"] == "duration_s"
    assert document["lower_is_better"] is True
    assert document["ranking"][0]["name"] == "sleep 0.01"
    assert document["pairs"][0]["verdict"] == "separated"
    assert document["pairs"][0]["ratio"] < 1


def test_unit_readings_count_by_their_stable_phase(ascar, program):
    command = program(UNITS)
    done = ascar(
        "compare", "--metric", METRIC, "--margin", "10%", "--json", "--", f"{command} 100", f"{command} 50"
    )
    assert done.document["ranking"][0]["mean"] == pytest.approx(100, rel=0.02)


def test_the_direction_can_be_told(ascar, program):
    done = _compare_prints(ascar, program(), "--direction", "min", "--label", "a", "--label", "b")
    assert "lower is better" in done.out
    assert "% lower" in done.out


def test_no_shell_reads_commands(ascar, tmp_path):
    done = ascar(
        "compare", "--rounds-max", "1", "--", f"echo $(touch {tmp_path}/a)", "echo '; false' `id` | cat"
    )
    assert done.status == 3
    assert not (tmp_path / "a").exists()


def test_files_are_written(ascar, program, tmp_path):
    files = {ending: tmp_path / f"out{ending}" for ending in (".csv", ".md", ".svg", ".png", ".jsonl")}
    common = ("--readings", files[".jsonl"], "--label", "a|b", "--label", "$x$")
    assert (
        _compare_prints(ascar, program(), "--export", files[".csv"], "--plot", files[".svg"], *common).status
        == 0
    )
    assert (
        _compare_prints(ascar, program(), "--export", files[".md"], "--plot", files[".png"], *common).status
        == 0
    )
    head, first, _ = files[".csv"].read_text().splitlines()
    cells = dict(zip(head.split(","), first.split(","), strict=True))
    assert cells["name"] == "$x$"
    assert float(cells["ratio_to_next"]) == pytest.approx(1.3, rel=0.05)
    assert "a\\|b" in files[".md"].read_text()
    assert "<svg" in files[".svg"].read_text()
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in files[".jsonl"].read_text().splitlines()]
    assert len(lines) == 20
    assert set(lines[0]) == {"block", "name", "mb_per_s"}


def test_recordings_are_ranked(ascar, recorded):
    done = ascar("compare", recorded("a.csv", 100), recorded("b.csv", 103, seed=1), "--json")
    document = done.document
    assert done.status == 0
    assert document["mode"] == "recorded"
    assert document["verdict"] == "decided"
    assert document["rounds"] is None
    assert document["ranking"][0]["file"].endswith("b.csv")
    assert document["ranking"][0]["readings"] == 1000
    (pair,) = document["pairs"]
    assert pair["verdict"] == "separated"
    assert pair["ratio_low"] < 1.03 < pair["ratio_high"]


@pytest.mark.parametrize("direction", ["min", "max"])
def test_of_means_below_zero_no_share_is_told(ascar, recorded, direction):
    done = ascar(
        "compare", recorded("a.csv", -100), recorded("b.csv", -120, seed=1), "--direction", direction
    )
    assert done.status == 0
    assert "better, p < 0.0001" in done.out
    assert "% to " not in done.out


def test_names_are_shown_as_they_are_whatever_brackets_they_have(ascar, tmp_path):
    path = tmp_path / "[red]odd[b].csv"
    path.write_text("v[/bold]\n" + "\n".join(map(str, [1.0, 2.0] * 50)) + "\n")
    done = ascar("compare", path, path, "--label", "[b]x[/b]", "--label", "[/]")
    assert done.status == 3
    assert "[b]x[/b]" in done.out
    assert "mean v[/bold]" in done.out
    assert ascar("compare", path, path).status == 3


def test_recordings_that_are_too_short_say_how_many_more_readings_would_do(ascar, recorded):
    done = ascar("compare", recorded("a.csv", 100, 60), recorded("b.csv", 101, 60, seed=1))
    assert done.status == 3
    assert "not separated: about" in done.out
    assert "more readings would do" in done.out


def test_one_hyperfine_file_holds_several(ascar, tmp_path):
    rng = np.random.default_rng(1)
    results = [
        {"command": name, "times": rng.normal(mean, 0.01, 40).tolist()}
        for name, mean in (("x", 1.0), ("y", 0.5))
    ]
    path = tmp_path / "hyperfine.json"
    path.write_text(json.dumps({"results": results}))
    document = ascar("compare", path, "--json").document
    assert document["metric"] == "duration_s"
    assert [entry["name"] for entry in document["ranking"]] == ["y", "x"]
    assert (
        document["pairs"][0]["verdict_line"].endswith("times as fast")
        or "faster" in (document["pairs"][0]["verdict_line"])
    )


def test_sources_of_different_kinds_are_compared(ascar, recorded, tmp_path):
    lines = tmp_path / "b.jsonl"
    values = np.random.default_rng(2).normal(100, 5, 500)
    lines.write_text("".join(json.dumps({"mb_per_s": value}) + "\n" for value in values))
    log = tmp_path / "c_bw.1.log"
    log.write_text("".join(f"{(i + 1) * 1000}, {v:.0f}, 0, 0, 0\n" for i, v in enumerate(values * 1000)))
    done = ascar("compare", recorded("a.csv", 100), lines, log, "--json")
    assert done.status == 0
    assert done.document["ranking"][0]["file"] == str(log)


def test_a_recording_without_a_stable_phase_is_no_crash(ascar, recorded, tmp_path):
    path = tmp_path / "steps.json"
    path.write_text(json.dumps([*[1.0] * 100, *[50.0] * 100, *[100.0] * 100]))
    done = ascar("compare", path, recorded("a.csv", 100))
    assert done.status == 3
    assert "cannot be told" in done.out
    assert "no stable phase" in done.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--", "true"], "1 command to compare"),
        (["--", "true", "---"], "command 2 of 2 is empty"),
        (["--", "true", ""], "command 2 of 2 is empty"),
        (["--", "true", "no-such-program"], "no-such-program"),
        (["--", "sleep", "1"], "put --- between commands"),
        (["--", "true", "echo 'a"], "close the quotes"),
        (["--metric", "x", "--", "true", "true"], "--metric = 'x'"),
        (["--metric", "x=(", "--", "true", "true"], "--metric x"),
        (["--margin", "much", "--", "true", "true"], "--margin = 'much'"),
        (["--margin", "150%", "--", "true", "true"], "--margin = '150%'"),
        (["--direction", "up", "--", "true", "true"], "--direction = 'up'"),
        (["--confidence", "0", "--", "true", "true"], "--confidence = 0.0"),
        (["--confidence", "2", "--", "true", "true"], "--confidence = 2.0"),
        (["--preset", "huge", "--", "true", "true"], "quick, normal, strict"),
        (["--label", "a", "--", "true", "true"], "--label is given 1 times for 2"),
        (["--label", "a", "--label", "a", "--", "true", "true"], "--label = 'a' is given twice"),
        (["--column", "x", "--", "true", "true"], "--column = 'x' applies only to files"),
        (["--plot", "x.pdf", "--", "true", "true"], "--plot"),
        (["--", "dd count=%WORK_AMOUNT%", "true"], "%WORK_AMOUNT%"),
        (["no-such-file.csv", "other.csv"], "No such file"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_runs(ascar, arguments, told):
    done = ascar("compare", *arguments)
    assert done.status == 2
    assert told in done.error
    assert done.out == ""


def test_files_and_commands_do_not_mix(ascar, recorded):
    path = recorded("a.csv", 100)
    assert "files with files" in ascar("compare", path, "sleep 1").error
    assert "--column" in ascar("compare", path, recorded("b.csv", 1), "--metric", "x=y").error
    assert "1 series" in ascar("compare", path).error


def test_a_command_that_fails_is_named(ascar):
    done = ascar(
        "compare", "--label", "good", "--label", "bad", "--", "true", "sh -c 'echo boom >&2; exit 7'"
    )
    assert done.status == 1
    assert done.error.startswith("bad: ")
    assert "exited with 7: boom" in done.error


def test_what_was_measured_before_a_failure_is_shown(ascar, tmp_path):
    count = tmp_path / "count"
    script = f'echo >> {count}; test $(wc -l < {count}) -lt 8 || {{ echo "worn out" >&2; exit 5; }}'
    done = ascar("compare", "--label", "good", "--label", "bad", "--", "true", f"sh -c '{script}'")
    assert done.status == 1
    assert "PARTIAL" in done.out
    assert "worn out" in done.error


def test_a_command_that_hangs_is_killed(ascar):
    done = ascar("compare", "--round-limit", "0.3 s", "--", "true", "sleep 1000")
    assert done.status == 1
    assert "ran longer than its limit of 0.3 s" in done.error
    done = ascar("compare", "--budget", "0.5 s", "--", "true", "sleep 1000")
    assert done.status == 1
    assert "raise --budget" in done.error


def test_interrupted_it_shows_what_there_is_and_leaves_nothing_running(tmp_path):
    count = tmp_path / "count"
    noise = f"sh -c 'echo >> {count}; echo v $(od -An -N1 -tu1 /dev/urandom); exec sleep 0.02'"
    command = [sys.executable, "-m", "ascar", "compare", "--metric", "x=v +([0-9]+)", "--", noise, noise]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + 200
    while not count.exists() or count.stat().st_size < 8:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "PARTIAL: interrupted" in out
    assert err.splitlines()[-1] == "error: interrupted; nothing of the commands is left running"
