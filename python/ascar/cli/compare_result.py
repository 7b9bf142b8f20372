"""A comparison's result: for programs, for people, and in files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascar.cli.measured import limit_line
from ascar.cli.sheets import TextTable, write_sheet
from ascar.pilot import Compared, Contestant
from ascar.pilot.saved import SavedResult
from ascar.render import interval

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ascar.cli.contestants import Recordings
    from ascar.pilot import ComparisonTerms, Pair, RecordedRanking
    from ascar.results.compare import CompareResult

_SHEET = (
    *("rank", "name", "mean", "ci_low", "ci_high", "confidence", "n", "next", "ratio_to_next"),
    *("ratio_low", "ratio_high", "p_value", "verdict", "verdict_line"),
)
_LABEL_MAX = 60


@dataclass(frozen=True, slots=True)
class CompareOutput:
    """What a comparison came to, for people and in files.

    Attributes:
        compared: the comparison.
    """

    compared: Compared

    def write(self, export: Path | None, plot: Path | None, readings: Path | None) -> None:
        """Write the files that were asked for."""
        if export is not None:
            write_sheet(export, TextTable(_SHEET, [list(row) for row in self._rows()]))
        if readings is not None:
            readings.write_text("".join(f"{json.dumps(line)}\n" for line in self._readings()), "utf-8")
        if plot is not None:
            from ascar.cli.contest_plot import Bar, write_contest_plot

            bars = [Bar(_short(one.label), one.measurement, one.readings) for one in self.compared.ranked]
            write_contest_plot(
                plot,
                self.compared.metric,
                bars,
                [self.compared.line(pair) for pair in self.compared.standing.pairs],
            )

    def document(self) -> CompareResult:
        """The result as a value."""
        return self.compared.result()

    def emit(self) -> None:
        """Print the one JSON document."""
        from ascar.cli.output import emit

        emit("compare", self.document())

    def show(self) -> None:
        """Print it for people."""
        from rich.table import Table

        from ascar.cli.output import people
        from ascar.pilot import bottlenecks

        console = people()
        style = "bold green" if self.compared.standing.decided else "bold yellow"
        console.print(self._headline(), style=style, markup=False, soft_wrap=True)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in ("rank", "", f"mean {self.compared.metric}", "n", "against the next"):
            table.add_column(_plain(heading), justify="right" if heading in ("rank", "n") else "left")
        ranked = zip(self.compared.standing.ranks, self.compared.ranked, strict=True)
        for place, (rank, entry) in enumerate(ranked):
            pair = self.compared.pair_at(place)
            table.add_row(
                *(str(rank), _plain(_short(entry.label)), _plain(interval(entry.measurement))),
                *(f"{entry.measurement.n:,}", _plain(self.compared.line(pair)) if pair else ""),
            )
        console.print(table)
        better = "lower" if self.compared.terms.lower_is_better else "higher"
        console.print(f"{better} is better; {self._basis()}", style="dim", markup=False)
        if self.compared.used is not None:
            limits = ", ".join(map(limit_line, bottlenecks(self.compared.used)))
            console.print(f"limited by: {limits or 'no resource that is watched'}", style="dim", markup=False)

    def _headline(self) -> str:
        session = self.compared.session
        if session is None:
            return f"{self.compared.metric} of {len(self.compared.entries)} recordings"
        rounds = f"{len(session.blocks)} rounds of each, {session.seconds:.1f} s"
        if session.reached:
            return f"done: {session.ended}; {rounds}"
        return f"PARTIAL: {session.ended or 'interrupted'} before everything was decided; {rounds}"

    def _basis(self) -> str:
        confidence = self.compared.entries[0].measurement.confidence
        looks = ", valid at every look" if self.compared.session is not None else ""
        return (
            f"intervals of means {confidence:.4g}{looks}; probability of any wrong verdict at most "
            f"{self.compared.terms.p:g}; margin {self.compared.terms.margin:.3g}"
        )

    def _rows(self) -> Iterator[tuple[float | int | str | None, ...]]:
        for place, index in enumerate(self.compared.standing.order):
            entry, pair = self.compared.entries[index], self.compared.pair_at(place)
            own = entry.measurement
            yield (
                *(self.compared.standing.ranks[place], entry.label, own.mean, own.ci_low, own.ci_high),
                *(own.confidence, own.n),
                *((None,) * 7 if pair is None else self._cells(pair)),
            )

    def _cells(self, pair: Pair) -> tuple[float | int | str | None, ...]:
        return (
            *(self.compared.entries[pair.worse].label, pair.ratio, pair.ratio_low, pair.ratio_high),
            *(pair.p_value, pair.verdict, self.compared.line(pair)),
        )

    def _readings(self) -> Iterator[dict[str, Any]]:
        """Every reading; of rounds with the block that it was taken in."""
        metric = self.compared.metric
        if self.compared.session is None:
            for entry in self.compared.entries:
                yield from ({"name": entry.label, metric: float(value)} for value in entry.readings)
            return
        for number_, block in enumerate(self.compared.session.blocks):
            for index, value in block.items():
                yield {"block": number_, "name": self.compared.entries[index].label, metric: value}


def recorded(found: Recordings, terms: ComparisonTerms, ranking: RecordedRanking) -> Compared:
    """The result of comparing recordings."""
    entries = tuple(
        Contestant(label, None, file, measurement, (), series.machine)
        if isinstance(series, SavedResult)
        else Contestant(label, None, file, measurement, series.values.tolist())
        for label, file, measurement, series in zip(
            found.labels, found.files, ranking.measurements, found.series, strict=True
        )
    )
    return Compared(found.metric, terms, entries, ranking.standing)


def _short(label: str) -> str:
    """A label that fits; commands that are alike mostly differ at their ends."""
    half = (_LABEL_MAX - 3) // 2
    return label if len(label) <= _LABEL_MAX else f"{label[:half]}...{label[-half:]}"


def _plain(text: str) -> Any:
    """Text that is shown as it is, whatever brackets it has."""
    from rich.text import Text

    return Text(text)
