"""`ascar history pareto`: what a run offers where several objectives pull apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.options import Json, StudyOrRun, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ascar.analysis.pareto import Point
    from ascar.history import Run
    from ascar.objective import Objective

__all__ = ["EXAMPLES", "pareto"]

EXAMPLES = examples(
    "ascar history pareto mailserver --objective 'minimize latency_ms_p99'     beside the study's own",
    "ascar history pareto 3 --objective 'maximize ops_per_s' --objective 'minimize cpu_s / ops'",
)


def pareto(
    run: StudyOrRun,
    objective: Annotated[
        list[str],
        typer.Option(
            metavar="'maximize|minimize FORMULA'",
            help="Over metrics; repeat for several. A single one is put beside the study's own.",
        ),
    ],
    json: Json = False,
) -> int:
    """Show the Pareto set of a run: what no other configuration beats without losing in another objective.

    Of the configurations that were measured and met the study's constraints; scores are means over each one's
    trials. To search for a compromise, put a weighted formula into the study's objective.
    """
    from ascar.analysis.pareto import pareto_set, points_of
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_run
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.objective import Objective

    objectives = [Objective.parse(text) for text in objective]
    with History.existing() as history:
        found = find_run(history, run)
        if len(objectives) == 1:
            objectives.insert(0, found.objective)
        points = points_of(found.trials(readings=False), objectives)
        if not points:
            raise InputError(f"run {found.id} has no trial that was measured and met its constraints")
        chosen = pareto_set(points, objectives)
        default = next((one for one in points if one.configuration == found.space.default()), None)
        if json:
            emit("history-pareto", _document(found, objectives, points, chosen))
        else:
            _print(people(), found, objectives, chosen, default)
    return 0


def _document(
    run: Run, objectives: Sequence[Objective], points: Sequence[Point], chosen: Sequence[Point]
) -> dict[str, object]:
    default = run.space.default()
    return {
        "run_id": run.id,
        "study": run.name,
        "objectives": [f"{one.direction} {one.formula}" for one in objectives],
        "configurations": len(points),
        "points": [_point(one, default) for one in chosen],
        "default": next((_point(one, default) for one in points if one.configuration == default), None),
    }


def _point(point: Point, default: object) -> dict[str, object]:
    return {
        "configuration": dict(point.configuration),
        "scores": list(point.scores),
        "trials": list(point.trials),
        "is_default": point.configuration == default,
    }


def _print(
    console: Console,
    run: Run,
    objectives: Sequence[Objective],
    chosen: Sequence[Point],
    default: Point | None,
) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for one in objectives:
        table.add_column(f"{one.direction} {one.formula}", justify="right")
    table.add_column("trials", justify="right")
    table.add_column("what differs from the default", overflow="fold")
    space = run.space
    rows = list(chosen) if default is None or default in chosen else [*chosen, default]
    for point in rows:
        names = space.change(space.default(), point.configuration).parameters
        changed = ", ".join(f"{name}={point.configuration.get(name, 'n/a')}" for name in names)
        mark = "" if point in chosen else "  (not in the set)"
        table.add_row(
            *(f"{score:.6g}" for score in point.scores),
            ",".join(map(str, point.trials[:4])) + ("..." if len(point.trials) > 4 else ""),
            (changed or "nothing: it is the default") + mark,
        )
    console.print(f"{run.name} (run {run.id}): {len(chosen)} configurations", style="bold", markup=False)
    console.print(table, markup=False)
