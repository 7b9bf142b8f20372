"""A comparison's result: for programs, for people, and in files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.cli.measured import interval, limit_line
from ascar.cli.sheets import TextTable, write_sheet
from ascar.render import number, p_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ascar.cli.contestants import Contestants, Recordings
    from ascar.measurement import Measurement
    from ascar.pilot import ComparisonTerms, ContestPlan, ContestSession, Pair, Ranking, Resources, Standing
    from ascar.results.compare import ComparedPair, Ranked

_SHEET = (
    *("rank", "name", "mean", "ci_low", "ci_high", "confidence", "n", "next", "ratio_to_next"),
    *("ratio_low", "ratio_high", "p_value", "verdict", "verdict_line"),
)
_LABEL_MAX = 60


@dataclass(frozen=True, slots=True)
class Entry:
    """One that was compared.

    Attributes:
        label: what it is called.
        command: that was run; None: readings of a file.
        file: that was read; None: a command.
        measurement: its mean on its own.
        readings: (n,) what was read, in order.
    """

    label: str
    command: tuple[str, ...] | None
    file: str | None
    measurement: Measurement
    readings: Sequence[float]


@dataclass(frozen=True, slots=True)
class CompareResult:
    """What a comparison came to.

    Attributes:
        metric: what was compared.
        terms: what telling apart meant.
        entries: in the order they were given.
        standing: the ranking.
        session: of rounds; None: recorded readings.
        plan: of the session, or None.
        used: of the machine meanwhile, or None.
    """

    metric: str
    terms: ComparisonTerms
    entries: tuple[Entry, ...]
    standing: Standing
    session: ContestSession | None = None
    plan: ContestPlan | None = None
    used: Resources | None = None

    def write(self, export: Path | None, plot: Path | None, readings: Path | None) -> None:
        """Write the files that were asked for."""
        if export is not None:
            write_sheet(export, TextTable(_SHEET, [list(row) for row in self._rows()]))
        if readings is not None:
            readings.write_text("".join(f"{json.dumps(line)}\n" for line in self._readings()), "utf-8")
        if plot is not None:
            from ascar.cli.contest_plot import Bar, write_contest_plot

            ranked = [self.entries[index] for index in self.standing.order]
            bars = [Bar(_short(one.label), one.measurement, one.readings) for one in ranked]
            write_contest_plot(plot, self.metric, bars, [self._line(pair) for pair in self.standing.pairs])

    def emit(self) -> None:
        """Print the one JSON document."""
        from ascar.cli.output import emit
        from ascar.pilot import bottlenecks
        from ascar.results.compare import CompareResult
        from ascar.results.measure import UsedUp

        session, plan = self.session, self.plan
        used = () if self.used is None else bottlenecks(self.used)
        result = CompareResult(
            mode="recorded" if session is None else "live",
            metric=self.metric,
            lower_is_better=self.terms.lower_is_better,
            p=self.terms.p,
            margin=self.terms.margin,
            verdict="decided" if self.standing.decided else "undecided",
            ended="" if session is None else session.ended,
            seconds=None if session is None else session.seconds,
            rounds=None if session is None else len(session.blocks),
            warm_up=None if plan is None else plan.warm_up,
            seed=None if plan is None else plan.seed,
            ranking=tuple(self._ranked(place) for place in range(len(self.entries))),
            pairs=tuple(self._pair(pair) for pair in self.standing.pairs),
            bottlenecks=tuple(UsedUp(resource=one.resource, used=one.used) for one in used),
        )
        emit("compare", result)

    def show(self) -> None:
        """Print it for people."""
        from rich.table import Table

        from ascar.cli.output import people
        from ascar.pilot import bottlenecks

        console = people()
        style = "bold green" if self.standing.decided else "bold yellow"
        console.print(self._headline(), style=style, markup=False, soft_wrap=True)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in ("rank", "", f"mean {self.metric}", "n", "against the next"):
            table.add_column(_plain(heading), justify="right" if heading in ("rank", "n") else "left")
        for place, (rank, index) in enumerate(zip(self.standing.ranks, self.standing.order, strict=True)):
            entry = self.entries[index]
            pair = self._pair_at(place)
            table.add_row(
                *(str(rank), _plain(_short(entry.label)), _plain(interval(entry.measurement))),
                *(f"{entry.measurement.n:,}", _plain(self._line(pair)) if pair else ""),
            )
        console.print(table)
        better = "lower" if self.terms.lower_is_better else "higher"
        console.print(f"{better} is better; {self._basis()}", style="dim", markup=False)
        if self.used is not None:
            limits = ", ".join(map(limit_line, bottlenecks(self.used)))
            console.print(f"limited by: {limits or 'no resource that is watched'}", style="dim", markup=False)

    def _headline(self) -> str:
        session = self.session
        if session is None:
            return f"{self.metric} of {len(self.entries)} recordings"
        rounds = f"{len(session.blocks)} rounds of each, {session.seconds:.1f} s"
        if session.reached:
            return f"done: {session.ended}; {rounds}"
        return f"PARTIAL: {session.ended or 'interrupted'} before everything was decided; {rounds}"

    def _basis(self) -> str:
        confidence = self.entries[0].measurement.confidence
        looks = ", valid at every look" if self.session is not None else ""
        return (
            f"intervals of means {confidence:.4g}{looks}; probability of any wrong verdict at most "
            f"{self.terms.p:g}; margin {self.terms.margin:.3g}"
        )

    def _pair_at(self, place: int) -> Pair | None:
        """The entry at a place against the next."""
        return self.standing.pairs[place] if place < len(self.standing.pairs) else None

    def _line(self, pair: Pair) -> str:
        return pair_line(pair, self.terms, self.metric, "rounds" if self.session else "readings")

    def _ranked(self, place: int) -> Ranked:
        from ascar.results.compare import Ranked
        from ascar.results.mean import mean_keys

        entry, pair = self.entries[self.standing.order[place]], self._pair_at(place)
        return Ranked(
            rank=self.standing.ranks[place],
            name=entry.label,
            command=entry.command,
            file=entry.file,
            readings=len(entry.readings),
            **mean_keys(entry.measurement),
            verdict="last" if pair is None else pair.verdict,
        )

    def _pair(self, pair: Pair) -> ComparedPair:
        from ascar.results.compare import ComparedPair

        return ComparedPair(
            better=self.entries[pair.better].label,
            worse=self.entries[pair.worse].label,
            ratio=pair.ratio,
            ratio_low=pair.ratio_low,
            ratio_high=pair.ratio_high,
            p_value=pair.p_value,
            samples=pair.samples,
            verdict=pair.verdict,
            verdict_line=self._line(pair),
            method=pair.method,
            more=pair.more,
        )

    def _rows(self) -> Iterator[tuple[float | int | str | None, ...]]:
        for place, index in enumerate(self.standing.order):
            entry, pair = self.entries[index], self._pair_at(place)
            own = entry.measurement
            yield (
                *(self.standing.ranks[place], entry.label, own.mean, own.ci_low, own.ci_high),
                *(own.confidence, own.n),
                *((None,) * 7 if pair is None else self._cells(pair)),
            )

    def _cells(self, pair: Pair) -> tuple[float | int | str | None, ...]:
        return (
            *(self.entries[pair.worse].label, pair.ratio, pair.ratio_low, pair.ratio_high),
            *(pair.p_value, pair.verdict, self._line(pair)),
        )

    def _readings(self) -> Iterator[dict[str, Any]]:
        """Every reading; of rounds with the block that it was taken in."""
        if self.session is None:
            for entry in self.entries:
                yield from ({"name": entry.label, self.metric: float(value)} for value in entry.readings)
            return
        for number_, block in enumerate(self.session.blocks):
            for index, value in block.items():
                yield {"block": number_, "name": self.entries[index].label, self.metric: value}


def live(
    found: Contestants, plan: ContestPlan, session: ContestSession, confidence: float, used: Resources
) -> CompareResult:
    """The result of running commands."""
    contest = session.contest
    entries = tuple(
        Entry(label, command, None, contest.measurement(index, confidence), contest.values(index).tolist())
        for index, (label, command) in enumerate(zip(found.labels, found.commands, strict=True))
    )
    return CompareResult(plan.metric, plan.terms, entries, session.standing, session, plan, used)


def recorded(found: Recordings, terms: ComparisonTerms, ranking: Ranking) -> CompareResult:
    """The result of comparing recordings."""
    entries = tuple(
        Entry(label, None, file, measurement, series.values.tolist())
        for label, file, measurement, series in zip(
            found.labels, found.files, ranking.measurements, found.series, strict=True
        )
    )
    return CompareResult(found.metric, terms, entries, ranking.standing)


def pair_line(pair: Pair, terms: ComparisonTerms, metric: str, of: str) -> str:
    """How one stands against the next, e.g. "1.9% to 2.4% faster", "no difference above 1%".

    Args:
        pair: the two.
        terms: of the comparison.
        metric: what was compared.
        of: what more of would decide: "rounds" or "readings".
    """
    if pair.verdict == "equivalent":
        return f"no difference above {100 * terms.margin:.3g}%"
    if pair.verdict == "no-interval":
        return "cannot be told: one of them has no honest interval"
    if pair.verdict == "undecided":
        more = "" if pair.more is None else f": about {pair.more:,} more {of} would do"
        return f"not separated yet{more}" if of == "rounds" else f"not separated{more}"
    return _lead(pair, terms, metric)


def _lead(pair: Pair, terms: ComparisonTerms, metric: str) -> str:
    """By how much one is better."""
    from ascar.pilot import lower_is_better

    low, high = pair.ratio_low, pair.ratio_high
    # Of means below zero the smaller has the larger ratio, and shares of it mean nothing.
    backwards = pair.ratio is not None and (pair.ratio > 1) == terms.lower_is_better
    if low is None or high is None or low <= 0 or backwards:
        return f"better, {p_value(pair.p_value)}"
    if not terms.lower_is_better:
        return _gain(low, high, "higher", "high")
    if lower_is_better(metric):
        return _gain(1 / high, 1 / low, "faster", "fast")
    return f"{_span(1 - high, 1 - low)} lower"


def _gain(low: float, high: float, more: str, as_much: str) -> str:
    """A factor's interval in words."""
    if low >= 2:
        return f"{number(low, 3)} to {number(high, 3)} times as {as_much}"
    return f"{_span(low - 1, high - 1)} {more}"


def _span(low: float, high: float) -> str:
    """An interval of shares, with digits enough to tell its ends apart."""
    digits = 1 if high - low >= 0.002 else 2
    return f"{max(low, 0.0):.{digits}%} to {high:.{digits}%}"


def _short(label: str) -> str:
    """A label that fits; commands that are alike mostly differ at their ends."""
    half = (_LABEL_MAX - 3) // 2
    return label if len(label) <= _LABEL_MAX else f"{label[:half]}...{label[-half:]}"


def _plain(text: str) -> Any:
    """Text that is shown as it is, whatever brackets it has."""
    from rich.text import Text

    return Text(text)
