"""Any program as a load: what it prints becomes metrics."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.program import Harvest, Program, check, parse_extractor, run_program
from ascar.results.measurement import Readings
from ascar.study import convert, duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

_ARGUMENTS_MAX = 1000


class CommandOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "command".

    Attributes:
        argv: the program and its arguments; "{directory}" and "{seconds}" in an argument stand for the
            workspace and for how long the load should run. No shell reads it.
        metrics: "regex:..." or "json:..." by metric name.
        prepare: a program that fills the workspace, or none.
        time: the place of the time in a line, in seconds since the load began: "regex:..." or "json:...";
            without it, the time at which the line arrives.
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
        if size is not None and not 0 <= size < 2**63:
            raise StudyError(f"workload.dataset_bytes = {size!r}: must be from 0 to 2^63 - 1")

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

    @property
    def reported(self) -> frozenset[str]:
        """The declared metrics, and what every run takes."""
        return frozenset({*self._extractors, "duration_s"})

    @property
    def ends_by_itself(self) -> bool:
        """Whether the program is not told how long to run."""
        return not self._told_seconds()

    def prepare(self, workspace: Workspace) -> None:
        """Run the filling program, where there is one."""
        if self.options.prepare is not None:
            program = Program("fill", _fill_in(self.options.prepare, workspace, 0.0), self._fill_limit_s)
            check(program, run_program(program, workspace))

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Run the program and read its output."""
        harvest = Harvest(self._extractors, self._time)
        early = self.options.stop_early and bool(self._extractors)

        def hear(chunk: bytes, seconds: float) -> bool:
            fresh = harvest.feed(chunk, seconds)
            return early and fresh and pace.asks(seconds) and pace.may_end(harvest.series())

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


def _check_argv(key: str, argv: Sequence[str]) -> None:
    if not argv or not argv[0]:
        raise StudyError(f'{key} = {list(argv)!r}: must name a program, e.g. ["postmark", "run.cfg"]')
    if len(argv) > _ARGUMENTS_MAX or any("\0" in argument for argument in argv):
        raise StudyError(f"{key}: must be at most {_ARGUMENTS_MAX} arguments, none with a zero byte")
    if shutil.which(argv[0]) is None:
        raise EnvironmentLacks(
            f"{key}[0] = {argv[0]!r}: is not a program that can be run here; install it, or give its "
            "full path"
        )


def _fill_in(argv: Sequence[str], workspace: Workspace, load_s: float) -> list[str]:
    """The arguments, with what stands for the workspace and the duration replaced by it, as text."""
    seconds = str(math.ceil(load_s))
    return [
        argument.replace("{directory}", str(workspace.directory)).replace("{seconds}", seconds)
        for argument in [shutil.which(argv[0]) or argv[0], *argv[1:]]
    ]
