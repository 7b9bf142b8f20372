"""Results as a notebook shows them: the verdict, a table, plots."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ascar.analysis import figures, sections, trials_frame
from ascar.analysis.drawing import COLOURS, Drawing, axes_of, styled, svg
from ascar.analysis.markup import Html, tag
from ascar.render import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ascar.api.measuring import Measurements, Ranking
    from ascar.api.tuning import TuneOutcome

_SHOWN_MAX = 2000
# A notebook is one page: what has a name in it needs one of its own.
_numbers = itertools.count(1)


def outcome_page(outcome: TuneOutcome) -> Html:
    """The verdict, the configuration, the last comparison, and the course of the search."""
    objective, space = outcome.objective, outcome.space
    assert objective is not None, "what `ascar.tune` returns knows its objective"
    assert space is not None, "what `ascar.tune` returns knows its space"
    default = None if outcome.default is None else outcome.default.score
    drawings = (
        figures.comparison(outcome.verdict, objective),
        figures.best_so_far(trials_frame(outcome.trials, objective), objective, default),
    )
    return tag(
        "div",
        sections.verdict_section(outcome, objective),
        sections.configuration_section(outcome, space),
        *map(_drawn, drawings),
    )


def measure_page(result: Measurements) -> Html:
    """The mean with its interval, why it ended, and the rounds."""
    shown = {one.name: one for one in result.indicators}
    rows = [(name, interval(one), f"{one.confidence:.4g}", one.verdict) for name, one in shown.items()]
    rows = rows or [(result.name, interval(result), f"{result.confidence:.4g}", result.verdict)]
    ended = f"{result.ended}; {len(result.rounds)} rounds, {result.seconds:.1f} s"
    return tag(
        "div",
        tag("p", tag("strong", "done: " if result.reached else "PARTIAL: "), ended),
        sections.table("Means with their intervals", ["", "mean ", "confidence ", "verdict"], rows),
        _drawn(_rounds(result)),
    )


def compare_page(result: Ranking) -> Html:
    """The ranking, how each stands against the next, and the means."""
    against = [*(pair.verdict_line for pair in result.pairs), ""]
    rows = [
        (str(one.rank), one.name, interval(one), str(one.n), line)
        for one, line in zip(result.ranking, against, strict=True)
    ]
    better = "lower" if result.lower_is_better else "higher"
    head = ["rank ", "", f"mean {result.metric} ", "n ", "against the next"]
    return tag(
        "div",
        tag("p", tag("strong", f"{result.verdict}: "), f"{result.ended}; {better} is better"),
        sections.table("Ranking", head, rows),
        _drawn(_means(result)),
    )


def _drawn(drawing: Drawing | None) -> Html:
    if drawing is None:
        return Html("")
    return tag("div", Html(svg(drawing, f"ascar-{next(_numbers)}")), style="max-width: 50em")


def _rounds(result: Measurements) -> Drawing | None:
    """What each round read, under the mean with its interval."""
    values = [done.readings[result.name] for done in result.rounds if result.name in done.readings]
    if len(values) < 2:
        return None
    stride = -(-len(values) // _SHOWN_MAX)
    with styled():
        figure, axes = axes_of(2.3)
        axes.plot(
            range(0, len(values), stride), values[::stride], ".", ms=4, color=COLOURS["best"], alpha=0.6
        )
        _mean_line(axes, result)
        axes.set_xlabel("round")
        axes.set_ylabel(result.name)
    return Drawing(figure, f"{result.name} of {len(values)} rounds; mean {interval(result)}.")


def _mean_line(axes: Axes, result: Measurements) -> None:
    axes.axhline(result.mean, color=COLOURS["ink"], lw=1.1)
    if result.ci_low is not None and result.ci_high is not None:
        axes.axhspan(result.ci_low, result.ci_high, color=COLOURS["ink"], alpha=0.12, lw=0)


def _means(result: Ranking) -> Drawing:
    """Each mean with its interval, the best on top."""
    said: list[str] = []
    with styled(axes_grid_axis="x"):
        figure, axes = axes_of(0.9 + 0.35 * len(result.ranking))
        for row, one in enumerate(result.ranking):
            if one.ci_low is not None and one.ci_high is not None:
                limits = [[one.mean - one.ci_low], [one.ci_high - one.mean]]
                axes.errorbar(one.mean, row, xerr=limits, color=COLOURS["best"], lw=2, capsize=5)
            axes.plot(one.mean, row, "D", ms=6, color=COLOURS["best"])
            said.append(f"{one.name} {interval(one)}")
        axes.set_yticks(range(len(said)), [one.name for one in result.ranking])
        axes.invert_yaxis()
        axes.set_xlabel(result.metric)
    return Drawing(figure, f"Means of {result.metric}: {'; '.join(said)}.")
