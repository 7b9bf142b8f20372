"""The client of `ascard keeper`: everything that changes the machine goes through here.

    with Keeper("my study") as keeper:
        keeper.knob_write("vm.swappiness", 10)

On leaving, by whatever way, the keeper puts everything back: it does so when its pipe closes.

Errors: what is wrong in a request is an InputError and has touched nothing; what a safety rule forbids is
Refused; work that failed or ran out of time is StageFailed, with the failing program's words; a keeper that
is gone is KeeperLost.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ascar import typed
from ascar.errors import (
    AscarError,
    EnvironmentLacks,
    InputError,
    KeeperLost,
    Refused,
    StageFailed,
    StudyError,
)
from ascar.program.node_binary import way_to_root
from ascar.results.machine import RestoreReport
from ascar.systems import keeper_replies as replies
from ascar.systems.keeper_process import KeeperProcess, command

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from types import TracebackType

    from ascar.nodes import Node
    from ascar.space import Value

_log = logging.getLogger(__name__)

PROTOCOL = 1
STAGE_TIMEOUT_S = 120.0
"""How long one operation may take unless the caller says otherwise; the keeper allows up to an hour."""
UNDO_MAX_S = 3600.0
"""The longest time that the keeper gives a command that undoes a change (`UNDO_S_MAX` in crates/keeper)."""
RESTORE_TIMEOUT_S = UNDO_MAX_S + STAGE_TIMEOUT_S
_LISTENER_S = 0.5
# A program that is killed with us may still make a file meanwhile.
_REMOVE = 'for _ in 1 2 3 4 5 6 7 8 9; do rm -rf --one-file-system -- "$1" && exit 0; sleep 0.3; done; exit 1'
GRACE_S = 15.0
"""How much later than the operation's own limit a reply may come."""
ROOTS_STATE = Path("/var/lib/ascar")
"""Where root's keeper has its journals; where it is not there, root has never changed anything for ascar."""

Reply = TypeVar("Reply")


class _Error(msgspec.Struct, frozen=True):
    kind: str
    message: str
    stderr: str = ""


class _Answer(msgspec.Struct, frozen=True):
    id: int | None
    ok: msgspec.Raw = msgspec.Raw()
    error: _Error | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """That changes stay after the session.

    Attributes:
        confirm_s: they are put back after so many seconds unless they are confirmed (`Keeper.confirm`),
            whatever becomes of this process and of the keeper; None: they stay until they are asked back.
    """

    confirm_s: float | None = None


