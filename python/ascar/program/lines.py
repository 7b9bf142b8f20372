"""A program that is spoken to in lines of JSON: settings of its own, or proposals of an optimizer."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import EnvironmentLacks, StageFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANSWER_BYTES_MAX = 1 << 20
_END_S = 10.0


class LineProgram:
    """A running program that answers each line of JSON with a line of JSON.

    An answer is `{"ok": ...}` or `{"error": "why"}`. A program that ends, is too slow, or says something
    else is not asked again.

    Args:
        command: the program and its arguments.
        answer_s: seconds that an answer may take.
        key: the study's key of the command, for messages.

    Raises:
        EnvironmentLacks: it cannot be started.
    """

    def __init__(self, command: tuple[str, ...], answer_s: float, key: str) -> None:
        self._name, self._answer_s = command[0], answer_s
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            raise EnvironmentLacks(
                f"{key} = {command[0]!r}: {error.strerror}; name a program that can be run"
            ) from error
        assert self._process.stdout is not None
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        self._pending = b""
        self.is_open = True

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a request; all of it.

        Raises:
            StageFailed: it refuses, ends, is too slow, or answers something else than JSON.
        """
        if not self.is_open:
            raise StageFailed("change", f"program {self._name}: has ended, or was too slow before")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._line()
            answer = json.loads(line)
        except (OSError, ValueError, RecursionError) as error:
            self.is_open = False
            why = "has ended" if isinstance(error, BrokenPipeError) else error
            raise StageFailed("change", f"program {self._name}: {why}") from error
        if isinstance(answer, dict):
            told = cast("dict[str, Any]", answer)
            if "ok" in told:
                return told
            if isinstance(told.get("error"), str):
                raise StageFailed("change", f"program {self._name}: {told['error'][:300]}")
        self.is_open = False
        raise StageFailed("change", f"program {self._name}: answers neither ok nor error: {line[:80]!r}")

    def _line(self) -> bytes:
        end_s = time.monotonic() + self._answer_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left_s = end_s - time.monotonic()
                if left_s <= 0:
                    raise ValueError(f"does not answer within {self._answer_s:g} s")
                if not selector.select(left_s):
                    continue
                piece = os.read(self._out, 1 << 16)
                if not piece:
                    raise ValueError("has ended")
                self._pending += piece
                if len(self._pending) > _ANSWER_BYTES_MAX:
                    raise ValueError(f"answers more than {_ANSWER_BYTES_MAX} bytes")
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def close(self) -> None:
        """Close its input, on which it puts everything back; it is killed if it does not end."""
        self.is_open = False
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # it has ended already
            process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
