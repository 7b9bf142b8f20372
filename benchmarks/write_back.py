"""Linux' elevator and write-back before a slow disk, recorded, and the simulator's `linux-6` beside them.

    python -m benchmarks.write_back --again --budget 10min        (root)
    python -m benchmarks.write_back --show tests/data/linux-6-queue.jsonl

The disk is a loop device with mq-deadline that reads and writes 3.3 MB/s each (50 requests of 64 KiB), and
33 MB/s for "background"; its data lies in memory. The file of results is the recording: tests hold the
simulator against `tests/data/linux-6-queue.jsonl`.

elevator     64 KiB at random places past the page cache: 48 threads read, 60 or 100 write; the order in
             which requests go to the driver, and how long each has waited
expiry       8 files of ext4, 64 pages of each made dirty at once: when the kernel begins to write them
background   a file of ext4 is written from its begin on, 300 MB a second: at how much dirty data write-back
             begins, and in requests of what size
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import platform
import random
import struct
import sys
import tempfile
import threading
import time
from collections import defaultdict, deque
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Found, Piece, called, mean, number, sources, table
from benchmarks.queue_log import QueueLog
from benchmarks.write_back_disk import IN_DRIVER, IN_ELEVATOR, SECTOR_BYTES, QueueEvent, SlowDisk, slow_disk

from ascar.simulation import Cluster, scenario_of, with_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

RATE = 50
READERS, WRITERS = 48, (60, 100)
WARM_S, RECORDED_S = 20, 20
_REQUEST = 64 << 10
_PLACES = 1 << 16
_DISK = _PLACES * _REQUEST
_LARGE_DISK = 8 * _DISK
"""So large that ext4 does not write for want of space."""
_PAGE, _PAGES, _DIRTY_PAGES, _FILES, _APART_S = 4096, 4096, 64, 8, 1.7
_SLICE, _SLICES = 16 << 20, 225
_FIBMAP = 1
_SAMPLE_S = 0.05
_JOURNAL_KIB = 1024
"""Data being written up to so much is the file system's own."""


def key(writers: int) -> str:
    """Of a piece: requests under so many writers."""
    return f"elevator, {writers} writers"


def main() -> None:
    """Record what is not recorded, and print what the recording says."""
    parser = Benchmark.parser(__doc__ or "", "10min")
    parser.add_argument("--show", type=Path, help="only print what this recording says")
    given = parser.parse_args()
    if given.show:
        show(recording(given.show))
        return
    benchmark = Benchmark.of(given, sources("benchmarks.write_back", within=("benchmarks",)))
    pieces = [Piece(key(writers), partial(elevator, writers)) for writers in WRITERS]
    pieces += [Piece("expiry", expiry), Piece("background", background)]
    found = benchmark.run(pieces)
    if not found:
        sys.exit("nothing is recorded")
    show(found)


def recording(path: Path) -> Found:
    """The pieces of a file of results, by key."""
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return {line["key"]: line for line in lines}


def elevator(writers: int) -> dict[str, Any]:
    """Requests of saturating readers and writers, as they leave the elevator."""
    with slow_disk(_DISK) as disk, disk.tracing("insert", "issue"):
        disk.limit(RATE * _REQUEST)
        with _direct_load(disk.device, READERS, writers):
            time.sleep(WARM_S + RECORDED_S + 1)
        log = _log(disk.events()).cut(WARM_S, RECORDED_S)
        return {**_machine(), **disk.elevator(), "readers": READERS, "writers": writers, **log.written()}


def _machine() -> dict[str, Any]:
    names = ("dirty_expire_centisecs", "dirty_writeback_centisecs", "dirty_background_ratio", "dirty_ratio")
    settings = {name: int(Path("/proc/sys/vm", name).read_text()) for name in names}
    return {"kernel": platform.release(), "in_driver": IN_DRIVER, "in_elevator": IN_ELEVATOR, **settings}


