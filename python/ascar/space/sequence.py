"""Low-discrepancy sequences over the valid configurations of mixed, conditional and constrained spaces.

Sobol', "On the distribution of points in a cube and the approximate evaluation of integrals", USSR
Computational Mathematics and Mathematical Physics 7 (1967); Halton, "On the efficiency of certain
quasi-random sequences of points", Numerische Mathematik 2 (1960). Both are scrambled, so that two seeds give
two designs. A point of the unit cube becomes a configuration as a random draw does, level by level through
the decision diagram with each choice as likely as it has valid configurations: the sequence is even over the
valid configurations, not over each parameter's values as a Latin hypercube is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ascar.space.low_discrepancy import HaltonPoints, SobolPoints

if TYPE_CHECKING:
    import numpy as np

    from ascar.space.configuration import Configuration
    from ascar.space.solver import Solver

_POINTS_MAX: Final = 1 << 14  # tried before constraints on wide ranges are left to plain draws


def sequence(solver: Solver, rng: np.random.Generator, n: int, kind: str) -> list[Configuration]:
    """`n` configurations of a scrambled sequence; where a constraint on a range turns a point down, the next.

    Args:
        solver: the solver of the space.
        rng: the random generator of the scrambling.
        n: the number of configurations.
        kind: "sobol" or "halton".

    Raises:
        SpaceError: no configuration is valid, or none was found.
    """
    assert kind in ("sobol", "halton"), "one of the two"
    solver.ensure_some()
    _ = solver.diagram  # settles the order of decision
    width = 2 * len(solver.order)
    if not width:
        return [solver.draw(rng) for _ in range(n)]
    (scrambling,) = rng.spawn(1)
    points = (SobolPoints if kind == "sobol" else HaltonPoints)(width, scrambling)
    found: list[Configuration] = []
    seen = 0
    while len(found) < n and seen < _POINTS_MAX:
        # A Sobol' sequence is balanced over powers of two.
        count = 1 << max(0, math.ceil(math.log2(max(1, n - len(found)))))
        for point in points.following(count).tolist():
            one = solver.at(point)
            if one is not None:
                found.append(one)
        seen += count
    found += [solver.draw(rng) for _ in range(n - len(found))]
    return found[:n]
