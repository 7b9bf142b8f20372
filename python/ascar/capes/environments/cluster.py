"""The simulated cluster as a system to tune, a tick a second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from ascar.capes.axes import Setting, checked, initial
from ascar.capes.environments.cluster_parameters import ClusterParameters
from ascar.capes.policy import TickObservation
from ascar.errors import InputError
from ascar.simulation import INDICATORS, SERVER_INDICATORS, Cluster
from ascar.simulation.scales import scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.objective import Objective
    from ascar.simulation import Scenario

METRICS: Final = ("throughput_mb_per_s", "read_mb_per_s", "write_mb_per_s", "ping_us", "in_flight")
"""What an objective may be made of: totals over the streams, the ping's mean."""

_COLUMNS: Final = {name: INDICATORS.index(name) for name in METRICS[1:]}
_PERCENT: Final = np.array([name.endswith("_percent") for name in SERVER_INDICATORS])
_SERVER_MOST: Final = 1_000.0


class ClusterSystem:
    """A cluster whose workload may change while it is tuned.

    Args:
        scenarios: the scenarios that run in turn, each for `ticks_each`; their controller must be "fixed".
        seed: the seed of the run.
        ticks_each: the number of ticks until the next scenario starts with cold caches; None means that the
            first one never ends.
        objective: the objective of the performance; None means the total throughput.
        handles: the knobs of the cluster; None means one window and one gap for all streams.

    Attributes:
        knobs: the knobs that a learner sets.
        workload: the name of the scenario that runs.

    Raises:
        InputError: a scenario's controller decides by itself, or the objective names an unknown metric.
        ScenarioError: a key of a scenario is out of range.
    """

    def __init__(
        self,
        scenarios: Sequence[Scenario],
        seed: int,
        ticks_each: int | None = None,
        objective: Objective | None = None,
        handles: ClusterParameters | None = None,
    ) -> None:
        for one in scenarios:
            if one.control.controller != "fixed":
                raise InputError(
                    f"control.controller = {one.control.controller!r} of {one.name!r}: must be 'fixed', so "
                    "that actions decide"
                )
        unknown = sorted(set(() if objective is None else objective.formula.names) - set(METRICS))
        if unknown:
            raise InputError(f"objective: metric {unknown[0]!r}: must be one of {', '.join(METRICS)}")
        self._handles = handles or ClusterParameters.shared(scenarios[0])
        self.knobs = self._handles.knobs
        self._scenarios = tuple(scenarios)
        self._seed, self._ticks_each, self._objective = seed, ticks_each, objective
        self._tick = 0
        self._begin(0)

    def step(self, setting: Setting) -> TickObservation:
        """Simulate a tick under a setting.

        Raises:
            InputError: the setting is out of range.
        """
        setting = checked(self.knobs, setting)
        if self._ticks_each and self._tick and self._tick % self._ticks_each == 0:
            self._begin(self._tick // self._ticks_each)
        self._handles.apply(self._cluster, setting)
        observed = self._cluster.step()
        self._tick += 1
        metrics = {name: float(observed[:, column].sum()) for name, column in _COLUMNS.items()}
        metrics["ping_us"] /= len(observed)
        metrics["throughput_mb_per_s"] = metrics["read_mb_per_s"] + metrics["write_mb_per_s"]
        if self._objective is None:
            performance = metrics["throughput_mb_per_s"]
        else:
            performance = self._objective.sign * self._objective.score(metrics)
        seen = scaled(observed)
        if self._handles.queue:
            seen = _beside(seen, _scaled_servers(self._cluster.servers()))
        return TickObservation(self._tick, performance, seen, setting)

    def start(self) -> Setting:
        """The initial setting."""
        return initial(self.knobs)

    def _begin(self, turn: int) -> None:
        scenario = self._scenarios[turn % len(self._scenarios)]
        seed = int(np.random.default_rng([self._seed, turn]).integers(2**31))
        self._cluster = Cluster(msgspec.structs.replace(scenario, seed=seed))
        self._cluster.warm_up()
        self.workload = scenario.name


def _scaled_servers(seen: NDArray[np.float64]) -> NDArray[np.float32]:
    """Indicators of servers on scales from 0 to 1: percentages as shares, the rest logarithmic."""
    rest = np.log1p(np.maximum(seen, 0)) / np.log1p(_SERVER_MOST)
    return np.clip(np.where(_PERCENT, seen / 100, rest), 0, 1).astype(np.float32)


def _beside(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of both; columns of the other kind are NaN: this node has no such indicator."""
    return np.block(
        [
            [one, np.full((len(one), other.shape[1]), np.nan, np.float32)],
            [np.full((len(other), one.shape[1]), np.nan, np.float32), other],
        ]
    )
