"""A Redis server of a study's own: a configuration file, a snapshot, a log that begins with it.

PLACE/data/dump.rdb          the data, as a snapshot
PLACE/data/appendonlydir     the same data as the base of a log; a server with a log reads nothing else
PLACE/redis.conf             the settings of the next start
PLACE/redis.sock             the socket
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ascar.errors import StageFailed
from ascar.program.redis import RedisPrograms
from ascar.systems.own_server.server import OwnServer
from ascar.systems.redis.counters import fields_of
from ascar.systems.redis.persistence import BUSY
from ascar.systems.redis.protocol import RefusedCommand, Reply, ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


SOCKET = "redis.sock"
_LOG = "appendonlydir"
_LOG_FILE = "appendonly.aof"
_SNAPSHOT = "dump.rdb"
_SHUT_DOWN_S = 300.0
_LOOK_S = 0.01
_REFUSED = ">>>"
_WARNING = " # "


class RedisServer(OwnServer[RedisPrograms]):
    """The server; nothing runs until `begin`; `fixed` are lines of redis.conf."""

    name = "Redis"

    @property
    def socket(self) -> Path:
        """The path of the socket."""
        return self.place / SOCKET

    @property
    def reached(self) -> Mapping[str, str]:
        """The path of the socket; Redis' own programs know no variable for it."""
        return {"REDIS_SOCKET": str(self.socket)}

    def save(self) -> None:
        """Keep the data as it is, as a snapshot and as the base of a log; the server is stopped.

        Raises:
            StageFailed: there is no snapshot, or it cannot be copied.
        """
        self.begin_log()
        super().save()

    def begin_log(self) -> None:
        """Make a log that begins with the snapshot; the server is stopped.

        Raises:
            StageFailed: there is no snapshot, or it cannot be copied.
        """
        log = self.data / _LOG
        self._remove(log)
        self._make(log)
        base = f"{_LOG_FILE}.1.base.rdb"
        snapshot = str(self.data / _SNAPSHOT)
        self._run(["cp", "-a", "--reflink=auto", "--", snapshot, str(log / base)], as_us=True)
        self._write(log / f"{_LOG_FILE}.manifest", f"file {base} seq 1 type b\n")

    def begin(self, lines: Sequence[str], limit_s: float) -> None:
        """Start the server with lines of redis.conf, and wait until it has read its data.

        Raises:
            StageFailed: it does not start, e.g. since it refuses a setting; with its last words.
        """
        with suppress(OSError):
            self.socket.unlink()
        fixed = [
            *self._fixed,
            "port 0",
            "daemonize no",
            "supervised no",
            'logfile ""',
            'pidfile ""',
            f"unixsocket {self.socket}",
            "unixsocketperm 700",
            f"dir {self.data}",
            f"dbfilename {_SNAPSHOT}",
            f"appenddirname {_LOG}",
            f"appendfilename {_LOG_FILE}",
        ]
        path = self.place / "redis.conf"
        self._write(path, "".join(f"{line}\n" for line in [*lines, *fixed]))
        self._launch([str(self.programs.server), str(path)], {"LC_ALL": "C"}, limit_s)

    def ping(self, limit_s: float) -> None:
        """See that the server answers.

        Raises:
            StageFailed: it does not within `limit_s`.
        """
        self.ask("PING", limit_s=limit_s)

    def ask(self, *words: str, limit_s: float = 60.0) -> Reply:
        """The answer to a command.

        Raises:
            StageFailed: the server refuses it, or does not answer in time.
        """
        return ask(self.socket, words, limit_s)

    def info(self) -> dict[str, str]:
        """What INFO tells, commandstats included.

        Raises:
            StageFailed: the server does not answer.
        """
        return fields_of(str(self.ask("INFO", "everything")))

    def settings(self) -> dict[str, str]:
        """What CONFIG GET tells.

        Raises:
            StageFailed: the server does not answer.
        """
        told = self.ask("CONFIG", "GET", "*")
        assert isinstance(told, list), "CONFIG GET answers with names and values in turns"
        return {str(name): str(value) for name, value in zip(told[::2], told[1::2], strict=True)}

    def snapshot(self) -> None:
        """Write all data to the disk.

        Raises:
            StageFailed: it cannot be written, e.g. since the disk is full.
        """
        try:
            self.ask("SAVE", limit_s=_SHUT_DOWN_S)
        except StageFailed as failure:
            free = shutil.disk_usage(self.place).free >> 20
            raise StageFailed(
                "settle",
                f"Redis cannot save its data ({free} MiB are free in {self.place}): {failure.message}",
            ) from failure

    def write(self, command: str, deadline_s: float) -> None:
        """Let a child write the log or a snapshot, and wait for it; one that has begun by itself will do.

        Args:
            command: BGREWRITEAOF or BGSAVE.
            deadline_s: when it has to be done, on the monotonic clock.

        Raises:
            StageFailed: the server refuses it, or it takes longer.
        """
        try:
            self.ask(command)
        except RefusedCommand as refusal:
            if "in progress" not in refusal.said:
                raise
        self.wait_until_written(deadline_s)

    def wait_until_written(self, deadline_s: float) -> None:
        """Wait until no child writes a log or a snapshot.

        Raises:
            StageFailed: it takes longer than until `deadline_s`, on the monotonic clock.
        """
        while any(self.info().get(field, "0") != "0" for field in BUSY):
            self.check_alive()
            if time.monotonic() > deadline_s:
                raise StageFailed("drain", "Redis does not end writing its log or snapshot in time")
            time.sleep(_LOOK_S)

    def _shut_down(self) -> None:
        """End it; what a trial has changed is removed with its data, so that only the fill is saved."""
        words = ("SHUTDOWN", "NOSAVE") if self.saved.exists() else ("SHUTDOWN", "SAVE")
        with suppress(StageFailed):  # the connection ends with the server
            self.ask(*words, limit_s=_SHUT_DOWN_S)

    def _answers(self) -> bool:
        with suppress(StageFailed):
            return self.ask("PING", limit_s=5.0) == "PONG"
        return False

    def _reason(self, said: str) -> str | None:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        for at, line in enumerate(lines[:-1]):
            if line.startswith(_REFUSED):  # a line of redis.conf, and what is wrong with it
                return f"{line.removeprefix(_REFUSED).strip()}: {lines[at + 1]}"
        warnings = [line.partition(_WARNING)[2] for line in lines if _WARNING in line]
        return warnings[-1] if warnings else None
