"""How commands reach the process that holds a testbed: starting it, asking it, ending it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.errors import AscarError, InputError, Refused, WorkError
from ascar.results.testbed import TestbedStanding
from ascar.testbed.folder import TestbedFolder, testbeds_folder, wait_until_gone
from ascar.testbed.supervisor import TestbedOrder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ascar.testbed.file import TestbedFile

_BAD_INPUT = 2
_END_S = 120.0
_STATUS_S, _CHANGE_S = 30.0, 300.0
_LINE_BYTES_MAX = 16 << 20


def start_testbed(wanted: TestbedFile, file: Path, tell: Callable[[str], None]) -> TestbedStanding:
    """Start the process that holds a testbed, and wait until all of it is up.

    Args:
        wanted: the testbed.
        file: the path of its file, for messages.
        tell: hears in a few words what is done now.

    Raises:
        Refused: it is up already.
        InputError: something is wrong with the file or this machine; in the process's words.
        WorkError: something does not come up.
    """
    folder = TestbedFolder(testbeds_folder() / wanted.name)
    running = folder.running()
    if running is not None:
        raise Refused(
            f"testbed {wanted.name!r}: is up already, process {running.pid}; "
            f"`ascar testbed down {wanted.name}` ends it"
        )
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "ascar.testbed.supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        order = TestbedOrder(wanted, str(file.absolute()), str(folder.path))
        with suppress(BrokenPipeError):  # it says why it ended
            process.stdin.write(msgspec.json.encode(order))
            process.stdin.close()
        found = _followed(process, tell)
    except BaseException as error:
        if not isinstance(error, AscarError):  # otherwise it ends by itself
            process.terminate()
        process.wait()
        raise
    finally:
        process.stdout.close()
        process.stderr.close()
    # It goes on without us: it is no child that would have to be waited for.
    process.returncode = 0
    return found


def _followed(process: subprocess.Popen[bytes], tell: Callable[[str], None]) -> TestbedStanding:
    """What the process says until all of it is up."""
    assert process.stdout is not None
    assert process.stderr is not None
    for line in process.stdout:
        said: dict[str, Any] = json.loads(line)
        if "up" in said:
            return typed.convert(said["up"], TestbedStanding)
        if "error" in said:
            raise _problem(said)
        tell(said["stage"])
    last = process.stderr.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
    raise WorkError(f"the process that holds the testbed ended: {(last or ['it says nothing'])[-1][:300]}")


def ask(folder: TestbedFolder, request: dict[str, Any]) -> Any:
    """The answer of the process that holds a testbed.

    Raises:
        EnvironmentLacks: it is not up.
        InputError: what is asked for is refused.
        WorkError: it fails, it is not ready, or the process ends meanwhile or does not answer in time.
    """
    pid = folder.runner().pid
    limit_s = _CHANGE_S if request["ask"] in ("cut", "boot") else _STATUS_S
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(limit_s)
        try:
            asking.connect(str(folder.control))
            asking.sendall(json.dumps(request).encode() + b"\n")
            line = asking.makefile("rb").readline(_LINE_BYTES_MAX)
            answer: dict[str, Any] = json.loads(line)
        except FileNotFoundError:
            raise WorkError(
                f"testbed {folder.path.name!r}: is not ready: it goes up or ends just now; try again later"
            ) from None
        except TimeoutError:
            raise WorkError(
                f"testbed {folder.path.name!r}: process {pid} does not answer within {limit_s:g} s; "
                f"`ascar testbed down {folder.path.name}` ends it"
            ) from None
        except (OSError, ValueError):
            raise WorkError(
                f"testbed {folder.path.name!r}: its process does not answer; has it ended?"
            ) from None
    if "error" in answer:
        raise _problem(answer)
    return answer["ok"]


def standing(folder: TestbedFolder, request: dict[str, Any]) -> TestbedStanding:
    """How a testbed stands after something was asked of it; see `ask`."""
    return typed.convert(ask(folder, request), TestbedStanding)


def end_testbed(folder: TestbedFolder) -> int | None:
    """End a testbed, and wait until all of it is gone.

    Returns:
        The process that held it; None where that had been killed, and what was left is removed now.

    Raises:
        EnvironmentLacks: it is not up, and nothing is left of it.
        WorkError: it does not end.
    """
    running = folder.running()
    if running is None:
        if folder.clear():
            return None
        folder.runner()
        raise AssertionError("it is not up")
    try:
        os.kill(running.pid, signal.SIGTERM)
        os.kill(running.pid, signal.SIGCONT)  # somebody may have stopped it
    except ProcessLookupError:
        pass
    except OSError as error:
        raise WorkError(
            f"process {running.pid}: {error.strerror}; run this as the user who started it"
        ) from None
    if not wait_until_gone(folder, _END_S):
        raise WorkError(f"process {running.pid}: does not end within {_END_S:g} s")
    return running.pid


def _problem(answer: dict[str, Any]) -> AscarError:
    kind = InputError if answer.get("status") == _BAD_INPUT else WorkError
    return kind(str(answer["error"]))
