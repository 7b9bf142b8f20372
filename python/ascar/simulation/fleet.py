"""Many clusters step by step at once, for learning: one array of observations, one array of settings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import InputError
from ascar.simulation.batch import cores
from ascar.simulation.cluster import INDICATORS, Cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from numpy.typing import ArrayLike, NDArray

    from ascar.results.cluster import ClusterOutcome
    from ascar.simulation.scenario import Scenario


class Fleet:
    """Clusters with equally many streams that go on together, on several cores.

    Use it in a `with` statement, or close it.

    Args:
        scenarios: one scenario for each cluster.
        threads: the number of threads that step them; None: one a core. The results do not depend on it.

    Attributes:
        clusters: each of them.
        streams: the number of streams of each cluster.

    Raises:
        InputError: there is none, their numbers of streams differ, or `threads` is below 1.
        ScenarioError: a key of one of them is out of range.
    """

    def __init__(self, scenarios: Sequence[Scenario], *, threads: int | None = None) -> None:
        counts = sorted({one.client_count * one.server_count for one in scenarios})
        if len(counts) != 1:
            raise InputError(f"scenarios: have {counts} streams; a fleet needs one cluster, and equally many")
        workers = cores() if threads is None else threads
        if workers < 1:
            raise InputError(f"threads = {workers}: must be 1 or more")
        self.clusters = tuple(Cluster(one) for one in scenarios)
        self.streams = counts[0]
        self._pool = ThreadPoolExecutor(min(workers, len(self.clusters)))

    def __enter__(self) -> Fleet:
        """Nothing but itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """End its threads."""
        self._pool.shutdown(cancel_futures=True)

    def step(self, ticks: int = 1) -> NDArray[np.float64]:
        """Run every cluster on by so many ticks.

        Returns:
            The observation at the end, as `observe`.
        """

        def step(one: Cluster) -> NDArray[np.float64]:
            return one.step(ticks)

        return self._stacked(list(self._pool.map(step, self.clusters)))

    def observe(self) -> NDArray[np.float64]:
        """Every stream of every cluster: (clusters, streams, indicators), columns as in `INDICATORS`."""
        return self._stacked([one.observe() for one in self.clusters])

    def set(self, *, window: ArrayLike | None = None, tau_us: ArrayLike | None = None) -> None:
        """Set windows and gaps from now on, as `Cluster.set`.

        Args:
            window: broadcast to (clusters, streams); None: as they are.
            tau_us: the same.

        Raises:
            InputError: it has another shape, or a value that is not finite or below zero.
        """
        windows = self._each("window", window)
        taus = self._each("tau_us", tau_us)
        for index, cluster in enumerate(self.clusters):
            cluster.set(
                window=None if windows is None else windows[index],
                tau_us=None if taus is None else taus[index],
            )

    def outcomes(self) -> list[ClusterOutcome]:
        """What each has counted since its warm-up."""
        return [one.outcome() for one in self.clusters]

    def _each(self, name: str, values: ArrayLike | None) -> NDArray[np.float64] | None:
        if values is None:
            return None
        shape = (len(self.clusters), self.streams)
        given = np.asarray(values, np.float64)
        try:
            return np.broadcast_to(given, shape)
        except ValueError as error:
            raise InputError(f"{name}: has shape {given.shape}; must be like {shape}") from error

    def _stacked(self, seen: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        assert all(one.shape == (self.streams, len(INDICATORS)) for one in seen), "a row a stream"
        return np.stack(seen)
