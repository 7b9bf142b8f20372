"""fio as a load: a preset, inline options or a job file; unit readings while it runs."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.program import Program, check, run_program
from ascar.program.ceph import explained
from ascar.results.measurement import Readings
from ascar.small_file import SmallFile
from ascar.study import convert, duration
from ascar.workloads.fio_ceph import CephJobs
from ascar.workloads.fio_job import JOB_BYTES_MAX, FioJob, checked_options, parse_job
from ascar.workloads.fio_presets import PRESETS, preset_job
from ascar.workloads.fio_report import Documents, Totals, metric_names, read_totals, series_of, whole_run
from ascar.workspace import bytes_below

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

DEFAULT_PRESET = "small-files-fsync"
_NOTES_LENGTH_MAX = 2000


class FioOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "fio": exactly one of preset, options and job; without any, the default preset.

    Attributes:
        preset: a ready-made load.
        options: fio's own options, for one job.
        job: path of a fio job file.
        scale: times the preset's data.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: fio is killed when it runs so much longer than the load should.
    """

    preset: str | None = None
    options: dict[str, str | int | float | bool] | None = None
    job: str | None = None
    scale: float = 1.0
    fill_limit: str = "10 min"
    overrun_limit: str = "60 s"


class Fio:
    """The flexible I/O tester.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key, an option of fio, or a value is wrong.
        EnvironmentLacks: fio is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, FioOptions, "workload")
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        self.job = _job(self.options)
        self._version = _version()
        _parse_only(self.job)
        self._ceph = CephJobs.of(self.job)
        self._dataset_bytes = (self._ceph or self.job).dataset_bytes

    def describe(self) -> Mapping[str, Any]:
        """Program, version, jobs, and the size of the data (as laid out, once that has happened)."""
        return {
            "kind": "fio",
            "program": "fio",
            "version": self._version,
            "preset": self._preset,
            "scale": self.options.scale,
            "common": dict(self.job.common),
            "jobs": {name: dict(options) for name, options in self.job.sections.items()},
            "replaced": list(self.job.replaced),
            "loop": None if self.job.rated else "closed",
            "dataset_bytes": self._dataset_bytes,
        }

    @property
    def _preset(self) -> str | None:
        given = self.options
        return DEFAULT_PRESET if given.preset is given.options is given.job is None else given.preset

    @property
    def reported(self) -> frozenset[str]:
        """Rates and latencies of every kind of operation; latencies only of those that the jobs do."""
        return metric_names()

    def prepare(self, workspace: Workspace) -> None:
        """Lay out the files (fio's create_only), or write the objects or the image of a Ceph cluster.

        Raises:
            StageFailed: fio cannot, e.g. since the disk is full.
        """
        if self._ceph is not None:
            with explained(workspace.environment):
                self._fill(self._ceph, workspace)
            return
        # Files are made durable all at once when the target settles, unless the job wants each to be.
        job = replace(self.job, common={"create_fsync": "0", **self.job.common, "create_only": "1"})
        self._lay_out(self._program("fill", job, workspace, self._fill_limit_s), workspace)
        if workspace.node is None:
            self._dataset_bytes = bytes_below(workspace.directory)

    def _fill(self, ceph: CephJobs, workspace: Workspace) -> None:
        image = ceph.image(workspace, self._fill_limit_s)
        if image is not None:
            check(image, run_program(image, workspace, lambda _chunk, _seconds: False))
        self._lay_out(self._program("fill", ceph.fill(), workspace, self._fill_limit_s), workspace)

    def _lay_out(self, program: Program, workspace: Workspace) -> None:
        documents = Documents()
        found: list[dict[str, Any]] = []

        def hear(chunk: bytes, seconds: float) -> bool:  # noqa: ARG001
            found.extend(documents.feed(chunk))
            return False

        ended = run_program(program, workspace, hear)
        found.extend(documents.end())
        _check_jobs("fill", [totals for document in found if (totals := read_totals(document))])
        check(program, ended)

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Run the jobs on the files laid out."""
        timed = {"time_based": "1", "runtime": f"{round(pace.load_max_s * 1000)}ms"}
        program = self._program(
            "load",
            replace(self.job, common={**self.job.common, **timed}),
            workspace,
            pace.load_max_s + self._overrun_limit_s,
            [f"--status-interval={max(1, round(pace.reading_s * 1000))}ms"],
        )
        listener = _Listener(pace)
        with explained(workspace.environment):
            ended = run_program(program, workspace, listener)
            last = listener.finish()
            if last is not None:
                _check_jobs("load", [last])
            check(program, ended)
        if last is None or last.runtime_s <= 0:
            raise StageFailed("load", "fio reported nothing that can be read", ended.stderr)
        if ended.interrupted:
            why = "enough"
        else:
            why = "time" if last.runtime_s >= 0.95 * pace.load_max_s else "program"
        return Readings(
            series=series_of(listener.totals),
            metrics=whole_run(last),
            load_s=last.runtime_s,
            ended=why,
            notes=ended.stderr.strip()[-_NOTES_LENGTH_MAX:],
        )

    def _program(
        self,
        stage: str,
        job: FioJob,
        workspace: Workspace,
        time_limit_s: float,
        arguments: list[str] | None = None,
    ) -> Program:
        """What runs fio on the jobs, which it reads from its standard input."""
        place = {"directory": _directory(workspace)} if self._ceph is None else self._ceph.place(workspace)
        job = replace(job, common={**job.common, **place, "group_reporting": "1"})
        return Program(
            stage=stage,
            argv=["fio", "--output-format=json+", "--eta=never", *(arguments or []), "-"],
            time_limit_s=time_limit_s,
            stdin=job.text().encode(),
            # Its jobs are told by fio itself; a signal of their own would count as a failure of theirs.
            interrupt_group=False,
            environment={"LC_ALL": "C"},
        )


class _Listener:
    """Turns fio's output into totals, one a reading, and ends the load when there are enough."""

    def __init__(self, pace: LoadTiming) -> None:
        self.totals: list[Totals] = []
        self._pace = pace
        self._documents = Documents()
        self._latest: Totals | None = None

    def __call__(self, chunk: bytes, seconds: float) -> bool:  # noqa: ARG002
        """Whether the load may end."""
        fresh = False
        for document in self._documents.feed(chunk):
            fresh = self._take(document) or fresh
        if not fresh or not self._pace.asks(self.totals[-1].runtime_s):
            return False
        return self._pace.may_end(series_of(self.totals))

    def finish(self) -> Totals | None:
        """The totals of the whole run."""
        for document in self._documents.end():
            self._take(document)
        return self._latest

    def _take(self, document: dict[str, Any]) -> bool:
        """Keep a document's totals as a reading, unless its interval is too short for one."""
        totals = read_totals(document)
        if totals is None:
            return False
        self._latest = totals
        since_s = self.totals[-1].runtime_s if self.totals else 0.0
        if totals.runtime_s - since_s < 0.5 * self._pace.reading_s:
            return False
        self.totals.append(totals)
        return True


def _job(given: FioOptions) -> FioJob:
    """The jobs that the table asks for."""
    chosen = [
        name
        for name, value in (("preset", given.preset), ("options", given.options), ("job", given.job))
        if value is not None
    ]
    if len(chosen) > 1:
        raise StudyError(
            f"workload.{chosen[1]}: cannot be given together with workload.{chosen[0]}; give one of them"
        )
    if not 0.001 <= given.scale <= 10_000:
        raise StudyError(f"workload.scale = {given.scale!r}: must be from 0.001 to 10000")
    if given.scale != 1.0 and chosen not in ([], ["preset"]):
        raise StudyError(
            f"workload.scale = {given.scale!r}: applies only to presets; change nrfiles or size instead"
        )
    if given.options is not None:
        return FioJob(checked_options("workload.options", given.options), {"load": {}})
    if given.job is not None:
        return parse_job(f"workload.job = {given.job!r}", _read(given.job))
    name = given.preset or DEFAULT_PRESET
    if name not in PRESETS:
        raise StudyError(f"workload.preset = {name!r}: must be one of {', '.join(PRESETS)}")
    return preset_job(name, given.scale)


def _read(path: str) -> str:
    advice = "give the path of a fio job file"
    return SmallFile(Path(path), f"workload.job = {path!r}", JOB_BYTES_MAX, advice, StudyError).text()


def _version() -> str:
    """What `fio --version` says."""
    if shutil.which("fio") is None:
        raise EnvironmentLacks(
            "workload.kind = 'fio': the program fio is missing; install it: "
            "Debian `apt install fio`, Fedora `dnf install fio`"
        )
    return _ask_fio(["--version"], "").strip()


def _parse_only(job: FioJob) -> None:
    """Let fio itself judge the values.

    Raises:
        StudyError: what fio says about them.
    """
    if len(job.text()) > JOB_BYTES_MAX:
        raise StudyError(f"workload: the fio job is longer than {JOB_BYTES_MAX} characters")
    _ask_fio(["--parse-only", "-"], job.text())


def _ask_fio(arguments: list[str], stdin: str) -> str:
    try:
        done = subprocess.run(
            ["fio", *arguments], input=stdin, capture_output=True, text=True, timeout=60, cwd="/", check=False
        )
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EnvironmentLacks(f"workload.kind = 'fio': `fio {arguments[0]}` fails: {error}") from error
    if done.returncode != 0:
        words = " ".join(f"{done.stderr}\n{done.stdout}".split())[:300]
        raise StudyError(f"workload: fio {arguments[0]} refuses the job: {words}")
    return done.stdout


def _directory(workspace: Workspace) -> str:
    """The workspace's path in fio's own notation, where ":" separates several."""
    return str(workspace.directory).replace(":", "\\:")


def _check_jobs(stage: str, reported: list[Totals]) -> None:
    for totals in reported:
        if totals.error:
            name, number = totals.failed_job, totals.error
            hint = "; make the target larger or the load smaller" if number == errno.ENOSPC else ""
            raise StageFailed(stage, f"fio job {name!r}: {os.strerror(number)}{hint}")
