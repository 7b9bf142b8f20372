"""The figures of Cao's chapters 5 and 9, drawn from simulated searches."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ascar.analysis.drawing import axes_of, plain_numbers, styled
from ascar.lab.curves import band, best_values, near_optimal, over_time
from ascar.render import duration_unit, in_percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ascar.lab.curves import Stops
    from ascar.lab.problem import SearchProblem
    from ascar.lab.simulation import SimulatedSearch
    from ascar.optimizers.stopping import Generation
    from ascar.results.lab import CheckpointSummary

    Lines = Mapping[str, Sequence[SimulatedSearch]]

# Okabe and Ito's colours, then again with dashes.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1f24", "#8c959f")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))
_ALLELES_MAX = 60


def best_so_far(lines: Lines, problem: SearchProblem, unit: str, *, timed: bool = False) -> Figure | None:
    """Best true value evaluated so far: median over runs, quartiles as bands (Cao Fig. 5.2).

    Args:
        lines: runs by optimizer.
        problem: the problem that the runs searched.
        unit: the objective's unit, for the axis.
        timed: draw the values over the seconds that the evaluations took on the recorded system instead of
            over their number.

    Returns:
        None where the time is wanted and not known.
    """
    with styled(figure_facecolor="white"):
        figure, axes = axes_of()
        longest = 1.0
        for index, (name, runs) in enumerate(lines.items()):
            found = _curve(runs, best_values(runs, problem), timed=timed)
            if found is None:
                return None
            shown = band(*found)
            longest = max(longest, float(shown.at[-1]))
            colour, dash = _look(index)
            axes.plot(shown.at, shown.middle, color=colour, ls=dash, lw=1.7, label=name)
            axes.fill_between(shown.at, shown.low, shown.high, color=colour, alpha=0.12, lw=0)
        best = problem.sign * problem.best
        axes.axhline(best, color="#59636e", lw=0.9, ls=(0, (2, 2)))
        axes.annotate(
            "best", (1, best), xycoords=("axes fraction", "data"), fontsize=8, ha="right", va="bottom"
        )
        axes.set_ylabel(f"best {unit} so far")
        _abscissa(axes, longest, timed=timed)
        _legend(axes)
    return figure


def near_optimum(
    lines: Lines, problem: SearchProblem, level: float, *, timed: bool = False, graded: bool = False
) -> Figure | None:
    """Share of runs that have evaluated a configuration near the optimum (Cao Fig. 5.3, 5.5, 9.4).

    Args:
        lines: runs by optimizer.
        problem: the problem that the runs searched.
        level: 0.99: within 1% of the best value.
        timed: draw the shares over time instead of over the number of evaluations.
        graded: the lines are one setting at rising values: colours follow them.

    Returns:
        None where the time is wanted and not known.
    """
    with styled(figure_facecolor="white"):
        figure, axes = axes_of()
        longest = 1.0
        for index, (name, runs) in enumerate(lines.items()):
            found = _curve(runs, best_values(runs, problem), timed=timed)
            if found is None:
                return None
            at, values = found
            longest = max(longest, float(at[-1]))
            colour, dash = _graded(index, len(lines)) if graded else _look(index)
            axes.plot(at, near_optimal(values, problem, level), color=colour, ls=dash, lw=1.7, label=name)
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_ylabel(f"runs that reached {in_percent(level)} of the best")
        _abscissa(axes, longest, timed=timed)
        _legend(axes)
    return figure


def instantaneous(lines: Lines, problem: SearchProblem, unit: str) -> Figure:
    """What each evaluation of one run delivered (Cao Fig. 5.4), one panel an optimizer."""
    with styled(figure_facecolor="white"):
        count = len(lines)
        timed = all(bool(np.isfinite(runs[0].seconds).all()) for runs in lines.values())
        figure = Figure(figsize=(7.4, 1.0 + 1.15 * count), layout="constrained")
        panels: NDArray[np.object_] = figure.subplots(count, 1, sharex=True, sharey=True, squeeze=False)
        for index, (name, runs) in enumerate(lines.items()):
            axes: Axes = panels[index, 0]
            run = runs[0]
            at = np.cumsum(run.seconds) if timed else np.arange(1, len(run.truth) + 1, dtype=np.float64)
            colour, _ = _look(index)
            axes.step(at, problem.sign * run.observed, where="mid", color=colour, lw=1.1)
            axes.axhline(problem.sign * problem.best, color="#59636e", lw=0.8, ls=(0, (2, 2)))
            axes.set_title(name, fontsize=8.5, loc="left", pad=2)
            plain_numbers(axes, 4)
        last: Axes = panels[-1, 0]
        last.set_xlabel("seconds of evaluation" if timed else "evaluation")
        figure.supylabel(unit, fontsize=9)
    return figure


def regret(lines: Mapping[str, Sequence[CheckpointSummary]]) -> Figure:
    """Mean normalised regret of what is recommended at each checkpoint, with its interval."""
    with styled(figure_facecolor="white"):
        figure, axes = axes_of()
        for index, (name, summaries) in enumerate(lines.items()):
            at = np.array([one.evaluations for one in summaries], np.float64)
            at = at * (1 + 0.006 * (index - len(lines) / 2))  # so that intervals do not hide each other
            mean = np.array([one.regret_mean for one in summaries])
            ends = np.array([one.regret_ci for one in summaries])
            colour, dash = _look(index)
            axes.errorbar(
                at,
                mean,
                np.nan_to_num(np.abs(ends.T - mean)),
                color=colour,
                ls=dash,
                lw=1.6,
                marker="o",
                ms=4,
                capsize=2.5,
                label=name,
            )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("evaluations")
        axes.set_ylabel("regret of the recommended\n(0: best, 1: the middling)")
        _legend(axes)
    return figure


def swept(lines: Mapping[str, Sequence[CheckpointSummary]], option: str) -> Figure:
    """Mean regret at the end for each value of an option (Cao 5.3), with its interval."""
    with styled(figure_facecolor="white"):
        figure, axes = axes_of(2.6)
        last = [summaries[-1] for summaries in lines.values()]
        at = np.arange(len(last))
        mean = np.array([one.regret_mean for one in last])
        ends = np.array([one.regret_ci for one in last])
        axes.errorbar(at, mean, np.nan_to_num(np.abs(ends.T - mean)), fmt="o-", color=_COLOURS[0], capsize=3)
        axes.set_xticks(at, [name.rpartition("=")[2] for name in lines])
        axes.set_xlabel(option)
        axes.set_ylabel(f"regret after {last[0].evaluations} evaluations")
        axes.set_ylim(bottom=0)
    return figure


def stopping(curves: Mapping[str, Sequence[Stops]], setting: str) -> Figure:
    """Share of runs that a rule stopped early and well enough (Cao Fig. 9.5, 9.6).

    Args:
        curves: one value for each setting of the rule, by K ("K = 5%").
        setting: the name of the setting, for the axis.
    """
    with styled(figure_facecolor="white"):
        figure, axes = axes_of()
        for index, (name, stops) in enumerate(curves.items()):
            colour, dash = _look(index)
            at = [one.setting for one in stops]
            good = [one.successful for one in stops]
            axes.plot(at, good, color=colour, ls=dash, lw=1.6, marker="o", ms=3.5, label=name)
        some = next(iter(curves.values()))
        stopped = [one.stopped for one in some]
        axes.plot(
            [one.setting for one in some],
            stopped,
            color="#8c959f",
            lw=1.2,
            ls=(0, (1, 1.5)),
            label="stopped early",
        )
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        axes.set_xlabel(setting)
        axes.set_ylabel("runs stopped early, within K\nof what the whole run finds")
        _legend(axes)
    return figure


def alleles(generations: Sequence[Generation], shown: int = 10) -> Figure:
    """How many members of each generation carry each value; darker is more (Cao Fig. 5.6).

    Args:
        generations: the generations of one genetic search.
        shown: the first so many.
    """
    first = list(generations[:shown])
    columns = [
        (name, value)
        for name in first[0].alleles
        for value in sorted(
            {value for one in first for value in one.alleles[name]},
            key=lambda value: (str(type(value)), value or 0),
        )
    ][:_ALLELES_MAX]
    share = np.array(
        [[one.alleles[name].get(value, 0) / one.size for name, value in columns] for one in first]
    )
    with styled(figure_facecolor="white", axes_grid=False):
        figure, axes = axes_of(1.6 + 0.22 * len(first))
        axes.imshow(share, aspect="auto", cmap="Blues", vmin=0, vmax=1, origin="upper")
        edges = [at for at in range(1, len(columns)) if columns[at][0] != columns[at - 1][0]]
        for edge in edges:
            axes.axvline(edge - 0.5, color="#1b1f24", lw=0.8)
        axes.set_xticks(
            range(len(columns)), [_short(value) for _, value in columns], rotation=90, fontsize=6.5
        )
        axes.set_yticks(range(len(first)), [str(index) for index in range(1, len(first) + 1)])
        axes.set_ylabel("generation")
        above = axes.secondary_xaxis("top")
        starts = [0, *edges, len(columns)]
        middles = [(one + other - 1) / 2 for one, other in pairwise(starts)]
        above.set_xticks(
            middles, [_short(columns[start][0]) for start in starts[:-1]], fontsize=7, rotation=20
        )
        above.tick_params(length=0)
    return figure


def _curve(
    runs: Sequence[SimulatedSearch], values: NDArray[np.float64], *, timed: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    if timed:
        return over_time(runs, values)
    return np.arange(1, values.shape[1] + 1, dtype=np.float64), values


def _abscissa(axes: Axes, longest: float, *, timed: bool) -> None:
    axes.set_xlim(0, longest)
    if not timed:
        axes.set_xlabel("evaluations")
        return
    factor, unit = duration_unit(longest)
    ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(0, longest / factor)
    shown = [float(tick) for tick in ticks if tick <= longest / factor]
    axes.set_xticks([factor * tick for tick in shown], [f"{tick:g}" for tick in shown])
    axes.set_xlabel(f"time spent on evaluations ({unit})")


def _look(index: int) -> tuple[str, str | tuple[float, tuple[float, ...]]]:
    count = len(_COLOURS)
    return _COLOURS[index % count], _DASHES[(index // count) % len(_DASHES)]


def _graded(index: int, count: int) -> tuple[str, str]:
    red, green, blue, _ = colormaps["viridis"](0.95 * index / max(1, count - 1))
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}", "-"


def _legend(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)


def _short(value: object) -> str:
    text = "n/a" if value is None else str(value)
    return text if len(text) <= 16 else f"{text[:15]}…"
