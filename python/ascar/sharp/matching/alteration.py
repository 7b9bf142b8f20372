"""Common workloads with a feature or two changed (Li, sections 3.1.7 and 3.2.6).

Rules are not made for them, only tried on them: so it is learned what a change does to a gain.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ascar.sharp.matching.common import COMMON

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.sharp.matching.common import Mix

CHANGES: Mapping[str, tuple[Any, ...]] = {
    "read_to_write": (0.05, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    "read_mib": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
    "write_mib": (0.25, 0.5, 2.0, 4.0, 8.0, 16.0),
    "read_random": (True, False),
    "write_random": (False,),
    "threads": (2, 4, 16, 32, 64),
    "clients": (2, 3, 4, 6, 8, 10),
    "direct": (True,),
    "think_s": (0.01, 0.05),
}
"""What a feature may be changed to."""


def altered(mix: Mix, draw: random.Random, count: int) -> Mix:
    """A workload with so many features changed."""
    names = draw.sample(sorted(CHANGES), count)
    changes = {
        name: draw.choice([one for one in CHANGES[name] if one != getattr(mix, name)]) for name in names
    }
    return replace(mix, **changes)


def alterations(count: int, seed: int = 1) -> dict[str, Mix]:
    """So many different altered workloads by name, the same for the same seed; one or two features each."""
    draw = random.Random(seed)  # noqa: S311  # nothing is to be kept secret
    bases = list(COMMON.items())
    found: dict[str, Mix] = {}
    seen = {mix for _, mix in bases}
    while len(found) < count:
        _, base = draw.choice(bases)
        mix = altered(base, draw, draw.choice((1, 2)))
        if mix not in seen:
            seen.add(mix)
            found[f"altered-{seed}-{len(found):03}"] = mix
    return found
