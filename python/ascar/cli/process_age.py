"""The age of the process: a budget of minutes includes the seconds in which the program is loaded."""

from __future__ import annotations

import os
import time
from pathlib import Path

# The field of /proc/self/stat, counted after the name of the command, see proc(5).
_START = 19


def start_s() -> float:
    """Seconds that the start of this process took until now; 0 in a process that is more than one command."""
    from ascar.cli.main import is_own_process

    return process_age_s() if is_own_process() else 0.0


def process_age_s() -> float:
    """Seconds since the process began."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_START]) / os.sysconf("SC_CLK_TCK")