@contextmanager
def _direct_load(device: Path, readers: int, writers: int) -> Generator[None]:
    """Threads that read or write one request after the other, past the page cache."""
    ended = threading.Event()
    file = os.open(device, os.O_RDWR | os.O_DIRECT)

    def work(seed: int) -> None:
        chance, buffer = random.Random(seed), mmap.mmap(-1, _REQUEST)
        move = os.preadv if seed < readers else os.pwritev
        while not ended.is_set():
            move(file, [buffer], chance.randrange(_PLACES) * _REQUEST)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(readers + writers)]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        os.close(file)


def _log(events: Sequence[QueueEvent]) -> QueueLog:
    """Requests in the order of going, with the time since each came."""
    waiting: dict[tuple[bool, int], deque[float]] = defaultdict(deque)
    rows: list[tuple[bool, float, float, int]] = []
    for event in events:
        came = waiting[event.is_write, event.sector]
        if event.kind == "insert":
            came.append(event.at_s)
        elif came:
            place = event.sector * SECTOR_BYTES // _REQUEST
            rows.append((event.is_write, event.at_s, event.at_s - came.popleft(), place))
    writes, went_s, waited_s, places = (np.array(column) for column in zip(*rows, strict=True))
    return QueueLog(writes, went_s - went_s[0], waited_s, places)


