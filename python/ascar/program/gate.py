"""Programs that begin together: each is made ready, waits, and is let go when all of them are."""

from __future__ import annotations

import math
import os
import selectors
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import StageFailed

if TYPE_CHECKING:
    import subprocess

    from ascar.program.running import Program

_CHUNK_BYTES = 4096
_SAID_BYTES_MAX = 16_384


class Unstarted(Exception):  # no error: whoever ended it knows why
    """All was over before the program could begin."""


class StartingGate:
    """Opens once as many as are expected wait at it; or is shut, and nobody begins.

    Args:
        expected: how many begin together.
    """

    def __init__(self, expected: int) -> None:
        self._left = expected
        self._is_open = False
        self._decided = threading.Event()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until all others are here too.

        Raises:
            Unstarted: it was shut before.
        """
        with self._lock:
            self._left -= 1
            if self._left == 0 and not self._decided.is_set():
                self._is_open = True
                self._decided.set()
        self._decided.wait()
        if not self._is_open:
            raise Unstarted

    def shut(self) -> None:
        """Let nobody begin any more; nothing where all have begun."""
        with self._lock:
            self._decided.set()


def wait_until_ready(program: Program, process: subprocess.Popen[bytes]) -> tuple[bytes, bool]:
    """Wait until a program says that it is ready.

    Returns:
        What else it said until then, and whether it is ready: else it has ended.

    Raises:
        StageFailed: it is not ready within its time limit.
        Unstarted: its time was over before, or it was asked to end.
    """
    assert process.stderr is not None
    begun_s, said = time.monotonic(), bytearray()
    left_s = math.inf if program.interrupt_after_s is None else program.interrupt_after_s
    exited = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            for source in (process.stderr.fileno(), exited, program.end_on):
                if source is not None:
                    selector.register(source, selectors.EVENT_READ)
            while True:
                now_s = time.monotonic() - begun_s
                if now_s >= program.time_limit_s:
                    raise StageFailed(
                        program.stage,
                        f"{Path(program.argv[0]).name} was not ready to begin within its limit of "
                        f"{program.time_limit_s:g} s and was killed",
                        said.decode("utf-8", "replace"),
                    )
                if now_s >= left_s:
                    raise Unstarted
                due_s = min(program.time_limit_s, left_s) - now_s
                found = {key.fd for key, _ in selector.select(None if math.isinf(due_s) else due_s + 0.001)}
                if program.end_on in found:
                    raise Unstarted
                if process.stderr.fileno() in found:
                    said += os.read(process.stderr.fileno(), _CHUNK_BYTES)
                    before, mark, after = bytes(said).partition(program.ready)
                    if mark:
                        return before + after, True
                    del said[:-_SAID_BYTES_MAX]
                if exited in found:
                    return bytes(said), False
    finally:
        os.close(exited)
