"""A client program of a server, kept open: statements go in, and answers come out up to a mark."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import StageFailed

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence

_ANSWER_BYTES_MAX, _ERROR_BYTES_MAX = 16 << 20, 1 << 16


class ClientProgram:
    """A running client; one statement at a time, from any thread.

    Args:
        server: the name of the server's kind, for messages.
        argv: the program and its arguments.
        environment: variables on top of ours.
        last_words: finds the line to tell in what the program said before it ended.
        lost: errors with which the connection is lost, where the program goes on without it.
    """

    def __init__(
        self,
        server: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        last_words: Callable[[list[str]], str],
        lost: re.Pattern[bytes] | None = None,
    ) -> None:
        self._server, self._told, self._lost = server, last_words, lost
        self._lock = threading.Lock()
        self._pending, self._errors = b"", b""
        # A session of its own: ^C in the terminal reaches ascar alone, which then puts everything back.
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment, "LC_ALL": "C"},
            cwd="/",
            start_new_session=True,
        )

    @property
    def is_open(self) -> bool:
        """Whether the program runs, which ends with its connection."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def exchanged(self, script: str, mark: str, line: str, limit_s: float) -> tuple[str, str]:
        """Send a script, and read until the line with the mark has ended.

        Returns:
            The answer with that line, and the errors that were told meanwhile.

        Args:
            script: lines of the program's input, which print the mark at the end.
            mark: the mark.
            line: the statement, for messages.
            limit_s: seconds that it may take.

        Raises:
            StageFailed: the server does not answer in time, or is gone. The client ends then, and where the
                caller is interrupted: an answer that comes late would be taken for the next one's.
        """
        with self._lock:
            try:
                return self._read(script.encode(), mark.encode(), line, limit_s)
            except BaseException:  # ^C too
                self._process.kill()
                self._process.wait()
                raise

    def _read(self, script: bytes, mark: bytes, line: str, limit_s: float) -> tuple[str, str]:
        assert self._process.stdin is not None
        self._errors = b""
        deadline_s = time.monotonic() + limit_s
        try:
            self._process.stdin.write(script)
            self._process.stdin.flush()
            while not _ended(self._pending, mark):
                if not self._heard(deadline_s):
                    problem = f"the {self._server} server does not answer within {limit_s:g} s: {line[:80]}"
                    raise StageFailed("program", problem)
                if len(self._pending) > _ANSWER_BYTES_MAX:
                    raise StageFailed("program", f"the answer of {self._server} has no end: {line[:80]}")
        except (OSError, ValueError) as error:
            raise StageFailed("program", f"{self._server}: {self._last_words()}") from error
        self._hear_errors()
        before, _, rest = self._pending.partition(mark)
        ended, _, self._pending = rest.partition(b"\n")
        answer = (before + mark + ended).decode("utf-8", "replace")
        return answer, self._errors.decode("utf-8", "replace")

    def _heard(self, deadline_s: float) -> bool:
        """Read what the program says next; False: it says nothing until then.

        Raises:
            BrokenPipeError: it has ended, or its connection is lost.
        """
        out, errors, left_s = self._process.stdout, self._process.stderr, deadline_s - time.monotonic()
        assert out is not None
        assert errors is not None
        ready = select.select([out, errors], [], [], max(0.0, left_s))[0]
        if errors in ready:
            alive = self._hear_errors()
            if not alive or (self._lost is not None and self._lost.search(self._errors)):
                self._process.kill()
                raise BrokenPipeError
        if out in ready:
            piece = os.read(out.fileno(), 65536)
            if not piece:
                raise BrokenPipeError
            self._pending += piece
        return bool(ready)

    def _hear_errors(self) -> bool:
        """Take what has been told of errors; False: there is nobody left to tell any."""
        assert self._process.stderr is not None
        if not select.select([self._process.stderr], [], [], 0)[0]:
            return True
        piece = os.read(self._process.stderr.fileno(), 65536)
        self._errors = (self._errors + piece)[-_ERROR_BYTES_MAX:]
        return bool(piece)

    def _last_words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2)
        self._hear_errors()
        lines = [one.strip() for one in self._errors.decode("utf-8", "replace").splitlines() if one.strip()]
        return self._told(lines)[:300] if lines else "the connection was lost"


def _ended(pending: bytes, mark: bytes) -> bool:
    at = pending.find(mark)
    return at >= 0 and b"\n" in pending[at:]
