"""A slow disk with Linux' elevator before it, and the kernel's own account of its requests."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import called

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

LIMITS = tuple(Path(f"/sys/fs/cgroup/blkio/blkio.throttle.{way}_bps_device") for way in ("read", "write"))
"""Of the root group: bytes a second of a device."""
SECTOR_BYTES = 512
IN_DRIVER = 4
"""Requests that the driver holds: the fewest that Linux allows."""
IN_ELEVATOR = 250
"""Requests that the elevator holds; Linux takes its default of 256 for no change, and leaves the driver's."""
_EVENT = re.compile(r" (\d+\.\d+): block_rq_(\w+): \S+ (\w+) (?:\d+ )?\(.*?\) (\d+) \+ (\d+)")


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """Something that happens to a request of a disk's queue.

    Attributes:
        kind: "insert": it comes to the elevator; "issue": it goes to the driver.
        at_s: when, on the clock of `time.monotonic`.
        is_write: whether it writes.
        sector: its first one.
        sectors: how many.
    """

    kind: str
    at_s: float
    is_write: bool
    sector: int
    sectors: int


@dataclass(frozen=True, slots=True)
class SlowDisk:
    """A block device of so many bytes read and so many written a second, with mq-deadline before it.

    Attributes:
        device: its file.
        trace: the folder of its trace, a tracefs instance.
        counters: the folder of its backing device's counters in debugfs.
        limited: number of the device below, which is limited, and the files that limit it.
    """

    device: Path
    trace: Path
    counters: Path
    limited: tuple[str, tuple[Path, ...]]

    @property
    def sysfs(self) -> Path:
        """Its folder in sysfs."""
        return Path("/sys/block", self.device.name)

    def limit(self, bytes_per_s: int) -> None:
        """So many bytes read and so many written a second from now on; 0: any number."""
        number, files = self.limited
        for file in files:
            file.write_text(f"{number} {bytes_per_s}")

    def elevator(self) -> dict[str, int]:
        """What its elevator is set to, by the names of sysfs."""
        names = ("fifo_batch", "read_expire", "write_expire", "writes_starved")
        return {name: int((self.sysfs / "queue/iosched" / name).read_text()) for name in names}

    def dirty_kib(self) -> tuple[int, int, int]:
        """Dirty data of its file system, data being written, and its share of the background limit."""
        text = (self.counters / "stats").read_text()
        found = {name: int(kib) for name, kib in re.findall(r"(\w+): +(\d+) kB", text)}
        share = found["BdiDirtyThresh"] / max(1, found["DirtyThresh"])
        return found["BdiReclaimable"], found["BdiWriteback"], int(share * found["BackgroundThresh"])

    def written(self) -> tuple[int, int, int]:
        """Writes completed and merged since it was made, and sectors written."""
        words = (self.sysfs / "stat").read_text().split()
        return int(words[4]), int(words[5]), int(words[6])

    @contextmanager
    def tracing(self, *kinds: str) -> Generator[None]:
        """Events of these kinds are kept for as long as the context lasts; "write-back": why each begins."""
        number = (self.sysfs / "dev").read_text().strip()
        major, minor = map(int, number.split(":"))
        (self.trace / "trace").write_text("")
        filters = {f"block/block_rq_{kind}": f"dev == {major << 20 | minor}" for kind in kinds}
        if filters.pop("block/block_rq_write-back", None):
            filters["writeback/writeback_start"] = f'name == "{number}"'
        switches = {self.trace / "events" / name: condition for name, condition in filters.items()}
        for switch, condition in switches.items():
            (switch / "filter").write_text(condition)
            (switch / "enable").write_text("1")
        try:
            yield
        finally:
            for switch in switches:
                (switch / "enable").write_text("0")

    def reasons(self) -> list[str]:
        """Why write-back began, each time: "background", "periodic", "sync", ..."""
        return re.findall(r" writeback_start: .* reason=(\w+)", (self.trace / "trace").read_text())

    def events(self) -> list[QueueEvent]:
        """What was kept, in the order of time."""
        found = _EVENT.finditer((self.trace / "trace").read_text())
        events = [
            QueueEvent(kind, float(at_s), "W" in how, int(sector), int(sectors))
            for at_s, kind, how, sector, sectors in (one.groups() for one in found)
        ]
        return sorted(events, key=lambda event: event.at_s)


@contextmanager
def slow_disk(size_bytes: int) -> Generator[SlowDisk]:
    """Such a disk, its data in memory; without a limit at first.

    Raises:
        RuntimeError: this is not root, or the kernel has no tracefs or no control group blkio of version 1.
    """
    if os.geteuid() != 0:
        raise RuntimeError("needs root: loop devices, limits of block devices, the kernel's trace")
    if not LIMITS[0].exists():
        raise RuntimeError("needs the control group blkio, version 1, which makes the disk slow")
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        image = folder / "image"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        below = _loop(ends, image)
        device = _loop(ends, below, "--direct-io=on")
        queue = Path("/sys/block", device.name, "queue")
        # In this order: what the driver holds can be set only without an elevator.
        (queue / "scheduler").write_text("none")
        (queue / "nr_requests").write_text(f"{IN_DRIVER}")
        (queue / "scheduler").write_text("mq-deadline")
        (queue / "nr_requests").write_text(f"{IN_ELEVATOR}")
        trace = _mounted(ends, folder / "tracing", "tracefs") / f"instances/{device.name}-{os.getpid()}"
        trace.mkdir()
        ends.callback(trace.rmdir)
        (trace / "trace_clock").write_text("mono")
        (trace / "buffer_size_kb").write_text("8192")
        numbers = [Path("/sys/block", one.name, "dev").read_text().strip() for one in (below, device)]
        counters = _mounted(ends, folder / "debug", "debugfs") / "bdi" / numbers[1]
        disk = SlowDisk(device, trace, counters, (numbers[0], tuple(_limits())))
        ends.callback(disk.limit, 0)
        yield disk


def _loop(ends: ExitStack, below: Path, *words: str) -> Path:
    device = Path(called("losetup", "--find", "--show", *words, below).strip())
    ends.callback(called, "losetup", "--detach", device)
    return device


def _mounted(ends: ExitStack, place: Path, kind: str) -> Path:
    place.mkdir()
    called("mount", "-t", kind, "none", place)
    ends.callback(called, "umount", place)
    return place


def _limits() -> Iterable[Path]:
    """Of the root group, whose write-back it is, and of this process's."""
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next(group for _, names, group in groups if "blkio" in names.split(","))
    for file in LIMITS:
        yield file
        if own != "/":
            yield file.parent / own.lstrip("/") / file.name
