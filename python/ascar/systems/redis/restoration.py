"""What puts the settings of a Redis server back, by ascar itself or, if it was killed, by the keeper.

    python -m ascar.systems.redis.restoration < RECORD

`RECORD` is a `RedisRestoration` as JSON. CONFIG SET changes the memory of a process alone, so that nothing is
left to do once that process has ended.
"""

from __future__ import annotations

import sys

import msgspec

from ascar.errors import WorkError
from ascar.systems.existing.process import ServerProcess  # noqa: TC001 - msgspec reads it
from ascar.systems.existing.restoration import foreign, restore
from ascar.systems.redis.connection import APPLICATION, RedisAddress, RedisSession
from ascar.systems.redis.counters import fields_of
from ascar.systems.redis.server_facts import rewrites_of, settings_told


class RedisRestoration(msgspec.Struct, frozen=True, kw_only=True):
    """How the settings of a server become what they were.

    Attributes:
        address: where the server is.
        run_id: the process that was changed; another one is left alone.
        process: the same, where it is one of this machine.
        rewrites: how often CONFIG REWRITE was called before the study.
        before: the values before the study, by the server's names.
        set: the values that the study may have left. A value that is none of them is somebody else's.
    """

    address: RedisAddress
    run_id: str
    process: ServerProcess | None
    rewrites: float
    before: dict[str, str]
    set: dict[str, tuple[str | None, ...]]

    def connected(self) -> RedisSession:
        """A session for the restoration.

        Raises:
            StageFailed: the server does not answer.
        """
        return RedisSession(self.address, f"{APPLICATION}-restore")

    def carry_out(self, session: RedisSession) -> tuple[str, ...]:
        """Put the settings back on a server that answers; those that somebody else changed are left alone.

        Returns:
            What was left alone, a line each.

        Raises:
            StageFailed: the server refuses it, or is gone.
        """
        fields = fields_of(str(session.ask("INFO", "everything")))
        if fields.get("run_id") != self.run_id:
            if self.process is not None and self.process.has_ended:
                return ()
            return (
                f"{self.address.name}: another process answers; where the one that was tuned still runs, it "
                f"has a trial's values of {', '.join(sorted(self.set))}",
            )
        present = settings_told(session, self.address)
        left = foreign(self.set, self.before, present)
        words = [
            word
            for name in self.set
            if name not in left and present.get(name) != self.before[name]
            for word in (name, self.before[name])
        ]
        if words:
            session.ask("CONFIG", "SET", *words)
        written = () if rewrites_of(fields) <= self.rewrites else (_REWRITTEN,)
        return (*left.values(), *written)

    def carry_out_without_server(self) -> None:
        """See that the process has ended, with which the trial's values went.

        Raises:
            WorkError: it may run.
        """
        if self.process is None:
            raise WorkError("the server's process is not one of this machine")
        if not self.process.has_ended:
            raise WorkError("the server runs")


_REWRITTEN = (
    "redis.conf: CONFIG REWRITE was called in mid-study and may have written a trial's values; the old ones "
    "are in force, and CONFIG REWRITE writes these"
)


if __name__ == "__main__":
    sys.exit(restore(RedisRestoration))
