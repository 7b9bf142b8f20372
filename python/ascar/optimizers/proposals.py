"""What a search tries next: proposals that wait, then those of the optimizer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.results.trial import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascar.optimizers import Optimizer
    from ascar.space import Configuration


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration that somebody wants to be tried.

    Attributes:
        configuration: the configuration.
        origin: who proposes it.
        reason: why, in a few words.
    """

    configuration: Configuration
    origin: Origin
    reason: str = ""


class Proposals:
    """A queue: what was put in comes out first, in that order; then the optimizer is asked.

    Start configurations are the optimizer's to place, because its initial design counts them. When it
    proposes one for the first time, the queue says where that came from.

    Args:
        optimizer: the optimizer.
        starts: what the optimizer was opened with.
    """

    def __init__(self, optimizer: Optimizer, starts: Iterable[Proposal] = ()) -> None:
        self._optimizer = optimizer
        self._starts = {one.configuration: one for one in starts}
        self._waiting: deque[Proposal] = deque()

    def put(self, *proposals: Proposal) -> None:
        """Have them tried before the optimizer is asked again."""
        self._waiting.extend(proposals)

    def take(self) -> Proposal:
        """The next proposal.

        Raises:
            Exhausted: nothing is left to propose.
        """
        if self._waiting:
            return self._waiting.popleft()
        configuration = self._optimizer.ask()
        start = self._starts.pop(configuration, None)
        if start is not None:
            return start
        origin = getattr(self._optimizer, "origin", Origin.OPTIMIZER)
        return Proposal(configuration, origin, getattr(self._optimizer, "reason", ""))
