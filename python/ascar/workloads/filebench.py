"""Filebench workloads as a load: a personality of `ascard load`, or a file in Filebench's language."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.program import STDIN_BYTES_MAX, Program, check, run_program
from ascar.program.node_binary import find_ascard
from ascar.results.measurement import Readings
from ascar.small_file import SmallFile
from ascar.study import convert, duration
from ascar.workloads.filebench_report import Description, Lines, metric_names, series_of, whole_run
from ascar.workloads.open_loop import loop_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

DEFAULT_PERSONALITY = "mailserver"
_NOTES_LENGTH_MAX = 2000
_ENDS = {"signal": "enough", "time": "time", "finished": "program"}


class FilebenchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "filebench": a personality (the default: mailserver) or a workload file.

    Attributes:
        personality: a built-in workload; `ascard load --list` names them.
        wml: path of a file in Filebench's language.
        scale: times the workload's data set.
        threads: the total number of threads, shared out in the workload's proportion; None: the workload's
            own number.
        rate_per_s: passes through the flowops that arrive a second at random times, in all threads
            together; latencies count from the arrival. None: a pass starts when the previous one has ended.
        seed: the seed of file sizes, positions and choices.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: the load is killed when it runs so much longer than it should.
    """

    personality: str | None = None
    wml: str | None = None
    scale: float = 1.0
    threads: int | None = None
    rate_per_s: float | None = None
    seed: int = 1
    fill_limit: str = "30 min"
    overrun_limit: str = "60 s"


class Filebench:
    """A Filebench workload, run natively.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key, the personality or the file is wrong.
        EnvironmentLacks: `ascard` is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, FilebenchOptions, "workload")
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        self._check()
        self._ascard = find_ascard()
        self._wml = b"" if self.options.wml is None else _read(self.options.wml)
        self._version = self._ask("--version").decode().split()[1]
        self.description = self._describe()
        self._dataset_bytes = round(self.description.expected_bytes)

    def describe(self) -> Mapping[str, Any]:
        """Program, version, workload, and the size of the data (as filled, once that has happened)."""
        return {
            "kind": "filebench",
            "program": "ascard load",
            "version": self._version,
            "personality": None if self.options.wml else self.description.workload,
            "wml": self.description.wml if self.options.wml else None,
            "scale": self.options.scale,
            "threads": self.description.threads,
            "rate_per_s": self.options.rate_per_s,
            "loop": loop_of(self.options.rate_per_s),
            "seed": self.options.seed,
            "dataset_bytes": self._dataset_bytes,
        }

    @property
    def reported(self) -> frozenset[str]:
        """Rates and latencies of all operations, and of each flowop on files."""
        return metric_names(self.description)

    def prepare(self, workspace: Workspace) -> None:
        """Make the files that the workload finds."""
        lines = Lines()
        program = self._program("fill", workspace, self._fill_limit_s, "--fill-only")
        check(program, run_program(program, workspace, lambda chunk, _: lines.feed(chunk) and False))
        if lines.fill is None:
            raise StageFailed("fill", "ascard load reported no fill")
        self._dataset_bytes = lines.fill.bytes

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Run the workload on the files that are there."""
        lines = Lines()

        def hear(chunk: bytes, seconds: float) -> bool:  # noqa: ARG001
            fresh = lines.feed(chunk)
            if not fresh or not pace.asks(lines.readings[-1].seconds):
                return False
            return pace.may_end(series_of(lines.readings))

        reading_ms = str(max(10, round(pace.reading_s * 1000)))
        seconds = f"{pace.load_max_s:.3f}"
        limit_s = pace.load_max_s + self._overrun_limit_s
        words = ["--no-fill", "--seconds", seconds, "--reading-ms", reading_ms]
        if self.options.rate_per_s is not None:
            words += ["--rate-per-s", repr(self.options.rate_per_s)]
        program = self._program("load", workspace, limit_s, *words)
        ended = run_program(program, workspace, hear)
        check(program, ended)
        summary = lines.summary
        if summary is None or summary.load_s <= 0:
            raise StageFailed("load", "ascard load reported no summary", ended.stderr)
        return Readings(
            series=series_of(lines.readings),
            metrics=whole_run(summary),
            load_s=summary.load_s,
            ended=_ENDS.get(summary.ended, "program"),
            notes=ended.stderr.strip()[-_NOTES_LENGTH_MAX:],
            tail_s=max(0.0, ended.seconds - summary.start_s - summary.load_s),
        )

    def _check(self) -> None:
        """What can be told without the program."""
        given = self.options
        if given.personality is not None and given.wml is not None:
            raise StudyError(
                "workload.wml: cannot be given together with workload.personality; give one of them"
            )
        if not 1e-9 <= given.scale <= 1e6:
            raise StudyError(f"workload.scale = {given.scale!r}: must be from 1e-9 to 1e6")
        if not 0 <= given.seed < 2**64:
            raise StudyError(f"workload.seed = {given.seed!r}: must be from 0 to 2^64 - 1")
        if given.threads is not None and not 1 <= given.threads <= 4096:
            raise StudyError(f"workload.threads = {given.threads!r}: must be from 1 to 4096")
        if given.rate_per_s is not None and not 1e-3 <= given.rate_per_s <= 1e9:
            raise StudyError(f"workload.rate_per_s = {given.rate_per_s!r}: must be from 0.001 to 1000000000")

    def _source(self) -> list[str]:
        """The part of the command line that says which workload."""
        if self.options.wml is not None:
            source = ["--wml", "-"]
        else:
            source = ["--personality", self.options.personality or DEFAULT_PERSONALITY]
        threads = [] if self.options.threads is None else ["--threads", str(self.options.threads)]
        return [*source, "--scale", repr(self.options.scale), *threads]

    def _program(self, stage: str, workspace: Workspace, time_limit_s: float, *words: str) -> Program:
        seed = ["--seed", str(self.options.seed)]
        where = ["--dir", str(workspace.directory)]
        argv = [str(self._ascard), "load", *self._source(), *seed, *where, *words]
        return Program(stage=stage, argv=argv, time_limit_s=time_limit_s, stdin=self._wml)

    def _describe(self) -> Description:
        """What the workload is, and whether `ascard load` understands it."""
        answer = self._ask("load", *self._source(), "--describe")
        try:
            return typed.decode(answer, Description)
        except msgspec.DecodeError as error:
            raise EnvironmentLacks(
                f"{self._ascard}: describes a workload in an unknown form ({error}): run `make setup`"
            ) from error

    def _ask(self, *words: str) -> bytes:
        try:
            done = subprocess.run(
                [self._ascard, *words], input=self._wml, capture_output=True, timeout=20, check=False
            )
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise EnvironmentLacks(f"{self._ascard}: cannot be run: {error}: run `make setup`") from error
        if done.returncode != 0:
            text = " ".join(done.stderr.decode("utf-8", "replace").split())[:500]
            if self.options.wml is not None:
                text = text.replace(" -: ", f" {self.options.wml}: ", 1)
            raise StudyError(f"workload: {text}")
        return done.stdout


def _read(path: str) -> bytes:
    advice = "give the path of a workload file"
    file = SmallFile(Path(path), f"workload.wml = {path!r}", STDIN_BYTES_MAX - 1, advice, StudyError)
    return file.content()
