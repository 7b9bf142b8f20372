from __future__ import annotations

from dataclasses import replace

import pytest

from ascar.pilot import Sampler, bottlenecks
from ascar.pilot.resources import used_between
from ascar.pilot.usage import Usage, read_usage


def _cores(*busy_s):
    return {f"cpu{core}": seconds for core, seconds in enumerate(busy_s)}


IDLE = Usage(
    at_s=100.0,
    cpu_busy_s=_cores(10.0, 10.0, 10.0, 10.0),
    programs_cpu_s=1.0,
    own_cpu_s=1.0,
    run_queue=1,
    memory_available=0.8,
    disk_busy_s={"sda": 5.0},
    network_bytes={"eth0": (1000, 900), "lo": (0, 0)},
    network_bytes_per_s_max={"eth0": 1e6},
    pressure_s={"io": 1.0},
)


def _after(seconds=10.0, **changes):
    return used_between([IDLE, replace(IDLE, at_s=IDLE.at_s + seconds, **changes)])


def _limits(**changes):
    return [found.resource for found in bottlenecks(_after(**changes))]


def test_shares_are_what_was_used_over_what_there_is():
    used = _after(
        cpu_busy_s=_cores(20.0, 10.0, 15.0, 10.0),
        programs_cpu_s=6.0,
        own_cpu_s=1.2,
        run_queue=3,
        memory_available=0.6,
        disk_busy_s={"sda": 9.0, "sdb": 1.0},
        network_bytes={"eth0": (5_001_000, 900), "lo": (9, 9)},
        pressure_s={"io": 3.0},
    )
    assert used.cpu == pytest.approx(0.375)
    assert used.cpu_busiest == pytest.approx(1.0)
    assert used.programs_cores == pytest.approx(0.5)
    assert used.own_cores == pytest.approx(0.02)
    assert used.run_queue_mean == 2
    assert used.memory_available_min == 0.6
    assert used.disk == {"sda": pytest.approx(0.4)}  # what came meanwhile has no beginning
    assert used.network == {"eth0": pytest.approx(0.5)}
    assert used.pressure == {"io": pytest.approx(0.2)}
    assert used.seconds == 10.0


@pytest.mark.parametrize(
    ("changes", "resource"),
    [
        ({}, None),
        ({"cpu_busy_s": _cores(20.0, 20.0, 20.0, 20.0)}, "cpu"),
        ({"cpu_busy_s": _cores(20.0, 10.0, 10.0, 10.0)}, "one core"),
        ({"programs_cpu_s": 11.0}, "one core"),
        ({"programs_cpu_s": 31.0}, None),
        ({"run_queue": 40}, "run queue"),
        ({"memory_available": 0.01}, "memory"),
        ({"disk_busy_s": {"sda": 14.9}}, "disk sda"),
        ({"network_bytes": {"eth0": (1000, 9_500_000)}}, "network eth0"),
        ({"network_bytes": {"eth0": (1000, 900), "lo": (10**12, 0)}}, None),
        ({"pressure_s": {"io": 4.0}}, "waiting for io"),
    ],
)
def test_the_resource_that_limited_a_result_is_named(changes, resource):
    assert _limits(**changes) == ([] if resource is None else [resource])


def test_the_fullest_comes_first():
    assert _limits(disk_busy_s={"sda": 14.2}, cpu_busy_s=_cores(20.0, 20.0, 20.0, 20.0)) == [
        "cpu",
        "disk sda",
    ]


def test_no_time_and_no_cores_are_no_crash():
    used = used_between([replace(IDLE, cpu_busy_s={})] * 2)
    assert used.cpu == 0.0
    assert bottlenecks(used) == ()


class Counters:
    """Counters that go on by a second a look."""

    def __init__(self):
        self.looks = 0

    def __call__(self):
        self.looks += 1
        return replace(IDLE, at_s=IDLE.at_s + self.looks, cpu_busy_s=_cores(float(self.looks)))


def test_the_sampler_looks_at_the_beginning_and_the_end_at_least():
    counters = Counters()
    with Sampler(period_s=1000.0, read=counters) as sampler:
        assert counters.looks == 1
        assert sampler.used.cpu == pytest.approx(1.0)  # so far, for whoever asks meanwhile
    assert sampler.used.samples == 2
    assert sampler.used.cpu == pytest.approx(1.0)


def test_the_sampler_looks_meanwhile_and_forgets_every_other_look_of_long_sessions(monkeypatch):
    monkeypatch.setattr("ascar.pilot.resources._LOOKS_MAX", 8)
    counters, sampler = Counters(), Sampler(period_s=0.0, read=Counters())
    sampler.read = counters
    with sampler:
        while counters.looks < 50:
            pass
    assert sampler.used.samples <= 10
    assert sampler.used.seconds == counters.looks - 1
    assert sampler.used.cpu == pytest.approx(1.0)


def _machine(root):
    (root / "proc/net").mkdir(parents=True)
    (root / "proc/pressure").mkdir()
    (root / "proc/stat").write_text(
        "cpu 1 2 3 4 5 6 7 8 9 10\ncpu0 100 0 100 800 50 0 0 0 0 0\ncpu1 0 0 0 0\nprocs_running 5\n"
    )
    (root / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 250 kB\n")
    (root / "proc/diskstats").write_text(
        "8 0 sda 1 2 3 4 5 6 7 8 0 1500 9 0 0 0 0\n8 1 sda1 1 2 3 4 5 6 7 8 0 900 9 0 0 0 0\nbroken\n"
    )
    (root / "proc/net/dev").write_text(
        "Inter-| Receive\n face |bytes\n"
        " eth0: 10 0 0 0 0 0 0 0 20 0 0 0 0 0 0 0\n   lo: 7 0 0 0 0 0 0 0 7 0 0 0 0 0 0 0\n short: 1\n"
    )
    (root / "proc/pressure/io").write_text("some avg10=0.00 total=2500000\nfull avg10=0.00 total=1\n")
    (root / "sys/block/sda").mkdir(parents=True)
    for name, speed in (("eth0", "1000"), ("lo", "-1")):
        (root / "sys/class/net" / name).mkdir(parents=True)
        (root / "sys/class/net" / name / "speed").write_text(f"{speed}\n")
    return root / "proc", root / "sys"


def test_the_kernels_counters_are_read(tmp_path):
    usage = read_usage(*_machine(tmp_path))
    assert usage.cpu_busy_s == {"cpu0": pytest.approx(2.0)}
    assert usage.run_queue == 4  # without the one that reads this
    assert usage.memory_available == 0.25
    assert usage.disk_busy_s == {"sda": 1.5}  # whole disks only
    assert usage.network_bytes == {"eth0": (10, 20), "lo": (7, 7)}
    assert usage.network_bytes_per_s_max == {"eth0": 1000 * 1e6 / 8}
    assert usage.pressure_s == {"io": 2.5}


def test_a_machine_that_tells_nothing_is_no_crash(tmp_path):
    usage = read_usage(tmp_path / "nothing", tmp_path / "nothing")
    assert usage.cpu_busy_s == {}
    assert usage.memory_available == 1.0
    assert usage.disk_busy_s == usage.network_bytes == usage.pressure_s == {}


def test_this_machine_is_read():
    usage = read_usage()
    assert usage.cpu_busy_s
    assert 0 < usage.memory_available <= 1
    assert used_between([usage, read_usage()]).cores == len(usage.cpu_busy_s)
