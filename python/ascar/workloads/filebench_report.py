"""What `ascard load` reports: a line of JSON a reading, and a summary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.results.measurement import Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LINE_BYTES_MAX = 16 * 2**20
_THROUGHPUTS = ("throughput_ops_per_s", "bytes_per_s", "read_bytes_per_s", "write_bytes_per_s")
_LATENCIES = ("latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_p99", "latency_ms_max")
_FILE_TYPES = frozenset(
    [
        "aiowrite",
        "appendfile",
        "appendfilerand",
        "closefile",
        "createfile",
        "deletefile",
        "fsync",
        "fsyncset",
        "openfile",
        "read",
        "readwholefile",
        "statfile",
        "write",
        "writewholefile",
    ]
)


class FlowopReport(msgspec.Struct, frozen=True):
    """What one flowop did; latencies are None without an operation."""

    type: str
    ops: int
    bytes: int
    latency_ms_mean: float | None = None
    latency_ms_p50: float | None = None
    latency_ms_p95: float | None = None
    latency_ms_p99: float | None = None
    latency_ms_max: float | None = None


class Report(msgspec.Struct, frozen=True):
    """What all flowops together did in some time."""

    ops: int
    bytes: int
    throughput_ops_per_s: float
    bytes_per_s: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    flowops: dict[str, FlowopReport]
    latency_ms_mean: float | None = None
    latency_ms_p50: float | None = None
    latency_ms_p95: float | None = None
    latency_ms_p99: float | None = None
    latency_ms_max: float | None = None


class Reading(Report, frozen=True, tag_field="kind", tag="reading"):
    """What happened between the reading before and this one, `seconds` after the start."""

    seconds: float = 0.0
    interval_s: float = 0.0


class FilebenchSummary(Report, frozen=True, tag_field="kind", tag="summary"):
    """What happened over the whole run."""

    start_s: float = 0.0
    load_s: float = 0.0
    ended: str = "time"
    starved: int = 0
    waiting: int = 0
    threads: int = 0
    data_bytes: int = 0


class FillLine(msgspec.Struct, frozen=True, tag_field="kind", tag="fill"):
    """What the files come to."""

    files: int
    bytes: int
    fill_s: float


class Description(msgspec.Struct, frozen=True, tag_field="kind", tag="description"):
    """What a workload is."""

    workload: str
    threads: int
    expected_bytes: float
    wml: str
    filesets: list[dict[str, Any]]
    groups: list[dict[str, Any]]


_Line = Reading | FilebenchSummary | FillLine


class Lines:
    """Splits the output into lines and keeps what they say.

    Attributes:
        readings: the readings so far.
        summary: the last line, once it came.
        fill: the line that ends a fill, once it came.
    """

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.summary: FilebenchSummary | None = None
        self.fill: FillLine | None = None
        self._rest = b""

    def feed(self, chunk: bytes) -> bool:
        """Take in a piece of output; True when it brought a reading."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:LINE_BYTES_MAX]
        before = len(self.readings)
        for line in lines:
            self._take(line)
        return len(self.readings) > before

    def _take(self, line: bytes) -> None:
        try:
            report = typed.decode(line, _Line)
        except msgspec.DecodeError:  # a line cut off by a kill, or of a kind that is not read here
            return
        if isinstance(report, FilebenchSummary):
            self.summary = report
        elif isinstance(report, FillLine):
            self.fill = report
        elif not self.readings or report.seconds > self.readings[-1].seconds:
            self.readings.append(report)


def identifier(name: str) -> str:
    """A flowop's name as the start of a metric's."""
    plain = re.sub(r"[^0-9A-Za-z_]", "_", name)
    return f"_{plain}" if plain[0].isdigit() else plain


def series_of(readings: Sequence[Reading]) -> dict[str, Series]:
    """Unit readings by metric.

    Latencies exist only for intervals in which an operation ended, so their series can be shorter.
    """
    series: dict[str, tuple[list[float], list[float]]] = {}

    def add(name: str, seconds: float, value: float | None) -> None:
        if value is not None:
            columns = series.setdefault(name, ([], []))
            columns[0].append(seconds)
            columns[1].append(value)

    for reading in readings:
        for name in (*_THROUGHPUTS, "latency_ms_mean", "latency_ms_p95", "latency_ms_p99"):
            add(name, reading.seconds, getattr(reading, name))
        for name, flowop in _file_flowops(reading):
            add(f"{name}_latency_ms_mean", reading.seconds, flowop.latency_ms_mean)
    return {name: Series.of(*columns) for name, columns in series.items()}


def whole_run(summary: FilebenchSummary) -> dict[str, float]:
    """One number a metric, over the whole run."""
    metrics = {
        "operations": float(summary.ops),
        "starved": float(summary.starved),
        "waiting": float(summary.waiting),
    }
    for name in (*_THROUGHPUTS, *_LATENCIES):
        value: float | None = getattr(summary, name)
        if value is not None:
            metrics[name] = value
    for flowop_name, flowop in _file_flowops(summary):
        metrics[f"{flowop_name}_ops_per_s"] = flowop.ops / summary.load_s
        for name in _LATENCIES:
            value = getattr(flowop, name)
            if value is not None:
                metrics[f"{flowop_name}_{name}"] = value
    return metrics


def metric_names(description: Description) -> frozenset[str]:
    """The names of `whole_run`, where every flowop ends an operation."""
    kinds = {str(one["name"]): str(one["type"]) for group in description.groups for one in group["flowops"]}
    latencies: dict[str, Any] = dict.fromkeys(_LATENCIES, 1.0)
    flowops = {name: FlowopReport(kind, 1, 1, **latencies) for name, kind in kinds.items()}
    rates: dict[str, Any] = dict.fromkeys(_THROUGHPUTS, 1.0)
    return frozenset(whole_run(FilebenchSummary(1, 1, flowops=flowops, load_s=1.0, **rates, **latencies)))


def _file_flowops(report: Report) -> Iterator[tuple[str, FlowopReport]]:
    """The flowops that work on files, by a name that a formula can use."""
    for name, flowop in report.flowops.items():
        if flowop.type in _FILE_TYPES:
            yield identifier(name), flowop
