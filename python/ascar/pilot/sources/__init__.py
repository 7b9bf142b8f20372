"""Recorded readings: CSV, JSON lines, fio's JSON and logs, hyperfine's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.pilot.sources.documents import read_json
from ascar.pilot.sources.fio_log import read_fio_log
from ascar.pilot.sources.json_lines import read_json_lines
from ascar.pilot.sources.recorded import FILE_BYTES_MAX, RecordedSeries
from ascar.pilot.sources.table import read_table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ENDINGS", "FILE_BYTES_MAX", "RecordedSeries", "read_all", "read_column"]

_READERS = {
    ".csv": read_table,
    ".tsv": read_table,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".log": read_fio_log,
}

ENDINGS = tuple(_READERS)
"""What the names of files of readings end in."""


def read_column(path: Path, column: str | None = None, time: str | None = None) -> RecordedSeries:
    """One series of readings from a file; the format follows from the name's ending and the content.

    Args:
        path: `.csv` or `.tsv` with a header; `.jsonl` or `.ndjson`, one object a line; `.log`, fio's log of
            bandwidth, IOPS or latency; `.json`, hyperfine's export, fio's output (best with
            `--status-interval`), or a list of numbers.
        column: name of the column or key; hyperfine: the command; fio's logs: read, write or trim; fio's
            JSON: e.g. "read.iops". May be left out where there is only one.
        time: column or key with the seconds at which readings were taken; CSV, TSV and JSON lines only.

    Raises:
        InputError: the file cannot be read, has no such column, or holds text where a number should be.
    """
    found = read_all(path, column, time)
    if len(found) > 1:
        names = ", ".join(repr(recorded.name) for recorded in found)
        raise InputError(f"{str(path)!r} has {len(found)} series; name one with --column: {names[:400]}")
    return found[0]


def read_all(path: Path, column: str | None = None, time: str | None = None) -> list[RecordedSeries]:
    """Every series that a file holds under that name; more than one only where `column` is left out.

    Args:
        path: the path, as for `read_column`.
        column: the column, as for `read_column`; without it a hyperfine export gives one series a command.
        time: the column of times, as for `read_column`.

    Raises:
        InputError: as for `read_column`.
    """
    try:
        size, regular = path.stat().st_size, path.is_file()
    except OSError as error:
        raise InputError(f"{str(path)!r}: {error.strerror}") from error
    if not regular:
        raise InputError(f"{str(path)!r}: is not a regular file")
    if size > FILE_BYTES_MAX:
        raise InputError(f"{str(path)!r} has {size} bytes: at most {FILE_BYTES_MAX} are read; split it")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(f"{str(path)!r}: readings come in files that end in {', '.join(_READERS)}")
    if time is not None and reader not in (read_table, read_json_lines):
        raise InputError(f"{str(path)!r}: --time = {time!r} applies only to CSV, TSV and JSON lines")
    try:
        return reader(path, column, time)
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{str(path)!r}: cannot be read as {path.suffix}: {error}") from error
