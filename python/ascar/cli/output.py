"""What goes where: one JSON document or text for people on stdout, everything else on stderr."""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import msgspec
    from rich.console import Console


_WIDTH_PIPED = 160
_UNESCAPED = re.compile(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
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


def emit(name: str, document: msgspec.Struct, *, line: bool = False) -> None:
    """Print the one JSON document of this command.

    Args:
        name: the document's name, a key of `ascar.results.documents.DOCUMENTS`.
        document: the result.
        line: print on a single line, for commands that print several documents.
    """
    from ascar.results.documents import struct_of

    assert type(document) is struct_of(name), "a document is printed as its struct"
    text = document_text(document, line=line).removesuffix("\n")
    # Lone surrogates, from a program's last words that are no text, have no UTF-8.
    rest = f"{text}\n".encode("utf-8", "backslashreplace")
    while rest:  # unbuffered: what cannot be written is known here, not when the interpreter ends
        rest = rest[os.write(_own_stdout[-1] if _own_stdout else 1, rest) :]


def document_text(document: msgspec.Struct, *, line: bool = False) -> str:
    """A result as the text of one JSON document, with a line's end."""
    import json  # only here: help and errors do without

    from ascar.results.encode import json_ready

    indent = None if line else 2
    text = json.dumps(json_ready(document), indent=indent, ensure_ascii=False, allow_nan=False)
    # JSON itself escapes only the first 32; terminals act on others, too.
    return _UNESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def people() -> Console:
    """Stdout for people: colours and boxes on a terminal only."""
    return _console(stderr=False)


def notes() -> Console:
    """Stderr: progress, logs, hints."""
    return _console(stderr=True)


def say(line: str) -> None:
    """One plain line on stderr, or in the journal that it goes to.

    A stderr that is gone (a closed terminal) must not stop the clean-up.
    """
    from ascar.render import visible

    plain = visible(line)
    if "JOURNAL_STREAM" in os.environ:
        from ascar.cli.journal import told_journal

        if told_journal(plain):
            return
    try:
        sys.stderr.write(f"{plain}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _console(*, stderr: bool) -> Console:
    from ascar.cli.console import VisibleConsole

    stream = sys.stderr if stderr else sys.stdout
    # Where nobody's window sets the width, a table must not be folded to 80 columns.
    width = None if stream.isatty() else _WIDTH_PIPED
    return VisibleConsole(stderr=stderr, width=width, highlight=False)
