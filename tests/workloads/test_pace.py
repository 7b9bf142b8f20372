"""The pace of a process, from the kernel's count of its reads and writes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ascar.workloads.pace import Count, OperationRate, count_calls, slowdown_of

CHILD = """
import os, sys
place = os.open(sys.argv[1], os.O_RDONLY)
for line in sys.stdin:
    for _ in range(5000):
        os.pread(place, 1, 0)
    print("done", flush=True)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


def test_a_childs_reads_count(tmp_path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def work() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"

        work()
        first = count_calls(process.pid)
        work()
        second = count_calls(process.pid)
        process.stdin.close()
        process.wait(100)
        last = count_calls(process.pid)
    if not first.calls:
        pytest.skip("the kernel does not count reads and writes here (/proc/PID/io)")
    pace = first.until(second)
    assert pace is not None
    assert pace.calls_per_s * (second.at_s - first.at_s) == pytest.approx(5000, abs=20)
    assert last.calls == {}
    assert second.until(last) is None


def test_only_processes_that_last_and_work_have_a_pace() -> None:
    assert Count(0.0, {1: 10, 2: 7}).until(Count(2.0, {1: 30, 3: 900})) == OperationRate(10.0)
    assert Count(0.0, {1: 10}).until(Count(2.0, {1: 10})) is None
    assert Count(0.0, {1: 10}).until(Count(0.0, {1: 20})) is None


def test_slower_is_what_is_slower_than_before_and_after() -> None:
    traced = OperationRate(10.0)
    assert slowdown_of(traced, (OperationRate(50.0), OperationRate(70.0))) == 6.0
    assert slowdown_of(traced, (None, OperationRate(50.0))) == 5.0
    assert slowdown_of(traced, (OperationRate(50.0), OperationRate(8.0))) == 1.0
    assert slowdown_of(traced, (None, None)) is None
    assert slowdown_of(None, (OperationRate(50.0), OperationRate(70.0))) is None
