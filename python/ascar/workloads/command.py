"""Any program as a load: what it prints becomes metrics."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.measurement import Readings, Series
from ascar.study import convert, duration
from ascar.workloads.extraction import Extractor, JsonPath, decode, parse_extractor
from ascar.workloads.program import Program, check, run_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.workloads import Pace
    from ascar.workspace import Workspace

__all__ = ["Command", "CommandOptions", "Harvest"]

DOCUMENT_BYTES_MAX = 4 * 2**20
LINE_BYTES_MAX = 2**20
READINGS_MAX = 1_000_000
_TAIL_LINES = 20
_DOCUMENT_START = re.compile(rb"^[\[{]", re.MULTILINE)
_ARGUMENTS_MAX = 1000


class CommandOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "command".

    Attributes:
        argv: the program and its arguments; "{directory}" and "{seconds}" in an argument stand for the
            workspace and for how long the load should run. No shell reads it.
        metrics: "regex:..." or "json:..." by metric name.
        prepare: a program that fills the workspace, or none.
        time: where a line says when it was taken, in seconds since the load began: "regex:..." or
            "json:..."; without it, when the line arrives.
        dataset_bytes: size of the load's data, for the record.
        stop_early: whether the program may be interrupted (SIGINT) once there are readings enough.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: the program is killed when it runs so much longer than the load should.
    """

    argv: list[str]
    metrics: dict[str, str] = {}
    prepare: list[str] | None = None
    time: str | None = None
    dataset_bytes: int | None = None
    stop_early: bool = True
    fill_limit: str = "10 min"
    overrun_limit: str = "60 s"


class Command:
    """A load that is any program.

    Each line that tells a metric is a unit reading of it, taken when the line arrived or when the line says.
    Over the whole run, a metric is what the last line told, or the JSON document that the whole output is.
    The time that the program took is a metric too: `duration_s`.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: the program is not there.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, CommandOptions, "workload")
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        for key, argv in (("argv", self.options.argv), ("prepare", self.options.prepare)):
            if argv is not None:
                _check_argv(f"workload.{key}", argv)
        for name in self.options.metrics:
            if not name.isidentifier():
                raise StudyError(
                    f"workload.metrics.{name}: must be letters, digits and '_', the unit last, "
                    "e.g. throughput_ops_per_s"
                )
        self._extractors = {
            name: parse_extractor(f"workload.metrics.{name}", text)
            for name, text in self.options.metrics.items()
        }
        self._time = (
            None if self.options.time is None else parse_extractor("workload.time", self.options.time)
        )
        size = self.options.dataset_bytes
        if size is not None and size < 0:
            raise StudyError(f"workload.dataset_bytes = {size!r}: must not be negative")

    def describe(self) -> Mapping[str, Any]:
        """The program, its arguments, and how its output is read."""
        return {
            "kind": "command",
            "program": shutil.which(self.options.argv[0]) or self.options.argv[0],
            "argv": list(self.options.argv),
            "prepare": self.options.prepare,
            "metrics": dict(self.options.metrics),
            "dataset_bytes": self.options.dataset_bytes,
        }

    def prepare(self, workspace: Workspace) -> None:
        """Run the filling program, where there is one."""
        if self.options.prepare is not None:
            program = Program("fill", _fill_in(self.options.prepare, workspace, 0.0), self._fill_limit_s)
            check(program, run_program(program, workspace))

    def run(self, workspace: Workspace, pace: Pace) -> Readings:
        """Run the program and read its output."""
        harvest = Harvest(self._extractors, self._time)
        early = self.options.stop_early and bool(self._extractors)

        def hear(chunk: bytes, seconds: float) -> bool:
            fresh = harvest.feed(chunk, seconds)
            return early and fresh and seconds >= pace.load_min_s and pace.enough(harvest.series())

        program = Program(
            "load",
            _fill_in(self.options.argv, workspace, pace.load_max_s),
            pace.load_max_s + self._overrun_limit_s,
            # A program that reports as it goes and was not told how long to run is asked to end in time.
            interrupt_after_s=None if not early or self._told_seconds() else pace.load_max_s,
        )
        ended = run_program(program, workspace, hear)
        check(program, ended)
        metrics = harvest.metrics()
        missing = [name for name in self._extractors if name not in metrics]
        if missing:
            name = missing[0]
            raise StageFailed(
                "load",
                f"workload.metrics.{name} = {self.options.metrics[name]!r} found nothing in the "
                f"{harvest.lines} lines that {Path(program.argv[0]).name} printed; the last: "
                f"{harvest.tail()[-1:] or '(none)'}",
                ended.stderr or "\n".join(harvest.tail()),
            )
        why = "program"
        if ended.interrupted:
            why = "time" if ended.seconds >= pace.load_max_s else "enough"
        elif self._told_seconds() and ended.seconds >= 0.95 * pace.load_max_s:
            why = "time"
        return Readings(
            series=harvest.series(),
            metrics={"duration_s": ended.seconds, **metrics},
            load_s=ended.seconds,
            ended=why,
            notes="\n".join(harvest.tail()),
        )

    def _told_seconds(self) -> bool:
        return any("{seconds}" in argument for argument in self.options.argv)


@dataclass(slots=True)
class Harvest:
    """What a program's output has told so far; bounded, whatever it prints.

    Attributes:
        extractors: where each metric is found.
        time: where a line says when it was taken; None: when it arrives.
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

    def metrics(self) -> dict[str, float]:
        """The last that was told of each metric; where no line told it, the whole output as one document."""
        if self._rest:
            self._take(bytes(self._rest), self._end_s())
            self._rest.clear()
        found = {name: values[-1] for name, (_, values) in self._found.items()}
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
        taken_s = self._find(self.time, line, document) if self.time is not None else seconds
        told = False
        for name, extractor in self.extractors.items():
            value = self._find(extractor, line, document)
            if value is not None and taken_s is not None:
                told = self._keep(name, taken_s, value) or told
        return told

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


def _check_argv(key: str, argv: Sequence[str]) -> None:
    if not argv or not argv[0]:
        raise StudyError(f'{key} = {list(argv)!r}: must name a program, e.g. ["postmark", "run.cfg"]')
    if len(argv) > _ARGUMENTS_MAX or any("\0" in argument for argument in argv):
        raise StudyError(f"{key}: must be at most {_ARGUMENTS_MAX} arguments, none with a zero byte")
    if shutil.which(argv[0]) is None:
        raise EnvironmentLacks(
            f"{key}[0] = {argv[0]!r}: is no program that can be run here; install it, or give its full path"
        )


def _fill_in(argv: Sequence[str], workspace: Workspace, load_s: float) -> list[str]:
    """The arguments, with what stands for the workspace and the duration replaced by it, as text."""
    seconds = str(math.ceil(load_s))
    return [
        argument.replace("{directory}", str(workspace.directory)).replace("{seconds}", seconds)
        for argument in [shutil.which(argv[0]) or argv[0], *argv[1:]]
    ]
