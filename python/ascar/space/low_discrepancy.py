"""Scrambled points of Sobol' and Halton, spread more evenly over the unit cube than chance does.

Sobol' with the direction numbers of Joe and Kuo (SIAM Journal on Scientific Computing 30, 2008), the bits of
each coordinate mixed by a random triangular matrix and shifted (Matoušek, "On the L2-discrepancy for anchored
boxes", Journal of Complexity 14, 1998). Halton with each digit permuted (Owen, "A randomized Halton algorithm
in R", arXiv:1706.02808, 2017, algorithm 1). The points are those that `scipy.stats.qmc` makes of the same
random numbers.
"""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_BITS: Final = 30
_DIMENSIONS_MAX: Final = 1024
_DIRECTIONS: Final = Path(__file__).with_name("joe_kuo.txt")


class SobolPoints:
    """Scrambled Sobol' points; dimensions beyond 1,024 are plain random numbers.

    Args:
        width: the number of dimensions.
        rng: the source of the scrambling.
    """

    def __init__(self, width: int, rng: np.random.Generator) -> None:
        self._width, self._rng, self._drawn = width, rng, 0
        known = min(width, _DIMENSIONS_MAX)
        bits = rng.integers(2, size=(known, _BITS), dtype=np.uint32)
        self._last = bits @ (np.uint32(1) << np.arange(_BITS, dtype=np.uint32))
        mixing = np.tril(rng.integers(2, size=(known, _BITS, _BITS), dtype=np.uint32), -1)
        mixing[:, np.arange(_BITS), np.arange(_BITS)] = 1
        self._changes = _packed(_directions(known) @ mixing.transpose(0, 2, 1) & np.uint32(1)).T

    def following(self, count: int) -> NDArray[np.float64]:
        """(count, width): the points that follow those before, each coordinate in [0, 1)."""
        # In the order of Gray's code a point differs from the one before by one direction: that of the lowest
        # bit set in its number.
        numbers = np.arange(self._drawn, self._drawn + count)
        lowest = np.log2(np.maximum(numbers & -numbers, 1)).astype(np.intp)
        points = self._changes[lowest]
        points[0] = self._last if self._drawn == 0 else points[0] ^ self._last
        points = np.bitwise_xor.accumulate(points, axis=0)
        self._drawn, self._last = self._drawn + count, points[-1]
        beyond = self._rng.random((count, self._width - points.shape[1]))
        return np.hstack([points * 2.0**-_BITS, beyond])


class HaltonPoints:
    """Scrambled Halton points.

    Args:
        width: the number of dimensions, each with a prime of its own.
        rng: the source of the permutations.
    """

    def __init__(self, width: int, rng: np.random.Generator) -> None:
        self._drawn = 0
        self._permutations: list[NDArray[np.intp]] = []
        for base in islice(_primes(), width):
            # As many digits as a number has bits.
            digits = math.ceil(54 / math.log2(base)) - 1
            rows = np.repeat(np.arange(base)[None], digits, axis=0)
            for row in rows:
                rng.shuffle(row)
            self._permutations.append(rows)

    def following(self, count: int) -> NDArray[np.float64]:
        """(count, width): the points that follow those before, each coordinate in [0, 1)."""
        numbers = np.arange(self._drawn, self._drawn + count)
        self._drawn += count
        points = np.zeros((len(self._permutations), count))
        for column, rows in zip(points, self._permutations, strict=True):
            left, place = numbers, 1.0
            for row in rows:
                place /= len(row)
                left, digit = np.divmod(left, len(row))
                column[:] += row[digit] * place
        return points.T


def _directions(width: int) -> NDArray[np.uint32]:
    """(width, 30, 30): bits of each dimension's direction numbers, highest first (Bratley and Fox 1988)."""
    numbers = np.zeros((width, _BITS), np.uint64)
    numbers[0] = 1
    with _DIRECTIONS.open(encoding="utf-8") as file:
        rows = (line for line in file if line[0].isdecimal())
        for dimension, line in enumerate(islice(rows, width - 1), 1):
            _, degree, inner, *initial = map(int, line.split())
            own = list(initial)
            for place in range(degree, _BITS):
                found = own[place - degree] ^ own[place - degree] << degree
                for step in range(1, degree):
                    if inner >> degree - 1 - step & 1:
                        found ^= own[place - step] << step
                own.append(found)
            numbers[dimension] = own
    # The j-th number is a fraction of 2^j, whose bits begin behind the point.
    places = np.arange(_BITS, dtype=np.uint64)
    shifted = numbers << places[::-1]
    return (shifted[:, :, None] >> places[::-1] & np.uint64(1)).astype(np.uint32)


def _packed(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Numbers of bits, the highest first, along the last axis."""
    return bits @ (np.uint32(1) << np.arange(_BITS, dtype=np.uint32)[::-1])


def _primes() -> Iterator[int]:
    known: list[int] = []
    candidate = 2
    while True:
        if all(candidate % prime for prime in known if prime * prime <= candidate):
            known.append(candidate)
            yield candidate
        candidate += 1
