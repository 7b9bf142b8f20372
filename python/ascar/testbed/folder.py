"""The folder of a testbed that is up: who runs it, its nodes' folders, and what a killed run has left."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from ascar import typed
from ascar.errors import EnvironmentLacks, InputError, Refused
from ascar.messaging import runtime_directory
from ascar.testbed import inside

if TYPE_CHECKING:
    from types import TracebackType

_UP = "up.json"
_REMOVED_S = 3.0
_LOOKED_S = 0.2


class TestbedRunner(msgspec.Struct, frozen=True):
    """Who runs a testbed.

    Attributes:
        pid: the process that holds it.
        name: the testbed's name.
        file: the path of its file.
        started_s: seconds since 1970.
    """

    pid: int
    name: str
    file: str
    started_s: float


class TestbedFolder:
    """The folder of one testbed, which exists while it is up.

    Args:
        path: the path of the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._run = uuid.uuid4().hex[:12]
        self._lock: int | None = None

    @property
    def mark(self) -> str:
        """What processes of this run carry in their environment, before the node's name."""
        return f"{self.path}:{self._run}:"

    @property
    def control(self) -> Path:
        """The socket of the process that holds the testbed."""
        return self.path / "control.sock"

    def __enter__(self) -> Self:
        """Take it, and remove what a killed run of the same testbed has left.

        Raises:
            Refused: it is up already.
            EnvironmentLacks: it cannot be made.
        """
        try:
            while self._lock is None:
                for folder in (self.path.parent, self.path):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._lock = self._locked()
        except BlockingIOError:
            raise self._up_already(self.running()) from None
        except OSError as error:
            raise EnvironmentLacks(
                f"folder {str(self.path)!r}: {error.strerror}; set ASCAR_RUNTIME_DIR to another one"
            ) from None
        self._remove_what_is_left()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it."""
        with suppress(OSError):
            shutil.rmtree(self.path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def check_down(self) -> None:
        """See that it is not up.

        Raises:
            Refused: it is.
        """
        running = self.running()
        if running is not None:
            raise self._up_already(running)

    def _up_already(self, running: TestbedRunner | None) -> Refused:
        who = f", process {running.pid}" if running else ""
        return Refused(
            f"testbed {self.path.name!r}: is up already{who}; `ascar testbed down {self.path.name}` ends it"
        )

    def announce(self, running: TestbedRunner) -> None:
        """Say who runs it: it is up, or goes up, from now on."""
        new = self.path / f"{_UP}.new"
        new.write_bytes(msgspec.json.encode(running))
        new.replace(self.path / _UP)

    def running(self) -> TestbedRunner | None:
        """Who runs it now; None where it is not up.

        Raises:
            EnvironmentLacks: the folder may be somebody else's.
        """
        try:
            self._check_owner()
            content = (self.path / _UP).read_bytes()
            lock = os.open(self.path / inside.LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            with suppress(ValueError):
                return typed.decode(content, TestbedRunner)
        finally:
            os.close(lock)
        return None

    def runner(self) -> TestbedRunner:
        """Who runs it now.

        Raises:
            EnvironmentLacks: nobody does; names those that are up.
        """
        found = self.running()
        if found is None:
            others = [one.path.name for one in up_in(self.path.parent)]
            known = f"; those that are up: {', '.join(others)}" if others else ""
            raise EnvironmentLacks(
                f"testbed {self.path.name!r}: is not up{known}; `ascar testbed up FILE` starts one"
            )
        return found

    def clear(self) -> bool:
        """Remove what a killed run has left; whether there was something.

        Raises:
            Refused: it is up, or goes up just now.
        """
        if not self.path.exists():
            return False
        with self:
            return True

    def _check_owner(self) -> None:
        """Trust no folder that another user could have made or exchanged: all in it will be removed.

        Raises:
            EnvironmentLacks: it may be somebody else's.
            OSError: it is not there.
        """
        ours = os.geteuid()
        for path, owners in ((self.path.parent, {ours, 0}), (self.path, {ours})):
            state = path.lstat()
            is_shared = state.st_mode & stat.S_IWOTH and not state.st_mode & stat.S_ISVTX
            if not stat.S_ISDIR(state.st_mode):
                why = "is no folder"
            elif state.st_uid not in owners or is_shared:
                why = "another user owns it, or may write there"
            else:
                continue
            raise EnvironmentLacks(f"folder {str(path)!r}: {why}; set ASCAR_RUNTIME_DIR to one of your own")

    def _locked(self) -> int | None:
        """The lock; None where the folder was removed meanwhile.

        Raises:
            BlockingIOError: somebody has it.
            EnvironmentLacks: the folder may be somebody else's.
        """
        path = self.path / inside.LOCK
        try:
            self._check_owner()
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            return None
        try:
            inside.lock(lock, _LOOKED_S)
            if os.path.samestat(os.fstat(lock), path.stat()):
                return lock
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        return None

    def _remove_what_is_left(self) -> None:
        """Processes of an earlier run, by their mark; with them go its namespaces and their devices."""
        left = [one for one in self.path.iterdir() if one.name != inside.LOCK]
        if not left:
            return
        inside.kill_marked(f"{self.path}:")
        for one in left:
            with suppress(OSError):
                if one.is_dir() and not one.is_symlink():
                    shutil.rmtree(one)
                else:
                    one.unlink()


def testbeds_folder() -> Path:
    """Where the folders of all testbeds of this user are."""
    return runtime_directory() / "testbeds"


def find_testbed(named: str | None) -> TestbedFolder:
    """The folder of a testbed, by its name or file, or of the only one that is up.

    Args:
        named: the name of the testbed, or the path of its file; None: the only one that is up.

    Raises:
        EnvironmentLacks: none is up, and none is named.
        InputError: several are up and none is named, or the file is wrong.
    """
    from ascar.testbed.file import checked_name, read_testbed

    folder = testbeds_folder()
    if named is not None:
        is_file = named.endswith(".toml") or "/" in named
        return TestbedFolder(
            folder / (read_testbed(Path(named)).name if is_file else checked_name("TESTBED", named))
        )
    found = up_in(folder)
    if not found:
        raise EnvironmentLacks(f"no testbed is up in {folder}; `ascar testbed up FILE` starts one")
    if len(found) > 1:
        names = ", ".join(one.path.name for one in found)
        raise InputError(f"several testbeds are up here: {names}; name one of them")
    return found[0]


def up_in(parent: Path) -> list[TestbedFolder]:
    """The testbeds that are up, of those in a folder."""
    known = sorted(parent.iterdir()) if parent.is_dir() else []
    found: list[TestbedFolder] = []
    for one in map(TestbedFolder, known):
        with suppress(EnvironmentLacks):  # it may be somebody else's
            if one.running():
                found.append(one)
    return found


def wait_until_gone(folder: TestbedFolder, limit_s: float) -> bool:
    """Whether a testbed is gone within a time; what is left where its process was killed is removed."""
    seen_s = time.monotonic()
    end_s = seen_s + limit_s
    while folder.path.exists():
        now_s = time.monotonic()
        if now_s > end_s:
            return False
        if folder.running() is not None:
            seen_s = now_s
        elif now_s > seen_s + _REMOVED_S:
            with suppress(Refused):  # it is removed just now
                folder.clear()
        time.sleep(0.05)
    return True
