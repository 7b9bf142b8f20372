"""Values as text for people: numbers, percentages, p-values, counts, durations, scores, sparklines."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from ascar.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.results.measurement import Measurement
    from ascar.results.parsimony import ParameterWorth, Parsimony, ReductionStep
    from ascar.results.trial import Trial
    from ascar.results.verdict import VerdictKind

VERDICTS: dict[VerdictKind, str] = {
    "improved": "improved",
    "default-is-fine": "the default is fine",
    "undecided": "undecided",
    "not-verified": "not verified",
}
"""Verdicts in words."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII_BLOCKS = "_.-~=+*#"
# From which number on an axis counts in what, and the letter of that.
_STEPS = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))


# What a terminal acts on, or shows in another order than it stands: control and format characters.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Text of others, with control characters as their numbers: an escape is shown as backslash, x1b.

    Lines and tabs stay.
    """
    return _UNSEEN.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def number(x: float | None, digits: int = 4) -> str:
    """A number with so many significant digits and separators between thousands; "-" for none."""
    if x is None or not math.isfinite(x):
        return "-"
    if x == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(x)))
    if decimals <= 0:
        return f"{round(x):,}"
    if decimals > digits + 4:
        return f"{x:.{digits}g}"
    return f"{x:,.{decimals}f}"


def compact(x: float | None) -> str:
    """A number with four significant digits and no zeros at its end, whole from 10,000 on; "-" for none."""
    if x is None or not math.isfinite(x):
        return "-"
    size = abs(x)
    if size >= 1e15:
        return f"{x:.4g}"
    return f"{x:,.4g}" if size < 1e4 else f"{x:,.0f}"


def on_axis(x: float, largest: float | None = None) -> str:
    """A number for an axis: "12k", "1.5M".

    Args:
        x: the number.
        largest: the axis's largest, which settles the unit of all its numbers; None: `x` itself.
    """
    size = abs(x) if largest is None else largest
    for above, factor, letter in _STEPS:
        if size >= above and x:
            return f"{x / factor:.4g}{letter}"
    return f"{x:.4g}"


def count(n: int, noun: str) -> str:
    """How many there are of something, e.g. "1 pair", "2 pairs"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def percent(change: float | None) -> str:
    """A relative change with its sign, e.g. "+31.2%"."""
    return "-" if change is None or not math.isfinite(change) else f"{change:+.1%}"


def percentage(x: float | None, digits: int | None = None) -> str:
    """A share of something, without a sign, e.g. "31%", "4.2%".

    Args:
        x: the share; 1 is all of it.
        digits: after the point; None: one where the share is below ten percent, else none.
    """
    if x is None or not math.isfinite(x):
        return "-"
    wanted = (0 if abs(x) >= 0.0995 else 1) if digits is None else digits
    return f"{x:,.{wanted}%}"


def in_percent(x: float) -> str:
    """A share with as many digits as it was given with, e.g. "5%", "0.5%"."""
    return f"{100 * x:g}%"


def limits(low: float | None, high: float | None, shown: Callable[[float], str] = percent) -> str:
    """The limits of an interval, e.g. "+2.1% to +4.0%"; empty if there is no interval."""
    return "" if low is None or high is None else f"{shown(low)} to {shown(high)}"


def estimate(
    value: float | None, low: float | None, high: float | None, shown: Callable[[float], str] = percent
) -> str:
    """A value with the limits of its interval, e.g. "+3.0% (+2.1% to +4.0%)"; "-" for none."""
    if value is None:
        return "-"
    between = limits(low, high, shown)
    return f"{shown(value)} ({between})" if between else shown(value)


def p_value(p: float | None) -> str:
    """A p-value as it is usually written, e.g. "p = 0.003", "p < 0.0001"."""
    if p is None or not math.isfinite(p):
        return "p unknown"
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def duration(s: float) -> str:
    """A duration for people; never negative."""
    return format_duration(max(0.0, s))


def seconds(s: float) -> str:
    """Seconds to a tenth, e.g. "4.2 s"."""
    return f"{s:.1f} s"


