"""A process and its signature under one instrument: every feature within 10%, gaps in time included.

Tracing holds a process that waits for nothing up ten times and more, so that its gaps can only be compared
with those of a replay that is traced as well. What else the machine does changes from one second to the next:
so they take turns, each stopped while the other is looked at, and the medians of many short turns count.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ascar.errors import EnvironmentLacks
from ascar.features import features_of, parse_system_calls, relative_differences, signature_workload
from ascar.features.system_calls import SYSTEM_CALLS
from ascar.workloads.recorder import RecorderOptions, record_process
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ascar.features import Trace

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

ALIKE = 0.1
TURNS_MIN, TURNS_MAX = 7, 40
TURN_S = 0.4
DATABASE = """
import os, random, sys
chance, pause = random.Random(1), float(sys.argv[2])
files = [os.open(f"{sys.argv[1]}/{name}", os.O_RDWR | os.O_CREAT) for name in ("log", "data", "index")]
for file in files:
    os.ftruncate(file, 64 << 20)
log, data, index = files
print("ready", flush=True)
import time
end = 0
while True:
    for _ in range(2):
        os.pread(index, 4096, chance.randrange(16000) * 4096)
    os.pread(data, 8192, chance.randrange(8000) * 8192)
    os.pwrite(log, bytes(4096), end % (60 << 20))
    end += 4096
    os.pwrite(data, bytes(8192), chance.randrange(8000) * 8192)
    if pause:
        time.sleep(pause)
"""
"""Keeps three files open, and pauses for so long after each transaction."""


@pytest.fixture
def place(in_memory: Path | None) -> Iterator[Path]:
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as directory:
        yield Path(directory)


@contextmanager
def running(words: list[Any], sign: bytes) -> Generator[subprocess.Popen[bytes]]:
    """A process that has printed its sign, and is stopped."""
    with TemporaryFile() as out, subprocess.Popen(list(map(str, words)), stdout=out) as process:
        try:
            end_s = time.monotonic() + 60
            while sign not in Path(f"/proc/{process.pid}/fd/1").read_bytes():
                assert process.poll() is None
                assert time.monotonic() < end_s
                time.sleep(0.02)
            process.send_signal(signal.SIGSTOP)
            yield process
        finally:
            process.kill()


def load(ascard: Path, directory: Path, *words: object) -> list[Any]:
    directory.mkdir()
    return [ascard, "load", *words, "--dir", directory, "--seconds", "1000", "--reading-ms", "100"]


def turn(process: subprocess.Popen[bytes], under: Path, record: Path) -> Trace:
    """What a process does below a directory in a moment, as strace sees it."""
    record.unlink(missing_ok=True)
    calls = "trace=" + ",".join(f"?{name}" for name in SYSTEM_CALLS)
    words = ["strace", "-f", "-ttt", "-T", "-y", "-s", "0", "-q", "-e", calls, "-o", record]
    process.send_signal(signal.SIGCONT)
    try:
        with subprocess.Popen([*words, "-p", str(process.pid)], stderr=subprocess.PIPE, text=True) as strace:
            # It takes its time until it sees something.
            until(lambda: strace.poll() is not None or (record.exists() and record.stat().st_size), 60)
            time.sleep(TURN_S)
            strace.send_signal(signal.SIGINT)
            _, errors = strace.communicate(timeout=100)
    finally:
        process.send_signal(signal.SIGSTOP)
    if "Operation not permitted" in errors:
        pytest.skip(errors.strip())
    return parse_system_calls(record.read_text(errors="replace").splitlines(), str(under))


def far(original: list[dict[str, float]], other: list[dict[str, float]]) -> dict[str, float]:
    """Features whose medians differ by more than 10%; of gaps in time a signature has the mean."""
    here, there = (
        {name: float(np.nanmedian([one[name] for one in many])) for name in many[0]}
        for many in (original, other)
    )
    differences = relative_differences(here, there, share_min=0.02)
    return {
        name: difference
        for name, difference in differences.items()
        if difference > ALIKE and not name.endswith("gap_s_relative_sd")
    }


@pytest.mark.slow
@pytest.mark.paced
@pytest.mark.filterwarnings("ignore:All-NaN slice")
@pytest.mark.parametrize("what", ["database that waits", "database", "mail server"])
def test_a_process_and_its_signature_are_alike_under_the_same_instrument(
    place: Path, ascard: Path, what: str
) -> None:
    data, copy, record = place / "original", place / "signature", place / "record"
    if what.startswith("database"):
        data.mkdir()
        pause = 0.005 if what.endswith("waits") else 0
        words, sign = [sys.executable, "-c", DATABASE, data, pause], b"ready"
    else:
        small = ("--scale", "0.2", "--threads", "2")
        words, sign = load(ascard, data, "--personality", what.replace(" ", ""), *small), b'"reading"'
    with running(words, sign) as original:
        original.send_signal(signal.SIGCONT)
        try:
            recorded = record_process(original.pid, RecorderOptions(2.0, data))
        except EnvironmentLacks as lack:
            pytest.skip(str(lack))
        original.send_signal(signal.SIGSTOP)
        wml = place / "signature.f"
        wml.write_text(signature_workload(recorded.trace))
        with running(load(ascard, copy, "--wml", wml), b'"reading"') as signature:
            here: list[dict[str, float]] = []
            there: list[dict[str, float]] = []
            differing: dict[str, float] = {}
            for number in range(TURNS_MAX):
                pair = [(original, data, here), (signature, copy, there)]
                for process, under, found in pair if number % 2 else reversed(pair):
                    found.append(features_of(turn(process, under, record)))
                differing = far(here, there)
                if number >= TURNS_MIN and not differing:
                    break
    assert differing == {}
