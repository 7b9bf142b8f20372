"""`ascar workload record`: a short workload that stands for a running process, a command, or a trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Duration,
    Force,
    Json,
    OutOrNone,
    Pid,
    ReplayIn,
    RunLength,
    SizeMax,
    Strace,
    TraceFile,
    TraceForm,
    Under,
)

if TYPE_CHECKING:
    from ascar.cli.workload.traces import TracedFile
    from ascar.features import Trace

EXAMPLES = examples(
    "ascar workload record --pid 4711 --under /var/lib/mysql --out signature.f",
    "ascar workload record --duration '20 s' --out signature.f -- ./application --its options",
    "ascar workload record --trace trace.txt --out signature.f    what blkparse printed",
    "ascar workload record --pid 4711 --out signature.f --replay-in /mnt/test    replay it, and compare",
)
SHARE_MIN = 0.02
ALIKE = 0.1
"""A replay's features lie within this of the original's."""
_DEVIATIONS = "gap_s_relative_sd"
"""Of gaps in time a signature reproduces the mean."""


def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...",
            help="After --: a program and its arguments, recorded from its start, and ended afterwards. No "
            "shell reads them; what it prints goes to standard error.",
        ),
    ] = None,
    pid: Pid = None,
    trace: TraceFile = None,
    form: TraceForm = None,
    seconds: Duration = "30 s",
    under: Under = None,
    keep: Strace = None,
    run: RunLength = "25 s",
    size_max: SizeMax = "8 GiB",
    out: OutOrNone = None,
    force: Force = False,
    check: ReplayIn = None,
    json: Json = False,
) -> int:
    """Write a short workload that has the mix of operations, the sizes and the gaps of another.

    The other one is a process that runs (sampled with strace, which slows its system calls down meanwhile), a
    command, or a trace. `ascard load --wml FILE --dir DIR` replays what is written, and a study tunes for it
    with `[workload] kind = "filebench", wml = "FILE"`. I/O through mapped memory and io_uring makes no system
    calls and is not seen.
    """
    from ascar.cli.file_output import check_new, write_new
    from ascar.features import signature_workload
    from ascar.study import duration
    from ascar.units import parse_size

    source = _Source(
        tuple(command or ()), pid, trace, form, _Wanted(duration("--duration", seconds), under, keep)
    )
    source.check()
    run_s = max(1, round(duration("--run", run)))
    bytes_max = parse_size(size_max)
    if out is not None:
        check_new(out, force=force)
    traced = source.read()
    wml = signature_workload(traced.trace, seconds=run_s, file_bytes_max=bytes_max)
    if out is not None:
        write_new(out, wml, force=force)
    compared = None if check is None else _compare(_Replay(source.kind, wml, check, run_s), traced)
    result = _Result(source, traced, wml, out, compared)
    result.emit() if json else result.show()
    return 0


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What of a process is recorded."""

    seconds: float
    under: Path | None
    keep: Path | None


