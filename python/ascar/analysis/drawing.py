"""How every figure looks, and how it becomes an SVG that follows the page's light or dark colours."""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ascar.errors import WorkError
from ascar.render import on_axis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

COLOURS: Mapping[str, str] = {
    "ink": "#1b1f24",
    "muted": "#59636e",
    "grid": "#d9dde2",
    "best": "#0072b2",
    "default": "#d55e00",
    "load": "#0073b2",
    "drain": "#56b4e9",
    "degraded": "#b8a800",
    "change": "#d55f00",
    "fill": "#e69f00",
    "settle": "#cc79a7",
    "measurement": "#009e73",
    "other": "#8c959f",
}
"""Okabe and Ito's colours, told apart by colour-blind readers; on the page each follows a style variable."""

_STYLE: Mapping[str, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": COLOURS["muted"],
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": COLOURS["ink"],
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 9,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": COLOURS["ink"],
    "text.parse_math": False,  # names and values may hold any character, "$" among them
    "xtick.color": COLOURS["muted"],
    "xtick.labelsize": 8.5,
    "ytick.color": COLOURS["muted"],
    "ytick.labelsize": 8.5,
}

_WIDTH_IN = 7.4
_ID = re.compile(r'\bid="([^"]+)"')
_REFERENCE = re.compile(r'(xlink:href="#|url\(#)([^")]+)')
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'(<svg[^>]*?)\s+(?:width|height)="[^"]*"')


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure, and the same in words for those who do not see it.

    Attributes:
        figure: the figure.
        alt: one or two sentences that give the figure's main numbers.
    """

    figure: Figure
    alt: str


def styled(**changes: object) -> AbstractContextManager[None]:
    """Matplotlib in our style, for as long as the context lasts; "_" in a name stands for "."."""
    given = {**_STYLE, **{name.replace("_", "."): value for name, value in changes.items()}}
    return mpl.rc_context(cast("dict[Any, Any]", given))


def on_white() -> AbstractContextManager[None]:
    """The same for figures that become files: on white, and equal figures are equal files."""
    return styled(figure_facecolor="white", savefig_facecolor="white", svg_hashsalt="ascar")


def write_figure(figure: Figure, path: Path) -> Path:
    """Write a figure, for use inside `on_white()`; the ending of the path is the format.

    Returns:
        The path.

    Raises:
        WorkError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None, dpi=150)
    except OSError as error:
        raise WorkError(f"{str(path)!r} cannot be written: {error.strerror}") from error
    return path


def axes_of(height_in: float = 2.9, width_in: float = _WIDTH_IN) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes, for use inside `styled()`."""
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    plain_numbers(axes)
    return figure, axes


def plain_numbers(axes: Axes, ticks: int = 6) -> None:
    """Few ticks, and labels such as "12k"."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(_labels(axis)))


def _labels(axis: Axis) -> Callable[[float, int | None], str]:
    """Labels in one unit for the whole axis, that of its largest number."""

    def label(value: float, position: int | None) -> str:  # noqa: ARG001
        low, high = axis.get_view_interval()
        return on_axis(value, max(abs(low), abs(high)))

    return label


def svg(drawing: Drawing, name: str) -> str:
    """A drawing as an inline SVG element.

    Ids get `name` as a prefix, so that several of them fit in one page; colours become style variables with
    the light ones as fallback; text stays text.

    Args:
        drawing: the drawing to embed.
        name: letters, digits and "-"; unique within the page.
    """
    target = io.StringIO()
    with styled(svg_hashsalt=name), warnings.catch_warnings():
        # The page's own fonts show what the layout's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        drawing.figure.savefig(target, format="svg", metadata={"Date": None})
    text = _METADATA.sub("", _PROLOGUE.sub("", target.getvalue(), count=1))
    text = _SIZE.sub(r"\1", _SIZE.sub(r"\1", text, count=1), count=1)
    text = _ID.sub(rf'id="{name}-\1"', text)
    text = _REFERENCE.sub(rf"\1{name}-\2", text)
    for role, colour in COLOURS.items():
        text = text.replace(f": {colour}", f": var(--{role}, {colour})")
    label = f'role="img" aria-labelledby="{name}-alt"><title id="{name}-alt">{escape(drawing.alt)}</title>'
    return re.sub(r"(<svg[^>]*)>", lambda found: f"{found[1]} {label}", text, count=1)
