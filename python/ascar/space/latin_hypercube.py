"""Latin hypercube sampling of mixed, conditional and constrained spaces.

McKay, Beckman and Conover (Technometrics 21, 1979): with n samples, each parameter's range is cut into n
equally likely strata and each stratum is used once, the strata of different parameters being paired at
random. Cao (sections 6.3 and 9.5) uses it because it covers the values of every parameter more evenly than
simple sampling: Storage V3 has 972 valid configurations with 1 KiB blocks and 1,458 with 2 and with 4, of
which simple sampling takes a quarter, and here it is a third each.

Where there are fewer values than samples, a value is a stratum and is used n/k times, rounded down or up.
What conditions and constraints leave open is shared out parameter by parameter, in order of decision: among
the samples in which a parameter is active, its strata are used as evenly as the values chosen before allow
(the sum of the squares of the counts is least, which is a semi-matching without cost-reducing paths:
Harvey, Ladner, Lovasz and Tamir, J. Algorithms 59, 2006); among equally even assignments chance decides.
The diagram admits no choice that leads to nothing valid. So:

- a parameter that no condition or constraint concerns: every value floor(n/k) or ceil(n/k) times, every
  stratum of a continuous or wide range exactly once;
- a conditional one: the same among the m samples in which it is active;
- a constrained one: as even as the values of the parameters before it permit.

Constraints on wide ranges, which the diagram cannot hold, are met by exchanging values between samples,
which keeps the strata; a sample for which no exchange helps is replaced by a plain draw.
"""

from __future__ import annotations

from collections import deque
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from ascar.space.diagram import Free
from ascar.space.domain import Range

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ascar.space.configuration import Configuration
    from ascar.space.diagram import DiagramLevel, DiagramNode, Key
    from ascar.space.domain import Value
    from ascar.space.solver import Solver

_EXCHANGES_MAX: Final = 200  # tried for one sample before it is replaced

Row = dict[str, "Value | None"]


def latin_hypercube(solver: Solver, rng: np.random.Generator, n: int) -> list[Configuration]:
    """`n` valid configurations with every parameter's strata as even as validity allows, in random order.

    Raises:
        SpaceError: no configuration is valid, or constraints on wide ranges cannot be met.
    """
    solver.ensure_some()
    rows: list[Row] = [{} for _ in range(n)]
    nodes = [solver.diagram.root] * n
    for level in solver.order:
        keys = _keys(level, nodes, rng)
        free = [index for index, key in enumerate(keys) if isinstance(key, Free)]
        for index, key in enumerate(keys):
            nodes[index] = nodes[index].edges[key]
            rows[index][level.name] = None if isinstance(key, Free) else key
        for index, value in zip(free, _strata(level, len(free), rng), strict=True):
            rows[index][level.name] = value
    order = rng.permutation(n).tolist()
    return _repaired(solver, [rows[index] for index in order], rng)


def _keys(level: DiagramLevel, nodes: Sequence[DiagramNode], rng: np.random.Generator) -> list[Key]:
    """A choice for every sample: forced where a state leaves one, else shared out evenly."""
    keys: list[Key] = [node.keys[0] for node in nodes]
    if all(len(node.keys) == 1 for node in nodes):
        return keys
    active = [index for index, key in enumerate(keys) if key is not None and not isinstance(key, Free)]
    stratum = _stratum_of(level, len(active))
    allowed: list[dict[int, list[Key]]] = []
    by_node: dict[int, dict[int, list[Key]]] = {}
    for index in active:
        node = nodes[index]
        if id(node) not in by_node:
            choices: dict[int, list[Key]] = {}
            for key in node.keys:
                choices.setdefault(stratum[key], []).append(key)
            by_node[id(node)] = choices
        allowed.append(by_node[id(node)])
    chosen = share_out([list(choices) for choices in allowed], rng)
    for index, choices, place in zip(active, allowed, chosen, strict=True):
        options = choices[place]
        keys[index] = options[int(rng.integers(len(options)))] if len(options) > 1 else options[0]
    return keys


def _stratum_of(level: DiagramLevel, n: int) -> dict[Key, int]:
    """Which stratum each value belongs to: its own, or for an ordered list longer than n one of n."""
    values = level.values or ()
    ordered = isinstance(level.domain, Range) or level.domain.ordered
    if not ordered or len(values) <= n:
        return {value: index for index, value in enumerate(values)}
    weights = [level.weight(value) for value in values]
    middles = [
        below + weight / 2 for below, weight in zip(accumulate(weights, initial=0), weights, strict=False)
    ]
    return {value: int(middle * n / sum(weights)) for value, middle in zip(values, middles, strict=True)}


