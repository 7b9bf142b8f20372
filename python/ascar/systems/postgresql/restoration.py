"""What puts the settings of a server back, by ascar itself or, if it was killed, by the keeper of the user.

    python -m ascar.systems.postgresql.restoration RECORD

`RECORD` is a `PostgresRestoration` as JSON. A server that answers is asked by statements. Where it is down
and its data directory is on this machine, postgresql.auto.conf is put back itself, so that the next start has
the old values.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from ascar.errors import Refused, StageFailed, WorkError
from ascar.systems.existing.process import pid_is_alive
from ascar.systems.existing.restart import ServerRestart  # noqa: TC001 - msgspec reads it
from ascar.systems.existing.restoration import foreign, restore
from ascar.systems.postgresql.auto_configuration import (
    FILE,
    Entries,
    entries_of,
    putting_back,
    setting,
    text_of,
)
from ascar.systems.postgresql.connection import APPLICATION, PsqlSession, ServerAddress
from ascar.systems.postgresql.server_facts import ServerIdentity

RELOAD = "SELECT pg_reload_conf()"
REPLAN = "DO $$ BEGIN CREATE SCHEMA ascar_replan; DROP SCHEMA ascar_replan; END $$"
_LOADED = "SELECT pg_conf_load_time()"
_PENDING = "SELECT name FROM pg_settings WHERE pending_restart"
_RELOADED_S, _LOOK_S = 5.0, 0.02
READ = f"SELECT pg_read_file('{FILE}')"


class PostgresRestoration(msgspec.Struct, frozen=True, kw_only=True):
    """How the settings of a server become what they were.

    Attributes:
        address: where the server is.
        identifier: the system identifier of the server; another one is left alone.
        timeline: the timeline of its log.
        before: postgresql.auto.conf as it was before the study.
        set: the values that the study may have left, by setting; null: not in the file. A value that is none
            of them is somebody else's.
        data_directory: the server's data directory, if it is on this machine.
        restart: how the server is started anew, if the study changed what takes that.
        boot: the boot of the machine in which the study ran: a later one starts the server by itself.
    """

    address: ServerAddress
    identifier: str
    timeline: str
    before: Entries
    set: dict[str, tuple[str | None, ...]]
    data_directory: str | None = None
    restart: ServerRestart | None = None
    boot: str = ""

    def connected(self) -> PsqlSession:
        """A session for the restoration.

        Raises:
            StageFailed: the server does not answer.
        """
        return PsqlSession(self.address, f"{APPLICATION} restore")

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
        others = self._foreign(present)
        ours = set(self.set) - set(others)
        for name, value in putting_back(present, self.before, ours):
            # A setting of somebody else's is only set once more for its place, which may take more rights.
            with suppress(*(() if name in ours else (StageFailed,))):
                session.ask(setting(name, value))
        # Also where the file is as it was: a study that was killed may not have come to this.
        reload_settings(session)
        if self.restart is not None and set(session.ask(_PENDING).split()) & set(self.set):
            self.restart.carry_out(self.connected).close()
        return tuple(others.values())

    def carry_out_without_server(self) -> None:
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
            others, old = self._foreign(present), dict(self.before)
            kept = [one for one in present if one[0] in others or one[0] not in {*self.set, *old}]
            now = dict(present)
            wanted = [
                (name, value if name in self.set and name not in others else now[name])
                for name, value in self.before
                if name in now or name in self.set
            ]
            _replace(file, text_of((*wanted, *(one for one in kept if one not in wanted))))
        except OSError as error:
            raise WorkError(f"{error.filename}: {error.strerror}") from error
        if self.restart is not None and self.boot == boot_now():
            try:
                self.restart.carry_out(self.connected).close()
            except StageFailed as failure:
                raise WorkError(
                    f"{data}: has the old values, and the server does not start: {failure.message}"
                ) from failure

    def _foreign(self, present: Entries) -> dict[str, str]:
        return foreign(self.set, dict(self.before), dict(present), f" in {FILE}")


def reload_settings(session: PsqlSession) -> None:
    """Have the server read its files, and the sessions of the database make their plans anew.

    A prepared statement keeps the plan that it has, whatever settings become, until the catalogue of schemas
    or operators or its tables change (`PlanCacheSysCallback` in plancache.c). Without that, sessions that
    came under a bad trial would keep its plans when its values are gone. A role that may not create a schema
    leaves plans alone.

    Raises:
        StageFailed: the server is gone, or the role may not.
    """
    loaded = session.ask(_LOADED)
    session.ask(RELOAD)
    deadline_s = time.monotonic() + _RELOADED_S
    while session.ask(_LOADED) == loaded and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
    with suppress(StageFailed):
        session.ask(REPLAN)


def file_text(answer: str) -> str:
    """The text of a file in psql's answer, which ends with one more line feed."""
    return answer.removesuffix("\n")


def boot_now() -> str:
    """The boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


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


if __name__ == "__main__":
    sys.exit(restore(PostgresRestoration))
