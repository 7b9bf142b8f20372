"""What a program says when it is asked for its version or options; one that cannot be asked says nothing."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOK_S = 60.0
"""How long an answer may take."""


class Said(NamedTuple):
    """The answer of a program.

    Attributes:
        out: what it wrote to standard output.
        err: what it wrote to standard error.
        status: its exit status; None: it could not be started, or took too long.
    """

    out: str = ""
    err: str = ""
    status: int | None = None


def said_by(*words: str, limit_s: float = LOOK_S, environment: Mapping[str, str] | None = None) -> Said:
    """Ask a program.

    Args:
        words: the program and its arguments.
        limit_s: how long it may take.
        environment: variables besides ours.
    """
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return Said()
    return Said(done.stdout, done.stderr, done.returncode)
