"""What puts the settings of a server back, by ascar itself or, if it was killed, by the keeper of the user.

Its records are those of `undo_record`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from ascar.errors import StageFailed, WorkError
from ascar.systems import undo_record
from ascar.systems.existing.activity import LiveSession

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT_S = 60.0
"""The time that the keeper gives the command."""

_WAIT_S, _AGAIN_S = 20.0, 0.5

S = TypeVar("S", bound=LiveSession)


class LiveRestoration(Protocol[S]):
    """How the settings of a server become what they were."""

    def connected(self) -> S:
        """A session for the restoration.

        Raises:
            StageFailed: the server does not answer.
        """
        ...

    def carry_out(self, session: S) -> tuple[str, ...]:
        """Put the settings back on a server that answers; those that somebody else changed are left alone.

        Returns:
            What was left alone, a line each.

        Raises:
            Refused: it is another server.
            StageFailed: the server refuses it, or is gone.
        """
        ...

    def carry_out_without_server(self) -> None:
        """Put back what can be put back while the server is down.

        Raises:
            WorkError: it may run, or that cannot be done.
        """
        ...


def foreign(
    left: Mapping[str, tuple[str | None, ...]],
    old: Mapping[str, str],
    present: Mapping[str, str],
    where: str = "",
) -> dict[str, str]:
    """Settings with values that are neither old nor the study's, with a line that says so.

    Args:
        left: the values that the study may have left, by setting.
        old: the values before the study.
        present: the values now.
        where: where they are.
    """
    found: dict[str, str] = {}
    for name, values in left.items():
        value = present.get(name)
        if value != old.get(name) and value not in values:
            shown = "not set" if value is None else repr(value)
            found[name] = f"{name}: is {shown}{where}, not as ascar left it: somebody else changed it"
    return found


def restore(kind: type[LiveRestoration[S]]) -> int:
    """Carry the record out that this program is given; 0 if the settings are back."""
    return undo_record.restore(kind, _carry_out)


def _carry_out(restoration: LiveRestoration[S]) -> tuple[str, ...]:
    """Put the settings back, on a server that is down or answers; one that is just starting is waited for.

    Raises:
        WorkError: neither can be done.
        Refused: it is another server.
    """
    deadline_s = time.monotonic() + _WAIT_S
    while True:
        try:
            restoration.carry_out_without_server()
        except WorkError as alone:
            try:
                return _carry_out_on(restoration)
            except StageFailed as failure:
                if time.monotonic() > deadline_s:
                    raise WorkError(f"{failure.message}; {alone.message}") from failure
        else:
            return ()
        time.sleep(_AGAIN_S)


def _carry_out_on(restoration: LiveRestoration[S]) -> tuple[str, ...]:
    session = restoration.connected()
    try:
        return restoration.carry_out(session)
    finally:
        session.close()
