"""A guest ends with the process that started it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ascar.errors import EnvironmentLacks, WorkError
from ascar.testbed import user_mode
from ascar.testing import Guest
from waiting import until

ROOT = Path(__file__).resolve().parents[2]
PARENT = """
import time
from ascar.testing import Guest
with Guest() as guest:
    guest.start("sleep 1000")
    print(guest._kernel.process.pid, flush=True)
    time.sleep(1000)
"""
VECTORS = """
import threading
import numpy as np
def count(number):
    one = np.full(4096, float(number))
    for _ in range(2000):
        two = one * 3.0 - one - one
        wrong.append(number) if not (two == one).all() else None
wrong = []
threads = [threading.Thread(target=count, args=(n,)) for n in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
print(wrong or "equal")
"""


def group_is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


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
    until(lambda: not group_is_there(group), 60)


def test_a_guest_that_has_ended_by_itself_leaves_nothing() -> None:
    with Guest() as guest:
        group = guest._kernel.process.pid
        with suppress(WorkError):  # it may have ended before it is heard
            guest.start("echo o > /proc/sysrq-trigger")
        guest._kernel.process.wait(60)
    until(lambda: not group_is_there(group), 60)


@pytest.mark.slow
def test_it_runs_with_registers_that_its_kernel_does_not_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    monkeypatch.setattr(user_mode, "_has_unknown_registers", lambda: True)
    program = tmp_path / "vectors.py"
    program.write_text(VECTORS, "utf-8")
    with Guest(visible=[tmp_path, ROOT]) as guest:
        # Threads of one process, with vectors in registers, take turns.
        said = guest.run(f"{sys.executable} {shlex.quote(str(program))}")
    assert said.output.strip().splitlines()[-1] == "equal"
    assert said.status == 0


def test_what_it_needs_on_such_a_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shutil.which
    monkeypatch.setattr(user_mode, "_has_unknown_registers", lambda: True)
    monkeypatch.setattr(shutil, "which", lambda name, **how: None if name == "cc" else found(name, **how))
    assert "needs the Debian package gcc" in str(Guest.missing())
    with pytest.raises(EnvironmentLacks, match="AMX"), Guest():
        pass
