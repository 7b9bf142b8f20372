"""An exception as one line for people, a kind for programs, and an exit status; an interruption is 130."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ascar.cli.interrupts import Interrupted
from ascar.cli.statuses import BAD_INPUT, FAILED, INTERRUPTED
from ascar.errors import AscarError
from ascar.extras import lacking

if TYPE_CHECKING:
    from ascar.results.problem import Problem

# The parser's own errors: a public name for their class is missing in some versions of Typer.
_UsageError: Any = typer.BadParameter.__bases__[0]
# What the parser's validation says, in the words of everything else here.
_WORDS = (
    ("Value error, ", ""),
    ("Input should be a valid integer, unable to parse string as an integer", "must be a whole number"),
    ("Input should be a valid number, unable to parse string as a number", "must be a number"),
    ("Input should be ", "must be "),
)
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def explain(error: BaseException) -> Problem:
    """What an exception means to the user; an unexpected one is written to a file for its report."""
    match error:
        case AscarError():
            kind, message, status = type(error).__name__, error.message, error.exit_status
        case KeyboardInterrupt() | Interrupted():
            kind, status = "Interrupted", INTERRUPTED
            message = str(error) or "interrupted; everything was put back"
        case ImportError() if _is_interrupted(error):
            kind, message, status = "Interrupted", "interrupted; nothing was done", INTERRUPTED
        case ImportError() if (lack := lacking(error)) is not None:
            kind, message, status = type(lack).__name__, lack.message, lack.exit_status
        case typer.Abort():
            kind, message, status = "Interrupted", "interrupted; nothing was done", INTERRUPTED
        case _UsageError():
            kind, message, status = "UsageError", _usage(error), BAD_INPUT
        case OSError(errno=code) if code in _NO_SPACE:
            kind, status = "NoSpace", FAILED
            message = f"cannot write {error.filename or 'the output'}: {error.strerror}; free some space"
        case _:
            kind, message, status = type(error).__name__, _crash(error), FAILED
    from ascar.results.problem import Problem

    return Problem(kind=kind, message=" ".join(message.split()), exit_status=status)


def _is_interrupted(error: BaseException) -> bool:
    """Whether it came of an interrupt, as of one that comes while a module made with pybind11 begins."""
    reason = error.__cause__ or error.__context__
    return isinstance(reason, KeyboardInterrupt) or (reason is not None and _is_interrupted(reason))


def _usage(error: BaseException) -> str:
    """The parser's complaint with the way to help."""
    message = str(getattr(error, "format_message", lambda: str(error))()).rstrip(".")
    for programmers, people in _WORDS:
        message = message.replace(programmers, people)
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ascar"
    return f"{message}; see `{command} --help`"


def _crash(error: BaseException) -> str:
    """Write the traceback to a file of its own; one line that says what happened and where that file is."""
    import traceback  # only here: commands start without these
    from datetime import UTC, datetime

    summary = f"unexpected {type(error).__name__}: {error}; this is a bug in ascar"
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    for directory in (_state_directory(), Path("/tmp")):  # noqa: S108  # the file is made with O_EXCL
        path = directory / f"crash-{stamp}-{os.getpid()}.txt"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(traceback.format_exception(error))
        except OSError:
            continue
        return f"{summary}, please report it with the traceback in {path}"
    return f"{summary}; the traceback could not be written anywhere"


def _state_directory() -> Path:
    """Where a user's program state goes by the XDG base directory specification."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111  # "~" may stay
    return Path(home) / "ascar"
