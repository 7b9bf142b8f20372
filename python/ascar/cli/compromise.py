"""Several objectives shown: the Pareto set with intervals, and what each objective gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.render import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ascar.history import Run
    from ascar.objective import Objective
    from ascar.results.outcome import Outcome
    from ascar.results.pareto import ParetoPoint


@dataclass(frozen=True, slots=True)
class Front:
    """What a run offers.

    Attributes:
        run: the run.
        objectives: the objectives of the points.
        points: everything that was measured and met the constraints.
        chosen: the Pareto set, the best in the first objective first.
    """

    run: Run
    objectives: Sequence[Objective]
    points: Sequence[ParetoPoint]
    chosen: Sequence[ParetoPoint]

    @property
    def default(self) -> ParetoPoint | None:
        """The default configuration's point."""
        return next((one for one in self.points if one.is_default), None)


def front_of(run: Run, objectives: Sequence[Objective]) -> Front:
    """The Pareto set of a run.

    Raises:
        InputError: an objective names a metric that was not measured.
    """
    from ascar.analysis.pareto import pareto_set, points_of

    points = points_of(run.trials(), objectives, run.space.default())
    return Front(run, objectives, points, pareto_set(points, objectives))


def print_front(console: Console, front: Front, recommended: object = None) -> None:
    """The set as a table, the default below it where it is not in it."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for one in front.objectives:
        table.add_column(one.text, justify="right")
    table.add_column("trials", justify="right")
    table.add_column("what differs from the default", overflow="fold")
    space, default, chosen = front.run.space, front.default, front.chosen
    rows = list(chosen) if default is None or default in chosen else [*chosen, default]
    for point in rows:
        names = space.change(space.default(), point.configuration).parameters
        changed = ", ".join(f"{name}={point.configuration.get(name, 'n/a')}" for name in names)
        mark = "" if point in chosen else "  (not in the set)"
        mark += "  (recommended)" if point.configuration == recommended else ""
        table.add_row(
            *(_shown(*pair) for pair in zip(point.scores, point.intervals, strict=True)),
            ",".join(map(str, point.trials[:4])) + ("..." if len(point.trials) > 4 else ""),
            (changed or "nothing: it is the default") + mark,
        )
    console.print(table, markup=False)


def print_gains(console: Console, outcome: Outcome) -> None:
    """What the last comparison says of each objective."""
    from ascar.objective import Objective

    for gain in outcome.verdict.objectives:
        one = Objective.parse(gain.objective)
        line = f"{one.unit}: {number(gain.best_mean)} against {number(gain.default_mean)}"
        if said := one.gained(gain):
            line += f", {said}"
        if limits := one.gained_between(gain):
            line += f" ({limits})"
        console.print(f"  {line}", soft_wrap=True, markup=False)


def _shown(score: float, interval: tuple[float, float] | None) -> str:
    limits = "" if interval is None else f" [{interval[0]:.4g}, {interval[1]:.4g}]"
    return f"{score:.5g}{limits}"
