"""Random-restart hill climbing on one action: which to try next (Li, slides: future work)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.sharp.candidates import B100, M100, TAU_US, Steps
from ascar.sharp.ranges import FIELDS, numbers, ranges
from ascar.sharp.rules import Action

if TYPE_CHECKING:
    from random import Random

__all__ = ["Bounds", "HillClimber"]

_TRIES = 64


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where an action may go; steps are those of table 3.2 inside.

    Attributes:
        m100: least and most.
        b100: least and most.
        tau_us: least and most.
    """

    m100: tuple[int, int] = (int(M100.lower), int(M100.upper))
    b100: tuple[int, int] = (int(B100.lower), int(B100.upper))
    tau_us: tuple[int, int] = (int(TAU_US.lower), int(TAU_US.upper))

    @classmethod
    def around(cls, action: Action) -> Bounds:
        """Those of `ranges`: an action of any rule set is inside its own."""
        return cls(**ranges(action))

    def __post_init__(self) -> None:
        """Check them.

        Raises:
            InputError: one is empty.
        """
        for name in ("m100", "b100", "tau_us"):
            low, high = getattr(self, name)
            if not low <= high:
                raise InputError(f"{name} = {low} to {high}: the first must not be above the second")

    def hold(self, action: Action) -> bool:
        """Whether an action is inside."""
        own = numbers(action)
        return all(low <= own[name] <= high for name, (low, high) in self._by_field().items())

    def steps(self) -> dict[str, Steps]:
        """How each field is varied inside; a field that cannot change is left out."""
        return {
            name: Steps(low, high, min(FIELDS[name].granularity, high - low), FIELDS[name].count)
            for name, (low, high) in self._by_field().items()
            if low < high
        }

    def _by_field(self) -> dict[str, tuple[int, int]]:
        return {"m100": self.m100, "b100": self.b100, "tau_us": self.tau_us}


@dataclass(slots=True)
class HillClimber:
    """Proposes changes of one field by one geometric step, and goes on in a direction that brought something.

    Attributes:
        bounds: where it may go.
        random: decides the order.
        now: where it stands.
        tried: what was compared with where it stands, and brought nothing.
    """

    bounds: Bounds
    random: Random
    now: Action
    tried: set[Action] = field(default_factory=set[Action])
    _direction: tuple[str, int] | None = None

    def propose(self) -> Action | None:
        """A neighbour that was not tried; None on a summit."""
        further = self._further()
        if further is not None:
            return further
        near = self.neighbours()
        self.random.shuffle(near)
        return next((one for one in near if one not in self.tried), None)

    def neighbours(self) -> list[Action]:
        """All actions that differ in one field by one of its steps."""
        found: list[Action] = []
        for name, steps in self.bounds.steps().items():
            found += [_with(self.now, name, value) for value in steps.around(numbers(self.now)[name])]
        return list(dict.fromkeys(one for one in found if self.bounds.hold(one) and one != self.now))

    def moved(self, to: Action) -> None:
        """It stands elsewhere now: what was tried is to be tried again from there."""
        here, there = numbers(self.now), numbers(to)
        changed = [name for name in FIELDS if there[name] != here[name]]
        self._direction = None
        if len(changed) == 1:
            self._direction = changed[0], there[changed[0]] - here[changed[0]]
        self.now, self.tried = to, {self.now}

    def begin(self, at: Action) -> None:
        """It begins anew elsewhere."""
        self.now, self.tried, self._direction = at, set(), None

    def stayed(self, proposed: Action) -> None:
        """A proposal brought nothing."""
        self.tried.add(proposed)
        self._direction = None

    def jump(self) -> Action:
        """A random action inside the bounds: where a restart begins."""

        def drawn(bounds: tuple[int, int]) -> int:
            return self.random.randint(*bounds)

        bounds = self.bounds
        for _ in range(_TRIES):
            found = Action(drawn(bounds.m100), drawn(bounds.b100), drawn(bounds.tau_us))
            if found != self.now:
                return found
        return self.now

    def _further(self) -> Action | None:
        if self._direction is None:
            return None
        name, change = self._direction
        found = _with(self.now, name, numbers(self.now)[name] + change)
        return found if self.bounds.hold(found) and found not in self.tried else None


def _with(action: Action, name: str, value: int) -> Action:
    match name:
        case "m100":
            return replace(action, m100=value)
        case "b100":
            return replace(action, b100=value)
        case _:
            return replace(action, tau_us=value)