@dataclass(frozen=True, slots=True)
class _Source:
    """Where operations come from."""

    command: tuple[str, ...]
    pid: int | None
    trace: Path | None
    form: str | None
    wanted: _Wanted

    @property
    def kind(self) -> Literal["process", "command", "trace"]:
        return "trace" if self.trace is not None else "process" if self.pid is not None else "command"

    def check(self) -> None:
        """Refuse what does not go together, and what this machine lacks."""
        from ascar.errors import InputError
        from ascar.workloads.recorder import need_strace

        given = [self.pid is not None, self.trace is not None, bool(self.command)]
        if sum(given) != 1:
            raise InputError("--pid, --trace, -- COMMAND: give one of them; `ascar workload record --help`")
        wanted = self.wanted
        if self.trace is None:
            need_strace()
        if self.trace is None and self.form is not None:
            raise InputError(f"--form = {self.form!r}: goes with --trace")
        if self.trace is not None and (wanted.under or wanted.keep):
            raise InputError("--under, --strace: go with --pid or -- COMMAND, not with --trace")
        if wanted.under is not None and not wanted.under.is_dir():
            raise InputError(f"--under = {str(wanted.under)!r}: is no directory")
        if wanted.keep is not None and not wanted.keep.parent.is_dir():
            raise InputError(f"--strace = {str(wanted.keep)!r}: its directory does not exist")

    def read(self) -> TracedFile:
        """Record, or read the trace."""
        from ascar.cli.output import say
        from ascar.cli.workload.traces import TracedFile, read_trace
        from ascar.units import format_duration
        from ascar.workloads.recorder import RecorderOptions, record_command, record_process

        if self.trace is not None:
            return read_trace(self.trace, self.form)
        wanted = self.wanted
        recording = RecorderOptions(wanted.seconds, wanted.under, wanted.keep)
        what = f"process {self.pid}" if self.pid is not None else self.command[0]
        say(f"recording {what} for {format_duration(wanted.seconds)}")
        if self.pid is not None:
            found = record_process(self.pid, recording)
        else:
            found = record_command(self.command, recording)
        if found.slowdown is None:
            say("its pace without tracing is not known: gaps in time are those of the traced process")
        elif found.slowdown > 1:
            say(f"traced, it went {found.slowdown:.3g} times slower; gaps in time are without that")
        return TracedFile(wanted.keep or Path("-"), "strace", found.trace, found.slowdown)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A replay beside its original."""

    directory: Path
    differences: dict[str, float]
    distance: float

    @property
    def far(self) -> dict[str, float]:
        """Features that the replay does not have."""
        return {
            name: difference
            for name, difference in self.differences.items()
            if not difference <= ALIKE and not name.endswith(_DEVIATIONS)
        }

    @property
    def line(self) -> str:
        """For people."""
        far = [f"{name} ({difference:.0%})" for name, difference in sorted(self.far.items())]
        text = f"replay: distance {self.distance:.3f}; "
        if far:
            return text + f"off by more than {ALIKE:.0%}: {', '.join(far)}"
        return text + f"all features within {ALIKE:.0%}"


@dataclass(frozen=True, slots=True)
class _Replay:
    """A signature to be replayed, and what it was made from."""

    kind: str
    wml: str
    directory: Path
    seconds: float

    def trace(self, form: str) -> Trace:
        """What it does, by the instrument that recorded the original: each holds up what it watches."""
        from ascar.workloads.replay import replay, replay_watched

        if self.kind == "trace":
            return replay(self.wml, self.directory, self.seconds, recorded=form == "load")
        return replay_watched(self.wml, self.directory, self.seconds).trace


def _compare(wanted: _Replay, traced: TracedFile) -> _Compared:
    from ascar.cli.output import say
    from ascar.features import features_of, relative_differences, relative_distance
    from ascar.units import format_duration

    say(f"replaying in {wanted.directory} for {format_duration(wanted.seconds)}")
    original, other = features_of(traced.trace), features_of(wanted.trace(traced.form))
    differences = relative_differences(original, other, share_min=SHARE_MIN)
    return _Compared(wanted.directory, differences, relative_distance(original, other, SHARE_MIN))


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    """Everything that is shown."""

    source: _Source
    traced: TracedFile
    wml: str
    out: Path | None
    compared: _Compared | None

    def emit(self) -> None:
        """As JSON."""
        from ascar.cli.output import emit
        from ascar.features import features_of
        from ascar.results.encode import extended
        from ascar.results.workload import RecordSource, ReplayCheck, WorkloadRecordResult

        source, compared = self.source, self.compared
        result = extended(
            WorkloadRecordResult,
            self.traced.facts,
            source=RecordSource(
                kind=source.kind,
                pid=source.pid,
                command=tuple(source.command),
                trace=None if source.trace is None else str(source.trace),
                form=self.traced.form,
                slowdown=self.traced.slowdown,
            ),
            features=features_of(self.traced.trace),
            file=None if self.out is None else str(self.out),
            wml=self.wml,
            replay=None
            if compared is None
            else ReplayCheck(
                directory=str(compared.directory),
                differences=compared.differences,
                far=tuple(sorted(compared.far)),
                distance=compared.distance,
            ),
        )
        emit("workload-record", result)

    def show(self) -> None:
        """For people: the workload on stdout where it goes nowhere else, what is told of it beside it."""
        from ascar.cli.output import people, say
        from ascar.units import format_duration

        facts = self.traced.facts
        seconds = format_duration(self.traced.trace.duration_s)
        lines = [
            f"{facts.operations} operations of {facts.threads} threads on {facts.files} files in {seconds}"
        ]
        if self.out is not None:
            lines.append(f"{self.out}: replay it with `ascard load --wml {self.out} --dir DIR`")
        if self.compared is not None:
            lines.append(self.compared.line)
        if self.out is None:
            people().out(self.wml, end="", highlight=False)
        for line in lines:
            if self.out is None:
                say(line)
            else:
                people().print(line, soft_wrap=True, markup=False)
