"""A study that is killed while it works, and what is to be as it was before it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

S = TypeVar("S")


def killed_study(study: Path, after_s: float, look: Callable[[], S]) -> set[S]:
    """Kill `ascar tune` after a time; what was seen until then, fifty times a second."""
    seen = set[S]()
    words = [sys.executable, "-m", "ascar", "tune", str(study), "--json"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        end_s = time.monotonic() + after_s
        while time.monotonic() < end_s:
            seen.add(look())
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    return seen


def comes_back(look: Callable[[], S], before: S, limit_s: float = 60.0) -> S:
    """What there is as soon as it is what was before; else what there is after a time."""
    end_s = time.monotonic() + limit_s
    while time.monotonic() < end_s and look() != before:
        time.sleep(0.1)
    return look()
