"""What each value of each parameter went along with: one small figure a parameter (compare Cao 5.4, 8.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Rectangle

from ascar.analysis.drawing import COLOURS, Drawing, axes_of, plain_numbers, styled
from ascar.analysis.labels import metric_label
from ascar.render import compact, on_axis
from ascar.space.domain import Choices
from ascar.space.parameter import value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.objective import Objective
    from ascar.results.trial import Trial
    from ascar.space import Space
    from ascar.space.domain import Value

_ROWS_MAX = 8
_DOTS_MAX = 150
_LABEL_LENGTH_MAX = 24
_ABSENT = "n/a"


@dataclass(frozen=True, slots=True)
class Marginal:
    """The scores that went along with each value of one parameter.

    Attributes:
        parameter: the parameter's name.
        rows: each value's label, and the scores of the trials that had it, in the values' order.
        share: the R squared of section 5.4, adjusted for the number of values, times the share of trials to
            which the parameter applies. It orders the figures and does not measure importance, because the
            trials of a search are not a random sample.
    """

    parameter: str
    rows: tuple[tuple[str, NDArray[np.float64]], ...]
    share: float


def marginals(trials: Sequence[Trial], space: Space) -> list[Marginal]:
    """Of every parameter that took more than one value, the most telling first; verification left out."""
    kept = [trial for trial in trials if trial.score is not None and not trial.purpose.of_comparison]
    found: list[Marginal] = []
    for name in space.names:
        rows = _rows(name, kept, space)
        if len(rows) > 1:
            # Of few trials, and of those that share a file system, little can be said.
            share = _share([scores for _, scores in rows]) * sum(len(s) for _, s in rows) / len(kept)
            absent = [
                trial.score for trial in kept if trial.score is not None and name not in trial.configuration
            ]
            rows += [(_ABSENT, np.array(absent))] if absent else []
            found.append(Marginal(name, tuple(rows), share))
    return sorted(found, key=lambda marginal: -marginal.share)


def marginal_figure(marginal: Marginal, objective: Objective, span: tuple[float, float]) -> Drawing:
    """A row a value: trials as dots, the middle half a box, the median a line, the mean a diamond.

    Args:
        marginal: the parameter to draw.
        objective: labels the axis.
        span: lowest and highest score of the study, so that figures side by side have one scale.
    """
    rng = np.random.default_rng(0)  # of the jitter only
    with styled(axes_grid_axis="x"):
        figure, axes = axes_of(0.62 + 0.3 * len(marginal.rows), 3.7)
        plain_numbers(axes, ticks=4)
        for row, (label, scores) in enumerate(marginal.rows):
            colours = ("muted", "muted") if label == _ABSENT else ("best", "default")
            low, middle, high = np.percentile(scores, [25, 50, 75])
            axes.plot([scores.min(), scores.max()], [row, row], color=COLOURS["muted"], lw=0.8)
            axes.add_patch(
                Rectangle(
                    (low, row - 0.3),
                    high - low,
                    0.6,
                    facecolor=COLOURS[colours[0]],
                    alpha=0.25,
                    lw=0,
                    zorder=2,
                )
            )
            axes.plot([middle, middle], [row - 0.3, row + 0.3], color=COLOURS[colours[0]], lw=1.6, zorder=3)
            if len(scores) <= _DOTS_MAX:
                offsets = row + rng.uniform(-0.2, 0.2, len(scores))
                axes.plot(scores, offsets, "o", ms=2.4, color=COLOURS["muted"], alpha=0.6, mew=0, zorder=3)
            axes.plot(scores.mean(), row, "D", ms=5, color=COLOURS[colours[1]], mec="none", zorder=4)
        axes.set_yticks(
            range(len(marginal.rows)),
            [f"{label}  \N{MULTIPLICATION SIGN}{len(scores)}" for label, scores in marginal.rows],
        )
        axes.tick_params(axis="y", length=0, labelcolor=COLOURS["ink"])
        low, high = span
        margin = 0.04 * (high - low) or 1.0
        axes.set_xlim(low - margin, high + margin)
        axes.set_ylim(len(marginal.rows) - 0.45, -0.55)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(metric_label(objective.unit), fontsize=8)
    means = ", ".join(f"{label} {compact(float(scores.mean()))}" for label, scores in marginal.rows)
    return Drawing(figure, f"Mean score by value of {marginal.parameter}: {means}.")


def _rows(name: str, trials: Sequence[Trial], space: Space) -> list[tuple[str, NDArray[np.float64]]]:
    """Scores by value; a number with many values by ranges of about equally many trials."""
    scores: dict[Value, list[float]] = {}
    for trial in trials:
        assert trial.score is not None
        if name in trial.configuration:
            scores.setdefault(trial.configuration[name], []).append(trial.score)
    domain = space[name].domain
    order = list(domain.values) if isinstance(domain, Choices) else sorted(scores, key=_magnitude)
    values = sorted(scores, key=lambda value: order.index(value) if value in order else len(order))
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    if len(values) > _ROWS_MAX and numeric:
        rows = _ranges([(_magnitude(value), score) for value in values for score in scores[value]])
    elif len(values) > _ROWS_MAX:
        values.sort(key=lambda value: -len(scores[value]))
        rows = [_row(value, scores[value]) for value in values[: _ROWS_MAX - 1]]
        others = [score for value in values[_ROWS_MAX - 1 :] for score in scores[value]]
        rows.append((f"{len(values) - _ROWS_MAX + 1} others", np.array(others)))
    else:
        rows = [_row(value, scores[value]) for value in values]
    return rows


def _row(value: Value, scores: list[float]) -> tuple[str, NDArray[np.float64]]:
    text = value_text(value) if value != "" else '""'
    cut = (
        text if len(text) <= _LABEL_LENGTH_MAX else f"{text[: _LABEL_LENGTH_MAX - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
    return cut, np.array(scores)


def _ranges(pairs: list[tuple[float, float]]) -> list[tuple[str, NDArray[np.float64]]]:
    pairs.sort(key=lambda pair: pair[0])
    values, scores = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    edges = np.unique(np.quantile(values, np.linspace(0, 1, 7), method="lower"))
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, max(len(edges) - 2, 0))
    rows: list[tuple[str, NDArray[np.float64]]] = []
    for index in np.unique(place):
        inside = place == index
        low, high = float(values[inside].min()), float(values[inside].max())
        label = on_axis(low) if low == high else f"{on_axis(low)} \N{EN DASH} {on_axis(high)}"
        rows.append((label, scores[inside]))
    return rows


def _magnitude(value: Value) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _share(groups: Sequence[NDArray[np.float64]]) -> float:
    """Adjusted R squared of the groups' means; 0 where nothing varies, or each group is one trial."""
    every = np.concatenate(groups)
    whole = float(((every - every.mean()) ** 2).sum())
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    if whole == 0 or len(every) <= len(groups):
        return 0.0
    return 1 - within / whole * (len(every) - 1) / (len(every) - len(groups))
