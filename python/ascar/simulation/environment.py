"""The simulated cluster as a Gymnasium environment; needs the extra `gym`.

    import gymnasium
    import ascar.simulation.environment

    environment = gymnasium.make("ascar/Cluster-v0", scenario="random-write")

An action is one of CAPES's five (Li, section 5.1): nothing, the window of all streams up or down, the gap
between requests up or down. It is in force for one tick. An observation is every stream's indicators over the
last ticks; the reward is the tick's total throughput.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ascar.errors import EnvironmentLacks, InputError
from ascar.simulation.cluster import INDICATORS, Cluster
from ascar.simulation.knobs import Setting
from ascar.simulation.presets import open_scenario
from ascar.simulation.scales import scaled

if TYPE_CHECKING:
    from ascar.simulation.scenario import Scenario

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise EnvironmentLacks("gymnasium is not installed: install ascar with the extra 'gym'") from error

__all__ = ["ClusterEnvironment"]

_TICKS_MAX = 1_000
_REWARD_MB_PER_S = 100.0
_SEED_MAX = 2**31 - 1
_READ, _WRITE = INDICATORS.index("read_mb_per_s"), INDICATORS.index("write_mb_per_s")


class ClusterEnvironment(gymnasium.Env[NDArray[np.float32], np.int64]):
    """A cluster whose streams share one window and one gap.

    Args:
        scenario: what is simulated, or a preset's name or file; an episode is its duration after its warm-up.
            The controller must be "fixed".
        ticks_per_observation: of history that an observation holds (Li, Table 5.2: 10).

    Attributes:
        action_space: Discrete(5), see `ascar.simulation.knobs.Setting.after`.
        observation_space: Box(0, 1), (ticks, streams, indicators), scaled as
            `ascar.simulation.scales.scaled`; the last tick comes last, ticks before the first one are 0.

    Raises:
        InputError: the scenario's controller decides by itself, or `ticks_per_observation` is out of range.
        ScenarioError: there is no such scenario, or a key of it is wrong.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # as gymnasium declares it

    def __init__(self, scenario: Scenario | str = "random-write", ticks_per_observation: int = 10) -> None:
        given = open_scenario(scenario) if isinstance(scenario, str) else scenario
        if given.control.controller != "fixed":
            raise InputError(
                f"control.controller = {given.control.controller!r}: must be 'fixed', so that actions decide"
            )
        if not 1 <= ticks_per_observation <= _TICKS_MAX:
            raise InputError(
                f"ticks_per_observation = {ticks_per_observation}: must be from 1 to {_TICKS_MAX}"
            )
        self._scenario = given
        self._streams = given.client_count * given.server_count
        shape = (ticks_per_observation, self._streams, len(INDICATORS))
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, shape, np.float32)
        self.action_space = gymnasium.spaces.Discrete(5)
        self._history: deque[NDArray[np.float32]] = deque(maxlen=ticks_per_observation)
        self._cluster: Cluster | None = None
        self._setting = Setting()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode: a new cluster, warmed up, with the knobs where the scenario has them.

        Args:
            seed: of this episode and those after it; None: goes on from the last one.
            options: none are known.

        Returns:
            The first observation, and facts: seed, window, tau_us.
        """
        super().reset(seed=seed, options=options)
        own = int(self.np_random.integers(_SEED_MAX))
        self._cluster = Cluster(msgspec.structs.replace(self._scenario, seed=own))
        self._cluster.warm_up()
        self._setting = Setting(self._scenario.control.window, self._scenario.control.tau_us)
        nothing = np.zeros((self._streams, len(INDICATORS)), np.float32)
        self._history.extend([nothing] * (self._history.maxlen or 0))
        self._history.append(scaled(self._cluster.observe()))
        return self._seen(), {"seed": own, **self._facts()}

    def step(self, action: np.int64) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take an action and run on for a tick.

        Returns:
            The observation; the reward, total throughput in units of 100 MB/s; False, there is no end state;
            whether the scenario's duration is over; facts: throughput_mb_per_s, window, tau_us.

        Raises:
            InputError: the episode has not begun.
        """
        if self._cluster is None:
            raise InputError("step: no episode has begun; call reset first")
        self._setting = self._setting.after(int(action))
        self._cluster.set(window=self._setting.window, tau_us=self._setting.tau_us)
        observed = self._cluster.step()
        self._history.append(scaled(observed))
        total = float(observed[:, _READ].sum() + observed[:, _WRITE].sum())
        facts = {"throughput_mb_per_s": total, **self._facts()}
        return self._seen(), total / _REWARD_MB_PER_S, False, self._cluster.finished, facts

    def _seen(self) -> NDArray[np.float32]:
        return np.stack(self._history)

    def _facts(self) -> dict[str, float]:
        return {"window": self._setting.window, "tau_us": self._setting.tau_us}


gymnasium.register("ascar/Cluster-v0", entry_point=f"{__name__}:ClusterEnvironment")
