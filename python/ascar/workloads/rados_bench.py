"""`rados bench`, Ceph's own benchmark of a pool (rados(8)): objects written, or read at random.

A reading is a second. The benchmark is a closed loop: each of so many operations is followed by the next when
it has ended. It tells mean latencies, and no percentiles.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.errors import StageFailed
from ascar.program import Program, check, run_program
from ascar.program.ceph import CephPrograms, cluster_of, explained
from ascar.results.measurement import Readings, Series
from ascar.study import check_limits, convert, duration
from ascar.workloads.rados_bench_report import BenchMoment, intervals_of, made_of, moments_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

_FILL, _LOAD = "ascar-fill", "ascar-load"
_LIMITS = {
    "objects": (1, 10_000_000),
    "object_bytes": (1, 64 << 20),
    "operations": (1, 4096),
}
_OUTPUT_BYTES_MAX = 64 << 20
_MIB = 1 << 20


class RadosBenchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "rados-bench".

    Attributes:
        benchmark: what the load does: "write", which writes new objects, or "rand", which reads those of the
            fill at random, and compares what it reads.
        objects: the objects that the fill writes.
        object_bytes: the size of each object; an operation writes or reads all of it.
        operations: the operations that are on their way at once.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: the load is killed when it runs so much longer than it should.
    """

    benchmark: Literal["write", "rand"] = "write"
    objects: int = 10_000
    object_bytes: int = 4096
    operations: int = 16
    fill_limit: str = "30 min"
    overrun_limit: str = "60 s"


class RadosBench:
    """The load.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: Ceph is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, RadosBenchOptions, "workload")
        check_limits("workload", self.options, _LIMITS)
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        self._programs = CephPrograms.find()

    def describe(self) -> Mapping[str, Any]:
        """The version of the benchmark, its options, and how large the objects are in all."""
        given = self.options
        return {
            "kind": "rados-bench",
            "program": "rados",
            "version": self._programs.version,
            "benchmark": given.benchmark,
            **{name: getattr(given, name) for name in _LIMITS},
            "loop": "closed",
            "dataset_bytes": given.objects * given.object_bytes,
        }

    @property
    def reported(self) -> frozenset[str]:
        """Rates, and the mean latency of operations."""
        return frozenset({"throughput_ops_per_s", "throughput_mib_per_s", "operations", "latency_ms_mean"})

    def prepare(self, workspace: Workspace) -> None:
        """Write the objects.

        Raises:
            StageFailed: the cluster does not take them, e.g. since it is full.
        """
        seconds = max(1, math.ceil(self._fill_limit_s))
        words = [*self._shared(workspace), "bench", str(seconds), "write", *self._sizes(_FILL)]
        words += ["--max-objects", str(self.options.objects)]
        text = self._run(Program("fill", words, self._fill_limit_s + self._overrun_limit_s), workspace, None)
        made = made_of(text)
        if made != self.options.objects:
            problem = f"rados bench: wrote {made or 0} of {self.options.objects} objects"
            raise StageFailed("fill", problem, text[-2000:])

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Do operations.

        Raises:
            StageFailed: the cluster fails, or none ended.
        """
        seconds = max(1, math.ceil(pace.load_max_s - 1e-9))
        said, rows, interrupted = bytearray(), list[BenchMoment](), False

        def hear(chunk: bytes, _: float) -> bool:
            nonlocal interrupted
            said.extend(chunk[: _OUTPUT_BYTES_MAX - len(said)])
            if not said.endswith(b"\n"):
                return False  # in the midst of a row
            rows[:] = moments_of(said.decode("utf-8", "replace"))
            asked = len(rows) > 1 and pace.asks(rows[-1].seconds)
            interrupted = asked and pace.may_end(_series(rows))
            return interrupted

        words = [*self._shared(workspace), "bench", str(seconds), self.options.benchmark]
        words += self._sizes(_LOAD) if self.options.benchmark == "write" else self._common(_FILL)
        self._run(Program("load", words, seconds + self._overrun_limit_s), workspace, hear)
        text = said.decode("utf-8", "replace")
        rows[:] = moments_of(text)
        if len(rows) < 2 or not rows[-1].finished:
            raise StageFailed("load", "rados bench: no operation ended", text[-2000:])
        last = rows[-1]
        rate = last.finished / last.seconds
        metrics = {
            "operations": float(last.finished),
            "throughput_ops_per_s": rate,
            "throughput_mib_per_s": rate * self.options.object_bytes / _MIB,
            "latency_ms_mean": last.mean_s * 1e3,
        }
        return Readings(_series(rows), metrics, last.seconds, "enough" if interrupted else "time")

    def _shared(self, workspace: Workspace) -> list[str]:
        configuration, pool = cluster_of(workspace.environment, "rados bench")
        return [self._programs.path("rados"), "-c", configuration, "-p", pool]

    def _sizes(self, run: str) -> list[str]:
        size = str(self.options.object_bytes)
        return ["-b", size, "-O", size, *self._common(run), "--no-cleanup"]

    def _common(self, run: str) -> list[str]:
        return ["-t", str(self.options.operations), "--run-name", run]

    def _run(self, program: Program, workspace: Workspace, hear: Any) -> str:
        said = bytearray()

        def keep(chunk: bytes, _: float) -> bool:
            said.extend(chunk[: _OUTPUT_BYTES_MAX - len(said)])
            return False

        with explained(workspace.environment):
            check(program, run_program(program, workspace, keep if hear is None else hear))
        return said.decode("utf-8", "replace")


def _series(rows: Sequence[BenchMoment]) -> dict[str, Series]:
    steps = intervals_of(rows)
    told = [(one.seconds, one.mean_ms) for one in steps if one.mean_ms is not None]
    return {
        "throughput_ops_per_s": Series.of([one.seconds for one in steps], [one.rate for one in steps]),
        "latency_ms_mean": Series.of([at_s for at_s, _ in told], [mean_ms for _, mean_ms in told]),
    }
