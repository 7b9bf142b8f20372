"""Processes that end with the one that started them, even when that is killed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Becomes the program after asking the kernel to signal it when the thread ends that started it. A program of
# its own, because between fork and exec of a process with threads no Python may run.
_BOUND = """
import ctypes, os, sys
number, parent, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if ctypes.CDLL(None).prctl(1, number, 0, 0, 0) != 0 or os.getppid() != parent:
    os._exit(70)
os.execv(program, sys.argv[3:])
"""


def bound(words: Sequence[str], number: int) -> list[str]:
    """The command that runs a program which gets a signal when the thread that starts it ends.

    Args:
        words: the program's path, and its arguments.
        number: the number of the signal.
    """
    return [sys.executable, "-I", "-S", "-c", _BOUND, str(int(number)), str(os.getpid()), *words]
