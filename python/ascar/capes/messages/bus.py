"""A session's subjects (docs/capes-protocol.md): JSON objects; what cannot be read is only counted."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec

from ascar.capes.messages.parts import joined
from ascar.errors import MessagingError
from ascar.messaging import MESSAGE_BYTES_MAX, Link, RequestRefused, token

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from types import TracebackType

    from ascar.messaging import Settings

Document = dict[str, Any]
"""One JSON object."""

_WAITING_MAX = 10_000
_CONTROL_S = 10.0


def prefix(session: str) -> str:
    """The first part of all subjects of a session.

    Raises:
        InputError: it is not a name of a session.
    """
    return f"ascar.capes.{token('session', session)}"


class Bus:
    """A connection to one session; make one by `await Bus.open(...)`, use it in `async with`.

    Attributes:
        session: the name of the session.
        unreadable: messages that were no JSON object.
        lost: messages that came faster than they were taken.
    """

    def __init__(self, link: Link, session: str) -> None:
        self._link = link
        self._prefix = prefix(session)
        self.session = session
        self.unreadable = 0
        self.lost = 0

    @classmethod
    async def open(cls, settings: Settings, session: str, *, name: str, timeout_s: float = 5.0) -> Bus:
        """Connect.

        Raises:
            InputError: the settings or the session's name are wrong.
            MessagingError: nobody is there, or we are not let in.
        """
        prefix(session)
        return cls(await Link.open(settings, name=name, timeout_s=timeout_s), session)

    async def __aenter__(self) -> Self:
        """The connection itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._link.close()

    def beside(self, session: str) -> Bus:
        """Another session over the same connection, which stays open as long as this one's.

        Raises:
            InputError: it is not a name of a session.
        """
        return Bus(self._link, session)

    @property
    def connected(self) -> bool:
        """Whether the server is there at present."""
        return self._link.connected

    async def publish(self, what: str, document: Mapping[str, Any]) -> None:
        """Send an object.

        Raises:
            MessagingError: too large, or the connection is closed.
        """
        await self._link.publish_payload(f"{self._prefix}.{what}", msgspec.json.encode(document))

    async def request(
        self, what: str, document: Mapping[str, Any], *, op: str = "", timeout_s: float = _CONTROL_S
    ) -> Document:
        """Ask under our own name, and have one object for an answer.

        Raises:
            MessagingError: nobody answers in time, or the answer cannot be understood.
        """
        payload = msgspec.json.encode(document)
        answer = _decoded(await self._link.request_payload(self._own(what, op), payload, timeout_s))
        if answer is None:
            raise MessagingError(
                f"{what}: the answer cannot be understood; is the interface of this version?"
            )
        return answer

    async def control(self, op: str, *, why: str, **keys: object) -> Any:
        """Have the interface do something; what it answers.

        Raises:
            RequestRefused: it says no.
            MessagingError: it does not answer in time.
        """
        parts: list[Document] = []
        asked = self.replies("control", {"op": op, "why": why, **keys}, op=op)
        async with aclosing(asked) as answers:
            async for payload in answers:
                answer = _decoded(payload)
                if answer is None:
                    raise MessagingError(
                        "control: the answer cannot be understood; is the interface of this version?"
                    )
                if "ok" not in answer:
                    raise RequestRefused(f"{op}", str(answer.get("error", "no reason given")))
                parts.append(answer)
                # One that is too long for a message comes in several.
                if len(parts) >= _whole(answer.get("parts")):
                    break
        return parts[0]["ok"] if len(parts) == 1 else joined([_table(one["ok"]) for one in parts])

    async def replies(
        self, what: str, document: Mapping[str, Any], timeout_s: float = _CONTROL_S, *, op: str = ""
    ) -> AsyncGenerator[bytes]:
        """Ask under our own name, and have the parts of the answer, until the caller has enough.

        Raises:
            MessagingError: nobody answers, or no further part comes in time.
        """
        payload = msgspec.json.encode(document)
        async for part in self._link.replies(self._own(what, op), payload, timeout_s):
            yield part

    def _own(self, what: str, op: str = "") -> str:
        """The subject of a request by us: the server lets no other user publish there."""
        return ".".join(word for word in (self._prefix, what, self._link.user, op) if word)

    async def follow(self, whats: Sequence[str]) -> AsyncGenerator[tuple[str, Document]]:
        """Every object on some subjects, without end: the last part of the subject, and the object.

        It listens from the first step of the iteration on.

        Raises:
            MessagingError: the connection is closed.
        """
        waiting: asyncio.Queue[tuple[str, Document]] = asyncio.Queue(_WAITING_MAX)
        start = len(self._prefix) + 1

        async def take(subject: str, payload: bytes) -> None:
            found = _decoded(payload)
            if found is None:
                self.unreadable += 1
            elif waiting.full():
                self.lost += 1
            else:
                waiting.put_nowait((subject[start:], found))

        subscriptions = [await self._link.hear(f"{self._prefix}.{what}", take) for what in whats]
        try:
            await self._link.flush()
            while True:
                yield await waiting.get()
        finally:
            for one in subscriptions:
                if self._link.connected:
                    await one.unsubscribe()


def _whole(count: object) -> int:
    return count if isinstance(count, int) else 1


def _table(found: object) -> Document:
    return cast("Document", found) if isinstance(found, dict) else {}


def _decoded(payload: bytes) -> Document | None:
    if len(payload) > MESSAGE_BYTES_MAX:
        return None
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return cast("Document", found) if isinstance(found, dict) else None
