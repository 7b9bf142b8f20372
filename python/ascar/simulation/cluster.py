"""A simulated cluster: run it to its end, or tick by tick with a hand on every stream."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from ascar import _core
from ascar.errors import InputError, ScenarioError
from ascar.results.cluster import ClusterOutcome, Indicators, ServerReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ascar.simulation.controlled import Followers
    from ascar.simulation.scenario import Queue, Scenario

INDICATORS: Final[tuple[str, ...]] = Indicators.__struct_fields__
"""The columns of an observation, in this order."""
SERVER_INDICATORS: Final[tuple[str, ...]] = ServerReport.__struct_fields__
"""The columns of a look at servers, in this order."""


_OPERATIONS_MAX = 100_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTrace:
    """Operations of threads on files, or requests of streams, one element each, in the order of beginning.

    Attributes:
        seconds: float64, when it began (a request: left its client), since the start of the cluster.
        kind: the kind of each operation, as flowops of scenarios name it; for a request "read" or "write".
        thread: int64, numbered over all clients; of a request: its stream.
        file: int64, numbered over all clients; of a request: the part of a file on its server.
        offset_bytes: int64, first byte.
        size_bytes: int64, bytes read or written.
        latency_s: float64, how long it took; nan while it is under way.
    """

    seconds: NDArray[np.float64]
    kind: list[str]
    thread: NDArray[np.int64]
    file: NDArray[np.int64]
    offset_bytes: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    latency_s: NDArray[np.float64]


class Cluster:
    """A cluster in virtual time.

    A stream is one client and one server; stream `client * servers + server` is theirs. The same scenario
    gives the same outcome bit for bit, however many clusters run beside it.

    Args:
        scenario: the description of the cluster and of its load.

    Attributes:
        scenario: the same.
        streams: the number of streams.

    Raises:
        ScenarioError: a key of the scenario is out of range.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.streams = scenario.client_count * scenario.server_count
        try:
            self._simulation = _core.Simulation(scenario.to_json())
        except ValueError as error:
            raise ScenarioError(str(error)) from error

    @property
    def time_s(self) -> float:
        """Virtual seconds since the start, warm-up included."""
        return self._simulation.time_s

    @property
    def finished(self) -> bool:
        """Whether warm-up and duration have passed; going on is allowed, and counted, too."""
        return self._simulation.finished

    def warm_up(self) -> None:
        """Let the warm-up pass, if it has not; `step` and `run` do so themselves."""
        self._simulation.warm_up()

    def step(self, ticks: int = 1) -> NDArray[np.float64]:
        """Run on, beyond the scenario's end if need be; other threads go on meanwhile.

        Args:
            ticks: the number of steps of the scenario's `tick_s`, a second unless it says otherwise.

        Returns:
            The observation at the end, as `observe`.
        """
        self.advance(ticks)
        return self.observe()

    def advance(self, ticks: int = 1) -> None:
        """Run on as `step` does, without looking."""
        for _ in range(ticks):
            self._simulation.step()

    def observe(self) -> NDArray[np.float64]:
        """Every stream at the end of the last tick: (streams, indicators), columns as in `INDICATORS`."""
        return self._simulation.observe()

    def set(self, *, window: ArrayLike | None = None, tau_us: ArrayLike | None = None) -> int:
        """Set windows and gaps from now on, of the streams whose controller is "fixed".

        The window in force stays within the bounds of the scenario's control, and that of a rogue is its own.

        Args:
            window: requests in flight, one number or one a stream; None: as they are.
            tau_us: least gap between requests, one number or one a stream; None: as they are.

        Returns:
            How many streams took it; the controllers of the others decide by themselves.

        Raises:
            InputError: another number of values than streams, or one that is not finite or below zero.
        """
        now = self.observe()
        windows = self._per_stream("window", window, now, INDICATORS.index("window"))
        taus = self._per_stream("tau_us", tau_us, now, INDICATORS.index("tau_us"))
        return self._simulation.set(windows, taus)

    def servers(self) -> NDArray[np.float64]:
        """Every server since this was last asked, or since the end of the warm-up.

        Returns:
            (servers, columns as in `SERVER_INDICATORS`).
        """
        return self._simulation.look_at_servers()

    def turn_queues(self, queue: Queue) -> None:
        """Turn the queues of all servers from now on: slots, depth, starvation of writes, batch.

        What waits keeps its slot, also where fewer are allowed from now on. The rest of `queue` counts for
        nothing: sizes and orders stay what the scenario made them.

        Raises:
            InputError: a number is out of range.
        """
        servers = self.scenario.server_count
        rows = [
            [value] * servers
            for value in (queue.slots, queue.device_depth, queue.writes_starved, queue.batch)
        ]
        try:
            taken = self._simulation.turn_queues(*rows)
        except OverflowError:
            taken = 0
        if taken != servers:
            raise InputError(
                f"slots {queue.slots}, device_depth {queue.device_depth}, writes_starved "
                f"{queue.writes_starved}, batch {queue.batch}: must be from 1 (writes_starved: 0) to 100000"
            )

    def deploy(self, rules: str | None, followers: Followers = None) -> int:
        """Put a rule set in force from now on, or the scenario's own control again; windows go on.

        Args:
            rules: the text of its file; None: the control that the scenario has.
            followers: the streams that take it.

        Returns:
            How many streams took it; those of rogues take nothing.

        Raises:
            InputError: it is not a rule set, there is no such group, or nothing controls the metadata
                streams.
        """
        count = len(self.scenario.clients)
        if followers == "metadata":
            if self.scenario.metadata.control is None:
                raise InputError(
                    "metadata: the scenario does not control its metadata streams; give it metadata.control"
                )
            groups: Sequence[int] = (count,)
        elif followers is None:
            groups = range(count)
        elif 0 <= followers < count:
            groups = (followers,)
        else:
            raise InputError(f"group = {followers}: must be from 0 to {count - 1}")
        try:
            return sum(self._simulation.deploy(one, rules) for one in groups)
        except ValueError as error:
            raise InputError(str(error)) from error

    def rules(self) -> tuple[str | None, ...]:
        """Texts of the rule sets in force, with their use since then; None without.

        A client group each, and last those of controlled metadata streams.
        """
        return tuple(self._simulation.rules())

    def record(self, operations_max: int = 1_000_000) -> None:
        """Keep operations and requests one by one from now on, at most so many of each; 0 keeps none.

        Raises:
            InputError: more than can be kept.
        """
        if not 0 <= operations_max <= _OPERATIONS_MAX:
            raise InputError(f"operations_max = {operations_max}: must be from 0 to {_OPERATIONS_MAX}")
        self._simulation.record(operations_max)

    def recorded(self) -> ClusterTrace:
        """The operations kept since `record`, in the order in which they began."""
        return ClusterTrace(*self._simulation.recorded())

    def recorded_requests(self) -> ClusterTrace:
        """The requests to servers kept since `record`, in the order in which they left their clients."""
        return ClusterTrace(*self._simulation.recorded_requests())

    def run(self, seconds: float | None = None) -> ClusterOutcome:
        """Run until so many virtual seconds were counted after the warm-up, in whole ticks.

        Args:
            seconds: the virtual seconds since the warm-up; None: to the end of the scenario.

        Returns:
            What has been counted since the warm-up.

        Raises:
            InputError: `seconds` is not above zero.
        """
        if seconds is None:
            while not self.finished:
                self.advance()
        elif not 0 < seconds < math.inf:
            raise InputError(f"seconds = {seconds!r}: must be above zero, and finite")
        else:
            self.warm_up()
            end_s = self.scenario.warmup_s + seconds - self.scenario.tick_s / 2
            while self.time_s < end_s:
                self.advance()
        return self.outcome()

    def outcome(self) -> ClusterOutcome:
        """What has been counted since the warm-up."""
        counted = ClusterOutcome.from_json(self._simulation.outcome())
        return msgspec.structs.replace(counted, rules=tuple(self._simulation.rules()))

    def _per_stream(
        self, name: str, values: ArrayLike | None, now: NDArray[np.float64], column: int
    ) -> NDArray[np.float64]:
        if values is None:
            return np.ascontiguousarray(now[:, column])
        given = np.asarray(values, np.float64)
        if given.shape not in ((), (self.streams,)):
            raise InputError(
                f"{name}: has shape {given.shape}; must be one number, or one a stream: ({self.streams},)"
            )
        if not (np.isfinite(given).all() and (given >= 0).all()):
            raise InputError(f"{name}: has a value that is not finite or below zero; give numbers from 0 on")
        return np.ascontiguousarray(np.broadcast_to(given, (self.streams,)))
