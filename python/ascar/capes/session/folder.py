"""The folder of a session: its processes' files, logs and data, and who runs it."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from ascar import typed
from ascar.capes.session.files import write_private
from ascar.errors import EnvironmentLacks, InputError, Refused
from ascar.messaging import read_settings, token

if TYPE_CHECKING:
    from types import TracebackType

    from ascar.messaging import Settings


def sessions_folder() -> Path:
    """Where sessions are kept: a folder each, in the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ascar" / "capes"


class Running(msgspec.Struct, frozen=True):
    """Who runs a session.

    Attributes:
        pid: the process of `ascar capes up`.
        session: the name of the session.
        study: the study file's path.
        started_s: seconds since 1970.
        ready: whether ticks come.
    """

    pid: int
    session: str
    study: str
    started_s: float
    ready: bool = False


class Folder:
    """One session's folder.

    Args:
        path: the path of the folder; it is made when the session takes it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Take it for ourselves.

        Raises:
            Refused: the session runs already.
            InputError: it cannot be made or written.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError(
                f"folder {str(self.path)!r}: {error.strerror}; name another one with --folder"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            running = self.running()
            self._release()
            who = f", process {running.pid}" if running else ""
            raise Refused(
                f"session {self.path.name!r}: runs already{who}; `ascar capes down {self.path.name}` ends it"
            ) from None
        for left in ("up.json", "stop.json"):
            (self.path / left).unlink(missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        for left in ("up.json", "stop.json"):
            (self.path / left).unlink(missing_ok=True)
        self._release()

    def begin(self, session: str, study: str) -> Running:
        """Say that this process runs it from now on.

        Args:
            session: the name of the session.
            study: path of the study, as it was given.
        """
        running = Running(os.getpid(), session, study, time.time())
        self.announce(running)
        return running

    def announce(self, running: Running) -> None:
        """Say who runs it."""
        write_private(self.path / "up.json", msgspec.json.encode(running).decode())

    def running(self) -> Running | None:
        """Who runs it now; None where nobody does."""
        try:
            content = (self.path / "up.json").read_bytes()
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            try:
                return typed.decode(content, Running)
            except ValueError:  # also bytes that are no text
                return None
        else:
            return None  # nobody holds it: it was killed
        finally:
            os.close(descriptor)

    def runner(self) -> Running:
        """Who runs it now.

        Raises:
            EnvironmentLacks: nobody does; names those that run.
        """
        running = self.running()
        if running is None:
            others = [one.path.name for one in _running(self.path.parent)]
            known = f"; those that run: {', '.join(others)}" if others else ""
            raise EnvironmentLacks(
                f"session {self.path.name!r}: does not run on this machine{known}; "
                "`ascar capes up STUDY.toml` starts one"
            )
        return running

    def ask_to_stop(self, *, keep: bool) -> None:
        """Leave word of how it is to end, for the process that runs it."""
        write_private(self.path / "stop.json", msgspec.json.encode({"keep": keep}).decode())

    def asked_to_keep(self) -> bool:
        """Whether who asked it to end wants the setting kept."""
        try:
            found: Any = msgspec.json.decode((self.path / "stop.json").read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(found, dict) and cast("dict[str, Any]", found).get("keep") is True

    def settings(self, user: str) -> Settings:
        """How to connect to the session that runs.

        Raises:
            EnvironmentLacks: it does not run.
            InputError: the file is wrong.
        """
        path = self.path / "messages" / f"{user}.toml"
        self.runner()
        if not path.exists():
            raise EnvironmentLacks(f"session {self.path.name!r}: is starting; try again in a moment")
        return read_settings(path)

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def find_folder(named: str | None, parent: Path | None = None) -> Folder:
    """The folder of a session that runs, by its name, or the only one that there is.

    Args:
        named: the session, or the path of its folder; None: the only one that runs.
        parent: the folder of all sessions; None means the one in the user's state directory.

    Raises:
        EnvironmentLacks: none runs.
        InputError: several run and none is named.
    """
    folder = sessions_folder() if parent is None else parent
    if named is not None:
        return Folder(Path(named)) if "/" in named else Folder(folder / token("session", named))
    running = _running(folder)
    if not running:
        raise EnvironmentLacks(
            f"no session runs in {folder}; `ascar capes up STUDY.toml` starts one; where it was started with "
            "--folder, name that folder's path"
        )
    if len(running) > 1:
        names = ", ".join(one.path.name for one in running)
        raise InputError(f"several sessions run here: {names}; name one of them")
    return running[0]


def _running(parent: Path) -> list[Folder]:
    """The sessions that run, of those in a folder."""
    known = sorted(parent.iterdir()) if parent.is_dir() else []
    return [one for one in (Folder(path) for path in known if path.is_dir()) if one.running()]
