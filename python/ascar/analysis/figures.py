"""The figures of a study. Each takes values and gives a drawing, or None where there is nothing to show."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import blended_transform_factory

from ascar.analysis.drawing import COLOURS, Drawing, axes_of, plain_numbers, styled
from ascar.analysis.labels import metric_label
from ascar.pilot.turns import mean_at_any_time, mean_of_runs
from ascar.render import compact, duration_unit, percentage
from ascar.results.stages import in_order
from ascar.results.trial import Purpose

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ascar.objective import Objective
    from ascar.results.trial import Trial
    from ascar.results.verdict import Verdict
    from ascar.space import Configuration

# Beyond so many readings a figure shows one mean a trial: a page of megabytes shows no more than that.
_READINGS_MAX = 6000
_COMPARED = [purpose.value for purpose in Purpose if purpose.of_comparison]
_DOTS_MAX = 2000


def best_so_far(frame: pl.DataFrame, objective: Objective, default_score: float | None) -> Drawing | None:
    """The best score found so far over time, and every trial as a dot (Cao Fig. 5.2).

    Args:
        frame: a frame made by `trials_frame`.
        objective: labels the axis.
        default_score: the default's mean, drawn as a line; None: not measured.
    """
    searched = frame.filter(frame["trial.purpose"].is_in(_COMPARED).not_() & frame["trial.usable"])
    if searched.is_empty():
        return None
    factor, unit = duration_unit(float(searched["trial.elapsed_s"][-1]))
    at = searched["trial.elapsed_s"].to_numpy() / factor
    scores, best = searched["trial.score"].to_numpy(), searched["trial.best_so_far"].to_numpy()
    with styled():
        figure, axes = axes_of()
        if len(at) <= _DOTS_MAX:
            axes.plot(at, scores, "o", ms=3.5, color=COLOURS["muted"], alpha=0.55, mew=0, label="each trial")
        axes.step(at, best, where="post", color=COLOURS["best"], lw=2, label="best so far")
        axes.plot(at[-1], best[-1], "o", ms=6, color=COLOURS["best"])
        if default_score is not None:
            axes.axhline(default_score, color=COLOURS["default"], lw=1.6, ls=(0, (5, 3)), label="default")
        axes.set_xlabel(f"time spent on trials ({unit})")
        axes.set_ylabel(metric_label(objective.unit))
        axes.set_xlim(left=0)
        axes.margins(y=0.08)
        _legend(axes)
    against = "" if default_score is None else f"; the default scores {compact(default_score)}"
    alt = (
        f"Best {metric_label(objective.unit)} found so far over {at[-1]:.3g} {unit}: from {compact(best[0])} "
        f"to {compact(best[-1])}{against}."
    )
    return Drawing(figure, alt)


def instantaneous(trials: Sequence[Trial], objective: Objective) -> Drawing | None:
    """What the system delivered while it was being tuned: every reading over time (Cao Fig. 5.4).

    Between the loads (formatting, filling) nothing was measured, and nothing is drawn.
    """
    pieces = _pieces(trials, objective)
    if not pieces:
        return None
    factor, unit = duration_unit(max(float(at[-1]) for _, at, _ in pieces))
    thin = sum(len(at) for _, at, _ in pieces) > _READINGS_MAX
    groups = {Purpose.DEFAULT: ("default", "default"), Purpose.VERIFY: ("verification", "measurement")}
    groups[Purpose.REDUCE] = groups[Purpose.VERIFY]
    lines: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for trial, at, values in pieces:
        if thin:
            at, values = at[[0, -1]], np.full(2, values.mean())  # noqa: PLW2901
        gap = np.array([[np.nan], [np.nan]])
        key = groups.get(trial.purpose, ("search", "best"))
        lines.setdefault(key, []).append(np.hstack([np.vstack([at / factor, values]), gap]))
    with styled():
        figure, axes = axes_of()
        for (label, colour), parts in lines.items():
            line = np.hstack(parts)
            axes.plot(line[0], line[1], color=COLOURS[colour], lw=1.1, label=label, solid_capstyle="round")
        axes.set_xlabel(f"time spent on trials ({unit})")
        axes.set_ylabel(metric_label(objective.unit))
        axes.set_xlim(left=0)
        if min(float(values.min()) for _, _, values in pieces) >= 0:
            axes.set_ylim(bottom=0)
        _legend(axes)
    every = np.concatenate([values for _, _, values in pieces])
    alt = (
        f"Readings of {metric_label(objective.unit)} during {len(pieces)} trials over time: "
        f"from {compact(float(every.min()))} to {compact(float(every.max()))}."
    )
    return Drawing(figure, alt)


def distribution(
    trials: Sequence[Trial], objective: Objective, default: Configuration | None
) -> Drawing | None:
    """The share of configurations at or below each score, the default marked (Cao Fig. 5.1).

    A configuration counts once, with the mean of its trials; those of the verification, made of two
    configurations only, are left out.

    Args:
        trials: the trials of one run.
        objective: labels the axis.
        default: the configuration to mark; None: none.
    """
    by_configuration: dict[Configuration, list[float]] = {}
    for trial in trials:
        if trial.score is None or trial.unmet or trial.purpose.of_comparison:
            continue
        by_configuration.setdefault(trial.configuration, []).append(trial.score)
    if not by_configuration:
        return None
    means = {configuration: fmean(scores) for configuration, scores in by_configuration.items()}
    ordered = np.sort(np.array(list(means.values())))
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    alt = (
        f"Scores of {len(ordered)} configurations: lowest {compact(float(ordered[0]))}, median "
        f"{compact(float(np.median(ordered)))}, highest {compact(float(ordered[-1]))}."
    )
    with styled():
        figure, axes = axes_of(2.6)
        axes.step(np.r_[ordered[0], ordered], np.r_[0, share], where="post", color=COLOURS["best"], lw=1.8)
        if default is not None and default in means:
            below = float(np.mean(ordered <= means[default]))
            beaten = float(np.mean(ordered * objective.sign > means[default] * objective.sign))
            note = f"default: {percentage(beaten)} of the configurations tried score better"
            axes.plot(means[default], below, "D", ms=8, color=COLOURS["default"], zorder=3, label=note)
            _legend(axes)
            alt += f" {note.capitalize()}."
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_ylabel("configurations at or below")
        axes.set_xlabel(metric_label(objective.unit))
    return Drawing(figure, alt)


def stages(stage_s: Mapping[str, float]) -> Drawing | None:
    """What the time went on, as one bar."""
    total_s = sum(stage_s.values())
    if total_s <= 0:
        return None
    shares = [(stage, stage_s[stage] / total_s) for stage in in_order(stage_s) if stage_s[stage] > 0]
    with styled(axes_grid=False):
        figure, axes = axes_of(1.05)
        left = 0.0
        for stage, share in shares:
            colour = COLOURS.get(stage, COLOURS["other"])
            axes.barh(0, share, left=left, color=colour, height=0.7, label=f"{stage} {percentage(share)}")
            left += share
        axes.set_xlim(0, 1)
        axes.set_axis_off()
        figure.legend(loc="outside lower left", ncols=6, handlelength=1, columnspacing=1.4, borderaxespad=0)
    return Drawing(
        figure, "Time by stage: " + ", ".join(f"{stage} {percentage(share)}" for stage, share in shares) + "."
    )


def comparison(verdict: Verdict, objective: Objective) -> Drawing | None:
    """The last comparison: a dot a run, each side's mean with an interval that holds after every run."""
    sides = [("default", verdict.default_scores), ("best found", verdict.best_scores)]
    if not all(scores for _, scores in sides):
        return None
    confidence = 1 - verdict.p_value_limit
    said: list[str] = []
    with styled(axes_grid_axis="x"):
        figure, axes = axes_of(1.75)
        for row, (name, scores) in enumerate(sides):
            colour = COLOURS["default" if row == 0 else "best"]
            mean, limits = mean_of_runs(scores), mean_at_any_time(scores, verdict.p_value_limit)
            jitter = row + 0.2 * np.linspace(-1, 1, len(scores)) if len(scores) > 1 else np.array([row])
            axes.plot(scores, jitter, "o", ms=4.5, color=colour, alpha=0.55, mew=0)
            if limits is not None:
                below_above = [[max(0.0, mean - limits[0])], [max(0.0, limits[1] - mean)]]
                axes.errorbar(mean, row, xerr=below_above, color=colour, lw=2, capsize=6, capthick=2)
            axes.plot(mean, row, "D", ms=7, color=colour, mec=COLOURS["ink"], mew=0.8)
            spread = "" if limits is None else f" ({compact(limits[0])} to {compact(limits[1])})"
            said.append(f"{name} {compact(mean)}{spread} over {len(scores)} runs")
        axes.set_yticks([0, 1], [name for name, _ in sides])
        axes.tick_params(axis="y", length=0, labelsize=9.5, labelcolor=COLOURS["ink"])
        axes.set_ylim(1.6, -0.6)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(metric_label(objective.unit))
    return Drawing(
        figure, f"Interleaved runs, means with {percentage(confidence)} intervals: {'; '.join(said)}."
    )


