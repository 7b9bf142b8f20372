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
    Yes,
)
from ascar.render import percentage

if TYPE_CHECKING:
    from ascar.cli.workload.traces import TracedFile
    from ascar.results.workload import ReplayCheck

EXAMPLES = examples(
    "ascar workload record --pid 4711 --under /var/lib/mysql --out signature.f",
    "ascar workload record --duration '20 s' --out signature.f -- ./application --its options",
    "ascar workload record --trace trace.txt --out signature.f    what blkparse printed",
    "ascar workload record --pid 4711 --out signature.f --replay-in /mnt/test    replay it, and compare",
)


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
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Write a short workload that has the mix of operations, the sizes and the gaps of another.

    The other one is a process that runs (sampled with strace, which slows its system calls down meanwhile), a
    command, or a trace. `ascard load --wml FILE --dir DIR` replays what is written, and a study tunes for it
    with `[workload] kind = "filebench", wml = "FILE"`. I/O through mapped memory and io_uring makes no system
    calls and is not seen. --replay-in says first how much its files fill, and asks above 1 GiB.
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
    if check is not None:
        _check_room(wml, check, asks=not json, yes=yes)
    compared = None if check is None else _checked(source, traced, wml, check, run_s)
    result = _Result(source, traced, wml, out, compared)
    result.emit() if json else result.show()
    return 0


_ASKED_BYTES = 1 << 30


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
            raise InputError(f"--form = {self.form!r}: applies only to --trace")
        if self.trace is not None and (wanted.under or wanted.keep):
            raise InputError("--under, --strace: apply only to --pid or -- COMMAND")
        if wanted.under is not None and not wanted.under.is_dir():
            raise InputError(f"--under = {str(wanted.under)!r}: is not a directory")
        if wanted.keep is not None and not wanted.keep.parent.is_dir():
            raise InputError(f"--strace = {str(wanted.keep)!r}: its directory does not exist")

    def read(self) -> TracedFile:
        """Record, or read the trace."""
        from ascar.cli.output import say
        from ascar.cli.workload.traces import TracedFile, read_trace
        from ascar.render import duration
        from ascar.workloads.recorder import RecorderOptions, record_command, record_process

        if self.trace is not None:
            return read_trace(self.trace, self.form)
        wanted = self.wanted
        recording = RecorderOptions(wanted.seconds, wanted.under, wanted.keep)
        what = f"process {self.pid}" if self.pid is not None else self.command[0]
        say(f"recording {what} for {duration(wanted.seconds)}")
        if self.pid is not None:
            found = record_process(self.pid, recording)
        else:
            found = record_command(self.command, recording)
        if found.slowdown is None:
            say("the pace without tracing is unknown; gaps in time are those of the traced process")
        elif found.slowdown > 1:
            say(f"tracing made it {found.slowdown:.3g} times slower; the gaps in time are corrected for that")
        return TracedFile(wanted.keep or Path("-"), "strace", found.trace, found.slowdown)


def _compared_line(check: ReplayCheck) -> str:
    """For people."""
    from ascar.workloads.replay import ALIKE

    text = f"replay: distance {check.distance:.3f}; "
    if not check.far:
        return text + f"all features within {percentage(ALIKE, 0)}"
    far = ", ".join(f"{name} ({percentage(check.differences[name], 0)})" for name in check.far)
    return text + f"off by more than {percentage(ALIKE, 0)}: {far}"


def _check_room(wml: str, where: Path, *, asks: bool, yes: bool) -> None:
    """Say what a replay fills, and have it allowed where that is much.

    Raises:
        InputError: there is not so much room, or nobody allows it.
    """
    import os
    import sys

    from ascar.cli.output import say
    from ascar.errors import InputError
    from ascar.features import filled_bytes
    from ascar.units import format_size

    filled = filled_bytes(wml)
    try:
        volume = os.statvfs(where)
    except OSError as error:
        raise InputError(f"--replay-in = {str(where)!r}: {error.strerror}") from error
    free = volume.f_bavail * volume.f_frsize
    if filled > free:
        raise InputError(
            f"--replay-in = {str(where)!r}: the replay's files take {format_size(filled)}, and "
            f"{format_size(free)} are free; name another directory, or a smaller --size-max"
        )
    needs_leave = filled > _ASKED_BYTES and not yes
    if needs_leave and not (asks and sys.stdin.isatty()):
        raise InputError(
            f"--yes: missing; the replay's files take {format_size(filled)} in {str(where)!r}; above 1 GiB "
            "give --yes, or a smaller --size-max"
        )
    say(f"the replay's files take {format_size(filled)} in {where}, until it ends")
    if needs_leave and not typer.confirm("Fill them?", err=True):
        raise typer.Exit


def _checked(source: _Source, traced: TracedFile, wml: str, where: Path, run_s: float) -> ReplayCheck:
    from ascar.cli.output import say
    from ascar.render import duration
    from ascar.workloads.replay import check_replay

    say(f"replaying in {where} for {duration(run_s)}")
    recorded_by = traced.form if source.kind == "trace" else "strace"
    if source.kind == "trace" and recorded_by == "strace":
        recorded_by = "trace"  # it need not be traced anew
    return check_replay(wml, traced.trace, recorded_by, where, run_s)


@dataclass(frozen=True, slots=True, eq=False)
class _Result:
    """Everything that is shown."""

    source: _Source
    traced: TracedFile
    wml: str
    out: Path | None
    compared: ReplayCheck | None

    def emit(self) -> None:
        """As JSON."""
        from ascar.cli.output import emit
        from ascar.features import features_of
        from ascar.results.encode import extended
        from ascar.results.workload import RecordSource, WorkloadRecordResult

        source = self.source
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
            replay=self.compared,
        )
        emit("workload-record", result)

    def show(self) -> None:
        """For people: the workload on stdout where it goes nowhere else, what is told of it beside it."""
        from ascar.cli.output import people, say
        from ascar.render import duration

        facts = self.traced.facts
        seconds = duration(self.traced.trace.duration_s)
        lines = [
            f"{facts.operations} operations of {facts.threads} threads on {facts.files} files in {seconds}"
        ]
        if self.out is not None:
            lines.append(f"{self.out}: replay it with `ascard load --wml {self.out} --dir DIR`")
        if self.compared is not None:
            lines.append(_compared_line(self.compared))
        if self.out is None:
            people().out(self.wml, end="", highlight=False)
        for line in lines:
            if self.out is None:
                say(line)
            else:
                people().print(line, soft_wrap=True, markup=False)
