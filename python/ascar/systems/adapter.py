"""A system behind lines of JSON: the other end of an agent's `[[program]]` (crates/agent, `program.rs`).

    {"get": true}              {"ok": {NAME: VALUE, ...}}
    {"set": {NAME: VALUE}}     {"ok": {NAME: VALUE, ...}}, as the system reads them back
    {"restore": true}          {"ok": {NAME: VALUE, ...}}
    {"sample": true}           {"ok": {"counters": {...}, "gauges": {...}}}

Every refusal is `{"error": "..."}`, and touches nothing. When the input of a client that has set something
ends, the values that were there before the first change are in force again.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from ascar.errors import AscarError, InputError
from ascar.systems.asking import apply_checked, read_checked, sample_checked

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path
    from types import TracebackType

    from ascar.space import Configuration, Space, Value
    from ascar.systems import System

REQUEST_BYTES_MAX = 64 * 1024
_CONNECTIONS_MAX = 16


class Adapter:
    """A system that is entered, one request at a time.

    Args:
        system: the system; it stays entered as long as the adapter is used.
        space: the space of the study.
        configuration: the configuration in force.
    """

    def __init__(self, system: System, space: Space, configuration: Configuration) -> None:
        self._system, self._space = system, space
        self._initial = self._now = configuration
        self._lock = threading.Lock()

    def answer(self, line: bytes) -> dict[str, Any]:
        """The answer to a request; never raises."""
        try:
            with self._lock:
                return {"ok": self._answered(_request(line))}
        except AscarError as error:
            return {"error": error.message}

    def restore(self) -> None:
        """Put the values back that were in force first.

        Raises:
            StageFailed: the system does not take them.
        """
        with self._lock:
            self._apply(self._initial)

    def _answered(self, request: Mapping[str, Any]) -> dict[str, Any]:
        match request:
            case {"get": True}:
                return dict(self._now)
            case {"set": dict()}:
                wanted = cast("dict[str, Any]", request["set"])
                self._apply(self._space.validate({**self._now, **wanted}))
                return {name: self._now[name] for name in wanted}
            case {"restore": True}:
                self._apply(self._initial)
                return dict(self._now)
            case {"sample": True}:
                found = sample_checked(self._system)
                return {"counters": dict(found.counters), "gauges": dict(found.gauges)}
            case _:
                raise InputError(
                    f"request {json.dumps(request)[:80]}: must be get, set with a table, restore or sample"
                )

    def _apply(self, wanted: Configuration) -> None:
        before = self._now
        if wanted == before:
            return
        try:
            apply_checked(self._system, wanted)
        except AscarError:
            with suppress(AscarError):  # the first error is the one to tell
                apply_checked(self._system, before)
            raise
        self._now = wanted


def _request(line: bytes) -> dict[str, Any]:
    """A request.

    Raises:
        InputError: it is not JSON object with one key.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"request {line[:80]!r}: is not JSON: {error}") from error
    if not isinstance(found, dict) or len(cast("dict[str, Any]", found)) != 1:
        raise InputError(f"request {line[:80]!r}: must be an object with one key")
    return cast("dict[str, Any]", found)


def in_force(system: System, space: Space) -> Configuration:
    """The configuration of a system that works already: what it reads, and its defaults.

    Raises:
        StageFailed: the system cannot be read.
        SpaceError: it has a value that the study leaves out.
    """
    default = space.default()
    found: dict[str, Value] = dict(read_checked(system, tuple(default)))
    return space.validate({**default, **found})


def converse(adapter: Adapter, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer a client's requests until there are no more; what it has set ends with it.

    Raises:
        StageFailed: the system does not take its values back.
    """
    sets = False
    try:
        with suppress(OSError):  # it hung up
            while line := requests.readline(REQUEST_BYTES_MAX + 1):
                if len(line) > REQUEST_BYTES_MAX:
                    break  # whoever sends such lines is not an agent
                sets = sets or b'"set"' in line
                answers.write(json.dumps(adapter.answer(line)).encode() + b"\n")
                answers.flush()
    finally:
        if sets:
            adapter.restore()


class AdapterServer:
    """An adapter on a Unix socket: for whoever may open its folder.

    Args:
        adapter: the adapter.
        path: the path of the socket.
    """

    def __init__(self, adapter: Adapter, path: Path) -> None:
        self._adapter, self._path = adapter, path
        self._listening: socket.socket | None = None
        self._open: set[socket.socket] = set()

    def __enter__(self) -> AdapterServer:
        """Listen.

        Raises:
            InputError: the path is too long for a socket, or cannot be made.
        """
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _near(self._path) as path:
                listening.bind(path)
            self._path.chmod(0o600)
            listening.listen(_CONNECTIONS_MAX)
        except OSError as error:
            listening.close()
            raise InputError(f"{self._path}: {error}; name a folder that you may write to") from error
        self._listening = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up, and put the system's values back."""
        listening, self._listening = self._listening, None
        if listening is not None:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._path.unlink(missing_ok=True)
        with suppress(AscarError):  # leaving the system puts back whatever is left
            self._adapter.restore()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            if len(self._open) >= _CONNECTIONS_MAX:
                connection.close()
                continue
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with suppress(OSError, AscarError), connection, connection.makefile("rwb") as file:
                converse(self._adapter, cast("BinaryIO", file), cast("BinaryIO", file))
        finally:
            self._open.discard(connection)


def relay(path: Path, requests: BinaryIO, answers: BinaryIO) -> None:
    """Carry lines to an adapter's socket and back, until either side hangs up.

    It returns when the adapter has put back what this client has set.

    Raises:
        InputError: no process answers there.
    """
    connection = _connected(path)
    with suppress(OSError), connection, connection.makefile("rwb") as file:
        while line := requests.readline(REQUEST_BYTES_MAX + 1):
            file.write(line)
            file.flush()
            answer = file.readline()
            if not answer:
                return
            answers.write(answer)
            answers.flush()
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)  # the adapter hangs up after it has restored the values


def follow(path: Path, interval_s: float, answers: BinaryIO) -> None:
    """Write what the system tells as a line of numbers, time after time; counters end in `_total`.

    Raises:
        InputError: no process answers there.
    """
    connection = _connected(path)
    with suppress(OSError), connection, connection.makefile("rwb") as file:
        while True:
            file.write(b'{"sample": true}\n')
            file.flush()
            line = file.readline()
            if not line:
                return
            told = json.loads(line).get("ok")
            if told is not None:
                totals = {f"{name}_total": value for name, value in told["counters"].items()}
                answers.write(json.dumps({**totals, **told["gauges"]}).encode() + b"\n")
                answers.flush()
            time.sleep(interval_s)


def _connected(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _near(path) as name:
            connection.connect(name)
    except OSError as error:
        connection.close()
        raise InputError(f"{path}: {error.strerror}; name the socket of a session that runs") from error
    return connection


@contextmanager
def _near(path: Path) -> Generator[str]:
    """A short name of a socket, whatever the length of its folder's path."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
