"""Measurements for programs and for people: what `analyze`, `measure` and `compare` all show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.sheets import TextTable
from ascar.render import interval, percentage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ascar.pilot import Bottleneck, Phase
    from ascar.results.machine import MachineRecord
    from ascar.results.measurement import Measurement

_SHEET = (
    "name",
    "mean",
    "ci_low",
    "ci_high",
    "confidence",
    "n",
    "independent_samples",
    "autocorrelation",
    "subsession_size",
    "subsessions",
    "method",
    "verdict",
)


def lines_of(measurement: Measurement, readings: int) -> Iterator[tuple[str, str]]:
    """What is known of a mean, as headings and facts.

    Args:
        measurement: the mean of some readings.
        readings: the number of readings before any were removed.
    """
    yield "mean", f"{interval(measurement)}, {measurement.confidence:.4g} confidence"
    of_all = f" of {readings:,}" if readings != measurement.n else ""
    yield (
        "samples",
        f"{measurement.n:,}{of_all} readings, worth {measurement.independent_samples:,} independent ones",
    )
    yield (
        "autocorrelation",
        f"{measurement.autocorrelation:.2f}; {measurement.subsessions:,} subsessions of "
        f"{measurement.subsession_size:,} readings",
    )
    yield "stable phase", f"readings {measurement.stable_start:,} to {measurement.stable_end - 1:,}"
    yield "method", measurement.method


def phase_line(phase: Phase) -> str:
    """A phase that was removed, e.g. "warm-up, readings 0 to 212: on another level, +31.2%"."""
    return f"{phase.kind.value}, readings {phase.start:,} to {phase.end - 1:,}: {phase.reason}"


def limit_line(bottleneck: Bottleneck) -> str:
    """A resource that limited a result, e.g. "disk sda (97% used)"."""
    if bottleneck.resource == "run queue":
        return f"run queue ({bottleneck.used:.1f} processes a core)"
    return f"{bottleneck.resource} ({percentage(bottleneck.used, 0)} used)"


def machine_line(machine: MachineRecord) -> str:
    """A machine, e.g. "vm: 2 cpus AMD EPYC, governor performance, 24 GiB, kernel 6.1.0; load 0.5 to 1.2"."""
    governor = "" if machine.governor is None else f", governor {machine.governor}"
    load = f"{machine.load_begin:g}" + ("" if machine.load_end is None else f" to {machine.load_end:g}")
    return (
        f"{machine.host}: {machine.cpus} cpus {machine.cpu}{governor}, "
        f"{machine.memory_bytes / 2**30:.1f} GiB, kernel {machine.kernel}; load {load}"
    )


def sheet_of(measurements: Mapping[str, Measurement], verdicts: Sequence[str]) -> TextTable:
    """A row a measurement.

    Args:
        measurements: the measurements by name.
        verdicts: a word each.
    """
    rows = [
        [
            name,
            one.mean,
            one.ci_low,
            one.ci_high,
            one.confidence,
            one.n,
            one.independent_samples,
            one.autocorrelation,
            one.subsession_size,
            one.subsessions,
            one.method,
            verdict,
        ]
        for (name, one), verdict in zip(measurements.items(), verdicts, strict=True)
    ]
    return TextTable(_SHEET, rows)