@contextmanager
def _mounted(disk: SlowDisk) -> Generator[Path]:
    """An empty ext4 file system on it, for few files."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        now = "lazy_itable_init=0,lazy_journal_init=0"
        called("mkfs.ext4", "-q", "-F", "-b", f"{_PAGE}", "-N", "1024", "-E", now, disk.device)
        called("mount", "-o", "noatime", disk.device, folder)
        ends.callback(called, "umount", folder)
        ends.callback(disk.limit, 0)
        yield Path(folder)


def expiry() -> dict[str, Any]:
    """For each file, how old its dirty pages were when they came to the queue; in what order."""
    chance = random.Random(1)
    with slow_disk(_DISK) as disk, _mounted(disk) as folder:
        paths = [folder / f"{count}" for count in range(_FILES)]
        pages = [sorted(chance.sample(range(_PAGES), _DIRTY_PAGES)) for _ in paths]
        for path in paths:
            path.write_bytes(bytes(_PAGES * _PAGE))
        called("sync", "--file-system", folder)  # of the files too: an age counts from when a file was clean
        sectors = [_sectors(path, own) for path, own in zip(paths, pages, strict=True)]
        disk.limit(RATE * _REQUEST)
        with disk.tracing("insert"):
            dirtied_s = [_dirty(path, own, chance) for path, own in zip(paths, pages, strict=True)]
            settings = _machine()
            expire, every = (settings[f"dirty_{name}_centisecs"] / 100 for name in ("expire", "writeback"))
            waits_s = expire + 2 * every + 2
            time.sleep(max(0.0, dirtied_s[-1] + waits_s - time.monotonic()))
            events = [event for event in disk.events() if event.is_write]
        found = [_first_and_order(events, own) for own in sectors]
    late = [count for count, (first_s, _) in enumerate(found) if first_s is None]
    if late:
        raise RuntimeError(f"files {late} were not written within {waits_s:g} s")
    ages_s = [round(first - dirty, 3) for (first, _), dirty in zip(found, dirtied_s, strict=True) if first]
    return {**settings, "ages_s": ages_s, "ascending": [round(share, 3) for _, share in found]}


def _sectors(path: Path, pages: Sequence[int]) -> set[int]:
    """Where pages of a file lie on its disk."""
    with path.open("rb") as file:
        blocks = [struct.unpack("i", fcntl.ioctl(file, _FIBMAP, struct.pack("i", page)))[0] for page in pages]
    return {block * _PAGE // SECTOR_BYTES for block in blocks}


def _dirty(path: Path, pages: Sequence[int], chance: random.Random) -> float:
    """Make pages dirty in any order, and wait a little; when the first one was."""
    order = list(pages)
    chance.shuffle(order)
    with path.open("r+b", buffering=0) as file:
        begun_s = time.monotonic()
        for page in order:
            os.pwrite(file.fileno(), chance.randbytes(_PAGE), page * _PAGE)
    time.sleep(_APART_S)
    return begun_s


def _first_and_order(events: Sequence[QueueEvent], sectors: set[int]) -> tuple[float | None, float]:
    """When the first of these sectors came to the queue, and the share that lay behind the one before."""
    places = [range(event.sector, event.sector + event.sectors, _PAGE // SECTOR_BYTES) for event in events]
    came = [event for event, place in zip(events, places, strict=True) if sectors.intersection(place)]
    steps = [after.sector > before.sector for before, after in pairwise(came)]
    return (came[0].at_s if came else None), float(np.mean(steps)) if steps else 1.0


def background() -> dict[str, Any]:
    """At how much dirty data the kernel begins to write, and in what requests it goes on for five seconds."""
    settings, limit_mib = _machine(), _vmstat("nr_dirty_background_threshold")
    if limit_mib > 0.9 * _SLICES * _SLICE / 2**20:
        raise RuntimeError(f"the background limit is {limit_mib:.0f} MiB, more than is written here")
    with slow_disk(_LARGE_DISK) as disk, _mounted(disk) as folder, disk.tracing("write-back"):
        called("sync", "--file-system", folder)
        disk.limit(10 * RATE * _REQUEST)
        samples: list[list[int]] = []
        path, data, begun_s = folder / "file", os.urandom(_SLICE), time.monotonic()
        with path.open("wb", buffering=0) as file:
            while len(samples) < _SLICES and not (samples and samples[-1][2] > _JOURNAL_KIB):
                file.write(data)
                samples.append(_sample(disk, begun_s))
                time.sleep(max(0.0, begun_s + len(samples) * _SAMPLE_S - time.monotonic()))
        took_s, reasons = time.monotonic() - begun_s, disk.reasons()
        before, until_s = disk.written(), time.monotonic() + 5
        while time.monotonic() < until_s:
            time.sleep(5 * _SAMPLE_S)
            samples.append(_sample(disk, begun_s))
        requests, merged, sectors = (now - then for now, then in zip(disk.written(), before, strict=True))
        path.unlink()  # what is dirty need not be written
    if not any(sample[2] > _JOURNAL_KIB for sample in samples):
        raise RuntimeError(f"no write-back within {_SLICES * _SLICE >> 20} MiB")
    if reasons[-1:] != ["background"]:
        raise RuntimeError(f"write-back began after {took_s:.0f} s for another reason: {reasons[-1:]}")
    return {
        **settings,
        "limit_mib": int(limit_mib),
        "samples": samples,
        "write_back": {"requests": requests, "merged": merged, "sectors": sectors},
    }


def _vmstat(name: str) -> float:
    """A count of pages, in MiB."""
    lines = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(dict(lines)[name]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _sample(disk: SlowDisk, begun_s: float) -> list[int]:
    """Milliseconds; MiB dirty; KiB being written; MiB of its share of the background limit."""
    dirty_kib, writing_kib, share_kib = disk.dirty_kib()
    return [int((time.monotonic() - begun_s) * 1000), dirty_kib >> 10, writing_kib, share_kib >> 10]


def began(samples: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The disk's dirty data before write-back began, and its share of the background limit; MiB."""
    first = next(at for at, sample in enumerate(samples) if sample[2] > _JOURNAL_KIB)
    return max(sample[1] for sample in samples[: first + 1]), samples[max(0, first - 1)][3]


