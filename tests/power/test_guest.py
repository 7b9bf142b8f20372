"""A guest ends with the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from tempfile import TemporaryDirectory

import pytest

from ascar.errors import WorkError
from ascar.testing import Guest

PARENT = """
import time
from ascar.testing import Guest
with Guest() as guest:
    guest.start("sleep 1000")
    print(guest._process.pid, flush=True)
    time.sleep(1000)
"""


def group_is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(group: int) -> None:
    end_s = time.monotonic() + 60
    while group_is_there(group):
        assert time.monotonic() < end_s, "the guest stays behind"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def guests() -> None:
    lack = Guest.missing()
    if lack is not None:
        pytest.skip(lack)


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_guest_ends_with_its_parent_that_is_killed(is_stopped: bool) -> None:
    with TemporaryDirectory() as folder:  # what it leaves is removed with it
        see_it_end({**os.environ, "TMPDIR": folder}, is_stopped=is_stopped)


def see_it_end(environment: dict[str, str], *, is_stopped: bool) -> None:
    command = [sys.executable, "-c", PARENT]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    group = int(parent.stdout.readline())
    assert group_is_there(group)
    if is_stopped:
        # One that hangs reads nothing, and so does not see the end of its input.
        os.kill(group, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    wait_until_gone(group)


def test_a_guest_that_has_ended_by_itself_leaves_nothing() -> None:
    with Guest() as guest:
        group = guest._process.pid
        with suppress(WorkError):  # it may have ended before it is heard
            guest.start("echo o > /proc/sysrq-trigger")
        guest._process.wait(60)
    wait_until_gone(group)
