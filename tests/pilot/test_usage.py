from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ascar.pilot import Sampler, bottlenecks
from ascar.pilot.resources import used_between
from ascar.pilot.usage import Usage, read_usage

FILES = {
    "proc/stat": "cpu  9 9 9 9 9\ncpu0 50 10 20 400 50 5 5 10\ncpu1 50 0 50 400 50 0\nprocs_running 4\n",
    "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 250 kB\nHugePages_Total: 0\n",
    "proc/diskstats": "   8       0 sda 1 2 3 4 5 6 7 8 0 1500 11 0 0 0 0 0 0\n",
    "proc/net/dev": "Inter-|\n face |\n  eth0:1000 1 0 0 0 0 0 0 5000 1 0 0 0 0 0 0\n",
    "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\nfull avg10=0.00 total=1\n",
    "sys/class/net/eth0/speed": "1000\n",
    "sys/block/sda/size": "1\n",
}
BASE = Usage(
    0.0, {"cpu0": 0.0, "cpu1": 0.0}, 0.0, 0.0, 1, 0.5, {"sda": 0.0}, {"eth0": (0, 0)}, {"eth0": 1e6}, {}
)


@pytest.fixture
def machine(tmp_path):
    """A procfs and a sysfs."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def read(machine):
    return read_usage(machine / "proc", machine / "sys")


@pytest.mark.parametrize("name", ["stat", "meminfo", "diskstats", "net/dev", "pressure/io"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n:\n: :\n",
        "cpu0\ncpu1 a b c d e f\nprocs_running\n",
        "cpu0 -1 -1 -1 -1 -1 -1 -1 -1\nprocs_running many\n",
        f"cpu0 {'9' * 5000} 1 1 1 1 1 1 1\nMemTotal: {'9' * 5000} kB\nprocs_running {'9' * 5000}\n",
        "MemTotal:\nMemAvailable: 1 kB\n",
        "MemTotal: 0 kB\nMemAvailable: 5 kB\n",
        "a b sda c d e f g h i j k l m\n" * 3,
        "h1\nh2\n eth0: x y z\n eth0: 1 2 3 4 5 6 7 8 nine\n : 1 2 3 4 5 6 7 8 9\n",
        "h1\nh2\n ../..: 1 2 3 4 5 6 7 8 9\n a/b: 1 2 3 4 5 6 7 8 9\n",
        "some total=\nsome total=-5\nsome total=1e5\nsome total=²\n",
        "\x00\ufffd\u0661\n" * 10,
    ],
)
def test_hostile_counters_cost_no_more_than_themselves(machine, name, text):
    (machine / "proc" / name).write_text(text)
    usage = read(machine)
    assert 0 <= usage.memory_available <= 1
    assert usage.run_queue >= 0
    assert all(busy >= 0 for busy in usage.cpu_busy_s.values())
    assert name == "stat" or set(usage.cpu_busy_s) == {"cpu0", "cpu1"}
    assert name == "net/dev" or usage.network_bytes == {"eth0": (1000, 5000)}
    assert name == "diskstats" or usage.disk_busy_s == {"sda": 1.5}
    assert name == "pressure/io" or usage.pressure_s == {"io": 2.0}
    used_between([usage, replace(usage, at_s=usage.at_s + 1)])


def test_bytes_that_are_no_text_are_read_over(machine):
    (machine / "proc/stat").write_bytes(b"\xff\xfe\ncpu0 1 1 1 1 1 1 1 1\n")
    assert list(read(machine).cpu_busy_s) == ["cpu0"]


def test_what_was_received_long_ago_does_not_hide_what_is_sent_now():
    first = replace(BASE, network_bytes={"eth0": (10**12, 0)})
    last = replace(first, at_s=10.0, network_bytes={"eth0": (10**12, 9_500_000)})
    assert used_between([first, last]).network == {"eth0": pytest.approx(0.95)}


def test_counters_that_wrap_begin_again_or_go_are_no_negative_use():
    first = replace(
        BASE,
        disk_busy_s={"sda": 2**32 / 1000 - 1},
        network_bytes={"eth0": (5, 5)},
        pressure_s={"io": 9.0},
    )
    last = replace(
        first,
        at_s=10.0,
        disk_busy_s={"sda": 1.0},
        network_bytes={"eth0": (0, 0)},
        pressure_s={"io": 0.0},
    )
    used = used_between([first, last])
    assert used.disk == {"sda": pytest.approx(0.2)}
    assert used.network == {"eth0": 0}
    assert used.pressure == {"io": 0}
    gone = used_between([first, replace(last, cpu_busy_s={"cpu1": 5.0}, disk_busy_s={}, network_bytes={})])
    assert gone.cores == 1
    assert gone.cpu == pytest.approx(0.5)
    assert gone.disk == gone.network == {}


def test_nothing_is_said_of_an_instant():
    used = used_between([BASE, replace(BASE, at_s=1e-6, cpu_busy_s={"cpu0": 0.01, "cpu1": 0.01})])
    assert used.cpu <= 1
    assert bottlenecks(used) == ()


def test_a_busy_program_is_seen_and_so_is_what_watching_costs():
    spin = "import time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass"
    with Sampler(period_s=0.1) as sampler:
        began_s = time.monotonic()
        subprocess.run([sys.executable, "-c", spin], check=True, timeout=120)
        took_s = time.monotonic() - began_s
    used = sampler.used
    assert used.seconds >= took_s
    assert 1.4 <= used.programs_cores * used.seconds <= 2.5
    assert used.own_cores < 0.5
    assert used.samples >= 3
    # Where others compete for the processors, it gets less than one, and these are all busy instead.
    assert {"one core", "cpu"} & {found.resource for found in bottlenecks(used)} or used.programs_cores < 0.9


def test_a_loop_on_every_core_makes_the_processor_the_limit():
    spin = "import time\nend = time.monotonic() + 2.5\nwhile time.monotonic() < end: pass"
    cores = len(os.sched_getaffinity(0))
    if cores != os.cpu_count():
        pytest.skip("this process may not use all processors")
    with Sampler(period_s=0.2) as sampler:
        children = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(2 * cores)]
        assert [child.wait(timeout=300) for child in children] == [0] * len(children)
    if sampler.used.cpu < 0.9 and sampler.used.programs_cores < 0.7 * cores:
        pytest.skip("these programs may not use all processors that are told")
    found = {one.resource for one in bottlenecks(sampler.used)}
    assert sampler.used.cpu > 0.5
    assert ("cpu" in found) == (sampler.used.cpu >= 0.9)
    assert sampler.used.run_queue_mean > cores / 2


def _disk_of(path):
    """The whole disk below a directory; None where it has none that can be told."""
    number = path.stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not link.exists():
        return None
    real = link.resolve()
    return real.parent.name if (real / "partition").exists() else real.name


def test_forced_writes_keep_the_disk_busy(tmp_path):
    disk = _disk_of(tmp_path)
    if disk is None or disk not in read_usage().disk_busy_s:
        pytest.skip("the directory for tests is on no disk that the kernel counts")
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    block = os.urandom(65_536)
    with Sampler(period_s=0.2) as sampler:
        start_s, before_s = time.monotonic(), read_usage().disk_busy_s[disk]
        forced, told = 0, False
        # Newer kernels count a request only if it is under way when the timer ticks: fast ones may not be.
        while forced < 200 or time.monotonic() < start_s + 2 or not told:
            os.write(file, block)
            os.fdatasync(file)
            forced += 1
            told = read_usage().disk_busy_s[disk] > before_s or time.monotonic() > start_s + 60
    os.close(file)
    share = sampler.used.disk[disk]
    # How busy that keeps it depends on the disk, and on who else wants the processor; the finding must agree.
    assert 0 < share <= 1
    assert (f"disk {disk}" in {found.resource for found in bottlenecks(sampler.used)}) == (share >= 0.9)
