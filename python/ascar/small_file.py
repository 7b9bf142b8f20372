"""Small files that a user names: read as a whole, within a limit, with one clear error."""

from __future__ import annotations

import codecs
import re
import stat
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.errors import AscarError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_REASON_MAX = 300
_LINE_MAX = 100
_PLACE = re.compile(r"\(at line ([0-9]+), column [0-9]+\)")
_TWICE = ("Cannot overwrite", "Cannot declare", "Cannot mutate")
_PIECE_BYTES = 1 << 16


def toml_table(text: str, refused: Callable[[str], AscarError]) -> dict[str, Any]:
    """The table that TOML text holds.

    Args:
        text: the TOML text.
        refused: makes the error from the reason why the text is not used.

    Raises:
        AscarError: the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:  # a number of thousands of digits is a mere ValueError
        reason = str(problem)[:_REASON_MAX]
        raise refused(f"is not TOML: {reason}{_line_in(text, reason)}") from None


def _line_in(text: str, reason: str) -> str:
    """The line that a reason is about, as it stands there, and what helps."""
    place = _PLACE.search(reason)
    lines = text.split("\n")
    if place is None or not 1 <= int(place[1]) <= len(lines):
        return ""
    line = lines[int(place[1]) - 1].strip()
    if not line:
        return ""
    shown = repr(line[:_LINE_MAX]) + ("..." if len(line) > _LINE_MAX else "")
    advice = "; write each key and each table once" if reason.startswith(_TWICE) else ""
    return f": {shown}{advice}"


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file to read.

    Attributes:
        path: the path of the file, as the user named it.
        what: the file in the user's words, for errors, e.g. "study file 'a.toml'".
        bytes_max: the greatest size.
        advice: the advice to a user whose file cannot be read.
        error: the type of the errors.
    """

    path: Path
    what: str
    bytes_max: int
    advice: str = "name a file that can be read"
    error: Callable[[str], AscarError] = InputError

    def content(self) -> bytes:
        """The bytes of the file.

        Raises:
            InputError: it cannot be read, or is too large.
        """
        if _waits_for_a_writer(self.path):
            raise self.refused("is a FIFO, or a socket")
        try:
            with self.path.open("rb", buffering=0) as file:  # a device has no size to look at
                content = bytearray()
                while len(content) <= self.bytes_max:
                    piece = file.read(min(_PIECE_BYTES, self.bytes_max + 1 - len(content)))
                    if not piece:
                        break
                    content += piece
        except (OSError, ValueError) as problem:  # a null byte in the name is a ValueError
            reason = problem.strerror if isinstance(problem, OSError) else str(problem)
            raise self.refused(str(reason)) from None
        if len(content) > self.bytes_max:
            raise self.refused(f"larger than {self.bytes_max} bytes")
        return bytes(content)

    def text(self) -> str:
        """The text of the file, without the byte-order mark that some editors write before it.

        Raises:
            InputError: it cannot be read, is too large, or is not a text.
        """
        content = self.content()
        if content.startswith(_UTF_16_MARKS):
            raise self.refused("is UTF-16 text; save it as UTF-8")
        try:
            return content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
        except UnicodeDecodeError as problem:
            raise self.refused(f"is not UTF-8 text ({problem.reason} at byte {problem.start})") from None

    def toml(self) -> dict[str, Any]:
        """The table that the file holds.

        Raises:
            InputError: it cannot be read, is too large, or is no TOML.
        """
        return toml_table(self.text(), self.refused)

    def refused(self, reason: str) -> AscarError:
        """The error that says why the file is not used."""
        return self.error(f"{self.what}: {reason}; {self.advice}")


def _waits_for_a_writer(path: Path) -> bool:
    """Whether reading would wait for another process: pipes that this one was given, /dev/fd/N, are read."""
    if str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/")):
        return False
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False  # opening it says why
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
