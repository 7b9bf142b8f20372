"""db_bench, RocksDB's own benchmark (RocksDB wiki, "Benchmarking tools"): operations on a database.

A reading is one round: the same benchmark, again and again in one process that has the database open, each
for the time of a reading and with its own histogram. So a load that has told enough ends early, with its
percentiles. db_bench is a closed loop: each thread begins its next operation when the last has ended.

Whether a write is synced before it counts is the load's, as it is the application's: `sync` is no parameter,
and no configuration changes it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.errors import StageFailed, StudyError
from ascar.program import Program, check, run_program
from ascar.program.rocksdb import DATABASE, OPTIONS, RocksPrograms
from ascar.results.measurement import Readings, Series
from ascar.study import check_limits, convert, duration
from ascar.workloads.db_bench_report import BenchRound, rounds_of, tally_of
from ascar.workloads.latencies import REPORTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.program import ProgramExit
    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

_LIMITS = {
    "keys": (1, 100_000_000_000),
    "key_bytes": (8, 1024),
    "value_bytes": (1, 2**20),
    "threads": (1, 1024),
    "read_percent": (0, 100),
    "seek_nexts": (0, 1_000_000),
    "seed": (0, 2**31 - 2),
}
_RATE_MAX = 2**50
_ROUNDS_MAX = 1000
_OUTPUT_BYTES_MAX = 64 << 20


class DbBenchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "db_bench".

    Attributes:
        benchmark: the operations, by db_bench's own name.
        fill: how the database is filled, by db_bench's own name; "filluniquerandom" writes each key once.
        keys: the keys.
        key_bytes: the size of each key.
        value_bytes: the size of each value.
        compression_ratio: the share of a value that is left of it once it is compressed.
        threads: the threads that do operations; some benchmarks have one more that writes.
        sync: whether each write is on disk before the next begins; false: it is in the log of the kernel's
            cache, as RocksDB has it unless an application asks for more.
        read_percent: the share of reads in "readrandomwriterandom".
        seek_nexts: the entries that a seek reads on.
        write_bytes_per_s: the bytes that all writers may write a second. None: as many as they can.
        seed: the seed of random numbers.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: the load is killed when it runs so much longer than it should.
    """

    benchmark: Literal[
        "readwhilewriting",
        "readrandom",
        "multireadrandom",
        "readrandomwriterandom",
        "overwrite",
        "updaterandom",
        "seekrandom",
        "seekrandomwhilewriting",
    ] = "readwhilewriting"
    fill: Literal["filluniquerandom", "fillrandom", "fillseq"] = "filluniquerandom"
    keys: int = 1_000_000
    key_bytes: int = 16
    value_bytes: int = 400
    compression_ratio: float = 0.5
    threads: int = 4
    sync: bool = False
    read_percent: int = 90
    seek_nexts: int = 10
    write_bytes_per_s: int | None = None
    seed: int = 0
    fill_limit: str = "30 min"
    overrun_limit: str = "60 s"


