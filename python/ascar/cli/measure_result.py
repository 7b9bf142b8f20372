"""A session's result: for programs, for people, and in files."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ascar.cli.goals import judged
from ascar.cli.measured import interval, limit_line, lines_of, sheet_of
from ascar.measurement import Measurement
from ascar.render import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ascar.pilot import (
        CommandRunner,
        Finding,
        Indicator,
        MeasurementPlan,
        Phase,
        Resources,
        Session,
        Speed,
    )
    from ascar.results.measure import IndicatorMean, MeasuredRound, Overhead, ResourceUse, SpeedMean

SPEED = "work_per_s"


def measurement_of(speed: Speed) -> Measurement:
    """A WPS speed in the form of every other mean; its readings are rounds."""
    return Measurement(
        mean=speed.work_per_s,
        ci_low=speed.ci_low,
        ci_high=speed.ci_high,
        confidence=speed.confidence,
        n=speed.rounds,
        independent_samples=speed.rounds,
        autocorrelation=speed.autocorrelation,
        subsession_size=1,
        stable_start=0,
        stable_end=speed.rounds,
        method="work per second",
        reason=speed.reason,
    )


@dataclass(frozen=True, slots=True)
class MeasureResult:
    """What a session came to.

    Attributes:
        runner: ran its rounds.
        plan: what was wanted.
        session: what was found.
        used: of the machine, meanwhile.
        start_cost_s: what starting a program adds to a round; None: unknown.
    """

    runner: CommandRunner
    plan: MeasurementPlan
    session: Session
    used: Resources
    start_cost_s: float | None

    def measurements(self) -> dict[str, Measurement]:
        """Every mean by name, the one that decided first."""
        found = {
            finding.indicator.name: finding.measurement
            for finding in self._findings()
            if finding.measurement is not None
        }
        speed = {} if self.session.speed is None else {SPEED: measurement_of(self.session.speed)}
        return {**speed, **found} if self.session.speed_decides else {**found, **speed}

    def write(self, export: Path | None, plot: Path | None, readings: Path | None) -> None:
        """Write the files that were asked for."""
        if export is not None:
            found = self.measurements()
            write_sheet_of(export, found, [self._word(name) for name in found])
        if readings is not None:
            readings.write_text("".join(f"{json.dumps(line)}\n" for line in self._readings()), "utf-8")
        if plot is not None:
            self._plot(plot)

    def emit(self) -> None:
        """Print the one JSON document."""
        from ascar.cli.output import emit
        from ascar.pilot import bottlenecks
        from ascar.results.mean import mean_keys
        from ascar.results.measure import MeasureResult, UsedUp

        session, found = self.session, self.measurements()
        name, main = next(iter(found.items()))
        result = MeasureResult(
            command=tuple(self.runner.argv),
            name=name,
            **mean_keys(main),
            **judged(self._verdict(name, main), self.plan.goal),
            reached=session.reached,
            ended=session.ended,
            seconds=session.seconds,
            indicators=tuple(self._indicator(finding) for finding in self._findings()),
            speed=None if session.speed is None else self._speed(session.speed),
            rounds=self._rounds(),
            bottlenecks=tuple(UsedUp(resource=one.resource, used=one.used) for one in bottlenecks(self.used)),
            resources=self._resources(),
            overhead=self._overhead(),
        )
        emit("measure", result)

    def _rounds(self) -> tuple[MeasuredRound, ...]:
        from ascar.results.measure import MeasuredRound

        used = set(self.session.used)
        return tuple(
            MeasuredRound(
                seconds=done.seconds,
                work_amount=done.work_amount,
                used=index in used,
                readings=dict(done.readings),
                unit_readings={metric: len(values) for metric, values in done.unit_readings.items()},
            )
            for index, done in enumerate(self.session.rounds)
        )

    def _resources(self) -> ResourceUse:
        from ascar.results.measure import ResourceUse

        return ResourceUse(
            cpu=self.used.cpu,
            cpu_busiest=self.used.cpu_busiest,
            programs_cores=self.used.programs_cores,
            cores=self.used.cores,
            run_queue_mean=self.used.run_queue_mean,
            memory_available_min=self.used.memory_available_min,
            disk=dict(self.used.disk),
            network=dict(self.used.network),
            pressure=dict(self.used.pressure),
        )

    def _overhead(self) -> Overhead:
        from ascar.results.measure import Overhead

        return Overhead(
            own_cores=self.used.own_cores,
            between_rounds=self._between_rounds(),
            start_cost_s=self.start_cost_s,
        )

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
        found = self.measurements()
        for name, measurement in found.items():
            finding = next((one for one in session.findings if one.indicator.name == name), None)
            yield "", ""
            if finding is None:
                yield from _speed_lines(session.speed, measurement)
            else:
                yield name, f"from {finding.basis}"
                yield from lines_of(measurement, finding.readings)
                yield "removed", _removed(finding)
            yield "verdict", self._word(name) + _line(self._verdict(name, measurement).line)
        yield "", ""
        short = len(session.rounds) - len(session.used)
        yield "rounds", f"{len(session.rounds)}" + (f", {short} set aside as too short" if short else "")
        limits = ", ".join(map(limit_line, bottlenecks(self.used)))
        yield "limited by", limits or "no resource that is watched was near its limit"
        start = "" if self.start_cost_s is None else f"; starting a program {1000 * self.start_cost_s:.1f} ms"
        own = f"{self.used.own_cores:.1%} of a core; {self._between_rounds():.1%} of the time between rounds"
        yield "measuring cost", own + start

    def _findings(self) -> list[Finding]:
        return [finding for finding in self.session.findings if finding.measurement is not None]

    def _verdict(self, name: str, measurement: Measurement) -> Any:
        from ascar.pilot import verdict_on

        goals = {finding.indicator.name: finding.indicator.goal for finding in self.session.findings}
        return verdict_on(measurement, goals.get(name) or self.plan.goal)

    def _word(self, name: str) -> str:
        """The verdict in a word; "reported" for what decides nothing."""
        goals = {finding.indicator.name: finding.indicator.goal for finding in self.session.findings}
        decides = name == SPEED if self.session.speed_decides else goals.get(name) is not None
        return self._verdict(name, self.measurements()[name]).word if decides else "reported"

    def _indicator(self, finding: Finding) -> IndicatorMean:
        from ascar.results.mean import mean_keys
        from ascar.results.measure import IndicatorMean

        assert finding.measurement is not None
        name = finding.indicator.name
        return IndicatorMean(
            name=name,
            kind=finding.indicator.kind.value,
            decides=finding.indicator.goal is not None and not self.session.speed_decides,
            basis=finding.basis,
            readings=finding.readings,
            removed=finding.removed,
            rounds_unstable=finding.rounds_unstable,
            **mean_keys(finding.measurement),
            verdict=self._verdict(name, finding.measurement).word,
        )

    @staticmethod
    def _speed(speed: Speed) -> SpeedMean:
        from ascar.results.measure import SpeedMean

        return SpeedMean(
            work_per_s=speed.work_per_s,
            ci_low=speed.ci_low,
            ci_high=speed.ci_high,
            confidence=speed.confidence,
            alpha_s=speed.alpha_s,
            rounds=speed.rounds,
            reason=speed.reason,
        )

    def _between_rounds(self) -> float:
        """Share of the session in which no round ran."""
        ran_s = sum(done.seconds for done in self.session.rounds)
        return max(0.0, 1 - ran_s / self.session.seconds) if self.session.seconds > 0 else 0.0

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

        finding = self._findings()[0] if self._findings() else None
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
    whole = replace(measurement, stable_start=0, stable_end=start, change_points=tuple(changes))
    return np.concatenate(rounds), whole, phases


def write_sheet_of(path: Path, found: dict[str, Measurement], words: list[str]) -> None:
    """A row a mean."""
    from ascar.cli.sheets import write_sheet

    write_sheet(path, sheet_of(found, words))


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
    yield SPEED, "from the durations of rounds of different work amounts (WPS)"
    yield "mean", f"{interval(measurement)}, {measurement.confidence:.4g} confidence"
    yield "rounds", f"{speed.rounds} that the line rests on, autocorrelation {speed.autocorrelation:.2f}"
    yield "alpha", f"{number(speed.alpha_s)} s of a round are set-up, warm-up and cool-down"


def _line(text: str) -> str:
    return f": {text}" if text else ""
