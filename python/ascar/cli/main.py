"""From the process's first line to its exit status."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from ascar.cli.interrupts import interruptible
from ascar.cli.output import emit, json_wanted, say, stdout_for_json
from ascar.cli.statuses import DONE, INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Sequence

# Whether the process runs a single command, that of its own command line.
_own_process = [False]
# What the shell sets while it completes a command line, which it does not give as arguments.
_COMPLETES = "_ASCAR_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the command line without the program's name; None means the process's own.

    Returns:
        The exit status, see `ascar.cli.statuses`.
    """
    _own_process[0] = arguments is None
    own = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and "JOURNAL_STREAM" in os.environ:
        import logging

        from ascar.cli.journal import Warnings

        logging.lastResort = Warnings(logging.WARNING)
    if not json_wanted(own):
        return _run(own, as_json=False)
    with stdout_for_json():
        return _run(own, as_json=True)


def is_own_process() -> bool:
    """Whether the process runs a single command, that of its own command line."""
    return _own_process[0]


def _run(arguments: Sequence[str], *, as_json: bool) -> int:
    try:
        with interruptible():
            status = _command(list(arguments))
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`): say nothing, not even at the interpreter's exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # the last line of defence: one line
        return _failed(error, as_json=as_json)
    if status == INTERRUPTED:  # the parser turns the exception into its status
        return _failed(KeyboardInterrupt(), as_json=as_json)
    return status if isinstance(status, int) else DONE


def _command(arguments: list[str]) -> object:
    """Run the command, or print the help page, for which the parser need not be imported."""
    if set(arguments) <= {"-h", "--help"} and _COMPLETES not in os.environ:
        from ascar.cli.front_page import front_page

        sys.stdout.write(f"{front_page()}\n")
        return DONE
    from ascar.cli.app import app

    return app(arguments, standalone_mode=False, prog_name="ascar")


def _failed(error: BaseException, *, as_json: bool) -> int:
    _forget_signal()
    from ascar.cli.problems import explain

    problem = explain(error)
    say(f"error: {problem.message}")
    if as_json:
        with contextlib.suppress(OSError):
            from ascar.results.problem import ErrorResult

            emit("error", ErrorResult(error=problem))
    return problem.exit_status


def _forget_signal() -> None:
    """Let the process end with its status, not by the signal that interrupted it.

    An interrupt that comes out of code made from text, as dataclasses make their methods, stays noted in the
    interpreter, which then kills `python -m ascar` by SIGINT at its end, however it was dealt with.
    Evaluating any other text clears the note.
    """
    eval("None")  # noqa: S307  # a constant
