"""What goes where: one JSON document or text for people on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from rich.console import Console

SCHEMAS: dict[str, int] = {
    "analyze": 1,
    "apply": 1,
    "capes-control": 1,
    "capes-game": 1,
    "capes-prove": 1,
    "capes-status": 1,
    "capes-down": 1,
    "capes-up": 1,
    "capes-train": 1,
    "compare": 1,
    "doctor": 1,
    "error": 1,
    "explore": 1,
    "export": 1,
    "history-export": 1,
    "history-import": 1,
    "history-ls": 1,
    "history-pareto": 1,
    "history-purge": 1,
    "history-show": 1,
    "importance": 1,
    "init": 1,
    "lab-optimizers": 1,
    "measure": 1,
    "report": 1,
    "restore": 1,
    "sharp-candidates": 1,
    "sharp-deploy": 1,
    "sharp-explain": 1,
    "sharp-learn": 1,
    "sharp-library-add": 1,
    "sharp-library-bootstrap": 1,
    "sharp-library-find": 1,
    "sharp-library-ls": 1,
    "sharp-library-predict": 1,
    "sharp-library-show": 1,
    "sharp-search": 1,
    "sharp-show": 1,
    "sharp-split": 1,
    "sharp-down": 1,
    "sharp-watch": 1,
    "sim-run": 1,
    "sim-serve": 1,
    "sim-sweep": 1,
    "space": 1,
    "sweep": 1,
    "tune": 1,
    "variation": 1,
    "watch": 1,
    "watch-shift": 1,
    "workload-features": 1,
    "workload-record": 1,
}
"""Documents that commands print with --json, each with the version of its schema (docs/schemas)."""

_WIDTH_PIPED = 160
_own_stdout: list[int] = []


def json_wanted(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON; known before parsing it, so that parse errors are JSON too."""
    own = list(arguments)
    return "--json" in (own[: own.index("--")] if "--" in own else own)


@contextmanager
def stdout_for_json() -> Generator[None]:
    """While it lasts only `emit` reaches stdout; all else that is printed, by children too, is on stderr."""
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    _own_stdout.append(own)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _own_stdout.pop()
        os.dup2(own, 1)
        os.close(own)


def emit(schema: str, document: Mapping[str, Any], *, line: bool = False) -> None:
    """Print the one JSON document of this command.

    Args:
        schema: the document's name, a key of `SCHEMAS`.
        document: JSON-ready values.
        line: on a single line, for commands that print several.
    """
    whole = {"schema": f"ascar/{schema}/{SCHEMAS[schema]}", **document}
    text = json.dumps(whole, indent=None if line else 2, ensure_ascii=False, allow_nan=False)
    # Lone surrogates, from a program's last words that are no text, have no UTF-8.
    rest = f"{text}\n".encode("utf-8", "backslashreplace")
    while rest:  # unbuffered: what cannot be written is known here, not when the interpreter ends
        rest = rest[os.write(_own_stdout[-1] if _own_stdout else 1, rest) :]


def people() -> Console:
    """Stdout for people: colours and boxes on a terminal only."""
    return _console(stderr=False)


def notes() -> Console:
    """Stderr: progress, logs, hints."""
    return _console(stderr=True)


def say(line: str) -> None:
    """One plain line on stderr; a stderr that is gone (a closed terminal) must not stop the clean-up."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # Where nobody's window sets the width, a table must not be folded to 80 columns.
    width = None if stream.isatty() else _WIDTH_PIPED
    return Console(stderr=stderr, width=width, highlight=False)
