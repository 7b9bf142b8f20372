"""What `ascar importance` shows: a table for people, a document, figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.render import limits, number, percentage

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from ascar.importance import Observations, Selection


@dataclass(frozen=True, slots=True, eq=False)
class RankedImportance:
    """Everything that is shown.

    Attributes:
        name: the name of the run or table.
        objective: the column that was measured.
        failed: rows without a value, left out.
        observations: the rows that were used.
        selection: the ranking, and where it stops.
        direction: "min", "max"; None: not said.
    """

    name: str
    objective: str
    failed: int
    observations: Observations
    selection: Selection
    direction: str | None

    def best_values(self) -> dict[str, str]:
        """Values of the chosen parameters together with which the mean is best."""
        from ascar.analysis.spectra import best_values

        if self.direction is None:
            return {}
        return best_values(self.observations, self.selection.selected, maximize=self.direction == "max")


def emit_importance(found: RankedImportance, drawn: list[Path]) -> None:
    """The document."""
    from ascar.cli.output import emit
    from ascar.importance import correlation
    from ascar.results.importance import ImportanceResult

    selection = found.selection
    result = ImportanceResult(
        source=found.name,
        objective=found.objective,
        rows=selection.rows,
        rows_failed=found.failed,
        mean=selection.mean,
        variance=selection.variance,
        rsd=selection.rsd,
        rsd_left=selection.rsd_left,
        ranking=selection.ranking,
        stop_reason=selection.stop_reason,
        rank_stability=selection.stability,
        r_squared=correlation(found.observations),
        best_values=found.best_values(),
        plots=tuple(str(path) for path in drawn),
    )
    emit("importance", result)


_REASONS = {
    "rsd": "configurations in which these are equal perform alike",
    "no-evidence": "what the next one explains may be chance",
    "exhausted": "no other explains anything",
    "count": "as many as were asked for",
    "too-fine": "there are too many combinations to go on",
}


def print_importance(found: RankedImportance, drawn: list[Path]) -> None:
    """The ranking as a table, what matters, and what was drawn."""
    from ascar.cli.output import people
    from ascar.importance import FOR_PEOPLE

    console, selection = people(), found.selection
    note = f"; {found.failed} failed trials are left out" if found.failed else ""
    console.print(
        f"{found.objective} in {found.name}: {selection.rows} rows, mean {selection.mean:.6g}, "
        f"relative standard deviation {percentage(selection.rsd, 1)}{note}",
        markup=False,
        soft_wrap=True,
    )
    console.print(_ranking(selection))
    chosen = ", ".join(selection.selected) or "none"
    left = percentage(selection.rsd_left, 1)
    console.print(
        f"matter: {chosen}; {_REASONS[selection.stop_reason]} (deviation left: {left})",
        markup=False,
        soft_wrap=True,
    )
    unjudged = found.observations.too_few(FOR_PEOPLE.rows_min)
    if unjudged:
        names = ", ".join(unjudged)
        console.print(
            f"not judged, fewer than two of their values have {FOR_PEOPLE.rows_min} rows: {names}",
            markup=False,
            soft_wrap=True,
        )
    if selection.stability is not None:
        console.print(f"the order is the same in {percentage(selection.stability, 0)} of the resamples")
    for name, value in found.best_values().items():
        console.print(f"best: {name} = {value}", markup=False, soft_wrap=True)
    for path in drawn:
        console.print(f"plot: {path}", markup=False, soft_wrap=True)


def _ranking(selection: Selection) -> Table:
    from rich.table import Table
    from rich.text import Text

    whole, shares = selection.variance or 1.0, selection.shares()
    table = Table(box=None, pad_edge=False)
    for heading in ("", "parameter"):
        table.add_column(heading)
    adds_up = selection.across == "mean"
    of_variance = ("by itself", "with those above", "both, 95% interval")
    for heading in of_variance if adds_up else ("greatest, over variance", "95% interval"):
        table.add_column(heading, justify="right")
    table.add_column("first in", justify="right")
    table.add_column("cannot be told from")
    for place, one in enumerate(selection.ranking, 1):
        table.add_row(
            str(place) if one.selected else "",
            Text(one.parameter),
            *(
                [percentage(share, 1) for share in shares.get(one.parameter, ())] or ["-", "-"]
                if adds_up
                else [number(one.importance / whole, 3)]
            ),
            limits(
                one.ci_low,
                one.ci_high,
                lambda end: percentage(end / whole, 1) if adds_up else number(end / whole, 3),
            )
            or "-",
            "-" if one.first_share is None else percentage(one.first_share, 0),
            Text(", ".join(one.same_as)),
        )
    return table


def draw_importance(found: RankedImportance, directory: Path) -> list[Path]:
    """Write the ranking, and means against deviations, as figures.

    Raises:
        WorkError: they cannot be written.
    """
    from ascar.analysis.spectra import fixed_values
    from ascar.analysis.spectra_figures import fixed_figure, ranking_figure
    from ascar.errors import WorkError

    first = [one.parameter for one in found.selection.ranking[:4]]
    sets = {
        count: fixed_values(found.observations, first, count) for count in range(1, min(len(first), 3) + 1)
    }
    figures = {"importance": ranking_figure(found.selection), "fixed": fixed_figure(sets, found.objective)}
    written: list[Path] = []
    for name, figure in figures.items():
        path = directory / f"{name}.svg"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, metadata={"Date": None})
        except OSError as error:
            raise WorkError(f"--plots = {str(directory)!r}: {error.strerror}; give another place") from error
        written.append(path)
    return written