def simulated(recorded: Mapping[str, Any], storage: str) -> QueueLog:
    """The same load in the simulator, under one of its elevators, on a device of the same speed."""
    log = QueueLog.read(recorded)
    interval_s = log.interval_s
    operation = {"random": True, "directio": True, "iosize_kib": _REQUEST >> 10}
    scenario = scenario_of(
        {
            "name": "queue",
            "warmup_s": WARM_S,
            "duration_s": RECORDED_S,
            "clients": [{"count": 1, "workload": "w", "request_kib": _REQUEST >> 10}],
            "control": {"window": 1024, "window_max": 1024},
            "network": {"link": {"bandwidth_mb_per_s": 1e6}, "latency_us": 0},
            "striping": {"count": 1},
            "servers": [
                {
                    "threads": 1024,
                    "request_cpu_us": 0,
                    "layout": {"used_percent": 0},
                    "queue": {
                        "slots": recorded["in_elevator"],
                        "read_order": "elevator",
                        "write_order": "elevator",
                        "device_depth": 1,
                    },
                    "device": {
                        "kind": "memory",
                        "copy_mb_per_s": _REQUEST / interval_s / 1e6,
                        "request_us": 0,
                    },
                }
            ],
            "workloads": [
                {
                    "name": "w",
                    "filesets": [{"name": "file", "size_mib": _DISK >> 20}],
                    "threads": [
                        {"instances": recorded["readers"], "flowops": [{"op": "read", **operation}]},
                        {"instances": recorded["writers"], "flowops": [{"op": "write", **operation}]},
                    ],
                }
            ],
        }
    )
    cluster = Cluster(with_storage(scenario, storage))
    cluster.record()
    cluster.advance(RECORDED_S)
    trace = cluster.recorded()
    went_s = trace.seconds + trace.latency_s - interval_s
    order = np.argsort(went_s, kind="stable")
    order = order[np.isfinite(went_s[order])]
    return QueueLog(
        np.array(trace.kind)[order] == "write",
        went_s[order],
        trace.latency_s[order] - interval_s,
        trace.offset_bytes[order] // _REQUEST,
    ).cut(WARM_S, RECORDED_S)


def show(found: Found) -> None:
    """Print tables in Markdown."""
    there = [found[key(writers)] for writers in WRITERS if key(writers) in found]
    if there:
        shown = [(QueueLog.read(one), simulated(one, "linux-6")) for one in there]
        heads = [f"{one['writers']} writers, {how}" for one in there for how in ("Linux", "`linux-6`")]
        logs = [log for pair in shown for log in pair]
        table(["", *heads], [[name, *map(tell, logs)] for name, tell in _TOLD.items()])
    rows: list[list[str]] = []
    if "expiry" in found:
        ages_s = found["expiry"]["ages_s"]
        setting = f"{found['expiry']['dirty_expire_centisecs'] / 100:g} s, looked for every "
        setting += f"{found['expiry']['dirty_writeback_centisecs'] / 100:g} s"
        age = f"{number(mean(ages_s))}; {min(ages_s):.1f} to {max(ages_s):.1f}"
        rows.append(["age of the oldest dirty page at the begin of write-back, s", age, setting])
        share = number(mean([100 * one for one in found["expiry"]["ascending"]]))
        rows.append(["its requests that lie behind the one before, %", share, ""])
    if "background" in found:
        one = found["background"]
        dirty, share = began(one["samples"])
        setting = f"{share:,}, of {one['limit_mib']:,} of the machine ({one['dirty_background_ratio']}%)"
        rows.append(["dirty data of the disk at the begin of write-back, MiB", f"{dirty:,}", setting])
        written = one["write_back"]
        size_kib = written["sectors"] * SECTOR_BYTES / 1024 / written["requests"]
        rows.append(["its requests, KiB", f"{size_kib:,.0f}", ""])
    if rows:
        table(["write-back", "Linux", "its setting"], rows)


def _lengths(log: QueueLog, *, is_write: bool) -> str:
    lengths = log.lengths(is_write=is_write)
    return f"{np.median(lengths):g}; {number(mean(lengths))}"


def _age_limit(log: QueueLog) -> str:
    low_s, high_s = log.age_limit_s()
    return f"{low_s:.1f} to {high_s:.1f}"


_TOLD: dict[str, Callable[[QueueLog], str]] = {
    "writes in a row: median; mean (95%)": partial(_lengths, is_write=True),
    "reads in a row: median; mean (95%)": partial(_lengths, is_write=False),
    "age from which a write goes first, s": _age_limit,
    "wait of a write, median, s": lambda log: f"{log.waits_s(0.5):.1f}",
    "wait of a write, 90%, s": lambda log: f"{log.waits_s(0.9):.1f}",
    "writes of a row that lie behind the one before": lambda log: f"{log.ascending(is_write=True):.0%}",
    "reads of a row that lie behind the one before": lambda log: f"{log.ascending(is_write=False):.0%}",
}


if __name__ == "__main__":
    main()
