"""pgbench, PostgreSQL's own benchmark (manual, "pgbench"): built-in transactions or a script of SQL."""

from __future__ import annotations

import math
import os
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from ascar.errors import StageFailed, StudyError
from ascar.program import Harvest, Program, check, run_program
from ascar.program.extraction import Pattern
from ascar.program.postgresql import Programs
from ascar.results.measurement import Readings
from ascar.study import check_limits, convert, duration
from ascar.workloads.latencies import REPORTED, SHARES
from ascar.workloads.open_loop import loop_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

_LIMITS = {"scale": (1, 100_000), "clients": (1, 10_000), "seed": (0, 2**31 - 1)}
_RATE_MAX_PER_S = 1e7
_LOG = "pgbench_log"
_LOG_LINES_MAX = 20_000_000
_BYTES_PER_SCALE = 16 * 2**20
# pgbench tells its progress on standard error. The script is constant, and the command comes as positional
# arguments, so no shell ever parses a user's string.
_HEARD = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")
_PROGRESS = {
    "throughput_ops_per_s": Pattern(re.compile(r"^progress: .* ([0-9.]+) tps,")),
    "latency_ms_mean": Pattern(re.compile(r"^progress: .* lat ([0-9.]+) ms")),
}
_ERROR, _ABORTED = "error: ", "Run was aborted"
_SECOND = Pattern(re.compile(r"^progress: ([0-9.]+) s,"))


class PgbenchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "pgbench".

    Attributes:
        scale: the size of the data: about 16 MiB for each, 100,000 accounts.
        clients: the concurrent connections.
        script: a built-in script, or the path of a file of SQL in pgbench's language.
        rate_per_s: transactions that arrive a second at random times; latencies count from the arrival.
            None: each client begins one as soon as its last has ended.
        protocol: how statements are sent.
        seed: the seed of random numbers.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: the load is killed when it runs so much longer than it should.
    """

    scale: int = 10
    clients: int = 8
    script: str = "tpcb-like"
    rate_per_s: float | None = None
    protocol: Literal["simple", "extended", "prepared"] = "prepared"
    seed: int = 0
    fill_limit: str = "30 min"
    overrun_limit: str = "60 s"


_BUILT_IN = ("tpcb-like", "simple-update", "select-only")


class Pgbench:
    """The load.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: pgbench is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, PgbenchOptions, "workload")
        self._check()
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        self._programs = Programs.find()
        self._pgbench = self._programs.path("pgbench")

    def describe(self) -> Mapping[str, Any]:
        """The version of pgbench, its options, and about how large the data is."""
        return {
            "kind": "pgbench",
            "program": "pgbench",
            "version": self._programs.version,
            **{
                name: getattr(self.options, name)
                for name in ("scale", "clients", "script", "rate_per_s", "seed")
            },
            "loop": loop_of(self.options.rate_per_s),
            "dataset_bytes": self.options.scale * _BYTES_PER_SCALE,
        }

    @property
    def reported(self) -> frozenset[str]:
        """Rates and latencies of transactions."""
        return REPORTED

    def prepare(self, workspace: Workspace) -> None:
        """Make the tables and their rows."""
        words = ["-i", "-q", "-s", str(self.options.scale)]
        program = Program("fill", [self._pgbench, *words], self._fill_limit_s)
        check(program, run_program(program, workspace))

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Do transactions."""
        readings = Harvest(_PROGRESS, time=_SECOND)

        def hear(chunk: bytes, seconds: float) -> bool:
            fresh = readings.feed(chunk, seconds)
            return fresh and pace.asks(seconds) and pace.may_end(readings.series())

        for old in workspace.directory.glob(f"{_LOG}.*"):
            old.unlink()
        given = self.options
        words = ["-n", "-l", f"--log-prefix={_LOG}", f"--random-seed={given.seed}", "-M", given.protocol]
        words += ["-c", str(given.clients), "-j", str(min(given.clients, os.cpu_count() or 1))]
        words += ["-T", str(max(1, math.ceil(pace.load_max_s))), "-P", str(max(1, round(pace.reading_s)))]
        words += (
            ["-b", given.script] if given.script in _BUILT_IN else ["-f", str(Path(given.script).absolute())]
        )
        if given.rate_per_s is not None:
            words += ["-R", f"{given.rate_per_s:g}"]
        program = Program("load", [*_HEARD, self._pgbench, *words], pace.load_max_s + self._overrun_limit_s)
        ended = run_program(program, workspace, hear)
        if not ended.interrupted and ended.status != 0:
            raise StageFailed("load", f"pgbench: {_reason(readings.tail())}", "\n".join(readings.tail()))
        metrics, load_s = _of_log(workspace.directory)
        return Readings(readings.series(), metrics, load_s, "enough" if ended.interrupted else "time")

    def _check(self) -> None:
        given = self.options
        check_limits("workload", given, _LIMITS)
        if given.rate_per_s is not None and not 0 < given.rate_per_s <= _RATE_MAX_PER_S:
            raise StudyError(
                f"workload.rate_per_s = {given.rate_per_s!r}: must be above 0 and at most {_RATE_MAX_PER_S:g}"
            )
        if given.script not in _BUILT_IN and not os.path.isfile(given.script):  # noqa: PTH113 - False for any text
            raise StudyError(
                f"workload.script = {given.script!r}: must be one of {', '.join(_BUILT_IN)}, or a file of SQL"
            )


def _reason(lines: list[str]) -> str:
    """The line that says why it failed, of the first client that did; the last one only says that it did."""
    errors = [line for line in lines if _ERROR in line and _ABORTED not in line]
    said = errors[0].partition(_ERROR)[2] if errors else next(reversed(lines), "failed")
    return " ".join(said.split())[:300]


def _of_log(directory: Path) -> tuple[dict[str, float], float]:
    """The metrics of all transactions in the logs (manual, "Per-Transaction Logging"), and their time.

    Raises:
        StageFailed: no transaction ended.
    """
    latencies_us: list[float] = []
    ends_us: list[float] = []
    for path in sorted(directory.glob(f"{_LOG}.*")):
        with path.open("rb") as log:
            for line in islice(log, _LOG_LINES_MAX):
                words = line.split()
                # The last line of a load that was ended early may be cut off; what failed tells no time.
                if len(words) >= 6 and line.endswith(b"\n") and words[2].isdigit():
                    latencies_us.append(float(words[2]))
                    ends_us.append(float(words[4]) * 1e6 + float(words[5]))
        path.unlink()
    if len(ends_us) < 2 or max(ends_us) <= min(ends_us):
        raise StageFailed("load", "pgbench: hardly a transaction ended")
    latencies_ms = np.asarray(latencies_us) / 1000
    load_s = (max(ends_us) - min(ends_us)) / 1e6
    metrics = {
        "operations": float(len(ends_us)),
        "throughput_ops_per_s": (len(ends_us) - 1) / load_s,
        "latency_ms_mean": float(latencies_ms.mean()),
        **{f"latency_ms_{name}": float(np.quantile(latencies_ms, share)) for name, share in SHARES},
        "latency_ms_max": float(latencies_ms.max()),
    }
    return metrics, load_s
