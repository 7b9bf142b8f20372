"""Dirty pages: what was written to the page cache and not yet to the device, and after how long it is.

The machine tells them in /proc/meminfo, a control group of memory in its memory.stat: in version 1 as
`total_dirty` and `total_writeback`, in version 2 as `file_dirty` and `file_writeback`. Pages that are being
written count too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ascar.nodes.process import failing, output_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.nodes import Node
    from ascar.space import Value

MEMINFO = Path("/proc/meminfo")
_GROUP_NAMES = (("total_dirty", "total_writeback"), ("file_dirty", "file_writeback"))
_DROP = "sync; echo 3 > /proc/sys/vm/drop_caches"
_KIB = 1024

_EXPIRE = ("vm_dirty_expire_centisecs", Path("/proc/sys/vm/dirty_expire_centisecs"))
_LOOK = ("vm_dirty_writeback_centisecs", Path("/proc/sys/vm/dirty_writeback_centisecs"))
_CENTISECONDS = 100
_NEVER_S = 86400.0
"""Nobody looks for old pages: no load is as long as their cycle."""


def machine_dirty_bytes(meminfo: str) -> float:
    """Dirty pages of the whole machine, by the text of /proc/meminfo; 0 where it does not tell."""
    found = _numbers(meminfo)
    return _KIB * (found.get("Dirty", 0.0) + found.get("Writeback", 0.0))


def write_back(node: Node, limit_s: float) -> None:
    """Have a machine write back all dirty pages that it has now.

    Raises:
        StageFailed: that takes longer, or the machine cannot be reached.
    """
    with failing("drain"):
        output_of(node, "drain", "sync", ["sync"], limit_s)


def drop_caches(node: Node, limit_s: float) -> None:
    """Have a machine forget what it has of files in memory, once that is on their disks.

    Raises:
        StageFailed: that takes longer, it may not be done, or the machine cannot be reached.
    """
    with failing("settle"):
        output_of(node, "settle", "drop caches", ["sh", "-c", _DROP], limit_s)


def group_dirty_bytes(stat: str) -> float | None:
    """Dirty pages of a control group, by the text of its memory.stat; None where it does not tell."""
    found = _numbers(stat)
    for dirty, writeback in _GROUP_NAMES:
        if dirty in found:
            return found[dirty] + found.get(writeback, 0.0)
    return None


def write_back_cycle_s(
    configuration: Mapping[str, Value], read: Callable[[Path], str] = Path.read_text
) -> float:
    """Seconds after which a dirty page is written back: its greatest age, and the time until somebody looks.

    Args:
        configuration: the values of `vm_dirty_...`; what it leaves out is as the kernel has it.
        read: reads a file of the machine's kernel.
    """
    expire_s, look_s = (_seconds(*one, configuration, read) for one in (_EXPIRE, _LOOK))
    return expire_s + (_NEVER_S if look_s == 0 else look_s or 0.0) if expire_s is not None else 0.0


def _seconds(
    name: str, path: Path, configuration: Mapping[str, Value], read: Callable[[Path], str]
) -> float | None:
    value = configuration.get(name)
    if value is None:
        try:
            value = int(read(path))
        except (OSError, ValueError):
            return None
    return float(value) / _CENTISECONDS


def _numbers(text: str) -> dict[str, float]:
    """The numbers of lines such as `Dirty:  12 kB` and `total_dirty 12288`."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            found[words[0].rstrip(":")] = float(words[1])
    return found
