"""A simulated cluster behind a message server as a system at work: measured, changed, lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ascar.errors import InputError, MessagingError
from ascar.messaging import Background, Link, MessageServer
from ascar.sharp import Action, RuleSet
from ascar.sharp.deployment import ManagedSystem, SimulatedControllers
from ascar.sharp.deployment.managed_system import METRICS, interval_metrics
from ascar.sharp.deployment.simulated_controllers import one_group_a_client
from ascar.sharp.matching import WatchedSystem, observed
from ascar.simulation import Cluster, preset

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

WAIT_S = 90.0
ONE = RuleSet.uniform(Action(100, 0, 20_000))
SLOW = RuleSet.uniform(Action(100, 0, 500_000))  # two requests of 1 MB a second on each of 20 streams


class Cluster5:
    """The cluster, its controllers, and the task that runs them."""

    def __init__(self, background: Background, server: MessageServer) -> None:
        self.background = background
        self.link, self.controllers, self.task = background.call(self._start(server), WAIT_S)

    async def _start(self, server: MessageServer) -> tuple[Link, SimulatedControllers, asyncio.Task[None]]:
        import asyncio

        link = await Link.open(server.settings("controller"), name="cluster")
        controllers = SimulatedControllers(preset("random-write"), link, 200.0)
        await controllers.serve()
        return link, controllers, asyncio.create_task(controllers.run())

    def stop(self) -> None:
        async def stop() -> None:
            self.task.cancel()
            await self.link.close()

        self.background.call(stop(), WAIT_S)


@pytest.fixture
def background() -> Iterator[Background]:
    with Background() as found:
        yield found


@pytest.fixture
def cluster(background: Background, server: MessageServer) -> Iterator[Cluster5]:
    found = Cluster5(background, server)
    yield found
    found.stop()


@pytest.fixture
def system(background: Background, server: MessageServer, cluster: Cluster5) -> Iterator[ManagedSystem]:
    found = ManagedSystem(background, server.settings("manager"), "random", silence_s=60.0)
    yield found
    found.close()


def test_every_client_alone_is_the_same_cluster() -> None:
    scenario = msgspec.structs.replace(preset("random-write"), duration_s=5.0)
    assert len(one_group_a_client(scenario).clients) == 5
    whole, alone = Cluster(scenario).run(), Cluster(one_group_a_client(scenario)).run()
    assert alone.clients_mb_per_s == whole.clients_mb_per_s
    assert alone.events == whole.events


def test_what_is_measured_follows_the_rules_on_trial(system: ManagedSystem) -> None:
    assert system.in_force() is None
    system.try_out(ONE)
    fast = system.measure(ONE, 1.0, 5.0)
    assert set(fast) == METRICS
    system.keep()
    assert system.in_force() == ONE
    system.try_out(SLOW)
    slow = system.measure(SLOW, 5.0, 5.0)
    system.back()
    again = system.measure(ONE, 1.0, 5.0)
    assert slow["throughput_mb_per_s"] == pytest.approx(2 * 20 * 1.048576, rel=0.1)
    assert fast["throughput_mb_per_s"] > 100
    assert again["throughput_mb_per_s"] == pytest.approx(fast["throughput_mb_per_s"], rel=0.3)


def test_an_interruption_while_rules_are_put_on_trial_takes_them_back(
    system: ManagedSystem, background: Background, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.try_out(ONE)
    system.keep()
    call = background.call

    def interrupted(work: Any, timeout_s: float) -> Any:
        call(work, timeout_s)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(background, "call", interrupted)
        with pytest.raises(KeyboardInterrupt):
            system.try_out(SLOW)
    system.back()
    used = system.used()
    assert used is not None
    assert used.bare() == ONE


def test_a_beat_under_other_rules_is_no_reading(system: ManagedSystem) -> None:
    system.try_out(ONE)
    with pytest.raises(MessagingError, match="follows other rules than those deployed"):
        system.measure(SLOW, 0.0, 2.0)


def test_a_silent_controller_is_told(
    background: Background, server: MessageServer, cluster: Cluster5
) -> None:
    system = ManagedSystem(background, server.settings("manager"), "random", silence_s=10.0)
    system.try_out(ONE)
    assert system.measure(ONE, 0.0, 1.0)["throughput_mb_per_s"] > 0
    background.call(_cancelled(cluster), WAIT_S)
    with pytest.raises(MessagingError, match=r"client-\d.*: silent for 10 s; is its process still running\?"):
        system.measure(ONE, 0.0, 1_000_000.0)
    system.close()


async def _cancelled(cluster: Cluster5) -> None:
    cluster.task.cancel()


def test_clients_are_observed_as_in_one_process(
    background: Background, server: MessageServer, cluster: Cluster5
) -> None:
    """Features that the library knows, from what five controllers have written down."""
    watched = WatchedSystem(background, server.settings("manager"), "random", silence_s=60.0)
    found, known = watched.observe(60.0), observed(preset("random-write"), 40.0)
    assert set(found) == set(known)
    same = ("threads", "clients", "write_size_bytes_mean", "request_write_size_bytes_mean", "request_threads")
    assert {name: found[name] for name in same} == {name: known[name] for name in same}
    for name in ("write_gap_s_mean", "write_in_flight_mean", "request_write_gap_s_mean", "waiting_mean"):
        assert found[name] == pytest.approx(known[name], rel=0.15), name
    before_s = watched.time_s
    watched.measure(None, 0.0, 5.0)
    assert watched.time_s >= before_s + 5
    watched.close()


def test_rules_are_taken_off(system: ManagedSystem) -> None:
    system.try_out(ONE)
    system.keep()
    system.take_off()
    assert system.in_force() is None
    assert system.measure(None, 0.0, 2.0)["throughput_mb_per_s"] > 0


def test_a_trial_can_be_read_on_and_on(system: ManagedSystem) -> None:
    system.try_out(ONE)
    first = system.collect(ONE, 1.0, 2.0)
    system.renew()
    more = system.collect(ONE, 1.0, 3.0, going_on=True)
    assert {len(one) for one in first.values()} == {2}
    assert {len(one) for one in more.values()} == {3}
    system.back()


def test_nobody_there(background: Background, server: MessageServer, cluster: Cluster5) -> None:
    with pytest.raises(MessagingError, match="controllers of workload nothing: none answers"):
        ManagedSystem(background, server.settings("manager"), "nothing")


def test_metrics_of_an_interval() -> None:
    found = interval_metrics({"a": [10.0, 20.0], "b": [30.0, 40.0]})
    assert found["throughput_mb_per_s"] == 50.0
    assert (found["tp"], found["stdev"]) == (25.0, pytest.approx(125**0.5))
    assert found["jain_index"] == pytest.approx(50**2 / (2 * (15**2 + 35**2)))
    for nothing in ({}, {"a": []}):
        with pytest.raises(InputError, match="the controllers sent none"):
            interval_metrics(nothing)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), 1e9])
def test_refused_speeds(speed: float) -> None:
    with pytest.raises(InputError, match="speed"):
        SimulatedControllers(preset("random-write"), None, speed)  # type: ignore[arg-type]
