"""The values a parameter can take: a list of choices, or a range of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from ascar.errors import SpaceError
from ascar.space.suggestion import hint, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

Value = bool | int | float | str

CHOICES_MAX = 10_000
_TEXT_LENGTH_MAX = 200
_NUMBER_MAX = 2**53  # beyond it a double, and so a formula, cannot tell neighbouring integers apart


def same(left: Value, right: Value) -> bool:
    """Equality that tells true from 1 but not 1 from 1.0."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def check_value(value: object, where: str) -> None:
    """Refuse what no parameter can hold.

    Raises:
        SpaceError: no string, boolean or finite number, or a long or huge one.
    """
    if isinstance(value, str):
        if len(value) > _TEXT_LENGTH_MAX or not value.isprintable():
            raise SpaceError(
                f"{where}: {value[:40]!r}: text must be printable, at most {_TEXT_LENGTH_MAX} characters"
            )
    elif isinstance(value, (int, float)):
        if not math.isfinite(value) or abs(value) > _NUMBER_MAX:
            raise SpaceError(f"{where}: {value!r}: numbers must be finite, at most 2**53 in size")
    else:
        raise SpaceError(f"{where}: {value!r}: must be a string, a number, true or false")


@dataclass(frozen=True, slots=True)
class Choices:
    """A list of values, in order where `ordered` (an ordinal parameter).

    Attributes:
        values: distinct values.
        ordered: whether neighbours in the list are near each other.
    """

    values: tuple[Value, ...]
    ordered: bool = False

    def __post_init__(self) -> None:
        if not self.values:
            raise SpaceError("values: the list is empty; give at least one value")
        if len(self.values) > CHOICES_MAX:
            raise SpaceError(f"values: {len(self.values)} values; at most {CHOICES_MAX}, or use a range")
        for value in self.values:
            check_value(value, "values")
        if len(set(self.values)) < len(self.values):
            twice = next(value for value in self.values if self.values.count(value) > 1)
            raise SpaceError(
                f"values: {twice!r} appears twice (true equals 1, 1 equals 1.0); each must differ"
            )
        if len({str(value) for value in self.values}) < len(self.values):
            raise SpaceError(
                f"values: two of {listed(map(repr, self.values))} are written alike; each must differ"
            )

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values)

    def each(self) -> Iterator[Value]:
        """Every value, in order."""
        return iter(self.values)

    def canonical(self, value: object) -> Value:
        """`value` as it stands in the list.

        Raises:
            SpaceError: it does not stand there.
        """
        if isinstance(value, (bool, int, float, str)):
            for known in self.values:
                if same(known, value):
                    return known
        texts = [str(known) for known in self.values]
        raise SpaceError(
            f"{value!r} is not allowed; allowed: {listed(map(repr, self.values))}{hint(value, texts)}"
        )


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`.

    Attributes:
        low: the least.
        high: the greatest; with a step, the last on the grid is the greatest not above it.
        step: distance of the values, counted from `low`; None: every float. 1 for integers.
        log: whether the scale is logarithmic: sampling is uniform, and distances are measured, on it.
        integer: whether the values are integers.
        special: values outside the range that mean something of their own (0 for "automatic").
    """

    low: float
    high: float
    step: float | None = None
    log: bool = False
    integer: bool = False
    special: tuple[int | float, ...] = ()

    def __post_init__(self) -> None:
        for key, bound in (
            ("low", self.low),
            ("high", self.high),
            *(("special", value) for value in self.special),
        ):
            check_value(bound, key)
            if isinstance(bound, (bool, str)) or (self.integer and not float(bound).is_integer()):
                raise SpaceError(f"{key}: {bound!r}: must be {'an integer' if self.integer else 'a number'}")
        if self.low > self.high:
            raise SpaceError(f"low <= high must hold, but got low = {self.low}, high = {self.high}")
        if self.log and self.low <= 0:
            raise SpaceError(
                f"low = {self.low}: a logarithmic scale starts above zero; use log = false or a special value"
            )
        if self.step is not None:
            self._check_step(self.step)
        for value in self.special:
            if self.low <= value <= self.high:
                raise SpaceError(
                    f"special: {value} lies inside low = {self.low}, high = {self.high}; leave "
                    "it out of the special values"
                )
        kind = int if self.integer else float
        object.__setattr__(self, "low", kind(self.low))
        object.__setattr__(self, "high", kind(self.high))
        object.__setattr__(self, "special", tuple(kind(value) for value in self.special))
        if self.integer:
            object.__setattr__(self, "step", int(self.step or 1))
        if self.steps is not None:
            object.__setattr__(self, "high", self._on_grid(self.steps))

    def _check_step(self, step: float) -> None:
        if isinstance(step, (bool, str)) or not math.isfinite(step) or step <= 0:
            raise SpaceError(f"step: {step!r}: must be a number above zero")
        if self.integer and not float(step).is_integer():
            raise SpaceError(f"step: {step!r}: must be an integer, as the values are")
        if (self.high - self.low) / step > _NUMBER_MAX:
            raise SpaceError(f"step: {step!r}: too small for {self.low} to {self.high}")

    @property
    def steps(self) -> int | None:
        """How many steps lie between the least and the greatest value; None without a grid."""
        if self.step is None:
            return None
        return _steps_between(self.low, self.high, self.step)

    @property
    def size(self) -> int | None:
        """How many values there are, the special ones included; None where they are continuous."""
        steps = self.steps
        return None if steps is None else steps + 1 + len(self.special)

    def each(self) -> Iterator[Value]:
        """Every value, the special ones first; only where there is a grid."""
        steps = self.steps
        assert steps is not None, "a continuous range has no list of values"
        yield from self.special
        yield from (self._on_grid(index) for index in range(steps + 1))

    def canonical(self, value: object) -> Value:
        """`value` as the range holds it: an int or a float, on the grid.

        Raises:
            SpaceError: it is not a number of the range.
        """
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise SpaceError(f"{value!r} is not allowed; allowed: {self}")
        if value in self.special:
            return int(value) if self.integer else float(value)
        if not self.low <= value <= self.high:
            raise SpaceError(f"{value!r} is out of range; allowed: {self}")
        nearest = self.nearest(self.position(value))
        if self.step is not None and not math.isclose(nearest, value, rel_tol=1e-9, abs_tol=1e-12):
            raise SpaceError(f"{value!r} lies between two steps (the nearest is {nearest}); allowed: {self}")
        return nearest if self.step is not None else float(value)

    def position(self, value: float) -> float:
        """Where a value of the range lies between low (0) and high (1), on the range's scale."""
        if self.low == self.high:
            return 0.0
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def nearest(self, position: float) -> int | float:
        """The value nearest to a position between 0 and 1."""
        position = min(1.0, max(0.0, position))
        number = (
            self.low * (self.high / self.low) ** position
            if self.log
            else self.low + position * (self.high - self.low)
        )
        return self._snap(min(max(number, self.low), self.high))

    def draw(self, share: float) -> int | float:
        """The value at a share of a uniform draw over all values, special ones included; share in [0, 1).

        A special value counts as much as an ordinary one, and a continuous range as much as one value.
        """
        regular = 1 if self.steps is None else self.steps + 1
        index = share * (len(self.special) + regular)
        if index < len(self.special):
            return self.special[int(index)]
        return self.quantile(min((index - len(self.special)) / regular, 1 - 2**-53))

    def quantile(self, share: float) -> int | float:
        """The value below which a `share` of a uniform draw (on the range's scale) lies; share in [0, 1).

        With a grid and a linear scale every value has the same share. With a logarithmic one a value's
        share is that of the numbers that round to it.
        """
        steps = self.steps
        if steps is None:
            return self.nearest(share)
        if not self.log:
            return self._on_grid(min(steps, int(share * (steps + 1))))
        lowest, highest = self._edges()
        return self._snap(min(max(lowest * (highest / lowest) ** share, self.low), self.high))

    def share(self, value: float) -> float:
        """What share of a uniform draw a value of the grid has; `quantile`'s counterpart."""
        steps = self.steps
        assert steps is not None, "a continuous range has no shares"
        assert self.step is not None
        if not self.log:
            return 1 / (steps + 1)
        lowest, highest = self._edges()
        below, above = max(value - self.step / 2, lowest), min(value + self.step / 2, highest)
        return math.log(above / below) / math.log(highest / lowest)

    def _edges(self) -> tuple[float, float]:
        assert self.step is not None
        return max(self.low - self.step / 2, self.low / 2), self.high + self.step / 2

    def _snap(self, number: float) -> int | float:
        if self.step is None:
            return number
        return self._on_grid(round((number - self.low) / self.step))

    def _on_grid(self, index: int) -> int | float:
        if self.integer:
            return int(self.low) + index * int(self.step or 1)
        # In decimals, so that 0.1 + 2 * 0.1 is 0.3.
        return float(Decimal(repr(self.low)) + index * Decimal(repr(self.step)))

    def __str__(self) -> str:
        kind = "integers" if self.integer else "numbers"
        grid = (
            f" in steps of {self.step}"
            if self.step not in (None, 1) or (self.step and not self.integer)
            else ""
        )
        also = f", or {listed(self.special)}" if self.special else ""
        return f"{kind} from {self.low} to {self.high}{grid}{also}"


@lru_cache(maxsize=4096)  # a range is asked for each of its values
def _steps_between(low: float, high: float, step: float) -> int:
    return int((Decimal(repr(high)) - Decimal(repr(low))) // Decimal(repr(step)))


Domain = Choices | Range
