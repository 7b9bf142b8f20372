"""Hyperparameters of deep Q-learning, and those of the two published evaluations."""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec

from ascar.errors import InputError

RewardForm = Literal["level", "difference", "difference-of-means", "difference-of-ewma"]


class DeepQHyperparameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names and values of Li et al., Table 1, and Li, Table 5.2; both give most of the defaults.

    Attributes:
        epsilon_initial: share of random actions at first.
        epsilon_final: share of them after the exploration.
        epsilon_workload: share to which another workload raises it (Li 5.1.6).
        exploration_ticks: the number of ticks over which the share falls linearly from the first to the last;
            Table 1 has 2 hours and Table 5.2 20 hours, with ticks of a second.
        discount: gamma.
        minibatch: transitions in a step of training.
        missing_tolerance: share of an observation that may be missing.
        hidden_layers: the number of hidden layers.
        hidden_size: the size of each hidden layer; None means as many as there are inputs.
        optimizer: the optimizer of the loss.
        learning_rate: the learning rate of the optimizer.
        rmsprop_decay: the decay of RMSProp.
        gradient_norm_max: longer gradients are shortened to it.
        ticks_per_observation: sampling ticks that the network sees at once.
        target_update: alpha, the share by which the target network follows after each minibatch.
        steps_per_tick: the number of training steps at each tick.
        reward: of a transition from t-1 to t, where p is the performance. level: p_t. difference: p_t less
            p_(t-1); printed the other way round in Li 5.1.2, which would reward what makes things worse.
            difference-of-means: of the last `reward_ticks` (Li 5.2.2). difference-of-ewma: of the moving
            average of weight 2 / (reward_ticks + 1).
        reward_ticks: see there.
        memory_ticks: the number of ticks kept for replay; the oldest is overwritten.
    """

    epsilon_initial: float = 1.0
    epsilon_final: float = 0.05
    epsilon_workload: float = 0.2
    exploration_ticks: int = 7_200
    discount: float = 0.99
    minibatch: int = 32
    missing_tolerance: float = 0.2
    hidden_layers: int = 2
    hidden_size: int | None = None
    optimizer: Literal["adam", "rmsprop"] = "adam"
    learning_rate: float = 1e-4
    rmsprop_decay: float = 0.9
    gradient_norm_max: float = 5.0
    ticks_per_observation: int = 10
    target_update: float = 0.01
    steps_per_tick: int = 1
    reward: RewardForm = "difference"
    reward_ticks: int = 10
    memory_ticks: int = 250_000

    def __post_init__(self) -> None:
        """Refuse what is out of range.

        Raises:
            InputError: names the first key.
        """
        for key in ("epsilon_initial", "epsilon_final", "epsilon_workload", "missing_tolerance"):
            self._within(key, 0, 1)
        for key in ("discount", "rmsprop_decay"):
            self._within(key, 0, 1, open_high=True)
        for key in ("target_update", "learning_rate"):
            self._within(key, 0, 1, open_low=True)
        self._within("gradient_norm_max", 0, 1e9, open_low=True)
        self._within("exploration_ticks", 0, 10**9)
        self._within("minibatch", 1, 65_536)
        self._within("hidden_layers", 1, 16)
        self._within("ticks_per_observation", 1, 1_000)
        self._within("steps_per_tick", 0, 1_000)
        self._within("reward_ticks", 1, 1_000)
        self._within("memory_ticks", 2 * self.ticks_per_observation, 10**8)
        if self.hidden_size is not None:
            self._within("hidden_size", 1, 65_536)

    def _within(
        self, key: str, low: float, high: float, *, open_low: bool = False, open_high: bool = False
    ) -> None:
        value = getattr(self, key)
        inside = (low < value if open_low else low <= value) and (
            value < high if open_high else value <= high
        )
        if not (math.isfinite(value) and inside):
            text = f"{'above' if open_low else 'from'} {low:g} {'to below' if open_high else 'to'} {high:g}"
            raise InputError(f"{key} = {value!r}: must be {text}")


PAPER: Final = DeepQHyperparameters(hidden_size=600, reward="level")
"""Li et al., SC'17, Table 1."""
THESIS: Final = DeepQHyperparameters(
    optimizer="rmsprop", learning_rate=1e-3, exploration_ticks=72_000, reward="difference"
)
"""Li, Table 5.2."""
GAME: Final = DeepQHyperparameters(
    optimizer="adam",
    learning_rate=1e-3,
    exploration_ticks=1_200,
    hidden_size=64,
    ticks_per_observation=5,
    steps_per_tick=2,
    discount=0.9,
    epsilon_final=0.02,
)
"""For an hour of StorageGameSim; neither document says what its runs had, and theirs explore for longer."""
SEARCHED: Final = msgspec.structs.replace(
    GAME,
    learning_rate=0.00895,
    exploration_ticks=1_378,
    epsilon_final=0.00632,
    hidden_size=128,
    ticks_per_observation=1,
    steps_per_tick=8,
    target_update=0.00979,
    reward="level",
)
"""The same, searched at the harder game by this project's optimizer: docs/benchmarks-capes.md."""
PRESETS: Final = {"paper": PAPER, "thesis": THESIS, "game": GAME, "searched": SEARCHED}


def hyperparameters(preset: str) -> DeepQHyperparameters:
    """One of the presets.

    Raises:
        InputError: there is no such preset.
    """
    if preset not in PRESETS:
        raise InputError(f"preset {preset!r}: must be one of {', '.join(PRESETS)}")
    return PRESETS[preset]
