from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from documents import check_document

OPTIONS = (
    "--column",
    "mb_per_s",
    "--time",
    "t",
    "--period",
    "none",
    "--batch",
    "10 s",
    "--false-alarm",
    "1 d",
)


def written(path, level=lambda i: 100.0, n=4_000, seed=1):
    rng = np.random.default_rng(seed)
    rows = (f"{i},{level(i) + rng.normal():.3f}\n" for i in range(n))
    path.write_text("t,mb_per_s\n" + "".join(rows))
    return path


def documents(out):
    """Every line, which its published schema allows."""
    found = [json.loads(line) for line in out.splitlines()]
    for document in found:
        check_document(document)
    return found


@pytest.fixture
def drifting(tmp_path):
    return written(tmp_path / "run.csv", lambda i: 100.0 - max(0, i - 2_000) / 500)


def test_a_shift_is_a_line_and_the_summary_is_the_last(ascar, drifting):
    done = ascar("watch", drifting, *OPTIONS, "--json")
    *shifts, summary = documents(done.out)
    assert done.status == 0
    assert summary["schema"] == "ascar/watch/1"
    assert summary["verdict"] == "shifted"
    assert summary["readings"] == 4_000
    assert summary["batches"] == 400
    assert {shift["schema"] for shift in shifts} == {"ascar/watch-shift/1"}
    assert len(shifts) == len(summary["shifts"])
    assert shifts[0]["direction"] == "down"
    assert 1_990 <= shifts[0]["found_s"] <= 3_000
    assert shifts[0]["name"] == "mb_per_s"


def test_people_read_what_how_much_and_since_when(ascar, drifting, tmp_path):
    out = ascar("watch", drifting, *OPTIONS).out
    assert out.startswith("mb_per_s down -")
    for told in ("began", "found", "levels", "verdict", "shifted"):
        assert told in out
    steady = ascar("watch", written(tmp_path / "steady.csv"), *OPTIONS).out
    assert "steady: no shift found in" in steady
    short = ascar("watch", written(tmp_path / "short.csv", n=200), *OPTIONS).out
    assert "too-short: 20 batches are too few to judge" in short


def test_nodes_are_combined(ascar, tmp_path):
    files = [written(tmp_path / f"{name}.csv", seed=seed) for seed, name in enumerate("ab")]
    done = ascar("watch", *files, *OPTIONS, "--combine", "sum", "--json")
    (summary,) = documents(done.out)
    assert summary["nodes"] == 2
    assert summary["levels"][0]["mean"] == pytest.approx(200, rel=0.01)
    assert summary["batches_left_out"] == 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--column", "mb_per_s"), "--time"),
        (("--time", "t", "--column", "none"), "'none'"),
        (("--time", "t", "--batch", "7 min"), "period"),
        (("--time", "t", "--budget", "1 s"), "--follow"),
        (("--every", "1 h", "--column", "mb_per_s"), "--every"),
        (("--time", "t", "--period", "soon"), "--period"),
    ],
)
def test_bad_options_are_named(ascar, drifting, options, named):
    done = ascar("watch", drifting, *options)
    assert done.status == 2
    assert named in done.error


def test_sources_that_cannot_be_combined_are_refused(ascar, drifting, tmp_path):
    other = written(tmp_path / "other.csv", n=10)
    assert "--combine" in ascar("watch", drifting, other, *OPTIONS).error
    assert "twice" in ascar("watch", drifting, drifting, *OPTIONS, "--combine", "sum").error
    assert "'-' must be the only" in ascar("watch", drifting, "-", *OPTIONS, "--combine", "sum").error
    (tmp_path / "empty.csv").write_text("t,mb_per_s\n")
    done = ascar("watch", tmp_path / "empty.csv", *OPTIONS)
    assert done.status == 2
    assert "holds no readings" in done.error


def test_a_pipe_is_read_to_its_end(process, drifting):
    with drifting.open() as pipe:
        done = process("watch", "-", *OPTIONS, "--json", stdin=pipe)
    *shifts, summary = documents(done.out)
    assert shifts
    assert summary["files"] == ["-"]


def test_a_growing_file_is_followed_until_interrupted(drifting, tmp_path):
    growing = tmp_path / "growing.csv"
    lines = drifting.read_text().splitlines(keepends=True)
    growing.write_text("".join(lines[:2_000]))
    command = [sys.executable, "-m", "ascar", "watch", str(growing), *OPTIONS, "--json", "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(400, process.kill)
        watchdog.start()
        assert process.stdout is not None
        time.sleep(1.0)  # whether it was read before or after this, the rest comes on its own
        with growing.open("a") as file:
            file.writelines(lines[2_000:])
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        status = process.wait()
        watchdog.cancel()
    *shifts, summary = documents(first + rest)
    assert status == 0
    assert shifts[0]["direction"] == "down"
    assert summary["verdict"] == "shifted"


def test_following_ends_at_the_limit(ascar, tmp_path):
    path = written(tmp_path / "run.csv", n=300)
    done = ascar("watch", path, *OPTIONS, "--follow", "--budget", "1 s", "--json")
    (summary,) = documents(done.out)
    assert done.status == 0
    assert summary["readings"] == 300
