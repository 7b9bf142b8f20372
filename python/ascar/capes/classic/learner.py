"""The classic learner: CAPES's deep Q-learning as published (Li et al., SC'17, section 3; Li, section 5.1).

Needs the extra `drl`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.capes.classic.experience import Experience
from ascar.capes.classic.steps import DeepState, first_state, make_step, sizes_of, stacked, values_of
from ascar.learning import Transitions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.capes.axes import Axis, Setting
    from ascar.capes.classic.hyperparameters import DeepQHyperparameters
    from ascar.capes.policy import TickObservation

_ERROR_WEIGHT = 0.01


class Classic:
    """A deep Q-learner.

    Args:
        knobs: the knobs that it sets, in steps.
        width: indicators of all nodes together.
        hyper: the hyperparameters of the learner.
        rng: the source of all random choices.

    Attributes:
        experience: the replay memory, rewards and exploration.
        state: the state of the networks.
        sizes: the sizes of the networks' layers.
        steps: the number of training steps so far.
        prediction_error: moving average over minibatches, in units of the largest performance; NaN before
            the first.
    """

    def __init__(
        self, knobs: Sequence[Axis], width: int, hyper: DeepQHyperparameters, rng: np.random.Generator
    ) -> None:
        self.hyper = hyper
        self.experience = Experience(knobs, width, hyper, rng)
        self.sizes = sizes_of(hyper, self.experience.inputs, self.experience.actions)
        self.state: DeepState = first_state(hyper, self.sizes, rng)
        self.steps = 0
        self.prediction_error = math.nan
        self._step = make_step(hyper)

    def decide(self, seen: TickObservation) -> Setting:
        """Learn from a tick, and take one of the 2n + 1 actions."""
        observation = self.experience.take(seen)
        for _ in range(self.hyper.steps_per_tick):
            self.train()
        if observation is None or self.experience.explores():
            return self.experience.act(seen, None)
        return self.experience.act(seen, values_of(self.state, observation[None])[0])

    def announce(self, _workload: str) -> None:
        """Another workload has begun: more random actions for a while (Li 5.1.6)."""
        self.experience.exploration.announce()

    def train(self) -> bool:
        """One step of training; False while there is not enough to learn from."""
        batch = self.experience.batch()
        if batch is None:
            return False
        self.state, error = self._step(self.state, batch)
        self.steps += 1
        before = float(error) if math.isnan(self.prediction_error) else self.prediction_error
        self.prediction_error = before + _ERROR_WEIGHT * (float(error) - before)
        return True


class ClassicBatch:
    """A batch of learners, each on its own system, that train in one compiled step.

    Args:
        experiences: the experience of each learner, all of one shape.
        hyper: the hyperparameters of all learners.
    """

    def __init__(self, experiences: Sequence[Experience], hyper: DeepQHyperparameters) -> None:
        self._experiences, self._hyper = tuple(experiences), hyper
        sizes = sizes_of(hyper, experiences[0].inputs, experiences[0].actions)
        self._state = stacked([first_state(hyper, sizes, one.rng) for one in experiences])
        self._step = make_step(hyper, many=True)

    def decide(self, seen: Sequence[TickObservation]) -> list[Setting]:
        """Choose the next setting of each system."""
        observed = [experience.take(one) for experience, one in zip(self._experiences, seen, strict=True)]
        for _ in range(self._hyper.steps_per_tick):
            batches: list[Any] = [experience.batch() for experience in self._experiences]
            if all(one is not None for one in batches):
                together = Transitions(*[np.stack(parts) for parts in zip(*batches, strict=True)])
                self._state = self._step(self._state, together).state
        empty = np.zeros(self._experiences[0].inputs, np.float32)
        inputs = np.stack([empty if one is None else one for one in observed])[:, None]
        values = values_of(self._state, inputs, many=True)[:, 0]
        return [
            experience.act(one, None if looked is None or experience.explores() else row)
            for experience, one, looked, row in zip(self._experiences, seen, observed, values, strict=True)
        ]
