"""Replaying a workload file to compare it with what it stands for, by the instrument that recorded that."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ascar.errors import InputError, StageFailed
from ascar.features import (
    Trace,
    at_native_pace,
    features_of,
    parse_load_record,
    relative_differences,
    relative_distance,
)
from ascar.features.distance import SHARE_MIN
from ascar.program.node_binary import find_ascard
from ascar.results.workload import ReplayCheck
from ascar.workloads.recorder import ProcessTrace, RecorderOptions, record_process

if TYPE_CHECKING:
    from collections.abc import Generator

ALIKE = 0.1
"""A replay's features lie within this of the original's."""
_DEVIATIONS = "gap_s_relative_sd"  # of gaps in time a signature reproduces the mean alone
_FILL_S_MAX = 1800.0
_PACE_S_MAX = 5.0
_LOOK_S = 0.02
_END_S = 5.0
_FOR_LONG_S = 31_622_400


def check_replay(wml: str, original: Trace, recorded_by: str, directory: Path, seconds: float) -> ReplayCheck:
    """Replay a signature, and compare its features with those of what it was made from.

    Args:
        wml: the workload file of the signature.
        original: the operations that it was made from.
        recorded_by: what recorded these: "strace", which slows a process down, "load" (the record of
            `ascard load`), or another program.
        directory: a directory in which files can be made.
        seconds: the length of the replay.

    Raises:
        EnvironmentLacks: there is no `ascard`, or no strace where the original was recorded by it.
        InputError: `directory` is none, or cannot be written.
        StageFailed: the load failed.
    """
    # Recording slows a load: the replay is recorded by what recorded the original.
    if recorded_by == "strace":
        other = replay_watched(wml, directory, seconds).trace
    else:
        other = replay(wml, directory, seconds, recorded=recorded_by == "load")
    features, others = features_of(original), features_of(other)
    differences = relative_differences(features, others, share_min=SHARE_MIN)
    far = (
        name
        for name, difference in differences.items()
        if not difference <= ALIKE and not name.endswith(_DEVIATIONS)
    )
    return ReplayCheck(
        directory=str(directory),
        differences=differences,
        far=tuple(sorted(far)),
        distance=relative_distance(features, others),
    )


def replay_watched(wml: str, directory: Path, seconds: float) -> ProcessTrace:
    """Run a workload file by `ascard load`, and record it as a process: by strace, its pace counted as well.

    What tracing does to a process it does to the replay too: gaps in time are compared like with like.
    The files are made in a fresh directory inside `directory`, and removed at the end.

    Raises:
        EnvironmentLacks: there is no `ascard` or no strace, or it may not trace.
        InputError: `directory` is none, or cannot be written.
        StageFailed: the load failed.
    """
    with _fresh(directory) as place, _Load(find_ascard(), wml, place).running() as pid:
        return record_process(pid, RecorderOptions(seconds, under=place))


def replay(wml: str, directory: Path, seconds: float, *, recorded: bool = False) -> Trace:
    """Run a workload file by `ascard load`, and give back its own record.

    Recording takes time too: the fastest loads do a quarter less meanwhile. So a second run, of 5 s at most,
    goes without, and times are divided by what it was faster; unless the original was recorded so as well.
    Files are made and removed as by `replay_watched`.

    Args:
        wml: the workload file.
        directory: a directory in which files can be made.
        seconds: the length of the replay.
        recorded: the original is such a record, with the time that recording takes.

    Raises:
        EnvironmentLacks: there is no `ascard`.
        InputError: `directory` is none, or cannot be written.
        StageFailed: the load failed.
    """
    ascard = find_ascard()
    with _fresh(directory) as place:
        record = place / "record.csv"
        load = _Load(ascard, wml, place)
        with_record = load.run(seconds, "--record", str(record))
        trace = parse_load_record(record.read_bytes())
        if recorded:
            return trace
        plain = load.run(min(seconds, _PACE_S_MAX), "--no-fill")
    return at_native_pace(trace, plain / with_record if with_record > 0 else 1.0)


@contextmanager
def _fresh(directory: Path) -> Generator[Path]:
    """A new directory inside another, removed with all that is in it."""
    try:
        place = tempfile.TemporaryDirectory(prefix="ascar-replay-", dir=directory)
    except OSError as error:
        raise InputError(f"{str(directory)!r}: no files can be made there: {error.strerror}") from error
    with place as name:
        yield Path(name)


@dataclass(frozen=True, slots=True)
class _Load:
    """A workload file and where it runs."""

    ascard: Path
    wml: str
    directory: Path

    def _command(self, seconds: float, *words: str) -> list[str]:
        where = ["--wml", "-", "--dir", str(self.directory)]
        return [str(self.ascard), "load", *where, "--seconds", f"{seconds:.3f}", *words]

    @contextmanager
    def running(self) -> Generator[int]:
        """Run it until it is no longer needed; its process id, once it runs."""
        # Its readings go to a file: a pipe that nobody reads would hold it up.
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as errors,
            subprocess.Popen(
                self._command(_FOR_LONG_S, "--reading-ms", "100"),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            ) as process,
        ):
            try:
                assert process.stdin is not None
                with suppress(BrokenPipeError):  # it ended at once, and says why
                    process.stdin.write(self.wml.encode())
                with suppress(BrokenPipeError):
                    process.stdin.close()
                end_s = time.monotonic() + _FILL_S_MAX
                while not _has_begun(out):
                    if process.poll() is not None or time.monotonic() > end_s:
                        errors.seek(0)
                        text = errors.read().decode("utf-8", "replace").strip()
                        raise StageFailed("replay", " ".join(text.split())[:500] or "it did not begin", text)
                    time.sleep(_LOOK_S)
                yield process.pid
            finally:
                process.terminate()
                try:
                    process.wait(_END_S)
                except subprocess.TimeoutExpired:
                    process.kill()

    def run(self, seconds: float, *words: str) -> float:
        """Run it; operations on files a second."""
        command = self._command(seconds, *words)
        try:
            done = subprocess.run(
                command,
                input=self.wml.encode(),
                capture_output=True,
                timeout=seconds + _FILL_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise StageFailed("replay", f"ascard load took longer than {late.timeout:g} s") from late
        if done.returncode != 0:
            errors = done.stderr.decode("utf-8", "replace").strip()
            raise StageFailed("replay", " ".join(errors.split())[:500], errors)
        summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return float(summary["throughput_ops_per_s"])


def _has_begun(out: IO[bytes]) -> bool:
    """Whether the load has told a reading."""
    content = os.pread(out.fileno(), 2**16, 0)
    return b'"kind":"reading"' in content
