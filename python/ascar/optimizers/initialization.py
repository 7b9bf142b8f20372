"""Where a search begins (Cao 9.5): simple random or stratified sampling, and what is known to be good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ascar.optimizers.guided.columns import SpaceColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.space import Configuration, Space

Method = Literal["latin-hypercube", "maximin", "sobol", "halton", "random", "near-known"]

_KEPT_SHARE = 0.5
# Latin hypercubes that a maximin one is chosen among.
_HYPERCUBES = 20


def initial(
    space: Space,
    rng: np.random.Generator,
    n: int,
    method: Method,
    start: tuple[Configuration, ...] = (),
    *,
    known: Configuration | None = None,
) -> list[Configuration]:
    """The configurations that a search begins with, each once.

    Start configurations come first and count among the `n` (but none of them is dropped). A Latin hypercube
    covers each parameter's values evenly, however unevenly constraints spread the valid configurations over
    them (Cao 9.5: why it beats simple sampling on Storage V3, whose constraints favour large blocks).

    Args:
        space: the space to search.
        rng: the random generator.
        n: the number of configurations wanted; fewer come back where the space is small.
        method: "random", each configuration as likely as any other; "latin-hypercube"; "maximin", of several
            Latin hypercubes the one whose two nearest configurations are farthest apart; "sobol" or "halton",
            a scrambled low-discrepancy sequence over the valid configurations; "near-known": a Latin
            hypercube of which each configuration keeps each value of one that is known, with a probability of
            one half.
        start: defaults and known good configurations.
        known: the one that "near-known" stays near; None: the first start configuration, or the default.
    """
    wanted = max(0, n - len(start))
    match method:
        case "random":
            drawn = space.sample(rng, wanted)
        case "latin-hypercube":
            drawn = space.latin_hypercube(rng, wanted) if wanted else []
        case "maximin":
            drawn = _maximin(space, rng, wanted, start)
        case "near-known":
            known = known or (start[0] if start else space.default())
            drawn = _near(space, rng, wanted, known) if wanted else []
        case "sobol" | "halton":
            drawn = space.sequence(rng, wanted, method) if wanted else []
    return list(dict.fromkeys((*start, *drawn)))


def _near(space: Space, rng: np.random.Generator, n: int, known: Configuration) -> list[Configuration]:
    """A Latin hypercube, half of it given up for a configuration that works.

    With many parameters nearly every configuration of a design has one of the values that spoil everything,
    so that a short search learns little but that. Here each such value is met in half of the design only.
    """
    found: list[Configuration] = []
    for one in space.latin_hypercube(rng, n):
        kept = {name: value for name, value in known.items() if rng.random() < _KEPT_SHARE}
        found.append(space.nearest({**one, **kept}))
    return found


def _maximin(
    space: Space, rng: np.random.Generator, n: int, start: tuple[Configuration, ...]
) -> list[Configuration]:
    """The Latin hypercube that leaves its configurations, and the start's, farthest apart.

    Johnson, Moore and Ylvisaker, "Minimax and Maximin Distance Designs", Journal of Statistical Planning and
    Inference 26 (1990); over Latin hypercubes: Morris and Mitchell, ibid. 43 (1995), here by choice among 20.
    """
    if n < 1:
        return []
    found = [space.latin_hypercube(rng, n) for _ in range(_HYPERCUBES)]
    columns = SpaceColumns.of(space)
    return max(found, key=lambda one: _nearest(columns.rows((*start, *one))))


def _nearest(rows: NDArray[np.float64]) -> tuple[float, float]:
    """The least squared distance between two rows, and the mean distance, which breaks ties."""
    squares = (rows * rows).sum(1)
    distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    pairs = distances[np.tril_indices(len(rows), -1)]
    return (float(pairs.min()), float(pairs.mean())) if len(pairs) else (0.0, 0.0)
