"""How long a modelled disk takes, in real time: what the model says, and congestion that is real."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.simulation import preset, run_many, with_settings
from modelled_disk import MECHANICAL, ModelledDisk
from nbd_client import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    Figures = Callable[[str, object], None]
    Start = Callable[..., ModelledDisk]


def mean_read_ms() -> float:
    """Of `MECHANICAL`, at places all over it: command, seek, half a turn, transfer."""
    exponent = 0.5
    # The mean of d ** exponent over the distances d of two places, whose density is 2 (1 - d).
    share = 2 / ((exponent + 1) * (exponent + 2))
    return 0.1 + (1 + 7 * share) + 60_000 / 7500 / 2 + 4096 / 40e6 * 1e3


def quietest_ms(disk: ModelledDisk, rounds: int, count: int) -> float:
    """The mean time of random reads, one after another, in the least disturbed of some rounds."""
    draws, means = random.Random(3), list[float]()
    with disk.client() as client:
        for _ in range(rounds):
            begun = time.monotonic()
            for _ in range(count):
                client.read(draws.randrange(client.size // 4096) * 4096, 4096)
            means.append((time.monotonic() - begun) / count * 1e3)
    return min(means)


def test_random_reads_take_no_less_than_the_model_says(disk: Start) -> None:
    """And not much more, also on a machine that has much else to do."""
    found_ms = quietest_ms(disk(MECHANICAL), rounds=3, count=70)
    assert 0.88 * mean_read_ms() < found_ms < 1.5 * mean_read_ms()


@pytest.mark.slow
@pytest.mark.paced
def test_random_reads_take_what_the_model_says(disk: Start) -> None:
    assert quietest_ms(disk(MECHANICAL), rounds=3, count=300) == pytest.approx(mean_read_ms(), rel=0.1)


FLASH = """
[[servers]]
device = { kind = "flash", capacity_gb = 1, channels = 8, read_us = 4000 }
"""


def test_flash_reads_side_by_side_and_a_disk_does_not(disk: Start) -> None:
    def reads_per_s(scenario: str, depth: int) -> float:
        draws, count = random.Random(2), 40
        with disk(scenario) as one, one.client() as client:
            begun = time.monotonic()
            for number in range(count + depth - 1):
                if number < count:
                    client.send(READ, draws.randrange(client.size // 4096) * 4096, 4096, cookie=number)
                if number >= depth - 1:
                    client.reply()
            return count / (time.monotonic() - begun)

    assert reads_per_s(FLASH, 32) > 3 * reads_per_s(FLASH, 1)
    assert reads_per_s(MECHANICAL, 32) < 2 * reads_per_s(MECHANICAL, 1)


def streamed_mb_per_s(disk: ModelledDisk, streams: int, seconds: float) -> float:
    """So many clients read in sequence, each at a place of its own, two requests in flight."""
    length = 128 << 10
    until = time.monotonic() + seconds

    def stream(number: int) -> int:
        with disk.client() as client:
            at = client.size // streams * number // 4096 * 4096
            taken = 0
            for _ in range(2):
                client.send(0, at, length, cookie=at)
                at += length
            while time.monotonic() < until:
                client.reply()
                taken += length
                client.send(0, at, length, cookie=at)
                at += length
            return taken

    begun = time.monotonic()
    with ThreadPoolExecutor(streams) as pool:
        taken = sum(pool.map(stream, range(streams)))
    return taken / (time.monotonic() - begun) / 1e6


def simulated_mb_per_s(streams: int) -> float:
    """The simulator's prediction for as many files."""
    settings = ["clients.count=1", f"workloads.threads.instances={streams}"]
    settings += [f"workloads.filesets.entries={streams}", "warmup_s=2", "duration_s=10"]
    (found,) = run_many([with_settings(preset("read-ahead-cliff"), settings)])
    return found.throughput_mb_per_s


@pytest.mark.slow
def test_throughput_rises_with_streams_and_then_falls(disk: Start, record_property: Figures) -> None:
    """More streams than the disk has segments to read ahead for: it seeks for each request."""
    one = disk(Path("read-ahead-cliff"))
    measured = {streams: streamed_mb_per_s(one, streams, 4) for streams in (1, 3, 6, 12, 24)}
    simulated = {streams: simulated_mb_per_s(streams) for streams in measured}
    record_property("measured_mb_per_s", measured)
    record_property("simulated_mb_per_s", simulated)
    print(f"measured {measured}\nsimulated {simulated}")  # noqa: T201
    best = max(measured[3], measured[6])
    assert measured[12] < 0.75 * best, (measured, simulated)
    assert measured[24] < 0.75 * best, (measured, simulated)


def written_mb_per_s(disk: ModelledDisk, depth: int, seconds: float) -> float:
    """Random writes of 1 MiB, so many in flight at any time."""
    draws, length = random.Random(1), 1 << 20
    data = bytes(length)
    with disk.client() as client:

        def send(cookie: int) -> None:
            at = draws.randrange(client.size // length) * length
            client.send(WRITE, at, data=data, cookie=cookie)

        for cookie in range(depth):
            send(cookie)
        # Not counted: until as many are answered as were sent at once.
        for _ in range(depth):
            send(client.reply().cookie)
        begun, written = time.monotonic(), 0
        while time.monotonic() - begun < seconds:
            send(client.reply().cookie)
            written += length
        return written / (time.monotonic() - begun) / 1e6


def simulated_writes_mb_per_s(depth: int) -> float:
    """The simulator's prediction for one client and one server."""
    settings = ["clients.count=1", "servers.count=1", "servers.threads=1000", "striping.count=1"]
    settings += [f"control.window={depth}", f"workloads.threads.instances={depth}"]
    settings += ["workloads.filesets.size_mib=47000", "warmup_s=2", "duration_s=10"]
    (found,) = run_many([with_settings(preset("random-write"), settings)])
    return found.throughput_mb_per_s


@pytest.mark.slow
def test_throughput_rises_with_depth_and_then_falls(disk: Start, record_property: Figures) -> None:
    """A few writes give the queue something to order; more than it has slots for are torn apart."""
    measured = dict[int, float]()
    for depth in (1, 4, 16, 64, 256):
        with disk(Path("random-write"), "--size", "50GB") as one:
            measured[depth] = written_mb_per_s(one, depth, 4)
    simulated = {depth: simulated_writes_mb_per_s(depth) for depth in measured}
    record_property("measured_mb_per_s", measured)
    record_property("simulated_mb_per_s", simulated)
    print(f"measured {measured}\nsimulated {simulated}")  # noqa: T201
    assert measured[16] > 1.15 * measured[1], (measured, simulated)
    assert measured[256] < 0.75 * measured[16], (measured, simulated)