def share_out(allowed: Sequence[Sequence[int]], rng: np.random.Generator) -> list[int]:
    """Give each sample one of its allowed strata so that the counts are as even as they can be.

    Args:
        allowed: the strata that each sample may take, at least one for each.
        rng: decides among equally even assignments.

    Returns:
        The stratum of each sample; the sum of the squares of the counts is least.
    """
    strata = sorted({place for places in allowed for place in places})
    counts: dict[int, int] = dict.fromkeys(strata, 0)
    chosen = [-1] * len(allowed)
    for index in (int(i) for i in rng.permutation(len(allowed))):
        least = min(counts[place] for place in allowed[index])
        ties = [place for place in allowed[index] if counts[place] == least]
        chosen[index] = ties[int(rng.integers(len(ties)))] if len(ties) > 1 else ties[0]
        counts[chosen[index]] += 1
    while path := _improvement(allowed, chosen, counts):
        for index, place in path:
            counts[chosen[index]] -= 1
            counts[place] += 1
            chosen[index] = place
    return chosen


def _improvement(
    allowed: Sequence[Sequence[int]], chosen: Sequence[int], counts: dict[int, int]
) -> list[tuple[int, int]]:
    """Moves along a path from a stratum to one with at least two fewer samples; empty where there is none."""
    holders: dict[int, list[int]] = {place: [] for place in counts}
    for index, place in enumerate(chosen):
        holders[place].append(index)
    for start in sorted(counts, key=lambda place: -counts[place]):
        came: dict[int, tuple[int, int]] = {}  # stratum -> (sample that can move there, stratum it leaves)
        waiting = deque([start])
        while waiting:
            place = waiting.popleft()
            if counts[place] <= counts[start] - 2:
                return _backwards(came, place, start)
            for index in holders[place]:
                for other in allowed[index]:
                    if other != start and other not in came:
                        came[other] = (index, place)
                        waiting.append(other)
    return []


def _backwards(came: dict[int, tuple[int, int]], place: int, start: int) -> list[tuple[int, int]]:
    path: list[tuple[int, int]] = []
    while place != start:
        index, left = came[place]
        path.append((index, place))
        place = left
    return path


def _strata(level: DiagramLevel, n: int, rng: np.random.Generator) -> list[Value]:
    """One value from each of n equally likely strata of a range, in random order."""
    if not n:
        return []
    domain = level.domain
    assert isinstance(domain, Range), "only ranges are free"
    if domain.size is not None and not domain.log:
        return [domain.draw((place + 0.5) / domain.size) for place in _places(domain.size, n, rng)]
    shares = (rng.permutation(n) + rng.random(n)) / n
    return [domain.draw(min(float(share), 1 - 2**-53)) for share in shares]


def _places(size: int, n: int, rng: np.random.Generator) -> list[int]:
    """Places, each as likely, n of them in random order, each floor(n/size) or ceil(n/size) times.

    Strata of equal width would cut through places, and one that lies in three of them come twice too often.
    """
    if size <= n:
        whole = [*range(size)] * (n // size)
        return rng.permutation([*whole, *rng.choice(size, n % size, replace=False).tolist()]).tolist()
    bounds = [-(-stratum * size // n) for stratum in range(n + 1)]
    places = [int(rng.integers(low, high)) for low, high in pairwise(bounds)]
    return [places[index] for index in rng.permutation(n).tolist()]


def _repaired(solver: Solver, rows: list[Row], rng: np.random.Generator) -> list[Configuration]:
    """Meet the constraints that are not in the diagram by exchanges between rows, else by drawing anew."""
    for index, row in enumerate(rows if solver.drawn else ()):
        if solver.accepts(row) or _exchanged(solver, rows, index, rng):
            continue
        drawn = solver.draw(rng)
        rows[index] = {level.name: drawn.get(level.name) for level in solver.order}
    return [solver.configuration(row) for row in rows]


def _exchanged(solver: Solver, rows: list[Row], index: int, rng: np.random.Generator) -> bool:
    """Exchange a range's value with another row so that both are valid; whether that was found."""
    row = rows[index]
    concerned = {name for constraint in solver.drawn for name in constraint.names}
    names = [level.name for level in solver.order if level.values is None and level.name in concerned]
    names = [name for name in names if row[name] is not None]
    for _ in range(_EXCHANGES_MAX if names else 0):
        name = names[int(rng.integers(len(names)))]
        other = rows[int(rng.integers(len(rows)))]
        if other[name] is None or other is row:
            continue
        valid_before = solver.accepts(other)
        row[name], other[name] = other[name], row[name]
        if solver.accepts(row) and (solver.accepts(other) or not valid_before):
            return True
        row[name], other[name] = other[name], row[name]
    return False
