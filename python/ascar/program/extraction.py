"""Numbers out of a program's output: by regular expression, or by a path into JSON.

regex:ops/s: *([0-9.]+)              the group named "value", else the first group, else the whole match
json:results[0].latency.p99          keys with dots between them, indexes in brackets
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from ascar.errors import StudyError

_SOURCE_LENGTH_MAX = 1000
_STEP = re.compile(r"(?:^|\.)([^.\[\]]+)|\[(-?\d{1,9})\]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A number in a line of text."""

    expression: re.Pattern[str]

    def find(self, line: str) -> float | None:
        """The number; None where the line has none, or no finite one."""
        match = self.expression.search(line)
        if match is None:
            return None
        if "value" in self.expression.groupindex:
            return number(match["value"])
        if self.tells_units:
            # The first group is the number, but for those that say what the unit is.
            named = set(self.expression.groupindex.values())
            plain = [group for group in range(1, self.expression.groups + 1) if group not in named]
            return number(match[plain[0]] if plain else match[0])
        return number(match[1] if self.expression.groups else match[0])

    @property
    def tells_units(self) -> bool:
        """Whether it says what each unit reading is of: by a group named "unit", "work", or both."""
        return not {"unit", "work"}.isdisjoint(self.expression.groupindex)

    def unit(self, line: str) -> tuple[str | None, float | None] | None:
        """The kind and the work of a line's unit, None where no group tells it; None where one tells none."""
        match, known = self.expression.search(line), self.expression.groupindex
        if match is None:
            return None
        kind = match["unit"] if "unit" in known else None
        work = number(match["work"]) if "work" in known else None
        if ("unit" in known and not kind) or ("work" in known and not (work is not None and work > 0)):
            return None
        return kind, work


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A number inside a JSON document."""

    steps: tuple[str | int, ...]

    def find(self, document: Any) -> float | None:
        """The number; None where the path leads nowhere, or to no finite number."""
        place = document
        for step in self.steps:
            if isinstance(step, str) and isinstance(place, dict):
                place = cast("dict[str, Any]", place).get(step)
            elif isinstance(step, int) and isinstance(place, list):
                items = cast("list[Any]", place)
                place = items[step] if -len(items) <= step < len(items) else None
            else:
                return None
        return number(place)


Extractor = Pattern | JsonPath


def parse_extractor(key: str, text: str) -> Extractor:
    """Read "regex:..." or "json:...".

    Raises:
        StudyError: neither, or it cannot be read.
    """
    kind, _, source = text.partition(":")
    if len(text) > _SOURCE_LENGTH_MAX:
        raise StudyError(f"{key} = {text[:40]!r}...: must be at most {_SOURCE_LENGTH_MAX} characters")
    if kind not in ("regex", "json") or not source:
        raise StudyError(
            f"{key} = {text!r}: must be 'regex:EXPRESSION' or 'json:PATH', e.g. 'regex:ops/s: *([0-9.]+)' "
            "or 'json:results[0].ops_per_s'"
        )
    if kind == "json":
        return JsonPath(_steps(key, text, source))
    try:
        return Pattern(re.compile(source))
    except (re.error, RecursionError, OverflowError) as error:
        raise StudyError(f"{key} = {text!r}: is not a regular expression: {error}") from error


def number(found: Any) -> float | None:
    """A finite number, from JSON or from text; None for anything else."""
    if found is None or isinstance(found, bool) or not isinstance(found, str | int | float):
        return None
    try:
        value = float(found.replace(",", "") if isinstance(found, str) else found)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def decode(line: str | bytes | bytearray) -> Any:
    """A JSON document; None where the text is none."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _steps(key: str, text: str, path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise StudyError(
                f"{key} = {text!r}: cannot be read at {path[position:][:20]!r}; write keys with dots between "
                "them and indexes in brackets, e.g. 'json:results[0].ops_per_s'"
            )
        steps.append(match[1] if match[1] is not None else int(match[2]))
        position = match.end()
    return tuple(steps)
