"""Metrics to one score: the objective, and the constraints that a result must meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ascar.errors import ExpressionError, StudyError
from ascar.expression import Expression, parse
from ascar.results.measurement import Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Direction = Literal["maximize", "minimize"]


class Gained(Protocol):
    """A gain with its interval, above zero is better; `gain_relative` is None where no share can be told."""

    @property
    def gain_relative(self) -> float | None:
        """Over the reference."""
        ...

    @property
    def gain_low(self) -> float | None:
        """Lower end of its interval."""
        ...

    @property
    def gain_high(self) -> float | None:
        """Upper end."""
        ...

    @property
    def difference(self) -> float | None:
        """In the objective's unit."""
        ...

    @property
    def difference_low(self) -> float | None:
        """Lower end of its interval."""
        ...

    @property
    def difference_high(self) -> float | None:
        """Upper end."""
        ...


@dataclass(frozen=True, slots=True)
class Objective:
    """A direction and a formula over metrics.

    Attributes:
        direction: "maximize" or "minimize".
        formula: an expression over metric names; `change_s`, the seconds that the change of configuration
            took, is a metric like any other (Cao 9.4: cost inside the objective).
    """

    direction: Direction
    formula: Expression

    @classmethod
    def parse(cls, text: str, key: str = "study.objective") -> Objective:
        """Read "maximize FORMULA" or "minimize FORMULA".

        Args:
            text: the text to read.
            key: the name of the key, for the error message.

        Raises:
            StudyError: neither word comes first, or the formula cannot be read.
        """
        direction, _, formula = text.strip().partition(" ")
        if direction not in ("maximize", "minimize") or not formula.strip():
            raise StudyError(
                f"{key} = {text!r}: must be 'maximize FORMULA' or 'minimize FORMULA', "
                "e.g. 'maximize throughput_ops_per_s'"
            )
        try:
            return cls(direction, parse(formula))
        except ExpressionError as error:
            raise StudyError(f"{key} = {text!r}: {error.message}") from error

    @classmethod
    def compromise(cls, objectives: Sequence[Objective], weights: Sequence[float] = ()) -> Objective:
        """One objective between several: the product of their values, each to the power of its weight.

        Weights are shares of 1, and negative for what is minimised. The product does not depend on units, and
        its relative gain is the weighted geometric mean of the relative gains: with equal weights, half the
        latency makes up for half the throughput. Values must be above zero.

        Args:
            objectives: at least one objective; a single one is its own compromise.
            weights: above zero, one an objective; none: equal ones.

        Raises:
            StudyError: the product is too long for a formula.
        """
        if len(objectives) == 1:
            return objectives[0]
        shares = weights or [1.0] * len(objectives)
        powers = [one.sign * share / sum(shares) for one, share in zip(objectives, shares, strict=True)]
        text = " * ".join(
            f"({one.formula}) ** {power:.6g}" for one, power in zip(objectives, powers, strict=True)
        )
        return cls.parse(f"maximize {text}")

    @property
    def text(self) -> str:
        """As a study file says it."""
        return f"{self.direction} {self.formula}"

    @property
    def sign(self) -> int:
        """+1 where more is better, -1 where less is."""
        return 1 if self.direction == "maximize" else -1

    @property
    def unit(self) -> str:
        """The metric's name where the formula is just that, else the formula."""
        return str(self.formula)

    def gained(self, gain: Gained) -> str:
        """A gain as a change of the score, e.g. "31.2% more", "4.21 less"; empty where there is none."""
        known = gain.difference if gain.gain_relative is None else gain.gain_relative
        return "" if known is None else self._change(known, is_share=gain.gain_relative is not None)

    def gained_between(self, gain: Gained) -> str:
        """The limits of a gain as changes of the score, e.g. "80.1% to 90.2% less"; empty without any."""
        is_share = gain.gain_relative is not None
        low, high = (
            (gain.gain_low, gain.gain_high) if is_share else (gain.difference_low, gain.difference_high)
        )
        if low is None or high is None:
            return ""
        first, last = self._change(low, is_share=is_share), self._change(high, is_share=is_share)
        same = first.rpartition(" ")[2] == last.rpartition(" ")[2]
        return f"{first.partition(' ')[0]} to {last}" if same else f"{first} to {last}"

    def _change(self, gain: float, *, is_share: bool) -> str:
        more = (gain >= 0) == (self.sign > 0)
        return f"{abs(gain):{'.1%' if is_share else '.4g'}} {'more' if more else 'less'}"

    def score(self, metrics: Mapping[str, float]) -> float:
        """The formula's value.

        Raises:
            ExpressionError: a metric that the formula names was not measured.
        """
        missing = sorted(set(self.formula.names) - set(metrics))
        if missing:
            raise ExpressionError(
                f"objective {self.unit!r} needs the metric {missing[0]!r}, which this load does not report; "
                f"it reports {', '.join(sorted(metrics))}"
            )
        return float(self.formula.evaluate(dict(metrics)))

    def series(self, series: Mapping[str, Series], metrics: Mapping[str, float]) -> Series | None:
        """The formula over time, where every unit reading it needs was taken at the same instants.

        Metrics without unit readings enter as constants. None where the formula names no series, or series
        of different lengths, or has no value at one of the readings, such as a quotient by zero.
        """
        names = [name for name in self.formula.names if name in series]
        lengths = {len(series[name]) for name in names}
        known = set(series) | set(metrics)
        if len(lengths) != 1 or not set(self.formula.names) <= known:
            return None
        (length,) = lengths
        if len(names) == 1 and str(self.formula) == names[0]:
            return series[names[0]]
        constants = {name: metrics[name] for name in self.formula.names if name not in names}
        values: list[float] = []
        for index in range(length):
            row = {name: float(series[name].values[index]) for name in names}
            try:
                values.append(float(self.formula.evaluate(constants | row)))
            except ExpressionError:
                return None
        return Series.of(series[names[0]].seconds.tolist(), values)

    def better(self, score: float, than: float) -> bool:
        """Whether one score beats another."""
        return self.sign * score > self.sign * than


def unmet(constraints: tuple[Expression, ...], metrics: Mapping[str, float]) -> tuple[str, ...]:
    """The constraints on results that these metrics break, as text.

    Raises:
        ExpressionError: a constraint names a metric that was not measured.
    """
    broken: list[str] = []
    for constraint in constraints:
        missing = sorted(set(constraint.names) - set(metrics))
        if missing:
            raise ExpressionError(
                f"constraint {str(constraint)!r} needs the metric {missing[0]!r}, which this load does not "
                f"report; it reports {', '.join(sorted(metrics))}"
            )
        if not constraint.evaluate(dict(metrics)):
            broken.append(str(constraint))
    return tuple(broken)
