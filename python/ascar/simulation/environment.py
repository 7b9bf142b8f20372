"""The simulated cluster as a Gymnasium environment; needs the extra `gym`.

    import gymnasium
    import ascar.simulation.environment

    environment = gymnasium.make("ascar/Cluster-v0", scenario="random-write")

An action is one of CAPES's five (Li, section 5.1): nothing, the window of all streams up or down, the gap
between requests up or down. It is in force for one tick. An observation is every stream's indicators over the
last ticks; the reward is the tick's total throughput.
`gymnasium.make_vec("ascar/Cluster-v0", num_envs=8)` has many of them go on together, on all cores.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ascar.errors import InputError
from ascar.extras import importing_extra
from ascar.simulation.batch import cores
from ascar.simulation.cluster import INDICATORS, Cluster
from ascar.simulation.cluster_parameters import Setting
from ascar.simulation.presets import open_scenario
from ascar.simulation.scales import scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.simulation.scenario import Scenario

with importing_extra("gym"):
    import gymnasium
    from gymnasium.vector.utils import batch_space

_TICKS_MAX = 1_000
_REWARD_MB_PER_S = 100.0
_SEED_MAX = 2**31 - 1
_Begun = tuple[NDArray[np.float32], dict[str, Any]]
_READ, _WRITE = INDICATORS.index("read_mb_per_s"), INDICATORS.index("write_mb_per_s")


class ClusterEnvironment(gymnasium.Env[NDArray[np.float32], np.int64]):
    """A cluster whose streams share one window and one gap.

    Args:
        scenario: the scenario to simulate, or a preset's name or file; an episode is its duration after its
            warm-up. The controller must be "fixed".
        ticks_per_observation: the ticks of history in one observation (Li, Table 5.2: 10).

    Attributes:
        action_space: Discrete(5), see `ascar.simulation.cluster_parameters.Setting.after`.
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


class ClusterEnvironments(gymnasium.vector.VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]):
    """Many of them, stepped together on several cores; episodes and figures are those of each by itself.

    An environment whose episode is over begins the next one at the next step, whatever the action (next-step
    autoreset); then its reward is 0.

    Args:
        num_envs: the number of environments.
        scenario: the scenario, as for `ClusterEnvironment`.
        ticks_per_observation: the same.
        threads: the number of threads that step them; None: one a core. The results do not depend on it.

    Raises:
        InputError: `num_envs` or `threads` is below 1; as `ClusterEnvironment`.
        ScenarioError: as `ClusterEnvironment`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # as gymnasium declares it
        "render_modes": [],
        "autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        scenario: Scenario | str = "random-write",
        ticks_per_observation: int = 10,
        threads: int | None = None,
    ) -> None:
        workers = cores() if threads is None else threads
        for name, value in (("num_envs", num_envs), ("threads", workers)):
            if value < 1:
                raise InputError(f"{name} = {value}: must be 1 or more")
        self.num_envs = num_envs
        self._each = [ClusterEnvironment(scenario, ticks_per_observation) for _ in range(num_envs)]
        self.single_observation_space = self._each[0].observation_space
        self.single_action_space = self._each[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._over = np.zeros(num_envs, bool)
        self._pool = ThreadPoolExecutor(min(workers, num_envs))

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode of each.

        Args:
            seed: the seed of this episode and those after it; None continues from the last one.
            options: none are known.

        Returns:
            Observations, (num_envs, ticks, streams, indicators), and facts as gymnasium's vectors have them.

        Raises:
            InputError: as many seeds as environments are needed.
        """

        def begin(one: ClusterEnvironment, own: int | None) -> _Begun:
            return one.reset(seed=own, options=options)

        begun = list(self._pool.map(begin, self._each, self._seeds(seed)))
        self._over[:] = False
        return np.stack([seen for seen, _ in begun]), self._facts([facts for _, facts in begun])

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take an action in each, and run on for a tick.

        Args:
            actions: (num_envs,).

        Returns:
            As `ClusterEnvironment.step`, an element an environment.

        Raises:
            InputError: there is not one action an environment, or no episode has begun.
        """
        if np.shape(actions) != (self.num_envs,):
            raise InputError(f"actions: have shape {np.shape(actions)}; must be ({self.num_envs},)")
        done = list(self._pool.map(_stepped, self._each, actions, self._over.tolist()))
        seen, rewards, ended, over, facts = zip(*done, strict=True)
        self._over = np.array(over)
        return np.stack(seen), np.array(rewards), np.array(ended), self._over.copy(), self._facts(facts)

    def close_extras(self, **_: Any) -> None:
        """End its threads."""
        self._pool.shutdown(cancel_futures=True)

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int):
            return [seed + index for index in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise InputError(f"seed: has {len(seed)} seeds; must be one, or {self.num_envs}")
        return seed

    def _facts(self, facts: Sequence[dict[str, Any]]) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        for index, one in enumerate(facts):
            whole = self._add_info(whole, one, index)
        return whole


def _stepped(
    one: ClusterEnvironment, action: np.int64, is_over: bool
) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
    if not is_over:
        return one.step(action)
    seen, facts = one.reset()
    return seen, 0.0, False, False, facts


gymnasium.register(
    "ascar/Cluster-v0",
    entry_point=f"{__name__}:ClusterEnvironment",
    vector_entry_point=f"{__name__}:ClusterEnvironments",
)
