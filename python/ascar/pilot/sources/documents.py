"""Readings from JSON documents: hyperfine's export, fio's output, or a plain list of numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import InputError
from ascar.pilot.sources.fio_json import read_fio
from ascar.pilot.sources.recorded import RecordedSeries, number, pick, readings

if TYPE_CHECKING:
    from pathlib import Path

_DOCUMENTS_MAX = 1_000_000
_DOCUMENT = re.compile(r"^[^\S\n]*[{[]", re.MULTILINE)


def read_json(path: Path, column: str | None, time: str | None) -> list[RecordedSeries]:  # noqa: ARG001
    """The series of a document, or of several after each other, as fio writes them."""
    found = _documents(path)
    first = found[0]
    if isinstance(first, list) and len(found) == 1:
        listed = cast("list[Any]", first)
        values = [number(path, "list", f"[{index}]", value) for index, value in enumerate(listed)]
        return [readings(path, column or "value", values)]
    if isinstance(first, dict) and "results" in first and len(found) == 1:
        return _hyperfine(path, column, cast("dict[str, Any]", first))
    if all(isinstance(document, dict) and "jobs" in document for document in found):
        return [read_fio(path, column, cast("list[dict[str, Any]]", found))]
    raise InputError(
        f"{str(path)!r}: must be hyperfine's --export-json, fio's --output-format=json, or a list of numbers"
    )


def _documents(path: Path) -> list[Any]:
    """The documents of a file; lines that a program wrote before the first one are passed over.

    Raises:
        InputError: there is none, or one of them is cut off.
    """
    text = path.read_text("utf-8-sig")
    decoder = json.JSONDecoder()
    # A document begins a line; brackets inside one are part of a message.
    first = _DOCUMENT.search(text)
    place = first.end() - 1 if first else len(text)
    found: list[Any] = []
    while place < len(text) and len(found) < _DOCUMENTS_MAX:
        try:
            document, place = decoder.raw_decode(text, place)
        except ValueError as error:
            line = text.count("\n", 0, place) + 1
            raise InputError(f"{str(path)!r}: the document that starts at line {line}: {error}") from error
        found.append(document)
        while place < len(text) and text[place] not in "{[":
            place += 1
    if not found:
        raise InputError(f"{str(path)!r}: holds no JSON document")
    return found


def _hyperfine(path: Path, column: str | None, document: dict[str, Any]) -> list[RecordedSeries]:
    """The run times of one command of hyperfine's export, or of each."""
    times: dict[str, list[Any]] = {}
    listed = document["results"]
    for place, result in enumerate(cast("list[Any]", listed if isinstance(listed, list) else [])):
        named = cast("dict[str, Any]", result if isinstance(result, dict) else {})
        runs = named.get("times")
        if not isinstance(runs, list):
            raise InputError(f"{str(path)!r}: results[{place}] has no list of times")
        name = str(named.get("command"))
        times[name if name not in times else f"{name} ({place + 1})"] = cast("list[Any]", runs)
    if not times:
        raise InputError(f"{str(path)!r}: results is empty")
    wanted = list(times) if column is None else [pick(path, column, list(times), list(times))]
    return [
        replace(
            readings(
                path,
                name,
                [number(path, repr(name), f"times[{index}]", s) for index, s in enumerate(times[name])],
            ),
            metric="duration_s",
        )
        for name in wanted
    ]
