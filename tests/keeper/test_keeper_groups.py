"""Control groups that bound the memory of a load."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascar.errors import InputError, Refused, StageFailed

MIB = 1 << 20
GATE = ["/bin/sh", "-c", 'read _ && exec "$@"', "sh"]


@pytest.fixture
def gated():
    """Starts a program that waits until a line comes."""
    started = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*GATE, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_load_over_its_memory_is_killed_and_counted(keeper, gated):
    group = keeper.cgroup_create(64 * MIB)
    assert group.memory_bytes == 64 * MIB
    assert group.version == keeper.capabilities.cgroup_memory
    eater = gated(sys.executable, "-c", "x = bytearray(256 << 20)\nwhile True: pass")
    keeper.cgroup_add(eater.pid)
    eater.communicate(b"\n", timeout=100)
    assert eater.returncode == -9
    use = keeper.cgroup_read()
    assert use.oom_kills == 1
    assert 32 * MIB < use.memory_peak_bytes <= 64 * MIB
    assert use.processes == 0
    assert keeper.cgroup_remove().memory_peak_bytes == use.memory_peak_bytes
    assert not group.path.exists()


def test_a_load_within_its_memory_is_left_alone(keeper, gated):
    keeper.cgroup_create(256 * MIB)
    modest = gated(sys.executable, "-c", "x = bytearray(64 << 20)")
    keeper.cgroup_add(modest.pid)
    modest.communicate(b"\n", timeout=100)
    assert modest.returncode == 0
    use = keeper.cgroup_read()
    assert use.oom_kills == 0
    assert use.memory_peak_bytes > 64 * MIB


def test_everything_in_a_group_is_killed(keeper, gated):
    keeper.cgroup_create(256 * MIB)
    script = "for i in 1 2 3 4 5; do sleep 1000 & done; while :; do sleep 1000 & wait $!; done"
    tree = gated("/bin/sh", "-c", script)
    keeper.cgroup_add(tree.pid)
    assert tree.stdin is not None
    tree.stdin.write(b"\n")
    tree.stdin.flush()
    deadline = time.monotonic() + 100
    while keeper.cgroup_read().processes < 7:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert keeper.cgroup_kill().processes == 0
    assert tree.wait(100) == -9
    assert keeper.cgroup_read().processes == 0


def test_only_ones_own_processes_may_be_limited(keeper):
    keeper.cgroup_create(64 * MIB)
    for pid in (
        1,
        0,
        -1,
        2**31 - 1,
        keeper.pid + 1_000_000,
        int(Path("/proc/self/stat").read_text().split()[3]),
    ):
        with pytest.raises((Refused, StageFailed), match=r"no process of yours|pid"):
            keeper.cgroup_add(pid)
    assert keeper.cgroup_read().processes == 0


def test_there_is_one_group_with_a_possible_limit(keeper):
    for action in (
        keeper.cgroup_read,
        keeper.cgroup_kill,
        keeper.cgroup_remove,
        lambda: keeper.cgroup_add(2),
    ):
        with pytest.raises(InputError, match="make one first"):
            action()
    for memory_bytes in (0, MIB - 1, 1 << 63):
        with pytest.raises(InputError, match="memory_bytes"):
            keeper.cgroup_create(memory_bytes)
    keeper.cgroup_create(64 * MIB)
    with pytest.raises(InputError, match="has a control group already"):
        keeper.cgroup_create(64 * MIB)
    keeper.cgroup_remove()
    keeper.cgroup_create(32 * MIB)
