"""The age of the process: a budget of minutes includes the seconds in which the program is loaded."""

from __future__ import annotations

import os
import time
from pathlib import Path

# The field of /proc/self/stat, counted after the name of the command, see proc(5).
_START = 19


def process_age_s() -> float:
    """Seconds since the process began."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_START]) / os.sysconf("SC_CLK_TCK")
