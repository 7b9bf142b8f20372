"""A session's result: for programs, for people, and in files."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.cli.measured import limit_line, lines_of, machine_line, sheet_of
from ascar.render import interval, number, percentage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ascar.pilot import Finding, Indicator, Measured, Phase, Session, Speed
    from ascar.results.measure import MeasureResult
    from ascar.results.measurement import Measurement


@dataclass(frozen=True, slots=True)
class MeasureOutput:
    """What a session came to, for people and in files.

    Attributes:
        measured: the session.
    """

    measured: Measured

    @property
    def session(self) -> Session:
        """The session."""
        return self.measured.session

    def write(self, export: Path | None, plot: Path | None, readings: Path | None) -> None:
        """Write the files that were asked for."""
        if export is not None:
            found = self.measured.means
            write_sheet_of(export, found, [self.measured.word(name) for name in found])
        if readings is not None:
            readings.write_text("".join(f"{json.dumps(line)}\n" for line in self._readings()), "utf-8")
        if plot is not None:
            self._plot(plot)

    def document(self) -> MeasureResult:
        """The result as a value."""
        return self.measured.result()

    def emit(self) -> None:
        """Print the one JSON document."""
        from ascar.cli.output import emit

        emit("measure", self.document())

    def show(self) -> None:
        """Print it for people."""
        from rich.table import Table

        from ascar.cli.output import people

        console = people()
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_column()
        for heading, fact in self._lines():
            table.add_row(heading, fact)
        style = "bold green" if self.session.reached else "bold yellow"
        console.print(self._headline(), style=style, markup=False, soft_wrap=True)
        console.print(table)

    def _headline(self) -> str:
        session = self.session
        rounds = f"{len(session.rounds)} rounds, {session.seconds:.1f} s"
        if session.reached:
            return f"done: {session.ended}; {rounds}"
        return f"PARTIAL: {session.ended or 'interrupted'} before every goal was; {rounds}"

    def _lines(self) -> Iterator[tuple[str, str]]:
        from ascar.pilot import bottlenecks

        session = self.session
        found = self.measured.means
        for name, measurement in found.items():
            finding = next((one for one in session.findings if one.indicator.name == name), None)
            yield "", ""
            if finding is None:
                yield from _speed_lines(session.speed, measurement)
            else:
                yield name, f"from {finding.basis}"
                yield from lines_of(measurement, finding.readings)
                yield "removed", _removed(finding)
            if finding is not None:
                yield from _kind_lines(finding)
            yield "verdict", self.measured.word(name) + _line(self.measured.verdict(name, measurement).line)
        yield "", ""
        short = len(session.rounds) - len(session.used)
        for machine in self.measured.machines if self.measured.sources else ():
            place = "this machine" if machine.node is None else f"node {machine.node}"
            yield place, machine_line(machine)
        yield "rounds", f"{len(session.rounds)}" + (f", {short} set aside as too short" if short else "")
        limits = ", ".join(map(limit_line, bottlenecks(self.measured.used)))
        yield "limited by", limits or "no resource that is watched was near its limit"
        measured = self.measured
        cost_s = measured.start_cost_s
        start = "" if cost_s is None else f"; starting a program {1000 * cost_s:.1f} ms"
        between = f"{percentage(measured.between_rounds, 1)} of the time between rounds"
        own = f"{percentage(measured.used.own_cores, 1)} of a core; {between}"
        yield "measuring cost", own + start

    def _readings(self) -> Iterator[dict[str, Any]]:
        """Every reading, in order."""
        for index, done in enumerate(self.session.rounds):
            common = {"round": index, "work_amount": done.work_amount, "used": index in self.session.used}
            for name, value in done.readings.items():
                if name not in done.unit_readings:
                    yield {**common, name: value}
            for name, values in done.unit_readings.items():
                yield from ({**common, name: value} for value in values)

    def _plot(self, path: Path) -> None:
        import numpy as np

        from ascar.cli.series_plot import write_plot
        from ascar.pilot import phases_of

        finding = self.measured.findings[0] if self.measured.findings else None
        if finding is None or finding.measurement is None:
            return
        name, used = finding.indicator.name, [self.session.rounds[index] for index in self.session.used]
        told = [
            np.asarray(done.unit_readings[name], np.float64) for done in used if name in done.unit_readings
        ]
        if len(told) > 1:
            write_plot(path, name, *_rounds_in_a_row(finding.indicator, told, finding.measurement))
            return
        readings = [done.readings[name] for done in used if name in done.readings]
        series = told[0] if told else np.asarray(readings, np.float64)
        write_plot(path, name, series, finding.measurement, phases_of(series, finding.measurement))


def _rounds_in_a_row(
    indicator: Indicator, rounds: Sequence[NDArray[np.float64]], measurement: Measurement
) -> tuple[NDArray[np.float64], Measurement, list[Phase]]:
    """All unit readings of several rounds, each with its own phases, under the mean of all of them."""
    import numpy as np

    from ascar import _core
    from ascar.pilot import phases_of
    from ascar.pilot.findings import measurement_of

    phases: list[Phase] = []
    changes: list[int] = []
    start = 0
    for values in rounds:
        found = measurement_of(_core.pilot_analyze(indicator.values, values, measurement.confidence))
        changes += [point + start for point in found.change_points]
        phases += [
            replace(phase, start=phase.start + start, end=phase.end + start)
            for phase in phases_of(values, found)
        ]
        start += len(values)
    whole = msgspec.structs.replace(
        measurement, stable_start=0, stable_end=start, change_points=tuple(changes)
    )
    return np.concatenate(rounds), whole, phases


def write_sheet_of(path: Path, found: dict[str, Measurement], words: list[str]) -> None:
    """A row a mean."""
    from ascar.cli.sheets import write_sheet

    write_sheet(path, sheet_of(found, words))


def _kind_lines(finding: Finding) -> Iterator[tuple[str, str]]:
    """What is known of each kind of work units."""
    for one in finding.kinds:
        mean = "none in a stable phase" if one.measurement is None else interval(one.measurement)
        yield f"units {one.name[:40]}", f"{mean}, {percentage(one.share, 1)} of the work"


def _removed(finding: Finding) -> str:
    parts: list[str] = []
    if finding.removed:
        parts.append(f"{finding.removed:,} of {finding.readings:,} readings: warm-up and cool-down of rounds")
    if finding.rounds_unstable:
        parts.append(f"{finding.rounds_unstable} rounds without a stable phase")
    return "; ".join(parts) or "nothing"


def _speed_lines(speed: Speed | None, measurement: Measurement) -> Iterator[tuple[str, str]]:
    """What is known of a WPS speed, as headings and facts."""
    assert speed is not None, "a speed was found"
    yield "work_per_s", "from the durations of rounds of different work amounts (WPS)"
    yield "mean", f"{interval(measurement)}, {measurement.confidence:.4g} confidence"
    yield "rounds", f"{speed.rounds} that the line rests on, autocorrelation {speed.autocorrelation:.2f}"
    yield "alpha", f"{number(speed.alpha_s)} s of a round are set-up, warm-up and cool-down"


def _line(text: str) -> str:
    return f": {text}" if text else ""
