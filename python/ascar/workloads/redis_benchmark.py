"""redis-benchmark, Redis' own benchmark (Redis documentation, "Redis benchmark"): rounds of commands.

A reading is one round of each command of the mix, of so many requests as take about the time of a reading.
The benchmark is a closed loop: each connection sends its next pipeline when the last has been answered, so
that a server that stalls is asked less, and percentiles are those of requests that were sent.
"""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.errors import StageFailed
from ascar.program import Program, check, run_program
from ascar.program.redis import RedisPrograms
from ascar.results.measurement import Readings, Series
from ascar.study import check_limits, convert, duration
from ascar.workloads.latencies import REPORTED
from ascar.workloads.redis_report import BenchmarkRound, LatencyTally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ascar.workloads import LoadTiming
    from ascar.workspace import Workspace

_DATA = "__data__"
_MIXES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "strings": (("SET", "key:__rand_int__", _DATA), ("GET", "key:__rand_int__")),
    "writes": (("SET", "key:__rand_int__", _DATA),),
    "reads": (("GET", "key:__rand_int__"),),
    "hashes": (
        ("HSET", "hash:__rand_int__", "field:__rand_int__", _DATA),
        ("HGET", "hash:__rand_int__", "field:__rand_int__"),
    ),
}
_LIMITS = {
    "keys": (1, 100_000_000),
    "value_bytes": (1, 100_000),  # of one argument of a program (execve(2))
    "clients": (1, 10_000),
    "pipeline": (1, 1000),
    "threads": (0, 64),
}
_ROUND_S_MIN = 0.05
_FILL_CHUNK_BYTES = 1 << 20


class RedisBenchmarkOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]` of kind "redis-benchmark".

    Attributes:
        mix: the commands, which take turns: "strings" (SET and GET), "writes", "reads", or "hashes" (HSET and
            HGET on as many hashes as each has fields).
        keys: the values that the fill writes and the load asks for at random.
        value_bytes: the size of each value.
        clients: the connections.
        pipeline: the requests that each connection sends at once.
        threads: the threads of the benchmark. 0: none but its own.
        fill_limit: the fill is killed when it takes longer.
        overrun_limit: a round is killed when it takes so much longer than it should.
    """

    mix: Literal["strings", "writes", "reads", "hashes"] = "strings"
    keys: int = 100_000
    value_bytes: int = 200
    clients: int = 50
    pipeline: int = 1
    threads: int = 0
    fill_limit: str = "30 min"
    overrun_limit: str = "60 s"


class RedisBenchmark:
    """The load.

    Args:
        options: the `[workload]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: redis-benchmark is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, RedisBenchmarkOptions, "workload")
        check_limits("workload", self.options, _LIMITS)
        self._fill_limit_s = duration("workload.fill_limit", self.options.fill_limit)
        self._overrun_limit_s = duration("workload.overrun_limit", self.options.overrun_limit)
        self._programs = RedisPrograms.find()
        self._benchmark, self._client = self._programs.path("benchmark"), self._programs.path("cli")

    def describe(self) -> Mapping[str, Any]:
        """The version of the benchmark, its options, and how large the values are in all."""
        names = ("mix", "keys", "value_bytes", "clients", "pipeline", "threads")
        return {
            "kind": "redis-benchmark",
            "program": f"{self._programs.flavour}-benchmark",
            "version": self._programs.version,
            **{name: getattr(self.options, name) for name in names},
            "loop": "closed",
            "dataset_bytes": self.options.keys * self.options.value_bytes,
        }

    @property
    def reported(self) -> frozenset[str]:
        """Rates and latencies of requests."""
        return REPORTED

    def prepare(self, workspace: Workspace) -> None:
        """Write every value once.

        Raises:
            StageFailed: the server refuses it, e.g. since they do not fit into its memory.
        """
        socket = _socket(workspace)
        path = workspace.directory / "fill"
        with path.open("wb") as file:
            file.writelines(self._commands())
        path.chmod(0o644)
        # The script is constant, and the words come as arguments.
        words = ["/bin/sh", "-c", 'exec "$0" -s "$1" --pipe <"$2"', self._client, socket, str(path)]
        said = bytearray()

        def hear(chunk: bytes, _: float) -> bool:
            said.extend(chunk[: 1 << 16])
            return False

        try:
            program = Program("fill", words, self._fill_limit_s)
            ended = run_program(program, workspace, hear)
            text = bytes(said).decode("utf-8", "replace")
            if ended.status != 0 or not re.search(r"errors: 0, replies: [1-9]", text):
                lines = [line for line in (text + ended.stderr).splitlines() if line.strip()]
                refused = [line for line in lines if re.match(r"[A-Z]{3,} ", line)] or lines or ["failed"]
                raise StageFailed("fill", f"redis-cli --pipe: {refused[0][:300]}", text + ended.stderr)
        finally:
            path.unlink()

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Do rounds of requests.

        Raises:
            StageFailed: the benchmark fails, or tells nothing.
        """
        socket = _socket(workspace)
        mix = _MIXES[self.options.mix]
        counts = [self._first(command, socket, workspace, pace.reading_s / len(mix)) for command in mix]
        tally, at_s, rates, means = LatencyTally(), list[float](), list[float](), list[float]()
        begun_s, seconds, enough = time.monotonic(), 0.0, False
        while seconds < pace.load_max_s and not enough:
            each_s = min(pace.reading_s, max(_ROUND_S_MIN, pace.load_max_s - seconds)) / len(mix)
            asked, busy_s, weighted_ms = 0, 0.0, 0.0
            for at, command in enumerate(mix):
                found = self._round(command, counts[at], socket, workspace, each_s)
                tally.add(found)
                asked, busy_s = asked + counts[at], busy_s + found.busy_s
                weighted_ms += counts[at] * found.mean_ms
                counts[at] = _requests(found, each_s, self.options.clients * self.options.pipeline)
            seconds = time.monotonic() - begun_s
            at_s.append(seconds)
            rates.append(asked / busy_s)
            means.append(weighted_ms / asked)
            enough = pace.asks(seconds) and pace.may_end(_series(at_s, rates, means))
        metrics = {**tally.metrics(), "latency_ms_mean": tally.mean_ms()}
        return Readings(_series(at_s, rates, means), metrics, seconds, "enough" if enough else "time")

    def _first(self, command: tuple[str, ...], socket: str, workspace: Workspace, each_s: float) -> int:
        """The requests of a command that take about `each_s`, found by short rounds that do not count."""
        least = self.options.clients * self.options.pipeline
        found = self._round(command, least, socket, workspace, each_s)
        while found.busy_s < each_s / 8:
            found = self._round(command, 4 * found.requests, socket, workspace, each_s)
        return _requests(found, each_s, least)

    def _round(
        self, command: tuple[str, ...], requests: int, socket: str, workspace: Workspace, each_s: float
    ) -> BenchmarkRound:
        given = self.options
        words = [self._benchmark, "-s", socket, "-n", str(requests), "-r", str(self._range)]
        words += ["-c", str(given.clients), "-P", str(given.pipeline)]
        if given.threads:
            words += ["--threads", str(given.threads)]
        said = bytearray()

        def hear(chunk: bytes, _: float) -> bool:
            said.extend(chunk)
            return False

        limit_s = 10 * each_s + self._overrun_limit_s
        # The benchmark's option for the size of values is for its own commands alone.
        asked = ["x" * given.value_bytes if word == _DATA else word for word in command]
        ended = run_program(Program("load", [*words, *asked], limit_s), workspace, hear)
        text = bytes(said).decode("utf-8", "replace")
        told = [line for line in (text + ended.stderr).replace("\r", "\n").splitlines() if "rror" in line]
        if told:
            raise StageFailed("load", f"redis-benchmark: {told[0].strip()[:300]}", text)
        check(Program("load", words, limit_s), ended)
        return BenchmarkRound.read(text, requests)

    @property
    def _range(self) -> int:
        """The numbers that stand for __rand_int__: of keys, or of hashes and of fields."""
        keys = self.options.keys
        return max(1, math.isqrt(keys)) if self.options.mix == "hashes" else keys

    def _commands(self) -> Iterator[bytes]:
        """The fill in the server's protocol, in pieces."""
        value = b"x" * self.options.value_bytes
        numbers = [b"%012d" % number for number in range(self._range)]
        if self.options.mix == "hashes":
            pairs = ((b"hash:" + one, b"field:" + two) for one in numbers for two in numbers)
            commands = (_request(b"HSET", one, two, value) for one, two in pairs)
        else:
            commands = (_request(b"SET", b"key:" + one, value) for one in numbers)
        piece = bytearray()
        for command in commands:
            piece += command
            if len(piece) >= _FILL_CHUNK_BYTES:
                yield bytes(piece)
                piece.clear()
        yield bytes(piece)


def _requests(found: BenchmarkRound, each_s: float, least: int) -> int:
    """The requests that take about `each_s`, at the pace of a round."""
    return max(least, round(found.requests * each_s / max(found.busy_s, 1e-6)))


def _series(at_s: list[float], rates: list[float], means: list[float]) -> dict[str, Series]:
    return {
        "throughput_ops_per_s": Series.of(at_s, rates),
        "latency_ms_mean": Series.of(at_s, means),
    }


def _request(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def _socket(workspace: Workspace) -> str:
    found = workspace.environment.get("REDIS_SOCKET")
    if found is None:
        raise StageFailed(
            "load", "redis-benchmark: the target has no Redis server; it needs target.kind = 'redis'"
        )
    return found
