"""Where a search begins (Cao 9.5): simple random or stratified sampling, and what is known to be good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

    from ascar.space import Configuration, Space

__all__ = ["Method", "initial"]

Method = Literal["latin-hypercube", "random"]


def initial(
    space: Space, rng: np.random.Generator, n: int, method: Method, start: tuple[Configuration, ...] = ()
) -> list[Configuration]:
    """The configurations that a search begins with, each once.

    Start configurations come first and count among the `n` (but none of them is dropped). A Latin hypercube
    covers each parameter's values evenly, however unevenly constraints spread the valid configurations over
    them (Cao 9.5: why it beats simple sampling on Storage V3, whose constraints favour large blocks).

    Args:
        space: what is searched.
        rng: of the random choices.
        n: how many configurations are wanted; fewer come back where the space is small.
        method: "random", each configuration as likely as any other, or "latin-hypercube".
        start: defaults and known good configurations.
    """
    wanted = max(0, n - len(start))
    match method:
        case "random":
            drawn = space.sample(rng, wanted)
        case "latin-hypercube":
            drawn = space.latin_hypercube(rng, wanted) if wanted else []
    return list(dict.fromkeys((*start, *drawn)))