class DbBench:
    """The load.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: db_bench is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, DbBenchOptions, "workload")
        check_limits("workload", self.options, _LIMITS)
        ratio, rate = self.options.compression_ratio, self.options.write_bytes_per_s
        if not 0 < ratio <= 1:
            raise StudyError(f"workload.compression_ratio = {ratio!r}: must be above 0 and at most 1")
        if rate is not None and not 1 <= rate <= _RATE_MAX:
            raise StudyError(f"workload.write_bytes_per_s = {rate!r}: must be from 1 to {_RATE_MAX}")
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        self._programs = RocksPrograms.find()

    def describe(self) -> Mapping[str, Any]:
        """The version of db_bench, its options, and how large keys and values are in all."""
        names = [name for name in DbBenchOptions.__struct_fields__ if not name.endswith("_limit")]
        given = self.options
        return {
            "kind": "db_bench",
            "program": "db_bench",
            "version": self._programs.version,
            **{name: getattr(given, name) for name in names},
            "loop": "closed",
            "dataset_bytes": given.keys * (given.key_bytes + given.value_bytes),
        }

    @property
    def reported(self) -> frozenset[str]:
        """Rates and latencies of operations."""
        return REPORTED

    def prepare(self, workspace: Workspace) -> None:
        """Make the database and its keys.

        Raises:
            StageFailed: RocksDB fails, e.g. since the disk is full.
        """
        words = [*self._shared(workspace), "--use_existing_db=0", "--threads=1"]
        words.append(f"--benchmarks={self.options.fill}")
        self._run(Program("fill", words, self._fill_limit_s), workspace, None)

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Do operations.

        Raises:
            StageFailed: RocksDB fails, or tells nothing.
        """
        given = self.options
        round_s = max(1, round(pace.reading_s), math.ceil(pace.load_max_s / _ROUNDS_MAX))
        count = max(1, math.ceil(pace.load_max_s / round_s - 1e-9))
        said, heard, known = bytearray(), 0, list[BenchRound]()

        def hear(chunk: bytes, _: float) -> bool:
            nonlocal heard
            said.extend(chunk[: _OUTPUT_BYTES_MAX - len(said)])
            if not said.endswith(b"\n\n"):
                return False  # in the midst of a round
            fresh = rounds_of(said[heard:].decode("utf-8", "replace"), round_s)
            heard = len(said)
            known.extend(fresh)
            asked = pace.asks(sum(one.seconds for one in known))
            return bool(fresh) and asked and pace.may_end(_series(known))

        words = [*self._shared(workspace), "--use_existing_db=1", f"--threads={given.threads}"]
        words += [f"--duration={round_s}", "--ops_between_duration_checks=1", f"--sync={int(given.sync)}"]
        words += [f"--readwritepercent={given.read_percent}", f"--seek_nexts={given.seek_nexts}"]
        words += [f"--benchmark_write_rate_limit={given.write_bytes_per_s or 0}"]
        words += [f"--benchmarks={','.join([given.benchmark] * count)}"]
        limit_s = count * round_s + self._overrun_limit_s
        ended = self._run(Program("load", words, limit_s), workspace, hear)
        text = said.decode("utf-8", "replace")
        rounds = rounds_of(text, round_s)
        metrics = tally_of(rounds).metrics()
        if not rounds or not metrics:
            raise StageFailed("load", "db_bench: no operation ended", text[-2000:] + ended.stderr)
        operations, load_s = sum(one.operations for one in rounds), sum(one.seconds for one in rounds)
        metrics |= {"operations": operations, "throughput_ops_per_s": operations / load_s}
        return Readings(_series(rounds), metrics, load_s, "enough" if ended.interrupted else "time")

    def _shared(self, workspace: Workspace) -> list[str]:
        """The command, with the options of the fill and of the load."""
        known, given = workspace.environment, self.options
        if DATABASE not in known:
            raise StageFailed(
                "load", "db_bench: the target has no RocksDB database; it needs target.kind = 'rocksdb'"
            )
        return [
            *self._programs.opening(Path(known[DATABASE]), Path(known[OPTIONS])),
            *("--histogram=1", "--progress_reports=0", f"--seed={given.seed + 1}"),
            *(f"--num={given.keys}", f"--key_size={given.key_bytes}", f"--value_size={given.value_bytes}"),
            f"--compression_ratio={given.compression_ratio}",
        ]

    def _run(self, program: Program, workspace: Workspace, hear: Any) -> ProgramExit:
        ended = run_program(program, workspace, hear)
        check(program, ended)
        return ended


def _series(rounds: Sequence[BenchRound]) -> dict[str, Series]:
    at_s, seconds = list[float](), 0.0
    for one in rounds:
        seconds += one.seconds
        at_s.append(seconds)
    return {
        "throughput_ops_per_s": Series.of(at_s, [one.rate for one in rounds]),
        "latency_ms_mean": Series.of(at_s, [one.mean_ms for one in rounds]),
    }
