"""Becomes a program that writes what the kernel waits for: its writes do not wait for the kernel's own.

Without this a disk that is served inside its own node could wait for itself once much is unwritten. It runs
inside nodes, so it needs nothing but Python itself.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_IO_FLUSHER = 57


def main() -> None:
    """Become the program that the arguments name."""
    ctypes.CDLL(None).prctl(_PR_SET_IO_FLUSHER, 1, 0, 0, 0)
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell sees the words
