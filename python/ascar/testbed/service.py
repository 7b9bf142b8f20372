"""Disks and proxies of a testbed: programs that run on its nodes from when these boot."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from ascar.errors import StageFailed, StudyError, WorkError
from ascar.program.node_binary import find_ascard
from ascar.toml import toml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ascar.testbed.file import DiskTable, ProxyTable
    from ascar.testbed.machine import TestbedMachine

_READY_S = 60.0
_END_S = 20.0
_CHECK_S = 20.0
_LOOK_S = 0.02


class Served:
    """A program that serves on a node; it is started each time the node boots.

    Args:
        name: what messages call it.
        machine: the node.
        log: the file of what it says.
        words: the program and its arguments.
        is_ready: whether it serves; asked again until it does.

    Attributes:
        files: files that it reads, which the node gets each time before it is started.
        sockets: sockets that it makes.
    """

    def __init__(
        self,
        name: str,
        machine: TestbedMachine,
        log: Path,
        words: Sequence[str],
        is_ready: Callable[[Served], bool],
    ) -> None:
        self.name, self.machine, self._log = name, machine, log
        self.files: Mapping[Path, str] = {}
        self.sockets: Sequence[Path] = ()
        self._words, self._is_ready = list(words), is_ready
        self._process: subprocess.Popen[bytes] | None = None
        self._begun = 0

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        process = self._process  # which another thread may take away
        return process is not None and process.poll() is None

    @property
    def said(self) -> str:
        """What it has said since it was started."""
        with self._log.open("rb") as file:
            file.seek(self._begun)
            return file.read(1 << 20).decode("utf-8", "replace")

    def start(self) -> None:
        """Start it, and return when it serves.

        Raises:
            WorkError: it ends, or does not serve in time; in its last words.
        """
        self._release()
        if self.sockets:  # those of one that was killed would pass for its own
            self.machine.run(["rm", "-f", *map(str, self.sockets)], _END_S)
        for path, text in self.files.items():
            self.machine.put(text.encode(), str(path))
        with self._log.open("ab") as log:
            self._begun = log.tell()
            self._process = self.machine.open(self._words, log)
        end_s = time.monotonic() + _READY_S
        while not self._is_ready(self):
            ended = not self.alive
            if ended or time.monotonic() > end_s:
                why = (self.said.strip().splitlines() or ["it says nothing"])[-1][:300]
                raise WorkError(
                    f"{self.name}: {'ends' if ended else f'does not serve within {_READY_S:g} s'}: {why}"
                )
            time.sleep(_LOOK_S)

    def end(self) -> None:
        """End it in good order, so that a disk writes what is in its cache; more than once is allowed."""
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._release()

    def gone(self) -> None:
        """Its node was cut, and it with it."""
        process = self._process
        if process is not None:
            process.kill()
        self._release()

    def _release(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def disk_words(ascard: str, disk: DiskTable, address: str) -> list[str]:
    """The command of a disk.

    Args:
        ascard: the node binary.
        disk: the table of the disk.
        address: where it listens: unix:PATH or tcp:HOST:PORT.
    """
    kind, _, where = address.partition(":")
    words = [ascard, "disk", "--scenario", disk.scenario, "--exports", ",".join(disk.exported)]
    words += ["--socket" if kind == "unix" else "--listen", where]
    for option, value in (("--size", disk.size), ("--raid", disk.raid), ("--file", disk.file)):
        words += [] if value is None else [option, str(value)]
    return words


def check_disks(disks: Sequence[DiskTable]) -> None:
    """Have `ascard` itself look at the scenarios, sizes and files of disks.

    Raises:
        StudyError: one is refused; in its words.
        EnvironmentLacks: there is no `ascard`.
    """
    ascard = str(find_ascard()) if disks else ""
    for at, disk in enumerate(disks):
        words = [*disk_words(ascard, disk, "unix:/nowhere"), "--check"]
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, errors="replace", timeout=_CHECK_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise StudyError(
                f"disk[{at}] ({disk.name}): its scenario and file are not read within {_CHECK_S:g} s; "
                "name regular files"
            ) from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1].removeprefix("ascard disk: ")
            key, is_option, rest = last.partition(" ")
            told = (
                f"disk[{at}].{key.removeprefix('--')} {rest}" if key.startswith("--") and is_option else None
            )
            raise StudyError((told or f"disk[{at}] ({disk.name}): {last}")[:600])


def disk_serves(served: Served) -> bool:
    """Whether a disk serves: it says so."""
    return " serves " in served.said


def proxy_text(proxy: ProxyTable, servers: dict[str, str], folder: Path) -> str:
    """The file of a proxy.

    Args:
        proxy: the table of the proxy.
        servers: where each of its disks listens.
        folder: the folder of its node.
    """
    return toml_text(
        {
            "controller": proxy.node,
            "workload": proxy.workload,
            "control": str(control_of(folder)),
            "window": proxy.window,
            "gap_us": proxy.gap_us,
            "route": [
                {"listen": f"unix:{folder / f'{disk}.sock'}", "server": server}
                for disk, server in servers.items()
            ],
        }
    )


def control_of(folder: Path) -> Path:
    """The control socket of a node's proxy."""
    return folder / "proxy.control.sock"


def proxy_serves(paths: Sequence[Path]) -> Callable[[Served], bool]:
    """What says whether a proxy serves: its sockets are there."""

    def is_ready(served: Served) -> bool:
        try:
            return served.machine.run(["ls", *map(str, paths)], 10).status == 0
        except StageFailed:
            return False

    return is_ready
