"""Recording a process, and replaying what was recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks, InputError
from ascar.features import (
    TraceOperation,
    features_of,
    parse_load_record,
    relative_differences,
    signature_workload,
)
from ascar.workloads.recorder import RecorderOptions, record_process

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

PROGRAM = """
import os, random, sys, time
chance = random.Random(1)
table = os.open(sys.argv[1] + "/table", os.O_RDWR | os.O_CREAT)
os.ftruncate(table, 32 << 20)
print("ready", flush=True)
for turn in range(100_000):
    start = chance.randrange(500) * 65536
    for step in range(4):
        os.pread(table, 16384, start + step * 16384)
    os.pwrite(table, bytes(chance.choice((4096, 8192))), chance.randrange(4000) * 8192)
    if turn % 2 == 0:
        path = f"{sys.argv[1]}/mail{turn}"
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(made, bytes(2000))
        os.fsync(made)
        os.close(made)
        os.stat(path)
        os.unlink(path)
    time.sleep(0.003)
"""


@pytest.fixture
def place(in_memory: Path | None) -> Iterator[Path]:
    with TemporaryDirectory(prefix="ascar-", dir=in_memory) as directory:
        yield Path(directory)


@pytest.fixture
def process(place: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, place], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def far(pid: int, ascard: Path, place: Path) -> dict[str, float]:
    """Record the process, replay its signature, and give the features that differ by more than 10%.

    Gaps in time, which a busy machine makes longer, are for `benchmarks.load_signatures`.
    """
    trace = record_process(pid, RecorderOptions(5.0)).trace
    original = features_of(trace)
    assert original["read_size_bytes_mean"] == 16384
    assert original["read_run_bytes_mean"] == pytest.approx(65536, rel=0.05)
    assert original["write_sequential_share"] < 0.05
    assert original["create_share"] == pytest.approx(0.5 / 7.5, abs=0.01)
    assert len(trace.only(TraceOperation.SYNC)) > 20
    wml = place / "signature.f"
    wml.write_text(signature_workload(trace))
    words = ["--wml", wml, "--dir", place, "--seconds", "5", "--seed", "1"]
    words += ["--record", place / "record.csv", "--clean"]
    done = subprocess.run([ascard, "load", *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    replayed = features_of(parse_load_record((place / "record.csv").read_bytes()))
    differences = relative_differences(original, replayed, share_min=0.02)
    return {name: d for name, d in differences.items() if d > 0.1 and "_gap_s_" not in name}


@pytest.mark.slow
def test_a_process_is_recorded_and_its_signature_replays(
    process: subprocess.Popen[str], ascard: Path, place: Path
) -> None:
    try:
        differing = far(process.pid, ascard, place)
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    assert differing == {}
    assert process.poll() is None  # it goes on undisturbed


def test_what_cannot_be_recorded_is_refused() -> None:
    with pytest.raises(InputError, match="no such process"):
        record_process(2**22 + 1, RecorderOptions(1.0))
    with pytest.raises(InputError, match="no such process"):
        record_process(-1, RecorderOptions(1.0))
    with pytest.raises(InputError, match="seconds"):
        record_process(os.getpid(), RecorderOptions(0.0))
    with subprocess.Popen(["sleep", "30"]) as idle:
        with pytest.raises((InputError, EnvironmentLacks)):
            record_process(idle.pid, RecorderOptions(0.3))
        idle.kill()
