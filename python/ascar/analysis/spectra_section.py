"""Which parameters matter, in the report: the ranking as a figure and a table, mean against deviation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ascar.analysis.drawing import Drawing, svg
from ascar.analysis.frames import trials_frame
from ascar.analysis.labels import metric_label
from ascar.analysis.markup import Html, each, tag
from ascar.analysis.sections import table
from ascar.analysis.spectra import TableRoles, fixed_values, observations_of
from ascar.analysis.spectra_figures import fixed_figure, ranking_figure
from ascar.analysis.tables import ended_trials
from ascar.errors import InputError
from ascar.importance import FOR_PEOPLE, select
from ascar.render import limits, percentage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from ascar.history import Run
    from ascar.importance import Selection
    from ascar.results.trial import Trial

_TRIALS_MIN = 16  # of fewer every order is chance
_FIXED = 3
_SHOWN = 4


def importance_section(run: Run, trials: Sequence[Trial]) -> Html:
    """Nothing where too little was measured, or only one parameter varies."""
    frame = ended_trials(trials_frame(trials, run.objective))
    names = tuple(name for name in run.space.names if name in frame.columns)
    try:
        observations = observations_of(frame, "trial.score", TableRoles(names))
        unjudged = observations.too_few(FOR_PEOPLE.rows_min)
        if len(observations.values) < _TRIALS_MIN or len(observations.factors) < 2:
            return Html("")
        if len(unjudged) == len(observations.factors):
            return Html("")
        selection = select(observations, FOR_PEOPLE, np.random.default_rng(1))
        ranking = tuple(one for one in selection.ranking if one.parameter not in unjudged)
        selection = replace(selection, ranking=ranking)
        first = [one.parameter for one in ranking[:_SHOWN]]
        sets = {
            count: fixed_values(observations, first, count) for count in range(1, min(len(first), _FIXED) + 1)
        }
    except InputError:  # e.g. text of thousands of values
        return Html("")
    if not selection.ranking or not selection.variance:
        return Html("")
    ranked = ", ".join(
        _said(one.parameter, one.importance / selection.variance) for one in selection.ranking[:5]
    )
    stable = "" if selection.stability is None else (
        f" The order of those selected is the same in {percentage(selection.stability)} of the resamples."
    )  # fmt: skip
    chosen = ", ".join(selection.selected) or "none"
    shares = selection.shares().values()
    alone, together = sum(own for own, _ in shares), sum(both for _, both in shares)
    left_out = (
        f" Not judged, because fewer than two of their values have {FOR_PEOPLE.rows_min} trials each: "
        f"{', '.join(unjudged)}." if unjudged else ""
    )  # fmt: skip
    return each(
        tag("h3", "Which of them matter"),
        tag(
            "p",
            f"By the variance of the score that each explains, given those before it (Spectra): {chosen}. "
            f"By themselves they explain {percentage(alone)} of it, by interactions (only together) another "
            f"{percentage(together)}; the rest is that of other parameters, and of noise.{stable}{left_out} "
            "A search samples where scores are good, so this is of what was tried; a sweep tells of all.",
        ),
        _figure(
            ranking_figure(selection),
            f"Importance of parameters, over the variance of all trials: {ranked}.",
            "importance",
            "Importance: the share of the variance of all trials' scores that splitting the trials by the "
            "parameter's value explains, in trials that are alike in the parameters above it. The lines are "
            "95% intervals, by resampling the trials (bootstrap).",
        ),
        table("Importance of parameters", _HEADS, _rows(selection)),
        _figure(
            fixed_figure(sets, metric_label(run.objective.unit)),
            f"Mean against relative deviation of trials in which values of {', '.join(first)} are fixed.",
            "fixed",
            "Each dot is a set of trials in which so many of the first parameters have certain values: to "
            "the right their mean, upwards their relative standard deviation (standard deviation over mean). "
            "Where dots lie low, the parameters that are fixed decide the score.",
        ),
    )  # fmt: skip


# Two columns of shares, which add up to at most 100%; the interval is that of their sum.
_HEADS = ("parameter", "by itself ", "with those above ", "both, 95% interval ", "cannot be told from")


def _rows(selection: Selection) -> list[list[str]]:
    rows: list[list[str]] = []
    shares, none = selection.shares(), "\N{EN DASH}"
    for one in selection.ranking[:12]:
        interval = limits(one.ci_low, one.ci_high, lambda end: percentage(end / selection.variance)) or none
        told = [percentage(share) for share in shares.get(one.parameter, ())] or [none, none]
        rows.append([one.parameter, *told, interval, ", ".join(one.same_as)])
    return rows


def _said(name: str, share: float) -> str:
    return f"{name} {percentage(share)}"


def _figure(figure: Figure, alt: str, name: str, caption: str) -> Html:
    figure.set_facecolor("none")  # the page's own colour, light or dark
    inside = Html(svg(Drawing(figure, alt), name))
    wide = tag("div", inside, class_="wide", tabindex="0", role="group", aria_label=name)
    return tag("figure", wide, tag("figcaption", caption))
