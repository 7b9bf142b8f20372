"""What goes where: one JSON document or text for people on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

__all__ = ["SCHEMAS", "emit", "json_wanted", "keep_stdout_for_json", "notes", "people", "say"]

SCHEMAS: dict[str, int] = {
    "apply": 1,
    "doctor": 1,
    "error": 1,
    "export": 1,
    "history-export": 1,
    "history-import": 1,
    "history-ls": 1,
    "history-purge": 1,
    "history-show": 1,
    "init": 1,
    "report": 1,
    "restore": 1,
    "space": 1,
    "sweep": 1,
    "tune": 1,
}
"""Documents that commands print with --json, each with the version of its schema (docs/schemas)."""

_WIDTH_PIPED = 160
_saved: list[TextIO] = []


def json_wanted(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for JSON; known before parsing it, so that parse errors are JSON too."""
    own = list(arguments)
    return "--json" in (own[: own.index("--")] if "--" in own else own)


def keep_stdout_for_json() -> None:
    """From now on only `emit` reaches stdout; what else is printed there, by children too, goes to stderr."""
    sys.stdout.flush()
    _saved.append(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    os.dup2(2, 1)


def emit(schema: str, document: Mapping[str, Any]) -> None:
    """Print the one JSON document of this command.

    Args:
        schema: the document's name, a key of `SCHEMAS`.
        document: JSON-ready values.
    """
    stream = _saved[-1] if _saved else sys.stdout
    whole = {"schema": f"ascar/{schema}/{SCHEMAS[schema]}", **document}
    json.dump(whole, stream, indent=2, ensure_ascii=False, allow_nan=False)
    stream.write("\n")
    stream.flush()


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
