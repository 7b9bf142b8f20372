"""Load signatures as the library compares them: features on scales on which a difference means a change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

ABSENT = -64.0
"""Stands for a feature without meaning, below all values that one can have on its scale."""

_RELATIVE = ("_share", "_relative_sd")
"""Ends of names of features that are compared as they are; the others are compared by their logarithm."""


def scaled(name: str, value: float) -> float:
    """A feature on its scale: shares and relative deviations as they are, all else as binary logarithm.

    Zero of a quantity is `ABSENT`, as is a value that is not known.
    """
    if math.isnan(value):
        return ABSENT
    if name.endswith(_RELATIVE):
        return value
    return math.log2(value) if value > 0 else ABSENT


def row_of(features: Mapping[str, float], names: Sequence[str]) -> NDArray[np.float64]:
    """The named features on their scales; `ABSENT` for those that are not there."""
    return np.array([scaled(name, features.get(name, math.nan)) for name in names], np.float64)


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each feature of two rows lies apart: b minus a; where one alone has it, +-`ABSENT`."""
    lacks_a, lacks_b = a == ABSENT, b == ABSENT
    apart = np.where(lacks_a & ~lacks_b, -ABSENT, np.where(lacks_b & ~lacks_a, ABSENT, b - a))
    return np.where(lacks_a & lacks_b, 0.0, apart)
