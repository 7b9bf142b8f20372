"""Commands of the user: run from a list of words, within a limit, with what they said when they fail.

A command may start a service that outlives it, so what it leaves behind is left alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.program.found import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOOK_S = 0.005
_OUTPUT_BYTES_MAX = 8 << 20
_TAIL_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """Where commands run.

    Attributes:
        directory: the working directory.
        limit_s: seconds that a command may take.
        environment: variables set on top of ours.
    """

    directory: Path
    limit_s: float
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended.

    Attributes:
        status: the exit status; negative: the signal that killed it.
        output: its standard output.
        error: the end of its standard error.
    """

    status: int
    output: str
    error: str


def program_path(key: str, word: str) -> str:
    """The full path of a command's program.

    Raises:
        EnvironmentLacks: there is none.
    """
    found = find_program(word)
    if found is None:
        raise EnvironmentLacks(
            f"target.{key}[0] = {word!r:.200}: is not a program that can be run here; install it, or give "
            "its full path"
        )
    return str(Path(found).absolute())


def run_command(key: str, argv: Sequence[str], place: CommandPlace) -> CommandEnd:
    """Run a command to its end.

    Args:
        key: the command's key in `[target]`, for errors.
        argv: the program and its arguments.
        place: where it runs.

    Raises:
        StageFailed: it cannot be started, ran out of time, or wrote too much.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                argv,
                cwd=place.directory,
                env={**os.environ, **place.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise StageFailed("change", f"target.{key}: {argv[0]} cannot be started: {error}") from error
        problem = _awaited(process, (out.fileno(), err.fileno()), place.limit_s)
        size = os.fstat(err.fileno()).st_size
        error_text = os.pread(err.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode(
            "utf-8", "replace"
        )
        if problem:
            raise StageFailed("change", f"target.{key}: {Path(argv[0]).name} {problem}", error_text)
        text = os.pread(out.fileno(), _OUTPUT_BYTES_MAX, 0).decode("utf-8", "replace")
        return CommandEnd(process.returncode, text, error_text)


def done_command(key: str, argv: Sequence[str], place: CommandPlace) -> str:
    """What a command that succeeds writes to its standard output.

    Raises:
        StageFailed: it fails, or as `run_command`.
    """
    ended = run_command(key, argv, place)
    if ended.status != 0:
        said = (ended.error.strip() or ended.output.strip()).splitlines()
        last = f": {said[-1][:300]}" if said else ""
        how = f"exited with {ended.status}" if ended.status > 0 else f"was killed by signal {-ended.status}"
        raise StageFailed("change", f"target.{key}: {Path(argv[0]).name} {how}{last}", ended.error)
    return ended.output


def _awaited(process: subprocess.Popen[bytes], outputs: tuple[int, int], limit_s: float) -> str:
    """Empty once the process has ended; else why it was killed."""
    end_s = time.monotonic() + limit_s
    problem = ""
    while process.poll() is None and not problem:
        if time.monotonic() >= end_s:
            problem = f"took longer than {limit_s:g} s and was killed"
        elif sum(os.fstat(one).st_size for one in outputs) > _OUTPUT_BYTES_MAX:
            problem = f"wrote more than {_OUTPUT_BYTES_MAX} bytes and was killed"
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_S)
    if problem:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return problem
