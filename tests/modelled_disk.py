"""`ascard disk` as a process: started, used, cut, ended."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
from typing import TYPE_CHECKING

from nbd_client import NbdClient
from waiting import until

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

MEMORY = """
[[servers]]
device = { kind = "memory", capacity_gb = 1, request_us = 1 }
"""
"""A disk that takes no time to speak of."""

FLASH = """
[[servers]]
device = { kind = "flash", capacity_gb = 1 }
"""
"""Small flash, quick enough for any test."""

MECHANICAL = """
[[servers]]
queue = { read_order = "arrival" }

[servers.device]
kind = "mechanical"
capacity_gb = 12
rpm = 7500
read_mb_per_s = 40
write_mb_per_s = 40
inner_speed = 1.0
zones = 1
seek_track_ms = 1
seek_full_ms = 8
seek_exponent = 0.5
"""
"""A disk whose times can be told by hand."""

CACHED = MECHANICAL + "write_cache_kib = 8192\n"
"""The same with a write cache."""


class ModelledDisk:
    """A disk on a Unix socket in a folder, or on a port, for as long as the context lasts."""

    def __init__(self, ascard: Path, folder: Path, scenario: str | Path, *words: str | Path) -> None:
        """Start it, and wait until it serves."""
        if isinstance(scenario, str):
            path = folder / "scenario.toml"
            path.write_text(scenario, "utf-8")
            scenario = path
        self.socket = folder / "disk.sock"
        self.errors = folder / "disk.log"
        where = () if "--listen" in words else ("--socket", self.socket)
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [ascard, "disk", "--scenario", scenario, *where, *words],
                stdin=subprocess.DEVNULL,
                stderr=errors,
            )
        until(lambda: " serves " in self.said() or self.process.poll() is not None, 30)
        assert self.process.poll() is None, self.said()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def said(self) -> str:
        """All that it has said so far."""
        return self.errors.read_text("utf-8")

    def port(self) -> int:
        """The port that it listens on."""
        found = re.search(r" at [0-9.]+:(\d+)$", self.said(), re.MULTILINE)
        assert found, self.said()
        return int(found[1])

    def client(self, export: str | None = "disk") -> NbdClient:
        """A new connection."""
        return NbdClient(self.socket, export)

    def end(self) -> int:
        """End it in good order; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def kill(self) -> None:
        """Take its power for good."""
        self.process.kill()
        self.process.wait()

    def cut(self) -> None:
        """Cut its power; it comes back at once."""
        before = self.said().count("power is cut")
        self.process.send_signal(signal.SIGUSR1)
        until(lambda: self.said().count("power is cut") != before, 30)

    def limit_file(self, size: int) -> None:
        """Let its file take nothing beyond this; it is as if what is behind were full."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def memory_kib(self) -> int:
        """What it has in memory."""
        status = (self._proc / "status").read_text("ascii")
        found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        assert found
        return int(found[1])

    @property
    def _proc(self) -> Path:
        return type(self.socket)("/proc", str(self.process.pid))
