"""Variation in the report: how much runs of one configuration differ, and what may be the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.analysis.drawing import svg
from ascar.analysis.markup import Html, each, tag
from ascar.analysis.sections import table
from ascar.analysis.variation_checks import LEVEL
from ascar.analysis.variation_runs import runs_of
from ascar.analysis.variation_study import VariationRequest, examined, figures_of
from ascar.analysis.variation_trials import trial_material
from ascar.errors import InputError
from ascar.render import compact, percentage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.analysis.variation_study import Variation
    from ascar.history import Run
    from ascar.results.trial import Trial

_RUNS_MIN = 6  # of fewer nothing is known
_FIRST = ("boxes", "bands", "cumulative", "range-mean")
_CAPTIONS: Mapping[str, str] = {
    "range-mean": "Relative range of each configuration's runs against their mean.",
    "across": "The same configurations side by side: ranges above, means below.",
    "boxes": "The configurations that vary most: each dot a run, the box the middle half of more than three; "
    "at the right the relative range.",
    "cumulative": "Mean throughput since the start, over its end, a line a run; the band counts as settled.",
    "bands": "From the lowest to the highest run of a configuration in each window; the line is their mean.",
    "windows": "Ranges over the runs by length of window: how long is long enough to compare.",
    "instantaneous": "Every reading of one run over its largest.",
    "latencies": "Latency percentiles; the lines join what is known.",
    "correlations": "Do operations whose latencies vary make the throughput vary? From the dashed line on "
    "the correlation is called strong; it is no cause.",
}


def variation_section(run: Run, trials: Sequence[Trial]) -> Html:
    """Nothing for a study without repetitions."""
    frame, layout = trial_material(run, trials)
    try:
        runs = runs_of(frame, layout) if frame.height else None
    except InputError:  # nothing was measured twice
        return Html("")
    if runs is None or len(runs.scores) < _RUNS_MIN:
        return Html("")
    found = examined(runs, VariationRequest())
    drawn = {
        name: tag(
            "figure",
            tag(
                "div", Html(svg(drawing, f"variation-{name}")), class_="wide", tabindex="0", role="group",
                aria_label=f"variation: {name}",
            ),
            tag("figcaption", _CAPTIONS[name]),
        )
        for name, drawing in figures_of(found).items()
        if not isinstance(drawing, str)
    }  # fmt: skip
    more = [figure for name, figure in drawn.items() if name not in _FIRST]
    return each(
        tag("h2", "Variation"),
        tag(
            "p",
            f"{len(runs)} configurations were measured more than once, {len(runs.scores)} runs in all. "
            "Trials that the search chose by their score are not counted: they are too good by chance.",
        ),
        _groups(found),
        *(drawn[name] for name in _FIRST if name in drawn),
        tag("details", tag("summary", f"{len(more)} more figures"), *more) if more else "",
        _advice(found),
    )


def _groups(found: Variation) -> Html:
    rows = [
        [
            one.name,
            str(one.configurations),
            " to ".join(map(str, dict.fromkeys(one.runs))),
            " to ".join(compact(mean) for mean in dict.fromkeys(one.mean)),
            *(percentage(value) for value in (one.rsd[0], one.rsd[2], one.range[0], one.range[2])),
        ]
        for one in found.groups
    ]
    heads = [
        found.by or "",
        "configurations ",
        "runs each ",
        "mean ",
        "RSD, median ",
        "most ",
        "range, median ",
    ]
    return table("Variation of runs", [*heads, "most "], rows)


def _advice(found: Variation) -> Html:
    if not found.checks:
        return Html("")
    causes = ", ".join(one.cause for one in found.checks)
    chance = percentage(LEVEL, 0)
    looked = f"Looked for: {causes}; where there is none, the chance of any advice is at most {chance}."
    if not found.advice:
        return tag("p", f"No cause of variation has evidence. {looked}", class_="muted")
    items = [
        tag(
            "li", tag("strong", one.title), f": {one.evidence}. ", tag("em", "What to do: "), f"{one.action}."
        )
        for one in found.advice
    ]
    return each(tag("h3", "What may be the cause"), tag("ul", *items), tag("p", looked, class_="muted"))
