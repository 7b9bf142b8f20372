"""Rows of parameters' values and of what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

VALUES_MAX = 1024
MAGNITUDE_MAX = 1e140


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A parameter's column.

    Attributes:
        name: the parameter's name.
        codes: int (rows,), the place of each row's value in `labels`; -1 where the parameter does not apply.
        labels: the names of the parameter's values.
    """

    name: str
    codes: NDArray[np.intp]
    labels: tuple[str, ...]

    @property
    def varies(self) -> bool:
        """Whether it takes two values at least; applying or not is none."""
        taken = self.codes[self.codes >= 0]
        return len(taken) > 0 and bool(taken.min() != taken.max())


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """What was measured.

    Attributes:
        factors: the parameters, each with another name.
        values: float64 (rows,), finite: rows whose evaluation failed are left out before.

    Raises:
        InputError: there are fewer than two rows, or no parameter, one has more than `VALUES_MAX` values, or
            a measured value is beyond `MAGNITUDE_MAX`.
    """

    factors: tuple[Factor, ...]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len(self.values) < 2 or not self.factors:
            raise InputError(
                f"importance: {len(self.values)} measured rows, {len(self.factors)} parameters with more "
                "than one value; give at least 2 rows and 1 such parameter"
            )
        assert np.isfinite(self.values).all()
        if np.abs(self.values).max() > MAGNITUDE_MAX:
            raise InputError(
                f"importance: a measured value is beyond {MAGNITUDE_MAX:g}, so that its square is not a "
                "number; give the objective in a larger unit"
            )
        for factor in self.factors:
            if len(factor.labels) > VALUES_MAX:
                raise InputError(
                    f"parameter {factor.name!r}: has {len(factor.labels)} different values, at most "
                    f"{VALUES_MAX} are compared; bring alike ones together, or leave the column out"
                )
        assert all(len(factor.codes) == len(self.values) for factor in self.factors)

    def factor(self, name: str) -> Factor:
        """The factor of that name.

        Raises:
            InputError: there is none.
        """
        for factor in self.factors:
            if factor.name == name:
                return factor
        known = ", ".join(factor.name for factor in self.factors[:40])
        raise InputError(f"parameter {name!r}: none of that name has more than one value; there are {known}")

    def too_few(self, rows_min: int) -> tuple[str, ...]:
        """The parameters of which fewer than two values have so many rows: nothing can be told of them."""
        return tuple(
            one.name for one in self.factors if (np.bincount(one.codes[one.codes >= 0]) >= rows_min).sum() < 2
        )

    def rows(self, indices: NDArray[np.intp]) -> Observations:
        """Some of the rows; parameters that have one value there are left out.

        Raises:
            InputError: that leaves fewer than two rows, or no parameter.
        """
        factors = [Factor(one.name, one.codes[indices], one.labels) for one in self.factors]
        varied = tuple(one for one in factors if one.varies)
        return Observations(varied, self.values[indices])
