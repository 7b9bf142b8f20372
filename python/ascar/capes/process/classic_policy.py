"""The classic learner as a policy of a learner's process. Needs the extra `drl`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec

from ascar import typed
from ascar.capes.classic.checkpoint import Header, leaves_into, parts_of
from ascar.capes.classic.learner import Classic
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting
    from ascar.capes.classic.hyperparameters import DeepQHyperparameters
    from ascar.capes.policy import TickObservation
    from ascar.capes.process.policies import Expectation

_TINY = 1e-6


class ClassicPolicy:
    """Deep Q-learning as a `LearningPolicy`.

    Args:
        knobs: the knobs that it sets, in steps.
        width: indicators of all nodes together.
        hyper: the hyperparameters of the learner.
        rng: the source of all random choices.
    """

    replays = True

    def __init__(
        self, knobs: Sequence[Axis], width: int, hyper: DeepQHyperparameters, rng: np.random.Generator
    ) -> None:
        self.classic = Classic(knobs, width, hyper, rng)
        self._knobs = tuple(knobs)
        self._last: TickObservation | None = None

    def decide(self, seen: TickObservation) -> Setting:
        """See `LearningPolicy`."""
        self._last = seen
        return self.classic.decide(seen)

    def watch(self, seen: TickObservation) -> None:
        """See `LearningPolicy`: training goes on."""
        self.classic.experience.remember(seen)
        self.classic.experience.exploration.advance()
        for _ in range(self.classic.hyper.steps_per_tick):
            self.classic.train()

    def withdraw(self, wanted: Setting, now: Setting, *, refused: bool) -> None:
        """See `LearningPolicy`: a refused action has no effect; one that was not carried out was none."""
        if not refused and wanted != now and self._last is not None:
            self.classic.experience.replay.act(self._last.tick, 0)

    def announce(self, workload: str) -> None:
        """See `LearningPolicy`."""
        self.classic.announce(workload)

    def recall(self, seen: TickObservation) -> None:
        """See `LearningPolicy`: the action is what changed until the next tick."""
        experience, last = self.classic.experience, self._last
        experience.remember(seen)
        self._last = seen
        if last is not None and seen.tick == last.tick + 1:
            action = action_between(self._knobs, last.setting, seen.setting)
            if action is not None:
                experience.replay.act(last.tick, action)

    def recalled(self) -> None:
        """See `LearningPolicy`."""
        self._last = None

    def expected(self, _setting: Setting) -> Expectation | None:
        """See `LearningPolicy`: Q is a discounted sum of rewards, no performance."""
        return None

    @property
    def epsilon(self) -> float | None:
        """See `LearningPolicy`."""
        return self.classic.experience.exploration.epsilon

    @property
    def prediction_error(self) -> float | None:
        """See `LearningPolicy`."""
        return None if math.isnan(self.classic.prediction_error) else self.classic.prediction_error

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """See `LearningPolicy`."""
        header, arrays = parts_of(self.classic)
        return msgspec.to_builtins(header), arrays

    def read(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `LearningPolicy`."""
        try:
            about = typed.convert(dict(header), Header, strict=False)
        except (msgspec.ValidationError, InputError) as problem:
            raise InputError(f"its header is wrong: {problem}") from problem
        leaves_into(self.classic, about, arrays)


def action_between(knobs: Sequence[Axis], before: Setting, after: Setting) -> int | None:
    """The discrete action that leads from one setting to another; None where it takes more than one."""
    moved = [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]
    if not moved:
        return 0
    if len(moved) > 1:
        return None
    knob, step = knobs[moved[0]], after[moved[0]] - before[moved[0]]
    if abs(abs(step) - knob.step) > _TINY * knob.step:
        return None
    return 2 * moved[0] + (1 if step > 0 else 2)
