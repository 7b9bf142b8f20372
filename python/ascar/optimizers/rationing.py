"""A change budget (Cao 9.4): parameters that are expensive to change are changed so often and no more.

Between two such changes an optimizer of its own searches everything else, with them as they are. When it has
found nothing better for a while, they change once: to what an optimizer of the whole space would try next,
or, when only one change is left, back to the best that is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import Exhausted
from ascar.optimizers.recommendation import recommend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.optimizers import Evaluation, Optimizer
    from ascar.optimizers.recommendation import Recommendation
    from ascar.space import ChangeCost, Configuration, Space, Value

    Holding = tuple[tuple[str, Value], ...]

# Evaluations without a gain, with the expensive parameters as they are, before they change.
_PATIENCE = 10
# Proposals of the whole space's optimizer that are looked at for one with other expensive values.
_LOOKS_MAX = 16
_DRAWS_MAX = 256


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a search stands.

    Attributes:
        held: the configuration in force.
        spent: changes made, by cost.
        stale: evaluations since the last gain or the last change of an expensive parameter.
    """

    held: Configuration
    spent: Mapping[ChangeCost, int]
    stale: int


class Rationed:
    """An optimizer within a change budget.

    It depends on the history alone, so a search that is told it again goes on as if it had never stopped.

    Args:
        make: opens the optimizer of a space.
        space: the space to search; its default is in force at first.
        limits: changes allowed, by cost; each at least 2: one to try, one to go back.
    """

    def __init__(
        self, make: Callable[[Space], Optimizer], space: Space, limits: Mapping[ChangeCost, int]
    ) -> None:
        assert all(limit >= 2 for limit in limits.values()), "one change to try, one to go back"
        self._make, self._space, self._limits = make, space, dict(limits)
        self._costly = [name for name in space.names if space[name].cost in limits]
        self._history: list[Evaluation] = []
        self._order: list[Configuration] = []  # as they came into force
        self._out: list[Configuration] = []
        self._inner: dict[Holding, Optimizer] = {}

    def ask(self) -> Configuration:
        """The next configuration, within the budget.

        Raises:
            Exhausted: nothing is left to propose within it.
        """
        standing = self._standing()
        chosen = None
        if standing.stale < _PATIENCE:
            chosen = self._within(standing, self._holding(standing.held))
        chosen = chosen or self._elsewhere(standing)
        chosen = chosen or self._within(standing, self._holding(standing.held))
        if chosen is None:
            raise Exhausted("nothing is left to propose within the change budget")
        self._out.append(chosen)
        self._order.append(chosen)
        return chosen

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        configuration = evaluation.configuration
        if configuration in self._out:
            self._out.remove(configuration)
        else:
            self._order.append(configuration)
        self._history.append(evaluation)
        inner = self._inner.get(self._holding(configuration))
        if inner is not None:
            inner.tell(evaluation)

    def recommend(self) -> Recommendation | None:
        """The best of what the optimizers of all holdings recommend."""
        alike: dict[Holding, list[Evaluation]] = {}
        for one in self._history:
            alike.setdefault(self._holding(one.configuration), []).append(one)
        found = [recommend(self._opened(holding), told) for holding, told in alike.items()]
        known = [one for one in found if one is not None]
        return min(known, key=lambda one: one.loss) if known else None

    def _within(self, standing: _Standing, holding: Holding) -> Configuration | None:
        """A proposal with the expensive parameters at given values; None where there is none."""
        inner = self._opened(holding)
        for _ in range(_LOOKS_MAX):
            try:
                proposed = inner.ask()
            except Exhausted:
                return None
            if self._affordable(standing, proposed):
                return proposed
        return None

    def _opened(self, holding: Holding) -> Optimizer:
        """The optimizer that searches with the expensive parameters at these values."""
        if holding not in self._inner:
            self._inner[holding] = self._told(self._space.pin(dict(holding)), holding)
        return self._inner[holding]

    def _elsewhere(self, standing: _Standing) -> Configuration | None:
        """A proposal with other expensive values; None where the budget has none left for it."""
        left = {cost: limit - standing.spent.get(cost, 0) for cost, limit in self._limits.items()}
        tried = {self._holding(one) for one in self._order}
        here = self._holding(standing.held)
        if max(left.values()) >= 2:
            fixed = {
                name: value for name, value in here if left[self._space[name].cost] < 2
            }  # one change is kept for the way back
            space = self._space.pin(fixed)
            proposals = self._proposals(space)
            for proposed in proposals:
                if self._holding(proposed) not in tried and self._affordable(standing, proposed, keep=1):
                    return self._within(standing, self._holding(proposed)) or proposed
            return None
        best = self.recommend()
        if best is None or self._holding(best.configuration) == here:
            return None
        if not self._affordable(standing, best.configuration):
            return None
        return self._within(standing, self._holding(best.configuration))

    def _proposals(self, space: Space) -> Sequence[Configuration]:
        """What an optimizer of the whole space would try next, then random ones."""
        import numpy as np

        whole, found = self._told(space, None), list["Configuration"]()
        for _ in range(_LOOKS_MAX):
            try:
                found.append(whole.ask())
            except Exhausted:
                break
        return [*found, *space.sample(np.random.default_rng(len(self._order)), _DRAWS_MAX)]

    def _told(self, space: Space, holding: Holding | None) -> Optimizer:
        """A new optimizer that knows the history, or of it what has the same expensive values."""
        optimizer = self._make(space)
        for one in self._history:
            if holding is None or self._holding(one.configuration) == holding:
                optimizer.tell(one)
        return optimizer

    def _affordable(self, standing: _Standing, proposed: Configuration, keep: int = 0) -> bool:
        return all(
            standing.spent.get(cost, 0) + 1 + keep <= self._limits[cost]
            for cost in self._costs(standing.held, proposed)
        )

    def _standing(self) -> _Standing:
        held, spent = self._space.default(), dict["ChangeCost", int]()
        since = 0  # in the order of coming into force
        for place, one in enumerate(self._order):
            costs = self._costs(held, one)
            for cost in costs:
                spent[cost] = spent.get(cost, 0) + 1
            if costs:
                since = place
            held = one
        current = set(self._order[since:])
        stale, best = 0, float("inf")
        for one in self._history:
            gained = one.loss is not None and one.state == "complete" and one.loss < best
            if gained and one.loss is not None:
                best = one.loss
            if one.configuration in current:
                stale = 0 if gained else stale + 1
        return _Standing(held, spent, stale)

    def _costs(self, before: Configuration, after: Configuration) -> set[ChangeCost]:
        """The limited costs of a change."""
        changed = self._space.change(before, after).parameters
        return {self._space[name].cost for name in changed} & set(self._limits)

    def _holding(self, configuration: Configuration) -> Holding:
        """The values of the expensive parameters that apply."""
        return tuple((name, configuration[name]) for name in self._costly if name in configuration)
