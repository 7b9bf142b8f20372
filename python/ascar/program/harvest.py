"""What a program prints, as unit readings and metrics; bounded, whatever it prints.

A line of JSON with `"kind": "summary"`, as `ascard load` ends with, tells of the whole run: what it says is
no unit reading.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from ascar.program.extraction import Extractor, JsonPath, Pattern, decode
from ascar.results.measurement import Series

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENT_BYTES_MAX = 4 * 2**20
LINE_BYTES_MAX = 2**20
READINGS_MAX = 1_000_000
_TAIL_LINES = 20
_DOCUMENT_START = re.compile(rb"^[\[{]", re.MULTILINE)


@dataclass(slots=True)
class Harvest:
    """What a program's output has told so far; bounded, whatever it prints.

    Attributes:
        extractors: the place of each metric in the output.
        time: the place of the time in a line; None: the time at which the line arrives.
        lines: lines heard.
    """

    extractors: Mapping[str, Extractor]
    time: Extractor | None = None
    lines: int = 0
    _rest: bytearray = field(default_factory=bytearray)
    _document: bytearray = field(default_factory=bytearray)
    _tail: list[str] = field(default_factory=list[str])
    _found: dict[str, tuple[list[float], list[float]]] = field(
        default_factory=dict[str, tuple[list[float], list[float]]]
    )
    _summed_up: dict[str, float] = field(default_factory=dict[str, float])
    _units: dict[str, list[tuple[str | None, float | None]]] = field(
        default_factory=dict[str, "list[tuple[str | None, float | None]]"]
    )

    def feed(self, chunk: bytes, seconds: float) -> bool:
        """Take in a piece of output; True when it brought a unit reading."""
        if len(self._document) <= DOCUMENT_BYTES_MAX:
            self._document += chunk
        *lines, rest = (bytes(self._rest) + chunk).split(b"\n")
        # Of a line without end only so much is kept as a line may have.
        self._rest = bytearray(rest[:LINE_BYTES_MAX])
        told = [self._take(line, seconds) for line in lines]
        return any(told)

    def series(self) -> dict[str, Series]:
        """Unit readings by metric, of those told more than once."""
        return {
            name: Series.of(list(seconds), list(values))
            for name, (seconds, values) in self._found.items()
            if len(values) > 1
        }

    def units(self) -> dict[str, list[tuple[str | None, float | None]]]:
        """The kind and the work of each unit reading, of metrics whose expression tells them."""
        return {name: list(units) for name, units in self._units.items() if len(units) > 1}

    def metrics(self) -> dict[str, float]:
        """Each metric over the whole run.

        What a summary said of it, else the last that was told; where no line told it, the whole output is
        read as one document.
        """
        if self._rest:
            self._take(bytes(self._rest), self._end_s())
            self._rest.clear()
        found = {name: values[-1] for name, (_, values) in self._found.items()} | self._summed_up
        absent = {name: path for name, path in self.extractors.items() if name not in found}
        if any(isinstance(path, JsonPath) for path in absent.values()):
            document = self._whole()
            for name, path in absent.items():
                value = path.find(document) if isinstance(path, JsonPath) else None
                if value is not None:
                    found[name] = value
        return found

    def _whole(self) -> Any:
        """The output as one JSON document, whatever lines stand before it; None where it is none."""
        if len(self._document) > DOCUMENT_BYTES_MAX:
            return None
        start = _DOCUMENT_START.search(self._document)
        return decode(self._document[start.start() :]) if start else None

    def tail(self) -> list[str]:
        """The last lines."""
        return list(self._tail)

    def _end_s(self) -> float:
        return max((seconds[-1] for seconds, _ in self._found.values()), default=0.0) + 1e-6

    def _take(self, raw: bytes, seconds: float) -> bool:
        """One line; True when it told a metric."""
        line = raw[:LINE_BYTES_MAX].decode("utf-8", "replace").strip()
        self.lines += 1
        if not line:
            return False
        self._tail = [*self._tail[-(_TAIL_LINES - 1) :], line[:500]]
        document = decode(line) if line.startswith("{") else None
        if isinstance(document, dict) and cast("dict[str, Any]", document).get("kind") == "summary":
            self._sum_up(document)
            return False
        taken_s = self._find(self.time, line, document) if self.time is not None else seconds
        told = False
        for name, extractor in self.extractors.items():
            value = self._find(extractor, line, document)
            if value is None or taken_s is None:
                continue
            if isinstance(extractor, Pattern) and extractor.tells_units:
                unit = extractor.unit(line)
                if unit is None:
                    continue  # a unit of no known kind or work has no place in the mean
                if not self._keep(name, taken_s, value):
                    continue
                self._units.setdefault(name, []).append(unit)
                told = True
            else:
                told = self._keep(name, taken_s, value) or told
        return told

    def _sum_up(self, document: Any) -> None:
        """What a summary says of the whole run."""
        for name, extractor in self.extractors.items():
            value = extractor.find(document) if isinstance(extractor, JsonPath) else None
            if value is not None:
                self._summed_up[name] = value

    def _keep(self, name: str, taken_s: float, value: float) -> bool:
        """Keep a reading; time never stands still or runs backwards within a series."""
        seconds, values = self._found.setdefault(name, ([], []))
        if len(values) >= READINGS_MAX:
            return False
        seconds.append(max(taken_s, math.nextafter(seconds[-1], math.inf)) if seconds else taken_s)
        values.append(value)
        return True

    @staticmethod
    def _find(extractor: Extractor, line: str, document: Any) -> float | None:
        if isinstance(extractor, JsonPath):
            return None if document is None else extractor.find(document)
        return extractor.find(line)
