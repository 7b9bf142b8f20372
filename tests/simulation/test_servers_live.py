"""Servers of a simulated cluster, seen and turned while it runs."""

from __future__ import annotations

import pytest

from ascar.errors import InputError
from ascar.simulation import SERVER_INDICATORS, Cluster, preset
from ascar.simulation.scenario import Queue


def _written(cluster: Cluster, ticks: int) -> float:
    cluster.servers()
    cluster.step(ticks)
    return float(cluster.servers()[:, SERVER_INDICATORS.index("write_mb_per_s")].sum())


def test_a_look_at_servers_is_what_they_did_since_the_last_one():
    cluster = Cluster(preset("random-write"))
    cluster.step(2)
    seen = cluster.servers()
    assert seen.shape == (4, len(SERVER_INDICATORS))
    assert (seen[:, SERVER_INDICATORS.index("requests_mean")] > 0).all()
    assert seen[:, SERVER_INDICATORS.index("device_busy_percent")] == pytest.approx(100, abs=5)


def test_queues_are_turned_and_turned_back():
    cluster = Cluster(preset("random-write"))
    cluster.step()
    before = _written(cluster, 8)
    cluster.turn_queues(Queue(slots=1, device_depth=1))
    cluster.step()
    torn = _written(cluster, 8)
    cluster.turn_queues(Queue())
    cluster.step()
    after = _written(cluster, 8)
    assert torn < 0.8 * before
    assert after == pytest.approx(before, rel=0.1)


@pytest.mark.parametrize("queue", [Queue(slots=0), Queue(batch=10**6), Queue(device_depth=-1)])
def test_queues_that_cannot_be_are_refused(queue):
    with pytest.raises(InputError, match="must be from 1"):
        Cluster(preset("random-write")).turn_queues(queue)
