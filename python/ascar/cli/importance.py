"""`ascar importance`: which parameters matter."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.options import Json, examples

if TYPE_CHECKING:
    from ascar.importance import Observations, Selection

__all__ = ["EXAMPLES", "importance"]

EXAMPLES = examples(
    "ascar importance mailserver",
    "ascar importance --table results.csv --objective iops --direction max --plots figures",
    "ascar importance --table dataset:storage-v5-fileserver --objective operations --json",
    "ascar importance --table grid.parquet --objective time_s --ignore host,date --samples 32 --seed 7",
)


def importance(
    run: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY|RUN]", help="A study's name or file (its latest run), or a run's number."
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of a run: CSV, Parquet, or dataset:NAME."),
    ] = None,
    objective: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The table's column that was measured.")
    ] = None,
    direction: Annotated[
        str | None, typer.Option(metavar="min|max", help="Which way is better: names the best values.")
    ] = None,
    parameters: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns that are parameters; default: all others.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(metavar="C,D", help="Columns that are none.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=2, help="Use only so many rows, chosen evenly over every parameter.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of sampling and resampling.")] = 1,
    rsd: Annotated[
        float,
        typer.Option(min=0, max=100, help="Per cent: choose until configurations vary no more than that."),
    ] = 2.0,
    across: Annotated[
        str,
        typer.Option(
            metavar="max|mean",
            help="Importance given others: the greatest over their values (published), or the mean.",
        ),
    ] = "max",
    plots: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw the ranking, and mean against deviation.")
    ] = None,
    json: Json = False,
) -> int:
    """Rank parameters by how much of the objective's variance each explains, given those ranked before it.

    Each importance has a bootstrap interval, and the order a share of resamples in which it is the same.
    """
    import numpy as np

    from ascar.analysis.spectra import observations_of, sampled_rows
    from ascar.cli.importance_source import read_run, read_table
    from ascar.errors import InputError
    from ascar.importance import Rules, select

    if (run is None) == (table is None):
        raise InputError("importance: name a study, or a table with --table; one of the two")
    if across not in ("max", "mean"):
        raise InputError(f"--across = {across!r}: must be max or mean")
    if direction not in (None, "min", "max"):
        raise InputError(f"--direction = {direction!r}: must be min or max")
    if table is not None:
        source = read_table(table, objective, parameters, ignore)
    else:
        given = {"--objective": objective, "--parameters": parameters, "--ignore": ignore}
        for option, value in given.items():
            if value is not None:
                raise InputError(f"{option} = {value!r}: a run knows that; leave it out, or give a --table")
        source = read_run(run or "")
    observations = observations_of(source.frame, source.objective, source.sheet)
    rng = np.random.default_rng(seed)
    whole = len(observations.values)
    if samples is not None:
        observations = observations.rows(sampled_rows(observations, samples, rng))
    selection = select(observations, Rules(rsd_max=rsd / 100, across=across), rng)
    found = _Found(
        source.name,
        source.objective,
        source.frame.height - whole,
        observations,
        selection,
        direction or source.direction,
    )
    drawn = [] if plots is None else _draw(found, plots)
    _emit(found, drawn) if json else _print(found, drawn)
    return 0


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """Everything that is shown."""

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


def _emit(found: _Found, drawn: list[Path]) -> None:
    from ascar.cli.output import emit
    from ascar.importance import correlation
    from ascar.outcome import json_ready

    selection = found.selection
    emit(
        "importance",
        {
            "source": found.name,
            "objective": found.objective,
            "rows": selection.rows,
            "rows_failed": found.failed,
            "mean": selection.mean,
            "variance": selection.variance,
            "rsd": json_ready(selection.rsd),
            "rsd_left": json_ready(selection.rsd_left),
            "ranking": [
                {
                    "parameter": one.parameter,
                    "importance": one.importance,
                    "ci_low": one.ci_low,
                    "ci_high": one.ci_high,
                    "conditional_on": list(one.conditional_on),
                    "importance_alone": one.alone,
                    "first_share": one.first_share,
                    "selected": one.selected,
                    "same_as": list(one.same_as),
                }
                for one in selection.ranking
            ],
            "stop_reason": selection.stop_reason,
            "rank_stability": selection.stability,
            "r_squared": correlation(found.observations),
            "best_values": found.best_values(),
            "plots": [str(path) for path in drawn],
        },
    )


_REASONS = {
    "rsd": "configurations in which these are equal perform alike",
    "no-evidence": "what the next one explains may be chance",
    "exhausted": "no other explains anything",
    "count": "as many as were asked for",
    "too-fine": "there are too many combinations to go on",
}


def _print(found: _Found, drawn: list[Path]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ascar.cli.output import people

    console, selection = people(), found.selection
    whole = selection.variance or 1.0
    note = f"; {found.failed} failed trials are left out" if found.failed else ""
    console.print(
        f"{found.objective} in {found.name}: {selection.rows} rows, mean {selection.mean:.6g}, "
        f"relative standard deviation {selection.rsd:.1%}{note}",
        markup=False,
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    for heading in ("", "parameter"):
        table.add_column(heading)
    for heading in ("of variance", "95% interval", "alone", "first in"):
        table.add_column(heading, justify="right")
    table.add_column("cannot be told from")
    for place, one in enumerate(selection.ranking, 1):
        interval = "-" if one.ci_low is None or one.ci_high is None else (
            f"{one.ci_low / whole:.1%} to {one.ci_high / whole:.1%}"
        )  # fmt: skip
        table.add_row(
            str(place) if one.selected else "",
            Text(one.parameter),
            f"{one.importance / whole:.1%}",
            interval,
            f"{one.alone / whole:.1%}",
            "-" if one.first_share is None else f"{one.first_share:.0%}",
            Text(", ".join(one.same_as)),
        )
    console.print(table)
    chosen = ", ".join(selection.selected) or "none"
    console.print(
        f"matter: {chosen}; {_REASONS[selection.stop_reason]} (deviation left: {selection.rsd_left:.1%})",
        markup=False,
        soft_wrap=True,
    )
    if selection.stability is not None:
        console.print(f"the order is the same in {selection.stability:.0%} of the resamples")
    for name, value in found.best_values().items():
        console.print(f"best: {name} = {value}", markup=False, soft_wrap=True)
    for path in drawn:
        console.print(f"plot: {path}", markup=False, soft_wrap=True)


def _draw(found: _Found, directory: Path) -> list[Path]:
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
