"""`ascar workload`: from a process that really runs to a workload that stands for it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ascar.features import filled_bytes
from process_state import wait_for_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

DATABASE = """
import random, sqlite3, sys, time
chance = random.Random(1)
database = sqlite3.connect(sys.argv[1] + "/data.db", isolation_level=None)
database.execute("pragma cache_size = -200")
database.execute("create table t(id integer primary key, body blob)")
database.execute("begin")
for n in range(4000):
    database.execute("insert into t values(?, ?)", (n, bytes(700)))
database.execute("commit")
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    database.execute("begin immediate")
    database.execute("update t set body = ? where id = ?", (bytes(700), chance.randrange(4000)))
    database.execute("insert into t(body) values(?)", (bytes(700),))
    database.execute("commit")
    for _ in range(5):
        database.execute("select length(body) from t where id = ?", (chance.randrange(4000),)).fetchone()
    time.sleep(0.02)
"""


@pytest.fixture
def place(in_memory: Path | None) -> Iterator[Path]:
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as directory:
        yield Path(directory)


def record(ascar: Callable[..., Any], *words: object) -> dict[str, Any]:
    """The document of `ascar workload record`; skips where processes must not be traced."""
    done = ascar("workload", "record", "--json", *words)
    if "may not trace" in done.err:
        pytest.skip(done.err.strip())
    assert done.status == 0, done.err
    return done.document


def far(document: dict[str, Any]) -> list[str]:
    """Features further apart than 10%, but for gaps in time, which a busy machine makes longer."""
    return [name for name in document["replay"]["far"] if "_gap_s_" not in name]


@pytest.mark.slow
@needs_strace
def test_the_signature_of_a_database_that_runs_replays_with_its_features(ascar, ascard, place) -> None:
    data = place / "data"
    data.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", DATABASE, data, "1000"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        words = ["--pid", process.pid, "--under", data, "--duration", "4 s", "--run", "4 s", "--force"]
        words += ["--out", place / "signature.f", "--replay-in", place, "--yes"]
        document = record(ascar, *words)
        assert process.poll() is None, "it goes on undisturbed"
        process.kill()
    assert far(document) == []
    assert document["source"]["kind"] == "process"
    features = document["features"]
    assert min(features[f"{kind}_share"] for kind in ("read", "write", "sync", "delete")) > 0.01
    assert len(document["replay"]["differences"]) > 20
    assert (place / "signature.f").read_text() == document["wml"]


@pytest.mark.slow
@needs_strace
@pytest.mark.parametrize("personality", ["mailserver", "webserver"])
def test_the_signature_of_a_load_that_runs_replays_with_its_features(
    ascar, ascard, place, personality
) -> None:
    data = place / "data"
    data.mkdir()
    words = ["--personality", personality, "--scale", "0.2", "--threads", "2", "--reading-ms", "100"]
    with subprocess.Popen(
        [ascard, "load", *words, "--dir", data, "--seconds", "1000"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while '"reading"' not in process.stdout.readline():
            pass
        # Few operations write: a difference by chance shrinks with the time, one of the signature stays.
        for seconds in (2, 8, 32):
            words = ["--pid", process.pid, "--under", data, "--duration", f"{seconds} s"]
            document = record(ascar, *words, "--run", f"{seconds} s", "--replay-in", place, "--yes")
            if not far(document):
                break
        process.terminate()
        process.communicate()
    assert document["threads"] == 2
    assert document["operations"] > 500
    assert far(document) == [], document["replay"]["differences"]


def gaps(ascard: Path, directory: Path, words: list[object]) -> dict[str, float]:
    """Mean time between operations of each type that both loads do, without any recording."""
    done = subprocess.run(
        [ascard, "load", *words, "--dir", directory, "--seconds", "0.4", "--clean"],
        check=True,
        capture_output=True,
    )
    summary = json.loads(done.stdout.splitlines()[-1])
    counts = dict.fromkeys(("read", "append|write", "createfile", "deletefile", "fsync"), 0)
    for flowop in summary["flowops"].values():
        for kind in counts:
            if any(flowop["type"].startswith(word) for word in kind.split("|")):
                counts[kind] += flowop["ops"]
    return {kind: summary["load_s"] / count for kind, count in counts.items() if count}


@pytest.mark.slow
@pytest.mark.paced
@needs_strace
@pytest.mark.parametrize("personality", ["mailserver", "webserver"])
def test_a_signature_goes_as_fast_as_the_load_goes_when_nobody_watches(
    ascar, ascard, place, personality
) -> None:
    """Strace holds such a load up ten times and more, which a signature must not do.

    On a quiet machine both go alike within 3% (docs/benchmarks-load.md), beside other programs less so; gaps
    under one and same instrument are compared in tests/workloads/test_alike.py.
    """
    data = place / "data"
    data.mkdir()
    load: list[object] = ["--personality", personality, "--scale", "0.2", "--threads", "2"]
    with subprocess.Popen(
        [ascard, "load", *load, "--reading-ms", "100", "--dir", data, "--seconds", "1000"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while '"reading"' not in process.stdout.readline():
            pass
        # It is counted without strace for a moment, which may be one in which a busy machine holds it up.
        for _ in range(8):
            document = record(ascar, "--pid", process.pid, "--under", data, "--duration", "2 s")
            if (document["source"]["slowdown"] or 0.0) > 1.5:
                break
        process.kill()
    assert document["source"]["slowdown"] > 1.5
    signature = place / "signature.f"
    signature.write_text(document["wml"])
    # In turns, and the median: a busy machine gives one of them twice the time of the other now and then.
    ratios: dict[str, list[float]] = {}
    kinds: set[str] = set()
    limit = 0.5
    for pair in range(40):
        original, other = (gaps(ascard, data, load), gaps(ascard, data, ["--wml", signature]))
        kinds |= original.keys()
        for kind in original.keys() & other.keys():  # one that was held up may not come to all of them
            ratios.setdefault(kind, []).append(other[kind] / original[kind])
        off = {kind: float(np.median(several)) - 1 for kind, several in ratios.items()}
        if pair >= 6 and off.keys() == kinds and all(abs(one) <= limit for one in off.values()):
            break
    assert off.keys() == kinds
    assert {kind: difference for kind, difference in off.items() if abs(difference) > limit} == {}


@pytest.mark.slow
@needs_strace
def test_a_command_is_recorded_from_its_start_and_ended_afterwards(ascar, place) -> None:
    trace, pidfile = place / "record.trace", place / "pid"
    program = f"import os; open({str(pidfile)!r}, 'w').write(str(os.getpid()))\n{DATABASE}"
    command = [sys.executable, "-c", program, place, "300"]
    words = [
        "--duration",
        "6 s",
        "--under",
        place,
        "--strace",
        trace,
        "--",
        *command,
    ]  # traced, it starts slowly
    document = record(ascar, *words)
    assert document["source"]["command"] == list(map(str, command))
    assert document["source"]["kind"] == "command"
    assert document["file"] is None
    assert document["replay"] is None
    wait_for_end(int(pidfile.read_text()))
    again = ascar("workload", "features", trace, "--json").document["workloads"][0]
    assert again["form"] == "strace"
    assert again["operations"] >= document["operations"]


@needs_strace
def test_a_command_that_ends_early_is_recorded_whole(ascar, place) -> None:
    done = ascar("workload", "record", "--under", place, "--", sys.executable, "-c", DATABASE, place, "1")
    if "may not trace" in done.err:
        pytest.skip(done.err.strip())
    assert done.status == 0, done.err
    assert done.out.startswith("# A signature")
    assert "operations of 1 threads" in done.err


@needs_strace
def test_an_interrupt_ends_recording_and_command(process, place) -> None:
    pidfile = place / "pid"
    program = f"import os, time; open({str(pidfile)!r}, 'w').write(str(os.getpid())); time.sleep(300)"
    words = [sys.executable, "-m", "ascar", "workload", "record", "--", sys.executable, "-c", program]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        end_s = time.monotonic() + 200
        while not (pidfile.exists() and pidfile.read_text()) and running.poll() is None:
            assert time.monotonic() < end_s
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=200)
    if "may not trace" in errors:
        pytest.skip(errors.strip())
    assert running.returncode == 130, errors
    wait_for_end(int(pidfile.read_text()))


def test_without_strace_it_says_how_to_get_it(ascar, path_without, monkeypatch) -> None:
    monkeypatch.setenv("PATH", path_without("strace"))
    done = ascar("workload", "record", "--pid", os.getpid())
    assert done.status == 2
    assert "apt-get install strace" in done.error
    assert "dnf install strace" in done.error


@needs_strace
def test_who_may_not_trace_is_told_so(ascar, tmp_path, monkeypatch) -> None:
    """A strace that the kernel refuses, as in a container without CAP_SYS_PTRACE."""
    fake = tmp_path / "strace"
    fake.write_text(
        "#!/bin/sh\necho 'strace: attach: ptrace(PTRACE_SEIZE, 1): Operation not permitted' >&2\nexit 1\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    done = ascar("workload", "record", "--pid", os.getpid())
    assert done.status == 2
    assert "may not trace it" in done.err
    assert "CAP_SYS_PTRACE" in done.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "give one of them"),
        (["--pid", "1", "--trace", "x"], "give one of them"),
        (["--pid", "1", "--form", "msr"], "'msr'"),
        (["--trace", "x", "--under", "/"], "--under"),
        (["--pid", "1", "--under", "/no-such"], "/no-such"),
        (["--pid", "1", "--duration", "30"], "--duration = '30'"),
        (["--trace", "/no-such"], "'/no-such'"),
        (["--trace", "/dev/null"], "not a trace"),
        (["--", "/no/such/program"], "no such program"),
    ],
)
def test_what_does_not_go_is_one_line_and_status_2(ascar, words, named) -> None:
    done = ascar("workload", "record", *words)
    assert done.status == 2
    assert named in done.err.splitlines()[-1]


def blkparse(path: Path, seed: int, size: int) -> Path:
    """Text of blkparse: random reads of one size, 1,000 a second."""
    chance = np.random.default_rng(seed)
    path.write_text(
        "".join(
            f"8,0 1 {n} {n / 1000:.9f} 697 Q R {chance.integers(0, 10**6) * 8} + {size // 512} [x]\n"
            for n in range(500)
        )
    )
    return path


def test_a_block_trace_becomes_a_workload(ascar, tmp_path) -> None:
    trace, out = blkparse(tmp_path / "trace.txt", 1, 8192), tmp_path / "signature.f"
    document = ascar("workload", "record", "--trace", trace, "--out", out, "--run", "20 s", "--json").document
    assert document["source"]["form"] == "blkparse"
    assert out.read_text() == document["wml"]
    assert out.read_text().rstrip().endswith("run 20")
    again = ascar("workload", "record", "--trace", trace, "--out", out)
    assert again.status == 2
    assert "--force" in again.error
    shown = ascar("workload", "record", "--trace", trace, "--out", out, "--force", "--size-max", "1 MiB").out
    assert "500 operations" in shown
    assert f"ascard load --wml {out}" in shown


def test_features_of_one_of_two_and_of_a_directory(ascar, tmp_path) -> None:
    a, b = blkparse(tmp_path / "a.txt", 1, 4096), blkparse(tmp_path / "b.txt", 2, 8192)
    one = ascar("workload", "features", a, "--json").document
    assert one["workloads"][0]["features"]["read_size_bytes_mean"] == 4096
    assert one["workloads"][0]["features"]["write_size_bytes_mean"] is None
    assert one["workloads"][0]["cao_features"]["read_size_bytes_mean"] == 4096
    assert (one["distances"], one["differences"]) == ([[0.0]], None)
    both = ascar("workload", "features", tmp_path, "--json").document
    assert [Path(each["file"]).name for each in both["workloads"]] == ["a.txt", "b.txt"]
    assert both["differences"]["read_size_bytes_mean"] == pytest.approx(1.0)
    assert both["distances"][0][1] == both["distances"][1][0] > 0
    shown = ascar("workload", "features", a, b).out
    assert "read_size_bytes_mean" in shown
    assert "100.0%" in shown
    assert "distances" in shown
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no file is in it" in ascar("workload", "features", empty).error


def test_a_record_of_ascard_load_has_features(ascar, ascard, place) -> None:
    csv = place / "record.csv"
    words = ["--personality", "mailserver", "--scale", "0.05", "--threads", "4", "--seconds", "0.3"]
    subprocess.run(
        [ascard, "load", *words, "--dir", place, "--record", csv, "--clean"], check=True, capture_output=True
    )
    told = ascar("workload", "features", csv, "--json")
    (workload,) = json.loads(told.out)["workloads"]
    assert (workload["form"], workload["threads"]) == ("load", 4)
    assert workload["features"]["sync_share"] == pytest.approx(2 / 8, abs=0.02)


def jumping(place: Path, span_bytes: int) -> Path:
    """A trace of reads of 8 KiB that jump within one file of that size."""
    draw = random.Random(5)
    path = place / "jumps.csv"
    lines = [
        f"{at / 100},1,r,read,/a,{draw.randrange(span_bytes // 8192) * 8192},8192,100\n" for at in range(400)
    ]
    path.write_text("time_s,thread,flowop,type,file,offset,bytes,latency_us\n" + "".join(lines))
    return path


def test_a_replay_that_fills_much_is_asked_for_and_without_a_terminal_needs_yes(ascar, tmp_path) -> None:
    trace, where = jumping(tmp_path, 4 << 30), tmp_path / "where"
    where.mkdir()
    asked = ascar("workload", "record", "--trace", trace, "--replay-in", where)
    assert asked.status == 2
    assert "--yes: missing" in asked.error and "GiB" in asked.error and str(where) in asked.error
    assert list(where.iterdir()) == []
    full = ascar("workload", "record", "--trace", jumping(tmp_path, 1 << 45), "--replay-in", where, "--yes",
                 "--size-max", "20 TiB")  # fmt: skip
    assert full.status == 2 and "are free" in full.error
    nowhere = ascar("workload", "record", "--trace", trace, "--replay-in", tmp_path / "nowhere", "--yes")
    assert nowhere.status == 2 and "nowhere" in nowhere.error


def test_what_a_replay_fills_is_what_was_said(ascar, ascard, tmp_path) -> None:
    trace, data = jumping(tmp_path, 64 << 20), tmp_path / "data"
    data.mkdir()
    wml = tmp_path / "signature.f"
    words = ("workload", "record", "--trace", trace, "--out", wml, "--size-max", "16 MiB")
    assert ascar(*words).status == 0
    subprocess.run([ascard, "load", "--wml", wml, "--dir", data, "--seconds", "0.1"], check=True)
    sizes = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    assert sizes == pytest.approx(filled_bytes(wml.read_text()), rel=0.01)
    assert sizes > 8 << 20