class Keeper:
    """A session with a keeper of its own.

    Args:
        owner: the study's name; others who are refused a lock are told it.
        ascard: the binary; found beside this Python or in PATH when None.
        state_dir: the directory of the journal; None: the machine's own place.
        hold: keep the changes as they are after `close`; `restore_all(everything=True)` undoes them. Such a
            keeper sets knobs and files, and nothing else. When the session ends with an error, it keeps
            nothing. A `Hold` may ask for a confirmation.
        user: run as the user, and change the user's files; else as root, and change the machine.
        node: the machine to change; None: this one. When the connection breaks, the keeper there restores.
    """

    def __init__(
        self,
        owner: str,
        *,
        ascard: Path | None = None,
        state_dir: Path | None = None,
        hold: bool | Hold = False,
        user: bool = False,
        node: Node | None = None,
    ) -> None:
        self._owner = owner
        self._hold = bool(hold)
        self._confirm_s = hold.confirm_s if isinstance(hold, Hold) else None
        self._ascard = ascard
        self._node = node
        as_user = ("--user",) if user else ()
        self._arguments = (*as_user, *(("--hold",) if hold else ()), *_state(state_dir))
        self._process: KeeperProcess | None = None
        self._hello: replies.Hello | None = None
        self._last_id = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Keeper:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._hold:
            self._abandon()  # a pipe that is closed without a word has everything put back
        self.close()

    def start(self) -> Keeper:
        """Starts the keeper, which first puts back what dead keepers have left.

        Raises:
            EnvironmentLacks: no binary, or no way to become root.
            KeeperLost: it does not answer.
        """
        assert self._process is None, "a keeper is started once"
        self._process = KeeperProcess(command(self._ascard, *self._arguments, node=self._node), self._node)
        try:
            self._hello = self._ask(replies.Hello, "hello", {"version": PROTOCOL, "owner": self._owner})
        except AscarError:
            self._abandon()
            raise
        return self

    def close(self) -> RestoreReport | None:
        """Puts everything back (unless `hold`) and ends the keeper; the report, or None when it was gone.

        What was not put back is told as a warning.

        Raises:
            Refused: with `hold`: something else waits for its confirmation; everything was put back.
            WorkError: with `hold`: the keeper failed or was gone before, and puts everything back.
        """
        if self._process is None:
            return None
        try:
            if self._hold and self._confirm_s is not None:
                return warned(self._ask(RestoreReport, "await_confirmation", {"seconds": self._confirm_s}))
            return warned(self._ask(RestoreReport, "shutdown"))
        except AscarError:
            if self._hold:
                raise
            return None  # the closing pipe makes it restore, and its journal whoever comes next
        finally:
            self._abandon()

    @property
    def hello(self) -> replies.Hello:
        """Who the keeper is and what this machine offers."""
        assert self._hello is not None, "the keeper is not started"
        return self._hello

    @property
    def capabilities(self) -> replies.Capabilities:
        """What this machine offers."""
        return self.hello.capabilities

    @property
    def pid(self) -> int:
        """The keeper's process."""
        return self.hello.pid

    # Locks and knobs

    def lock(self, *resources: str) -> None:
        """Takes machine-wide locks and holds them until the keeper ends.

        Raises:
            Refused: another session holds one; the message names it.
        """
        self._ask(replies.Nothing, "lock", {"resources": resources})

    def knob_read(self, knob: str) -> replies.KnobReply:
        """A knob's value in force, and what it may be set to."""
        return self._ask(replies.KnobReply, "knob_read", {"knob": knob})

    def knob_write(self, knob: str, value: Value) -> replies.KnobWritten:
        """Sets a knob; takes its lock. Write a scheduler before the knobs it resets."""
        wanted = value if isinstance(value, str) else int(value)
        return self._ask(replies.KnobWritten, "knob_write", {"knob": knob, "value": wanted})

    # Files of the user, and what undoes what was done by other means. Only where `user` is True.

    def file_replace(self, path: Path, content: str | bytes) -> Path:
        """Replaces the content of a file, or makes the file; its owner and permissions stay.

        A file has one old content, however often it is replaced. One that somebody else changes meanwhile is
        left alone at the end, and named. Returns the real path.

        Raises:
            InputError: it is not a regular file of at most 512 KiB.
            Refused: it is somebody else's, or another session holds it.
        """
        request = {"path": str(path.absolute()), "content": _content(content)}
        return self._ask(replies.FileReplaced, "file_replace", request).path

    def undo_command(self, argv: Sequence[str], limit_s: float = 10.0, *, stdin: str | None = None) -> None:
        """Notes a command that is run when everything is put back.

        Changes are undone in the reverse order of their making: note the command that reloads a service
        first, and replace its file afterwards.

        Args:
            argv: the program and its arguments, of at most 96 KiB together.
            limit_s: how long it may take.
            stdin: what it reads from its standard input, of nearly 4 MiB at most; None: nothing.

        Raises:
            InputError: no such program, arguments that are too long, or a limit above an hour.
        """
        request = {"argv": list(argv), "limit_s": limit_s, **_read_by_it(stdin)}
        self._ask(replies.Nothing, "undo_command", request)

    def undo_forget(self, argv: Sequence[str], *, stdin: str | None = None) -> None:
        """Takes a noted command back, because the client has undone the change by itself."""
        self._ask(replies.Nothing, "undo_forget", {"argv": list(argv), **_read_by_it(stdin)})

    # Images and devices. `device` may be left out while the session has exactly one.

    def image_create(self, path: Path, size_bytes: int) -> replies.Image:
        """Makes a sparse image file in a directory of the invoking user; it is removed at the end.

        Raises:
            Refused: the file exists, the directory is somebody else's, or the disk has not enough room.
        """
        return self._ask(replies.Image, "image_create", {"path": _real(path), "size_bytes": size_bytes})

    def image_attach(self, path: Path, *, direct_io: bool = False) -> replies.Attached:
        """Attaches an image to a loop device; `direct_io` goes past the page cache of the disk below."""
        return self._ask(replies.Attached, "image_attach", {"path": _real(path), "direct_io": direct_io})

    def image_detach(self, device: Path | None = None) -> None:
        """Detaches an image, and removes its saved copies; it can be attached again."""
        self._ask(replies.Nothing, "image_detach", _on(device))

    def image_save(
        self, name: str, device: Path | None = None, *, timeout_s: float = STAGE_TIMEOUT_S
    ) -> replies.Copied:
        """Keeps a copy of the unmounted image as it is now (Cao, section 6.6: "+alloc")."""
        return self._ask(replies.Copied, "image_save", {"name": name} | _on(device), timeout_s)

    def image_load(
        self, name: str, device: Path | None = None, *, timeout_s: float = STAGE_TIMEOUT_S
    ) -> replies.Copied:
        """Makes the unmounted image what it was when the copy was saved; on disk when it returns."""
        return self._ask(replies.Copied, "image_load", {"name": name} | _on(device), timeout_s)

    def image_forget(self, name: str, device: Path | None = None) -> None:
        """Removes a copy."""
        self._ask(replies.Nothing, "image_forget", {"name": name} | _on(device))

    def device_claim(self, path: Path, *, confirmed: bool) -> replies.Claimed:
        """Takes a block device of the machine, which may then be overwritten.

        Raises:
            Refused: not confirmed, in use, or something is on it; the message names what was found.
        """
        return self._ask(replies.Claimed, "device_claim", {"path": str(path), "confirmed": confirmed})

    # File systems

    def format(
        self,
        fs: str,
        options: Mapping[str, int | str | bool] | None = None,
        features: Sequence[str] = (),
        device: Path | None = None,
        *,
        timeout_s: float = STAGE_TIMEOUT_S,
    ) -> replies.Formatted:
        """Makes a file system on an emptied device: nothing lazy, the same hashes every time.

        Raises:
            InputError: an unknown option or a value that is not allowed; the message names those that are.
            StageFailed: mkfs failed or ran out of time.
        """
        fields = {"fs": fs, "options": dict(options or {}), "features": features} | _on(device)
        return self._ask(replies.Formatted, "format", fields, timeout_s)

    def mount(
        self,
        fs: str,
        options: Sequence[str] = (),
        device: Path | None = None,
        *,
        owner: tuple[int, int] | None = None,
        timeout_s: float = STAGE_TIMEOUT_S,
    ) -> replies.Mounted:
        """Mounts what `format` has made, always nosuid and nodev, and gives its root directory away.

        Args:
            fs: the file system.
            options: such as "noatime", "commit=30".
            device: the device to mount, needed when the session has several.
            owner: uid and gid of whoever runs the load; the invoking user when None.
            timeout_s: the time limit.
        """
        fields: dict[str, Any] = {"fs": fs, "options": options} | _on(device)
        if owner is not None:
            fields |= {"uid": owner[0], "gid": owner[1]}
        return self._ask(replies.Mounted, "mount", fields, timeout_s)

    def remount(
        self, options: Sequence[str], device: Path | None = None, *, timeout_s: float = STAGE_TIMEOUT_S
    ) -> replies.Mounted:
        """Changes the options of a mounted file system."""
        return self._ask(replies.Mounted, "remount", {"options": options} | _on(device), timeout_s)

    def unmount(self, device: Path | None = None, *, timeout_s: float = STAGE_TIMEOUT_S) -> replies.DoneReply:
        """Writes everything back and unmounts."""
        return self._ask(replies.DoneReply, "unmount", _on(device), timeout_s)

    def sync_fs(self, device: Path | None = None, *, timeout_s: float = STAGE_TIMEOUT_S) -> replies.DoneReply:
        """Writes everything of this file system back."""
        return self._ask(replies.DoneReply, "sync_fs", _on(device), timeout_s)

    def drop_caches(self, level: int = 3, *, timeout_s: float = STAGE_TIMEOUT_S) -> replies.DoneReply:
        """Drops the machine's clean caches: 1 pages, 2 inodes and dentries, 3 both; takes a lock."""
        return self._ask(replies.DoneReply, "drop_caches", {"level": level}, timeout_s)

    # Bounded memory

    def cgroup_create(self, memory_bytes: int) -> replies.Cgroup:
        """Makes the session's control group."""
        return self._ask(replies.Cgroup, "cgroup_create", {"memory_bytes": memory_bytes})

    def cgroup_add(self, pid: int) -> None:
        """Moves a process of the invoking user, or a descendant of this one, into the control group."""
        self._ask(replies.Nothing, "cgroup_add", {"pid": pid})

    def cgroup_read(self) -> replies.CgroupUse:
        """What its processes use now, and have used at most."""
        return self._ask(replies.CgroupUse, "cgroup_read")

    def cgroup_kill(self) -> replies.CgroupUse:
        """Kills everything in it; it is empty on return."""
        return self._ask(replies.CgroupUse, "cgroup_kill")

    def cgroup_remove(self) -> replies.CgroupUse:
        """Kills everything in it and removes it; what it had used."""
        return self._ask(replies.CgroupUse, "cgroup_remove")

    # The session itself

    def status(self) -> replies.Status:
        """Everything that is changed now."""
        return self._ask(replies.Status, "status")

    def confirmation(self) -> replies.Confirmation:
        """What waits for its confirmation on this machine, whoever put it in force."""
        return self._ask(replies.Confirmation, "confirmation")

    def confirm(self, owner: str) -> int:
        """Lets what an owner has put in force stay; how many changes that are.

        Raises:
            Refused: nothing of that owner waits.
        """
        return self._ask(replies.ConfirmedChanges, "confirm", {"owner": owner}).changes

    def restore(self) -> RestoreReport:
        """Puts everything back now; the session goes on."""
        return self._ask(RestoreReport, "restore")

    def _ask(
        self,
        reply: type[Reply],
        operation: str,
        fields: Mapping[str, Any] | None = None,
        timeout_s: float = STAGE_TIMEOUT_S,
    ) -> Reply:
        with self._lock:
            process = self._process
            if process is None:
                raise KeeperLost("keeper: is not running")
            self._last_id += 1
            request = {"id": self._last_id, "op": operation, "timeout_s": timeout_s, **(fields or {})}
            try:
                process.send(msgspec.json.encode(request))
                answer = self._answer(process, self._last_id, time.monotonic() + timeout_s + GRACE_S)
                if answer.error is None:
                    return typed.decode(answer.ok, reply, hook=_decode)
            except msgspec.MsgspecError as error:
                self._process = None
                raise process.lost(f"its reply to {operation} cannot be understood: {error}") from error
            except (KeeperLost, EnvironmentLacks):
                self._process = None
                raise
        raise _failure(operation, answer.error)

    @staticmethod
    def _answer(process: KeeperProcess, request_id: int, deadline: float) -> _Answer:
        """The answer to this request; those to requests that were given up (^C) are passed over."""
        while True:
            answer = typed.decode(process.receive(deadline), _Answer)
            if answer.id == request_id or (answer.id is None and answer.error is not None):
                return answer

    def _abandon(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()


def warned(report: RestoreReport) -> RestoreReport:
    """The report, once people know what of it is not as before."""
    for left in report.left_alone:
        _log.warning("%s is %s now, not %s: left alone", left.target, left.found, left.expected)
    for failed in report.failed:
        _log.warning("could not be put back: %s; run `ascar restore`", failed)
    return report


def _content(content: str | bytes) -> str | dict[str, str]:
    """Bytes as the keeper reads them: text where they are UTF-8."""
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": content.hex()}


def _read_by_it(stdin: str | None) -> dict[str, str]:
    return {} if stdin is None else {"stdin": stdin}


def removal_of(directory: Path) -> list[str]:
    """The command that removes a directory with all that is in it, but for what is mounted there."""
    return [shutil.which("rm") or "/bin/rm", "-rf", "--one-file-system", "--", str(directory)]


def load_directory(keeper: Keeper, key: str, path: str, kind: str, limit_s: float = 10.0) -> Path:
    """A new, empty directory of ours alone for a load, which the keeper removes at the end.

    Args:
        keeper: one of the user's.
        key: the key of the study that names the directory in which it is made.
        path: that directory.
        kind: the kind of the target, which its name tells.
        limit_s: how long it may take to remove it.

    Raises:
        StudyError: it cannot be made.
    """
    place = Path(path, f"ascar-{kind}-{secrets.token_hex(4)}")
    keeper.undo_command(removal_of(place), limit_s)
    try:
        place.mkdir(0o700)
    except OSError as error:
        raise StudyError(
            f"{key} = {path!r:.80}: {error.strerror}; must be a directory that you may write to"
        ) from error
    return place


@contextmanager
def scratch_directory(keeper: Keeper, prefix: str, parent: str | None = None) -> Generator[Path]:
    """A new, empty directory of ours alone, which is removed at the end, however we end.

    Args:
        keeper: one of the user's, which removes it where we cannot.
        prefix: what its name begins with.
        parent: the directory in which it is made; None: that of temporary files.
    """
    place = Path(parent or tempfile.gettempdir(), f"{prefix}{secrets.token_hex(8)}")
    removal = ["/bin/sh", "-c", _REMOVE, "remove", str(place)]
    keeper.undo_command(removal)
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            with suppress(KeeperLost):  # one that is gone, nobody needs any more
                keeper.undo_forget(removal)


def restore_all(
    *,
    ascard: Path | None = None,
    state_dir: Path | None = None,
    everything: bool = False,
    listener: Callable[[float], None] = lambda _: None,
) -> RestoreReport:
    """Puts back what dead keepers have left; with `everything`, also what `hold` was to keep.

    The files of the user come first. Where root has never changed anything for ascar, root is not needed.

    Args:
        ascard: the binary; None: the one that is found.
        state_dir: the keeper's state; None: the usual one, and root's.
        everything: also what `hold` was to keep.
        listener: told now and then how many seconds are left at most.

    Raises:
        EnvironmentLacks: no binary, or no way to become root.
        KeeperLost: it failed without a report.
    """
    words = ("--restore", *(("--all",) if everything else ()), *_state(state_dir))
    if state_dir is not None:
        return _restored(command(ascard, *words), listener)
    of_user = _restored(command(ascard, "--user", *words), listener)
    if not ROOTS_STATE.exists():
        return of_user
    try:
        of_root = _restored(command(ascard, *words), listener)
    except EnvironmentLacks as error:
        if of_user == RestoreReport():
            raise
        of_root = RestoreReport(failed=(error.message,))
    return RestoreReport(
        restored=of_user.restored + of_root.restored,
        left_alone=of_user.left_alone + of_root.left_alone,
        failed=of_user.failed + of_root.failed,
        unconfirmed=of_user.unconfirmed + of_root.unconfirmed,
    )


def _restored(words: list[str], listener: Callable[[float], None]) -> RestoreReport:
    try:
        started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")
    except OSError as error:
        raise EnvironmentLacks(f"{words[0]}: cannot be started: {error}") from error
    with started as done:
        out, err = _told(done, listener)
    try:
        return typed.decode(out, RestoreReport)
    except msgspec.MsgspecError as error:
        said = " ".join(err.decode(errors="replace").split())
        if words[0].endswith("sudo") and said.startswith("sudo:"):
            raise EnvironmentLacks(f"needs root: {said}: run this as root, or {way_to_root()}") from error
        raise KeeperLost(f"restore: exit status {done.returncode}: {said}") from error


def _told(process: subprocess.Popen[bytes], listener: Callable[[float], None]) -> tuple[bytes, bytes]:
    """What it says until its end, which is awaited for a time."""
    end_s = time.monotonic() + RESTORE_TIMEOUT_S
    with _killed_at_an_error(process):
        while (left_s := end_s - time.monotonic()) > 0:
            listener(left_s)
            with suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=min(_LISTENER_S, left_s))
        _kill(process)
    raise KeeperLost(f"restore: not done within {RESTORE_TIMEOUT_S:.0f} s: try again")


@contextmanager
def _killed_at_an_error(process: subprocess.Popen[bytes]) -> Generator[None]:
    try:
        yield
    except BaseException:
        _kill(process)
        raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(PermissionError):  # it is root's, by sudo; a ^C reaches it as well
        process.kill()


def _state(directory: Path | None) -> tuple[str, ...]:
    return () if directory is None else ("--state-dir", str(directory.resolve()))


def _real(path: Path) -> str:
    """The path without the symbolic links on its way, of which the keeper follows none."""
    return str(path.parent.resolve() / path.name if path.is_absolute() else path)


def _on(device: Path | None) -> dict[str, str]:
    return {} if device is None else {"device": str(device)}


def _decode(kind: type, value: str) -> Path:
    assert kind is Path, f"a reply has a field of type {kind}"
    return Path(value)


def _failure(operation: str, error: _Error) -> AscarError:
    match error.kind:
        case "input":
            return InputError(error.message)
        case "refused":
            return Refused(error.message)
        case "failed" | "timeout":
            return StageFailed(operation.replace("_", " "), error.message, error.stderr)
        case kind:
            return KeeperLost(f"keeper: unknown kind of error {kind!r}: {error.message}")
