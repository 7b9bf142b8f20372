"""What a study knows before it begins: good configurations, preferred values, a similar study (Cao 9.5)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.errors import SpaceError, StudyError
from ascar.optimizers.proposals import Proposal
from ascar.results.trial import Origin
from ascar.space import Choices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.space import Configuration, Space, Value
    from ascar.study import StartSection


def start_proposals(
    start: StartSection,
    space: Space,
    seed: int,
    similar: Sequence[Proposal] = (),
    advised: Mapping[str, Value] | None = None,
) -> tuple[Proposal, ...]:
    """What a search proposes first: known good configurations, a similar study's best, advised values.

    Args:
        start: the study's `[start]` table.
        space: the space to search.
        seed: the seed of the draws.
        similar: the best of a similar study, the best first; what is not valid here gives way to the nearest.
        advised: the values that the system's manual advises, by parameter; None: it advises nothing.

    Returns:
        Each configuration once, in this order, all valid.

    Raises:
        StudyError: a known configuration or a preferred value is none of this space.
    """
    keys = [f"start.configurations[{at}]" for at in range(len(start.configurations))]
    known = [
        Proposal(_known(space, one, key), Origin.KNOWN, key)
        for key, one in zip(keys, start.configurations, strict=True)
    ]
    adapted = [replace(one, configuration=space.nearest(one.configuration)) for one in similar]
    preferred = [
        Proposal(one, Origin.PREFERRED, "start.preferred")
        for one in _preferred(start, space, np.random.default_rng([seed, 0x9FEF]))
    ]
    first: dict[Configuration, Proposal] = {}
    for one in (*known, *adapted, *_advised(start, space, advised or {}), *preferred):
        first.setdefault(one.configuration, one)
    return tuple(first.values())


def _known(space: Space, values: Mapping[str, Any], key: str) -> Configuration:
    """The default with these values."""
    try:
        found = space.pin(values).default()
    except SpaceError as error:
        raise StudyError(f"{key}: {error.message.removeprefix('pinned: ')}") from error
    idle = [name for name in values if name not in found]
    if idle:
        raise StudyError(
            f"{key}.{idle[0]} = {values[idle[0]]!r}: does not apply with the other values; leave it out, "
            f"or set what it depends on ({space[idle[0]].condition})"
        )
    return found


def _advised(start: StartSection, space: Space, values: Mapping[str, Value]) -> list[Proposal]:
    """The default with the advised values of the parameters that are searched, or the nearest valid one."""
    possible = {
        name: value
        for name, value in values.items()
        if name in space.names
        and not (isinstance(domain := space.domain(name), Choices) and value not in domain.values)
    }
    default = space.default()
    found = space.nearest({**default, **possible})
    if not start.advice or found == default:
        return []
    return [Proposal(found, Origin.ADVISED, "the system's manual advises it for this machine")]


def _preferred(start: StartSection, space: Space, rng: np.random.Generator) -> list[Configuration]:
    """Configurations of preferred values, each about as often as the others; the rest at random."""
    if not start.preferred:
        return []
    columns: dict[str, list[Value]] = {}
    for name, values in start.preferred.items():
        try:
            allowed: list[Value] = [space[name].canonical(value) for value in values]
            for value in allowed:
                space.pin({name: value})
        except SpaceError as error:
            raise StudyError(f"start.preferred.{name}: {error.message}") from error
        order = np.concatenate([rng.permutation(len(allowed)) for _ in range(start.preferred_trials)])
        columns[name] = [allowed[int(at)] for at in order[: start.preferred_trials]]
    found: list[Configuration] = []
    for row in range(start.preferred_trials):
        wanted = {name: values[row] for name, values in columns.items()}
        try:
            found += space.pin(wanted).sample(rng, 1)
        except SpaceError:  # these values do not go together
            found.append(space.nearest({**space.sample(rng, 1)[0], **wanted}))
    return found
