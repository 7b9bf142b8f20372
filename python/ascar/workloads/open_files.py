"""The files that a process has open, and how large they are."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def open_file_sizes(pid: int) -> dict[str, int]:
    """Bytes of each regular file that a process has open, by path; empty where that may not be seen.

    Links to deleted files have no path any more, and are left out.
    """
    sizes: dict[str, int] = {}
    try:
        links = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return sizes
    for link in links:
        try:
            path, found = os.readlink(link), link.stat()  # noqa: PTH115 -- as the kernel tells it
        except OSError:
            continue  # closed meanwhile
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 0:
            sizes[path] = found.st_size
    return sizes
