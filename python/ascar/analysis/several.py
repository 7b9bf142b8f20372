"""Several objectives in the report: what each one gains, and the Pareto set as a figure and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.analysis.drawing import COLOURS, Drawing, axes_of, plain_numbers, styled, svg
from ascar.analysis.labels import metric_label
from ascar.analysis.markup import Html, each, tag
from ascar.analysis.pareto import pareto_set, points_of
from ascar.analysis.sections import table
from ascar.objective import Objective
from ascar.render import compact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.history import Run
    from ascar.results.outcome import Outcome
    from ascar.results.pareto import ParetoPoint
    from ascar.results.trial import Trial


def several_section(run: Run, outcome: Outcome, trials: Sequence[Trial]) -> Html:
    """Nothing for a study with one objective.

    Raises:
        InputError: an objective has no value in some trial.
    """
    objectives = run.objectives
    points = points_of(trials, objectives) if len(objectives) > 1 else []
    if not points:
        return Html("")
    chosen = pareto_set(points, objectives)
    default = run.space.default()
    rows = [
        [_configuration(one, run), *(_score(one, at) for at in range(len(objectives))), str(one.trials[-1])]
        for one in chosen
    ]
    drawing = front_figure(points, chosen, objectives, default)
    figure = tag(
        "figure",
        tag(
            "div", Html(svg(drawing, "front")), class_="wide", tabindex="0", role="group", aria_label="front"
        ),
        tag("figcaption", "Each dot is a configuration, with 95% intervals of those in the set."),
    )
    heads = ["what differs from the default", *(f"{one.text} " for one in objectives), "trial "]
    return each(
        tag("h2", "Several objectives"),
        _gains(outcome),
        tag(
            "p",
            "The recommendation is the best compromise, with the study's weights. The Pareto set is what "
            "nothing else beats without losing in another objective; where intervals overlap, two may change "
            f"places when measured again. `ascar apply {run.id} --trial NUMBER` takes another one, "
            "not verified.",
        ),
        figure,
        table("Pareto set", heads, rows),
    )


def front_figure(
    points: Sequence[ParetoPoint],
    chosen: Sequence[ParetoPoint],
    objectives: Sequence[Objective],
    default: object,
) -> Drawing:
    """The first two objectives of every configuration, the set with its intervals, the default marked."""
    first, second = objectives[:2]
    with styled():
        figure, axes = axes_of(3.4)
        axes.plot(
            *([point.scores[at] for point in points] for at in (0, 1)),
            ls="none", marker="o", ms=4, color=COLOURS["other"], alpha=0.6, mew=0, label="measured",
        )  # fmt: skip
        for at, one in enumerate(chosen):
            errors = [_reach(one, 0), _reach(one, 1)]
            label = "Pareto set" if at == 0 else None
            axes.errorbar(
                one.scores[0], one.scores[1], xerr=errors[0], yerr=errors[1], fmt="o", ms=6,
                color=COLOURS["best"], lw=1.2, capsize=3, label=label,
            )  # fmt: skip
        for one in points:
            if one.configuration == default:
                axes.plot(*one.scores[:2], "D", ms=8, color=COLOURS["default"], label="default")
        plain_numbers(axes)
        axes.set_xlabel(metric_label(first.unit))
        axes.set_ylabel(metric_label(second.unit))
        axes.legend()
    ends = f"from {compact(chosen[0].scores[0])} and {compact(chosen[0].scores[1])}"
    return Drawing(
        figure,
        f"{len(points)} configurations by {first.text} and {second.text}; {len(chosen)} in the Pareto set, "
        f"{ends} to {compact(chosen[-1].scores[0])} and {compact(chosen[-1].scores[1])}.",
    )


def _gains(outcome: Outcome) -> Html:
    """What the last comparison says of each objective."""
    if not outcome.verdict.objectives:
        return Html("")
    rows: list[list[str]] = []
    for gain in outcome.verdict.objectives:
        one = Objective.parse(gain.objective)
        said = one.gained(gain)
        if limits := one.gained_between(gain):
            said += f" ({limits})"
        rows.append([one.text, compact(gain.default_mean), compact(gain.best_mean), said])
    heads = ["objective", "default ", "best found ", "difference, all intervals together"]
    return table("Best and default, objective by objective", heads, rows)


def _configuration(point: ParetoPoint, run: Run) -> str:
    names = run.space.change(run.space.default(), point.configuration).parameters
    changed = ", ".join(f"{name}={point.configuration.get(name, 'n/a')}" for name in names)
    return changed or "nothing: it is the default"


def _score(point: ParetoPoint, at: int) -> str:
    interval = point.intervals[at]
    limits = "" if interval is None else f" [{compact(interval[0])}, {compact(interval[1])}]"
    return f"{compact(point.scores[at])}{limits}"


def _reach(point: ParetoPoint, at: int) -> list[list[float]] | None:
    """How far the interval reaches below and above, as Matplotlib wants it."""
    interval = point.intervals[at]
    if interval is None:
        return None
    return [[max(0.0, point.scores[at] - interval[0])], [max(0.0, interval[1] - point.scores[at])]]
