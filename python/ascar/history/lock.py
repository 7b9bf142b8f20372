"""One process a study: a lock that the kernel gives up when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Any, cast

from ascar.errors import HistoryError, Refused

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["StudyLock", "holder"]

# Whoever only looks holds the lock for microseconds; it must not look like a running study.
_PATIENCE_S = 0.5


class StudyLock:
    """Held from construction until `release`.

    The file is left behind on purpose: removing it would let two processes hold locks on two files of
    one name.

    Args:
        directory: where lock files lie; made when missing.
        name: the study's.
        since: when this run began, for whoever is refused.

    Raises:
        Refused: another process runs this study; names it.
        HistoryError: the lock file cannot be written.
    """

    def __init__(self, directory: Path, name: str, since: str) -> None:
        self.name = name
        path = directory / f"{name}.lock"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HistoryError(f"lock {path}: {error.strerror}; check its owner and mode") from error
        deadline = time.monotonic() + _PATIENCE_S
        while not _take(self._descriptor):
            if time.monotonic() > deadline:
                told = _read(self._descriptor)
                self.release()
                raise Refused(
                    f"study.name = {name!r}: process {told.get('pid', 'unknown')} has been running this "
                    f"study since {told.get('since', 'an unknown time')}; wait for it, stop it, or give this "
                    "study another name"
                )
            time.sleep(0.02)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "since": since}).encode(), 0)

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
