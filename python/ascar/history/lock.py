"""One process a run: a lock that the kernel gives up when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import HistoryError, Refused

if TYPE_CHECKING:
    from pathlib import Path

# Whoever only looks holds the lock for microseconds; it must not look like a run.
_PATIENCE_S = 0.5


def lock_name(kind: str, name: str, digest: str) -> str:
    """The name of a run's lock: the study's, or the kind and what tells its runs apart.

    No study's name has the character between them.
    """
    return name if kind == "study" else f"{kind}@{digest[:24]}"


class RunLock:
    """Held from construction until `release`.

    The file is left behind on purpose; only whoever holds it may remove it, and whoever gets a lock on a file
    that is no longer there takes another: two processes never hold locks on two files of one name.

    Args:
        directory: the directory of the lock files, which is made when missing.
        name: see `lock_name`.
        since: the start of this run, for the message to whoever is refused.
        what: what is run, for that message.

    Raises:
        Refused: another process runs it; names that.
        HistoryError: the lock file cannot be written.
    """

    def __init__(self, directory: Path, name: str, since: str, what: str = "this run") -> None:
        self.name = name
        self._path = path = directory / f"{name}.lock"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HistoryError(f"lock {path}: {error.strerror}; check its owner and mode") from error
        deadline = time.monotonic() + _PATIENCE_S
        while not _take(self._descriptor) or not self._is_at(path):
            if not self._is_at(path):  # it was removed with the study's last run: lock the one that is there
                os.close(self._descriptor)
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                continue
            if time.monotonic() > deadline:
                told = _read(self._descriptor)
                self.release()
                raise Refused(
                    f"{what}: process {told.get('pid', 'unknown')} has been running it since "
                    f"{told.get('since', 'an unknown time')}; wait for it, stop it, or choose another name"
                )
            time.sleep(0.02)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "since": since}).encode(), 0)

    def remove(self) -> None:
        """Remove the file, and let it go."""
        with suppress(OSError):
            self._path.unlink()
        self.release()

    def _is_at(self, path: Path) -> bool:
        """Whether the file that is held open is the one at its path."""
        assert self._descriptor is not None, "the lock is held"
        try:
            there = path.stat()
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self._descriptor))

    def release(self) -> None:
        """Let the next one in; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def holder(directory: Path, name: str) -> int | None:
    """The process that runs the study now, or None."""
    try:
        descriptor = os.open(directory / f"{name}.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _take(descriptor):
            return None
        pid = _read(descriptor).get("pid")
        return pid if isinstance(pid, int) else 0
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> dict[str, Any]:
    try:
        told = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}
