"""Search with parameters that only change together: the optimizer sees each group of them as one parameter.

It is asked and told in the study's configurations, and speaks in those of `ascar.space.grouping`; of a space
without groups nothing is changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ascar.optimizers.recommendation import Recommends

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.optimizers import Evaluation, Optimizer
    from ascar.optimizers.recommendation import Recommendation
    from ascar.space import Configuration, Space
    from ascar.space.grouping import Grouping

# What optimizers tell beside their proposals; see `Auto`, `GeneticAlgorithm` and `Proposals`.
_TOLD = ("generations", "origin", "reason")


def grouped(
    make: Callable[[Space, tuple[Configuration, ...]], Optimizer],
    space: Space,
    start: tuple[Configuration, ...] = (),
) -> Optimizer:
    """The optimizer of a space, which sees each group of its parameters as one.

    Args:
        make: opens the optimizer of a space that begins with these configurations.
        space: the space to search.
        start: configurations to propose first.

    Raises:
        SpaceError: a start configuration is not valid.
    """
    grouping = space.grouping
    if not grouping.groups:
        return make(space, start)
    inner = make(grouping.space, tuple(grouping.encode(space.validate(one)) for one in start))
    kind = RecommendingGroupedSearch if isinstance(inner, Recommends) else GroupedSearch
    return kind(inner, grouping)


class GroupedSearch:
    """Translates for an optimizer.

    Args:
        inner: the optimizer, of the space of groups.
        grouping: the groups.
    """

    def __init__(self, inner: Optimizer, grouping: Grouping) -> None:
        self._inner = inner
        self._grouping = grouping

    def __getattr__(self, name: str) -> Any:
        if name in _TOLD:
            return getattr(self._inner, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: nothing is left to propose.
        """
        return self._grouping.decode(self._inner.ask())

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        encoded = self._grouping.encode(evaluation.configuration)
        self._inner.tell(replace(evaluation, configuration=encoded))


class RecommendingGroupedSearch(GroupedSearch):
    """Of an optimizer that recommends by its own posterior."""

    def recommend(self) -> Recommendation | None:
        """The best by expectation; None before any success."""
        found = self._inner.recommend() if isinstance(self._inner, Recommends) else None
        if found is None:
            return None
        return replace(found, configuration=self._grouping.decode(found.configuration))
