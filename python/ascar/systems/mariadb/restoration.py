"""What puts the settings of a MariaDB server back, by ascar itself or, if it was killed, by the keeper.

    python -m ascar.systems.mariadb.restoration RECORD

`RECORD` is a `MariaRestoration` as JSON. SET GLOBAL changes the memory of a process alone, so that nothing is
left to do once that process has ended.
"""

from __future__ import annotations

import sys

import msgspec

from ascar.errors import Refused, StageFailed, WorkError
from ascar.systems.existing.process import ServerProcess  # noqa: TC001 - msgspec reads it
from ascar.systems.existing.restoration import foreign, restore
from ascar.systems.mariadb.connection import MariaAddress, MariaSession
from ascar.systems.mariadb.live_values import canonical, set_globally
from ascar.systems.mariadb.server_facts import identity_of, is_same_start, started_s


class MariaRestoration(msgspec.Struct, frozen=True, kw_only=True):
    """How the settings of a server become what they were.

    Attributes:
        address: where the server is.
        identity: the server that was changed; another one is left alone.
        started_s: when it was started; after a new start, nothing is left of a study.
        process: its process, where that is one of this machine.
        before: the values before the study.
        set: the values that the study may have left. A value that is none of them is somebody else's.
    """

    address: MariaAddress
    identity: str
    started_s: float
    process: ServerProcess | None
    before: dict[str, str]
    set: dict[str, tuple[str | None, ...]]

    def connected(self) -> MariaSession:
        """A session for the restoration.

        Raises:
            StageFailed: the server does not answer.
        """
        return MariaSession(self.address)

    def carry_out(self, session: MariaSession) -> tuple[str, ...]:
        """Put the settings back on a server that answers; those that somebody else changed are left alone.

        Returns:
            What was left alone, a line each.

        Raises:
            StageFailed: the server refuses it, or is gone.
        """
        told = session.variables()
        if identity_of(told) != self.identity:
            return (
                f"{self.address.name}: another server answers; where the one that was tuned still runs, it "
                f"has a trial's values of {', '.join(sorted(self.set))}",
            )
        if not is_same_start(started_s(session), self.started_s):
            return ()
        present = canonical(told)
        left = foreign(self.set, self.before, present)
        wanted = {
            name: self.before[name]
            for name in self.set
            if name not in left and present.get(name) != self.before[name]
        }
        try:
            set_globally(session, wanted, present)
        except Refused as refusal:
            raise StageFailed("program", refusal.message) from refusal
        return tuple(left.values())

    def carry_out_without_server(self) -> None:
        """See that the process has ended, with which the trial's values went.

        Raises:
            WorkError: it may run.
        """
        if self.process is None:
            raise WorkError("the server's process is not one of this machine")
        if not self.process.has_ended:
            raise WorkError("the server runs")


if __name__ == "__main__":
    sys.exit(restore(MariaRestoration))
