"""Figures of importance: the ranking (compare Fig. 7.1), mean against deviation (Figs 7.2, 7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.analysis.drawing import COLOURS, axes_of, plain_numbers, styled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from ascar.analysis.spectra import FixedValues
    from ascar.importance import Selection

_SHOWN_MAX = 20
_COLOURS = ("other", "best", "default", "measurement")


def ranking_figure(selection: Selection) -> Figure:
    """A row a parameter: its importance, with its interval, over the variance of all rows."""
    shown, whole = selection.ranking[:_SHOWN_MAX], selection.variance or 1.0
    with styled(axes_grid_axis="x", figure_facecolor="white", savefig_facecolor="white"):
        figure, axes = axes_of(0.9 + 0.3 * len(shown))
        plain_numbers(axes)
        for row, one in enumerate(shown):
            colour = COLOURS["best" if one.selected else "other"]
            axes.barh(row, one.importance / whole, height=0.6, color=colour, alpha=0.5)
            if one.ci_low is not None and one.ci_high is not None:
                axes.plot([one.ci_low / whole, one.ci_high / whole], [row, row], color=COLOURS["ink"], lw=1.5)
        axes.set_yticks(range(len(shown)), [one.parameter for one in shown])
        axes.invert_yaxis()
        axes.set_xlabel("share of the variance of all rows, given the parameters above")
    return figure


def fixed_figure(sets: Mapping[int, Sequence[FixedValues]], objective: str) -> Figure:
    """A dot a set of rows in which N values are fixed: mean to the right, relative deviation upwards.

    Args:
        sets: the sets of rows by N, for at most four values of N.
        objective: the measured quantity.
    """
    with styled(figure_facecolor="white", savefig_facecolor="white"):
        figure, axes = axes_of(4.2)
        for place, count in enumerate(sorted(sets, reverse=True)):
            dots = sets[count]
            axes.plot(
                [one.mean for one in dots],
                [100 * one.rsd for one in dots],
                "o",
                ms=3 + 2 * place,
                alpha=0.6,
                color=COLOURS[_COLOURS[place % len(_COLOURS)]],
                label=f"{count} fixed",
            )
        axes.set_xlabel(f"mean {objective}")
        axes.set_ylabel("relative standard deviation, %")
        axes.legend()
    return figure
