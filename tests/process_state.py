"""How other processes stand: killed ones too, which nobody may have collected."""

from __future__ import annotations

from pathlib import Path

from waiting import until


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for_end(pid: int, limit_s: float = 60.0) -> None:
    """Wait for a process that was killed: the kernel takes its moment to end it."""
    until(lambda: not alive(pid), limit_s, f"process {pid} ends")


def writable_and_executable(pid: int) -> list[str]:
    """The mappings of a process that are both."""
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    assert maps, f"process {pid} has ended"
    return [line for line in maps if line.split()[1].startswith(("rwx", "-wx"))]