def duration_unit(longest_s: float) -> tuple[float, str]:
    """A factor and a unit that suit durations up to `longest_s`, e.g. (60.0, "min")."""
    if longest_s >= 3 * 3600:
        return 3600.0, "h"
    return (60.0, "min") if longest_s >= 180 else (1.0, "s")


def clock(s: float) -> str:
    """Minutes and seconds as a clock shows them, e.g. "4:05" or "1:02:33"."""
    minutes, rest = divmod(max(0, round(s)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def interval(measurement: Measurement) -> str:
    """The mean with its interval, e.g. "812.4 ± 0.8% [806.1, 818.8]", or the reason why there is none."""
    if measurement.ci_low is None or measurement.ci_high is None:
        return f"{number(measurement.mean)} (no interval: {measurement.reason})"
    width = measurement.ci_width_relative
    around = "" if width is None else f" ± {width / 2:.2%}"
    return f"{number(measurement.mean)}{around} [{number(measurement.ci_low)}, {number(measurement.ci_high)}]"


def score(trial: Trial, unit: str) -> str:
    """A trial's score with the interval of its mean, and the unit where one is given."""
    if trial.score is None:
        return trial.state.value
    text = number(trial.score)
    measurement = trial.measurement
    if measurement is not None and measurement.ci_low is not None and measurement.ci_high is not None:
        text += f" [{number(measurement.ci_low)}, {number(measurement.ci_high)}]"
    return f"{text} {unit}".rstrip()


def sparkline(values: Sequence[float], *, unicode: bool = True) -> str:
    """One character a value, from zero (or the least, where that is negative) to the greatest."""
    blocks = _BLOCKS if unicode else _ASCII_BLOCKS
    finite = [x for x in values if math.isfinite(x)]
    if not finite:
        return ""
    low, high = min(0.0, *finite), max(finite)
    span = (high - low) or 1.0
    return "".join(
        blocks[min(len(blocks) - 1, int((x - low) / span * len(blocks)))] if math.isfinite(x) else " "
        for x in values
    )


def plain(x: object) -> str:
    """A parameter's value as a study file writes it; "n/a" where the parameter does not apply."""
    if x is None:
        return "n/a"
    if isinstance(x, bool):
        return "true" if x else "false"
    return f"{x:g}" if isinstance(x, float) else str(x)


def parameter_worth(worth: ParameterWorth, unit: str) -> str:
    """What a parameter of the recommendation brings: "without it -25.1% (-31.0% to -20.2%)"."""
    if worth.loss_relative is None:
        return "not measured alone" if worth.loss is None else f"without it {-worth.loss:+.4g} {unit}"
    said = f"without it {-worth.loss_relative:+.1%}"
    if worth.loss_low is not None and worth.loss_high is not None:
        said += f" ({-worth.loss_high:+.1%} to {-worth.loss_low:+.1%})"
    return said


def gain_kept(found: Parsimony) -> str:
    """The share of the gain that fewer changes keep: "99.1% of the gain (98% interval 97.0% to 101.2%)"."""
    if found.gain_kept is None:
        return ""
    said = f"{found.gain_kept:.1%} of the gain"
    if found.gain_kept_low is None or found.gain_kept_high is None:
        return said
    confidence = f"{100 * found.gain_kept_confidence:.4g}%"
    return f"{said} ({confidence} interval {found.gain_kept_low:.1%} to {found.gain_kept_high:.1%})"


def reduction_step(step: ReductionStep, unit: str) -> str:
    """What a comparison of the best configuration with a smaller one showed, and what followed from it."""
    said = "not measured"
    if step.gain_relative is not None:
        said = f"{step.gain_relative:+.1%}"
        if step.gain_low is not None and step.gain_high is not None:
            said += f" ({100 * step.confidence:.5g}% interval {step.gain_low:+.1%} to {step.gain_high:+.1%})"
    elif step.difference is not None:
        said = f"{step.difference:+.4g} {unit}"
    return f"{said}, {count(step.pairs, 'pair')}: {_REDUCTION_ENDS[step.ended]}"


_REDUCTION_ENDS = {
    "within-margin": "as good as the best, left out",
    "worse": "worse, kept",
    "unlikely": "not proven within the budget, kept",
    "runs-max": "not proven with the most pairs, kept",
    "time": "the budget ended, kept",
    "failures": "its runs fail, kept",
}
