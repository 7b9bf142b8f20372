"""What puts the settings of a server back, by ascar itself or, if it was killed, by the keeper of the user.

    python -m ascar.systems.postgresql.restoration RECORD

`RECORD` is a `Restoration` as JSON. It is in the keeper's journal before the settings are changed, and holds
no secret. A server that answers is asked by statements. Where it is down and its data directory is on this
machine, postgresql.auto.conf is put back itself, so that the next start has the old values.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from ascar import typed
from ascar.errors import AscarError, Refused, StageFailed, WorkError
from ascar.systems.postgresql.auto_configuration import (
    FILE,
    Entries,
    entries_of,
    putting_back,
    setting,
    text_of,
)
from ascar.systems.postgresql.connection import APPLICATION, PsqlSession, ServerAddress, pid_is_alive
from ascar.systems.postgresql.server_facts import ServerIdentity

LIMIT_S = 60.0
"""The time that the keeper gives the command."""

_WAIT_S, _AGAIN_S = 20.0, 0.5
RELOAD = "SELECT pg_reload_conf()"
READ = f"SELECT pg_read_file('{FILE}')"


class Restoration(msgspec.Struct, frozen=True, kw_only=True):
    """How the settings of a server become what they were.

    Attributes:
        address: where the server is.
        identifier: the system identifier of the server; another one is left alone.
        timeline: the timeline of its log.
        before: postgresql.auto.conf as it was before the study.
        set: the values that the study may have left, by setting; null: not in the file. A value that is none
            of them is somebody else's.
        data_directory: the server's data directory, if it is on this machine.
    """

    address: ServerAddress
    identifier: str
    timeline: str
    before: Entries
    set: dict[str, tuple[str | None, ...]]
    data_directory: str | None = None

    def command(self) -> list[str]:
        """The command for the keeper's journal."""
        record = msgspec.json.encode(self).decode()
        return [sys.executable, "-m", "ascar.systems.postgresql.restoration", record]

    def carry_out(self, session: PsqlSession) -> tuple[str, ...]:
        """Put the settings back on a server that answers; those that somebody else changed are left alone.

        Returns:
            What was left alone, a line each.

        Raises:
            Refused: it is another server.
            StageFailed: the server refuses a statement, or is gone.
        """
        found = ServerIdentity.of(session)
        if (found.identifier, found.timeline) != (self.identifier, self.timeline):
            raise Refused(
                f"another server answers: its system identifier is {found.identifier}, on timeline "
                f"{found.timeline or 'of a standby'}, not {self.identifier} on {self.timeline}; nothing was "
                "changed there"
            )
        present = entries_of(file_text(session.ask(READ)))
        foreign = self._foreign(present)
        ours = set(self.set) - set(foreign)
        for name, value in putting_back(present, self.before, ours):
            # A setting of somebody else's is only set once more for its place, which may take more rights.
            with suppress(*(() if name in ours else (StageFailed,))):
                session.ask(setting(name, value))
        # Also where the file is as it was: a study that was killed may not have come to this.
        session.ask(RELOAD)
        return tuple(foreign.values())

    def carry_out_on_files(self) -> None:
        """Put postgresql.auto.conf back while the server is down.

        Raises:
            WorkError: its data directory is not here, the server runs, or the file cannot be written.
        """
        if self.data_directory is None:
            raise WorkError("the data directory is not on this machine")
        data = Path(self.data_directory)
        try:
            identifier = int.from_bytes((data / "global" / "pg_control").read_bytes()[:8], sys.byteorder)
            if str(identifier) != self.identifier:
                raise WorkError(f"{data}: is another server's: its system identifier is {identifier}")
            if _runs(data):
                raise WorkError(f"{data}: the server runs, and does not answer")
            file = data / FILE
            present = entries_of(file.read_text("utf-8"))
            foreign, old = self._foreign(present), dict(self.before)
            kept = [one for one in present if one[0] in foreign or one[0] not in {*self.set, *old}]
            now = dict(present)
            wanted = [
                (name, value if name in self.set and name not in foreign else now[name])
                for name, value in self.before
                if name in now or name in self.set
            ]
            _replace(file, text_of((*wanted, *(one for one in kept if one not in wanted))))
        except OSError as error:
            raise WorkError(f"{error.filename}: {error.strerror}") from error

    def _foreign(self, present: Entries) -> dict[str, str]:
        """Settings with values that are neither old nor the study's, with a line that says so."""
        now, old = dict(present), dict(self.before)
        found: dict[str, str] = {}
        for name, values in self.set.items():
            value = now.get(name)
            if value != old.get(name) and value not in values:
                shown = "not set" if value is None else repr(value)
                found[name] = f"{name}: is {shown} in {FILE}, not as ascar left it: somebody else changed it"
        return found


def file_text(answer: str) -> str:
    """The text of a file in psql's answer, which ends with one more line feed."""
    return answer.removesuffix("\n")


def _runs(data: Path) -> bool:
    """Whether a server works in a data directory: after a crash another process may have its number."""
    try:
        pid = int((data / "postmaster.pid").read_text("utf-8").splitlines()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return False
    if not pid_is_alive(pid):
        return False
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == data.resolve()
    except OSError:
        return pid_is_alive(pid)


def _replace(file: Path, text: str) -> None:
    """Replace a file on the disk; its owner and permissions stay."""
    before = file.stat()
    draft = file.with_name(f"{file.name}.ascar")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fchmod(out.fileno(), before.st_mode & 0o777)
        if os.geteuid() == 0:
            os.fchown(out.fileno(), before.st_uid, before.st_gid)
        os.fsync(out.fileno())
    draft.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _connected(address: ServerAddress) -> PsqlSession:
    """A session; a server that is just starting is waited for."""
    deadline_s = time.monotonic() + _WAIT_S
    while True:
        try:
            return PsqlSession(address, f"{APPLICATION} restore")
        except StageFailed:
            if time.monotonic() > deadline_s:
                raise
        time.sleep(_AGAIN_S)


def _carry_out(restoration: Restoration) -> None:
    try:
        restoration.carry_out_on_files()
    except WorkError as on_files:
        try:
            session = _connected(restoration.address)
        except StageFailed as failure:
            raise WorkError(f"{failure.message}; {on_files.message}") from failure
        for line in restoration.carry_out(session):
            sys.stderr.write(f"{line}\n")
        session.close()


def main(record: str) -> int:
    """Carry a record out; 0 if the settings are back."""
    try:
        restoration = typed.decode(record.encode(), Restoration)
        _carry_out(restoration)
    except (AscarError, msgspec.MsgspecError) as error:
        sys.stderr.write(" ".join(str(error).split()) + "\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
