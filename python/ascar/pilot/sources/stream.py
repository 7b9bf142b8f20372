"""Readings that are still being written: a growing file, or what comes in on a pipe."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from ascar.errors import InputError
from ascar.pilot.sources.recorded import number, pick

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Self

_LINE_BYTES_MAX = 1_000_000
_COLUMNS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """Which column or key is what.

    Attributes:
        value: the readings'; None: the only one with numbers.
        time: seconds, or ISO 8601 (UTC where it names no zone); None: readings come every `every_s`.
        every_s: seconds between readings; None: there is a column with the time.
    """

    value: str | None = None
    time: str | None = None
    every_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse readings without a time.

        Raises:
            InputError: neither or both are given.
        """
        if (self.time is None) == (self.every_s is None):
            raise InputError(
                "readings need their times: name the column with --time, or the time between them, --every"
            )


@dataclass(slots=True)
class Stream:
    """Lines of CSV with a header, or of JSON objects, one reading a line.

    Attributes:
        path: the path, for messages.
        file: the source of the lines.
        columns: the roles of the columns.
        name: the name of the readings' column, once it is known.
        taken: readings so far.
    """

    path: Path
    file: BinaryIO
    columns: StreamColumns
    name: str | None = None
    taken: int = 0
    _line: int = 0
    _rest: bytes = b""
    _head: list[str] | None = field(default=None, repr=False)
    _is_json: bool | None = None

    @classmethod
    def open(cls, path: Path, columns: StreamColumns) -> Self:
        """A stream from a file.

        Raises:
            InputError: it cannot be opened.
        """
        try:
            if path.is_dir():
                raise InputError(f"{str(path)!r}: is a directory")
            return cls(path, path.open("rb"), columns, columns.value)
        except OSError as error:
            raise InputError(f"{str(path)!r}: {error.strerror}") from error

    def readings(self, *, last: bool = True) -> Iterator[tuple[float, float]]:
        """Time and value of each reading that is there now.

        Args:
            last: nothing comes after what is there now, so that a line without an end is one too; else it
                is left for the next call.

        Raises:
            InputError: a line is not what the first one promised; it names the line.
        """
        while True:
            text = self.file.readline(_LINE_BYTES_MAX)
            self._rest += text
            if len(self._rest) >= _LINE_BYTES_MAX:
                raise InputError(
                    f"{str(self.path)!r} line {self._line + 1}: is longer than {_LINE_BYTES_MAX} bytes"
                )
            if not text.endswith(b"\n") and (text or not last or not self._rest):
                if text:
                    continue
                return
            whole, self._rest = self._rest, b""
            self._line += 1
            found = self._reading(whole)
            if found is not None:
                self.taken += 1
                yield found

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def _reading(self, text: bytes) -> tuple[float, float] | None:
        try:
            line = text.decode("utf-8-sig" if self._line == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise InputError(f"{str(self.path)!r} line {self._line}: is not UTF-8") from error
        if not line:
            return None
        if self._is_json is None:
            self._is_json = line.startswith("{")
        cells = self._object(line) if self._is_json else self._row(line)
        if cells is None:
            return None
        if self.name is None:
            numeric = [key for key, cell in cells.items() if key != self.columns.time and _is_number(cell)]
            if self._is_json and not numeric:
                return None
            self.name = pick(self.path, None, list(cells), numeric)
        if self.name not in cells:
            if self._is_json:
                return None
            pick(self.path, self.name, list(cells), ())
        value = number(self.path, self._line, repr(self.name), cells[self.name])
        return self._time(cells), value

    def _object(self, line: str) -> Mapping[str, Any]:
        try:
            entry: Any = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"{str(self.path)!r} line {self._line}: is not JSON: {error}") from error
        if not isinstance(entry, dict):
            raise InputError(f"{str(self.path)!r} line {self._line}: must be a JSON object")
        return cast("dict[str, Any]", entry)

    def _row(self, line: str) -> Mapping[str, str] | None:
        separator = "\t" if self.path.suffix.lower() == ".tsv" else ","
        try:
            cells = next(csv.reader([line], delimiter=separator, strict=True))
        except (csv.Error, StopIteration) as error:
            raise InputError(
                f"{str(self.path)!r} line {self._line}: is not a row of cells: {error}"
            ) from error
        if self._head is None:
            if len(cells) > _COLUMNS_MAX:
                raise InputError(
                    f"{str(self.path)!r}: has {len(cells)} columns: at most {_COLUMNS_MAX} are read"
                )
            self._head = [cell.strip() for cell in cells]
            return None
        if len(cells) != len(self._head):
            raise InputError(
                f"{str(self.path)!r} line {self._line}: has {len(cells)} cells: "
                f"must be {len(self._head)}, as the header"
            )
        return dict(zip(self._head, cells, strict=True))

    def _time(self, cells: Mapping[str, Any]) -> float:
        name = self.columns.time
        if name is None:
            assert self.columns.every_s is not None, "one of them is given"
            return self.taken * self.columns.every_s
        if name not in cells:
            pick(self.path, name, list(cells), ())
        found = cells[name]
        if isinstance(found, str) and not _is_number(found):
            try:
                when = datetime.fromisoformat(found.strip())
            except ValueError:
                number(self.path, self._line, repr(name), found)
                raise
            return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
        return number(self.path, self._line, repr(name), found)


def _is_number(found: Any) -> bool:
    if isinstance(found, bool):
        return False
    try:
        return math.isfinite(float(found))
    except (TypeError, ValueError, OverflowError):
        return False