def readings(trial: Trial, objective: Objective, name: str) -> Drawing | None:
    """The unit readings of one trial, the stable phase shaded, its mean with the interval.

    Args:
        trial: the trial, together with its series.
        objective: the objective that the readings measure.
        name: "best" or "default": the colour.
    """
    series = objective.series(trial.series, trial.metrics)
    measured = trial.measurement
    if series is None or measured is None or len(series) < 2:
        return None
    at, values = series.seconds, series.values
    first, last = measured.stable_start, min(measured.stable_end, len(series)) - 1
    with styled():
        figure, axes = axes_of(2.3)
        if 0 <= first <= last:
            start = at[first - 1] if first else 0.0
            axes.axvspan(start, at[last], color=COLOURS[name], alpha=0.09, lw=0)
            across = blended_transform_factory(axes.transData, axes.transAxes)
            axes.text(
                start, 1.01, "stable phase", transform=across, va="bottom", fontsize=8, color=COLOURS["muted"]
            )
        marker = "." if len(values) <= 120 else ""
        axes.plot(at, values, marker=marker, ms=4, lw=1.1, color=COLOURS[name])
        axes.axhline(measured.mean, color=COLOURS["ink"], lw=1.1)
        if measured.ci_low is not None and measured.ci_high is not None:
            axes.axhspan(measured.ci_low, measured.ci_high, color=COLOURS["ink"], alpha=0.09, lw=0)
        axes.set_xlim(0, float(at[-1]))
        if float(values.min()) >= 0:
            axes.set_ylim(bottom=0)
        axes.set_xlabel("time since the load began (s)")
        axes.set_ylabel(metric_label(objective.unit))
        plain_numbers(axes)
    alt = (
        f"{len(values)} readings of trial {trial.number} over {float(at[-1]):.3g} s; mean of the "
        f"stable phase {compact(measured.mean)}."
    )
    return Drawing(figure, alt)


def _pieces(
    trials: Sequence[Trial], objective: Objective
) -> list[tuple[Trial, NDArray[np.float64], NDArray[np.float64]]]:
    """Each trial's readings with their instants on the time line of the whole run; finite ones only."""
    pieces: list[tuple[Trial, NDArray[np.float64], NDArray[np.float64]]] = []
    elapsed_s = 0.0
    for trial in trials:
        start_s = elapsed_s + sum(trial.stage_s.get(stage, 0.0) for stage in ("change", "fill", "settle"))
        elapsed_s += sum(trial.stage_s.values())
        series = objective.series(trial.series, trial.metrics)
        if series is None:
            continue
        kept = np.isfinite(series.values) & np.isfinite(series.seconds)
        if kept.any():
            pieces.append((trial, start_s + series.seconds[kept], series.values[kept]))
    return pieces


def _legend(axes: Axes) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, borderaxespad=0.2, handlelength=1.6)
