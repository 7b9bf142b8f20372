"""Readings from JSON lines: one object a line."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.errors import InputError
from ascar.pilot.sources.recorded import RecordedSeries, number, pick, readings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_json_lines(path: Path, column: str | None, time: str | None) -> list[RecordedSeries]:
    """The numbers under one key; lines without the key are other messages and left out."""
    values: list[float] = []
    seconds: list[float] = []
    name = column
    seen: set[str] = set()
    for line, entry in _objects(path):
        if name is None:
            numeric = [key for key, value in entry.items() if _is_number(value) and key != time]
            if not numeric:
                seen.update(list(entry)[:20])
                continue
            name = pick(path, None, list(entry), numeric)
        if name not in entry:
            seen.update(list(entry)[:20])
            continue
        values.append(number(path, line, repr(name), entry[name]))
        if time is not None:
            seconds.append(number(path, line, repr(time), entry.get(time)))
    if not values and (column is not None or seen):
        pick(path, column, sorted(seen), ())
    return [readings(path, name or "value", values, None if time is None else seconds)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open("rb") as file:
        for line, whole in enumerate(file, start=1):
            text = whole.removeprefix(BOM_UTF8) if line == 1 else whole
            if not text.strip():
                continue
            try:
                entry: Any = msgspec.json.decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise InputError(f"{str(path)!r} line {line}: is not JSON: {error}") from error
            if not isinstance(entry, dict):
                raise InputError(f"{str(path)!r} line {line}: must be a JSON object")
            yield line, cast("dict[str, Any]", entry)
