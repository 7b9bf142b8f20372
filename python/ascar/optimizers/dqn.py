"""A deep Q-network that walks through the space (Cao 2.3, 4.4, 5.2).

The thesis' terms: a state is a configuration, an action changes it to another one, the reward is the
difference of their evaluations. The method is Mnih et al.'s original one ("Human-level control through deep
reinforcement learning", Nature 518, 2015): experience replay, an older copy of the network for the targets,
and a random action with probability epsilon, here 0.2 from the first to the last step as in Cao 5.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.learning import QLearner, Replay, Transition
from ascar.optimizers.guided.columns import SpaceColumns
from ascar.optimizers.ledger import Ledger
from ascar.optimizers.moves import Moves
from ascar.optimizers.options import OptimizerTable
from ascar.optimizers.replayable import Stateful

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ascar.optimizers.ledger import ConfigurationRecord
    from ascar.space import Configuration, Space

# Moves over known configurations, which cost no evaluation, before the walk counts as stuck.
_FREE_MOVES_MAX = 64
_CAPACITY = 10_000
_REWARD_MAX = 10.0
# What a random decision is about, for its generator.
_WEIGHTS, _MOVE, _BATCH = range(3)


class DeepQNetworkOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "dqn".

    Attributes:
        epsilon: chance of a random action (Cao 5.2: 0.2).
        discount: the worth of a reward one action later.
        width: the width of each of the two hidden layers.
        rate: the learning rate (Adam).
        batch: transitions in a learning step.
        steps: learning steps an evaluation.
        renewal: evaluations between two renewals of the network that targets are taken from.
    """

    epsilon: float = 0.2
    discount: float = 0.9
    width: int = 32
    rate: float = 2e-3
    batch: int = 32
    steps: int = 8
    renewal: int = 5

    def ranges(self) -> dict[str, tuple[float, float]]:
        """See the base."""
        return {
            "epsilon": (0.0, 1.0),
            "discount": (0.0, 0.9999),
            "width": (1, 4096),
            "rate": (1e-9, 1.0),
            "batch": (1, 4096),
            "steps": (0, 1000),
            "renewal": (1, 1_000_000),
        }


class DeepQNetwork(Stateful):
    """See `DeepQNetworkOptions`; it begins at the first start configuration, else at the space's default.

    Args:
        space: the space to search.
        seed: the seed of the random choices.
        start: configurations to propose first.
        options: the study's `[optimizer]` table without its kind.

    Raises:
        StudyError: an option is unknown or out of range.
        SpaceError: a start configuration is not valid.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        chosen = self.options = DeepQNetworkOptions.read(options)
        self.ledger = Ledger(space, seed, start or (space.default(),))
        self._moves = Moves.of(space)
        self._columns = SpaceColumns(self._moves.codes, SpaceColumns.of(space).groups)
        self._replay = Replay(self._columns.width, len(self._moves), _CAPACITY)
        sizes = (self._columns.width, chosen.width, chosen.width, len(self._moves))
        self._learner = QLearner(sizes, self.ledger.rng(_WEIGHTS), chosen.rate, chosen.discount)
        self._place: tuple[Configuration, float] | None = None
        self._out: dict[Configuration, tuple[Configuration, float, int]] = {}
        self._walked: set[tuple[Configuration, int]] = set()
        self._free = 0  # moves over known configurations, for the generators
        self._rows: dict[Configuration, NDArray[np.float32]] = {}

    def propose(self) -> Configuration:
        """Where the next action leads that leads to something fresh.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        started = self.ledger.started()
        if started is not None:
            return started
        rng = self.ledger.rng(_MOVE, self.ledger.step, self._free)
        if self._place is None or not len(self._moves):
            return self.ledger.draw(rng)
        barred: set[tuple[Configuration, int]] = set()
        for _ in range(_FREE_MOVES_MAX):
            place, loss = self._place
            action = self._choose(place, barred, rng)
            if action is None:
                break
            child = self._moves.taken(place, action, rng)
            if self.ledger.fresh(child):
                self._out[child] = place, loss, action
                return child
            record = self.ledger.records.get(child)
            if child == place or record is None or record.estimate is None:
                barred.add((place, action))
                continue
            self._free += 1
            self._experience((place, loss, action), child, record.estimate)
            self._place = child, record.estimate
        return self.ledger.draw(rng)

    def learn(self, configuration: Configuration, record: ConfigurationRecord) -> None:
        """An action led to something new: remember it, move there unless it failed, and learn."""
        came = self._out.pop(configuration, None)
        known = record.estimate  # a pruned evaluation says how bad its configuration is
        loss = self.ledger.worst() if known is None else known
        if came is not None and loss is not None:
            self._experience(came, configuration, loss, failed=known is None)
        if known is not None:
            self._place = configuration, known
        if not len(self._replay):
            return
        rng, spread = self.ledger.rng(_BATCH, len(self.ledger.history)), self._spread()
        for _ in range(self.options.steps):
            batch = self._replay.sample(rng, self.options.batch)
            rewards = np.clip(batch.rewards / spread, -_REWARD_MAX, _REWARD_MAX)
            self._learner.step(batch._replace(rewards=rewards))
        if len(self.ledger.history) % self.options.renewal == 0:
            self._learner.renew()

    def _choose(
        self, place: Configuration, barred: set[tuple[Configuration, int]], rng: np.random.Generator
    ) -> int | None:
        """An allowed action: a random one, or the one with the highest value; None where there is none."""
        allowed = self._moves.allowed(place)
        for where, action in barred:
            if where == place:
                allowed[action] = False
        open_ = np.flatnonzero(allowed)
        if not len(open_):
            return None
        if rng.random() < self.options.epsilon:
            return int(open_[rng.integers(len(open_))])
        values = self._learner.values(self._state(place))
        return int(open_[np.argmax(values[open_])])

    def _experience(
        self,
        came: tuple[Configuration, float, int],
        following: Configuration,
        loss: float,
        *,
        failed: bool = False,
    ) -> None:
        """Keep one transition, each once."""
        place, before, action = came
        if (place, action) in self._walked:
            return
        self._walked.add((place, action))
        bound = float(np.finfo(np.float32).max)
        reward = float(np.clip(before - loss, -bound, bound))
        following_allowed = self._moves.allowed(following)
        self._replay.add(
            Transition(self._state(place), action, reward, self._state(following), following_allowed, failed)
        )

    def _state(self, configuration: Configuration) -> NDArray[np.float32]:
        """Its row; the walk comes back to the same few places, whose rows are kept."""
        row = self._rows.get(configuration)
        if row is None:
            row = self._rows[configuration] = self._columns.rows([configuration])[0].astype(np.float32)
        return row

    def _spread(self) -> np.float32:
        """Standard deviation of the losses known so far; 1 where they do not differ."""
        spread = self.ledger.spread()
        usable = 1e-30 < spread < float(np.finfo(np.float32).max)
        return np.float32(spread if usable else 1.0)
