"""The experience of a deep Q-learner: replay memory, rewards, exploration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ascar.capes.axes import action_count, moved
from ascar.capes.classic.exploration import EpsilonSchedule
from ascar.capes.classic.replay_memory import TickReplay
from ascar.capes.classic.reward import Rewards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting
    from ascar.capes.classic.hyperparameters import DeepQHyperparameters
    from ascar.capes.policy import TickObservation
    from ascar.learning import Transitions


class Experience:
    """See the module.

    Args:
        knobs: the knobs that the learner sets.
        width: indicators of all nodes together.
        hyper: the hyperparameters of the learner.
        rng: the source of random actions and minibatches.

    Attributes:
        actions: the number of actions.
        knob_names: the names of the knobs, in their order.
        inputs: the number of inputs of the network.
        scale: the divisor of rewards, which is the largest performance so far.
    """

    def __init__(
        self, knobs: Sequence[Axis], width: int, hyper: DeepQHyperparameters, rng: np.random.Generator
    ) -> None:
        self._knobs, self._hyper, self.rng = tuple(knobs), hyper, rng
        self.actions = action_count(self._knobs)
        self.knob_names = tuple(one.name for one in self._knobs)
        self.inputs = width * hyper.ticks_per_observation
        self.replay = TickReplay(
            width, hyper.ticks_per_observation, hyper.missing_tolerance, hyper.memory_ticks
        )
        self.exploration = EpsilonSchedule(hyper)
        self.scale = 0.0
        self._rewards = Rewards(hyper.reward, hyper.reward_ticks)

    def take(self, seen: TickObservation) -> NDArray[np.float32] | None:
        """Store a tick; return the observation that ends with it, or None where too much is missing."""
        self.remember(seen)
        self.exploration.advance()
        return self.replay.observation(seen.tick)

    def remember(self, seen: TickObservation) -> None:
        """Store a tick in the replay memory without choosing an action."""
        if not math.isnan(seen.performance):
            self.scale = max(self.scale, abs(seen.performance))
        self.replay.add(seen.tick, seen.indicators.ravel(), self._rewards.after(seen.performance))

    def batch(self) -> Transitions | None:
        """Draw a minibatch with rewards divided by their scale; None while the memory holds too few ticks."""
        found = self.replay.sample(self.rng, self._hyper.minibatch, self.actions)
        if found is None or not self.scale:
            return None
        return found._replace(rewards=(found.rewards / self.scale).astype(np.float32))

    def explores(self) -> bool:
        """Whether the next action is a random one."""
        return bool(self.rng.random() < self.exploration.epsilon)

    def act(self, seen: TickObservation, values: NDArray[np.float32] | None) -> Setting:
        """Take an action: the best one by its value, or a random one where there are no values."""
        action = int(self.rng.integers(self.actions)) if values is None else int(np.argmax(values))
        self.replay.act(seen.tick, action)
        return moved(self._knobs, seen.setting, action)
