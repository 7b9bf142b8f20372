"""A connection to a message server: publish, request, answer; what cannot be understood is only counted."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

import nats.errors

from ascar.errors import AscarError, InputError, MessagingError
from ascar.messaging.answers import RequestRefused
from ascar.messaging.client import GuardedClient
from ascar.messaging.identity import caller, identity
from ascar.messaging.message import Message, Refusal, decode, encode

if TYPE_CHECKING:
    from types import TracebackType

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

    from ascar.messaging.settings import Settings

Kind = TypeVar("Kind", bound=Message)
Handler = Callable[[Kind], Awaitable[Message | None]]

_RECONNECT_WAIT_S = 1  # between attempts, for ever: the server may come back at any time
_CLOSE_S = 2.0
_LATE_S = 0.05  # in which what came while we could not run is read
_LATE_MAX = 100_000


@dataclass(slots=True)
class Counts:
    """What a link has seen.

    Attributes:
        received: messages that were understood.
        unreadable: messages that were not.
        refused: requests that were answered by a refusal.
        reconnects: times that the server was lost and found again.
        lost: messages dropped because we were too slow, and other errors of the connection.
    """

    received: int = 0
    unreadable: int = 0
    refused: int = 0
    reconnects: int = 0
    lost: int = 0


class Link:
    """A connection; make one by `await Link.open(...)`, use it in `async with`.

    When the server is lost it is looked for without end; meanwhile requests fail by their time-outs.

    Attributes:
        user: our name in subjects; answers to us come below `_INBOX.USER`.
    """

    def __init__(self, client: Client, url: str, user: str) -> None:
        self._client = client
        self._url = url
        self.user = user
        self._opening = True
        self._lost_since_s: float | None = None
        self.counts = Counts()

    @classmethod
    async def open(cls, settings: Settings, *, name: str, timeout_s: float = 15.0) -> Link:
        """Connect.

        Args:
            settings: the address and the credentials.
            name: the name of this client, for the server's log.
            timeout_s: the time limit for connecting.

        Raises:
            InputError: the settings are wrong.
            MessagingError: nobody is there, we are not let in, or TLS does not come about.
        """
        if settings.check().socket is not None:
            raise InputError(
                f"url = {settings.url[:200]!r}: is the socket of one controller; this needs a message server"
            )
        client = GuardedClient(settings.url)
        link = cls(client, settings.url, caller(settings))
        try:
            with _cancellable():
                async with asyncio.timeout(timeout_s):
                    await client.connect(
                        settings.url,
                        name=name,
                        allow_reconnect=False,  # until the first time: a wrong password stays wrong
                        connect_timeout=math.ceil(timeout_s),
                        reconnect_time_wait=_RECONNECT_WAIT_S,
                        max_reconnect_attempts=-1,
                        error_cb=link._on_error,
                        disconnected_cb=link._on_loss,
                        reconnected_cb=link._on_return,
                        tls=settings.ssl_context(),
                        inbox_prefix=f"_INBOX.{link.user}",
                        **identity(settings),
                    )
        except asyncio.CancelledError:
            await link._leave()
            raise
        except AscarError:
            raise
        except Exception as error:  # noqa: BLE001  # by what it hears from whoever listens there, the client raises any
            await link._leave()
            raise MessagingError(_no_connection(settings, error)) from None
        client.options["allow_reconnect"] = True
        link._opening = False
        return link

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()

    @property
    def connected(self) -> bool:
        """Whether the server is there at present."""
        return self._client.is_connected

    @property
    def lost_for_s(self) -> float:
        """How long the server has been away; 0 while it is there."""
        return 0.0 if self._lost_since_s is None else time.monotonic() - self._lost_since_s

    async def close(self) -> None:
        """Send what waits, and leave; whoever is cancelled meanwhile leaves too."""
        try:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_CLOSE_S):
                    await self._client.flush()
        finally:
            await self._leave()

    async def _leave(self) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_S):  # after a failed handshake the client would wait for ever
                await self._client.close()

    async def publish(self, subject: str, message: Message) -> None:
        """Send to whoever listens.

        Raises:
            MessagingError: too large, or the link is closed.
        """
        payload = encode(message)
        with _as_ours(subject):
            await self._client.publish(subject, payload)

    async def flush(self, timeout_s: float = 5.0) -> None:
        """Wait until the server has all that was sent, and knows what we listen to.

        Raises:
            MessagingError: it does not answer in time.
        """
        with _as_ours(self._url):
            async with asyncio.timeout(timeout_s):
                # The client's ping overtakes what waits to be sent; a second one comes after it.
                await self._client.flush()
                await self._client.flush()

    async def request(self, subject: str, message: Message, reply: type[Kind], timeout_s: float) -> Kind:
        """Ask one responder.

        Raises:
            RequestRefused: it says no.
            MessagingError: nobody answers in time, or the answer cannot be understood.
        """
        payload = encode(message)
        with _as_ours(subject, timeout_s):
            async with asyncio.timeout(timeout_s):
                answer = await self._client.request(subject, payload, timeout=timeout_s)
        return self._read_reply(subject, answer.data, reply)

    async def gather(
        self, subject: str, message: Message, reply: type[Kind], timeout_s: float, enough: int | None = None
    ) -> list[Kind]:
        """Ask everybody who listens; answers that cannot be understood are counted, refusals left out.

        Args:
            subject: the subject of the request.
            message: the request.
            reply: kind of the answers.
            timeout_s: the time to wait for answers.
            enough: return as soon as so many have come; None: wait all the time.

        Raises:
            MessagingError: too large, or the link is closed.
        """
        found: list[Kind] = []
        late = 0
        payload = encode(message)
        with _as_ours(subject):
            async with self._asking(subject, payload) as answers:
                end_s = time.monotonic() + timeout_s
                # The client's own time-out is a TimeoutError, too.
                with contextlib.suppress(TimeoutError, nats.errors.NoRespondersError):
                    while (enough is None or len(found) < enough) and late < _LATE_MAX:
                        left_s = end_s - time.monotonic()
                        late += left_s < 0
                        answer = await _next(answers, max(left_s, _LATE_S))
                        with contextlib.suppress(MessagingError):
                            found.append(self._read_reply(subject, answer.data, reply))
        return found

    async def publish_payload(self, subject: str, payload: bytes) -> None:
        """Send bytes, of a protocol with messages of another form.

        Raises:
            MessagingError: too large, or the link is closed.
        """
        with _as_ours(subject):
            await self._client.publish(subject, payload)

    async def request_payload(self, subject: str, payload: bytes, timeout_s: float) -> bytes:
        """Ask one responder in bytes.

        Raises:
            MessagingError: nobody answers in time.
        """
        with _as_ours(subject, timeout_s):
            async with asyncio.timeout(timeout_s):
                return (await self._client.request(subject, payload, timeout=timeout_s)).data

    async def hear(self, subject: str, take: Callable[[str, bytes], Awaitable[None]]) -> Subscription:
        """Hear whatever comes, as bytes.

        Args:
            subject: the subject, with wildcards if need be.
            take: called with each message's subject and payload.

        Raises:
            MessagingError: the link is closed.
        """

        async def on_message(raw: Msg) -> None:
            await take(raw.subject, raw.data)

        with _as_ours(subject):
            return await self._client.subscribe(subject, cb=on_message)

    def new_inbox(self) -> str:
        """A subject for answers to us."""
        return self._client.new_inbox()

    async def serve(self, subject: str, kind: type[Kind], handler: Handler[Kind]) -> Subscription:
        """Answer requests, and hear messages that want no answer.

        An AscarError of the handler is answered by a `Refusal` with its words. What is not a message of this
        kind is counted, and answered by a `Refusal` too.

        Args:
            subject: the subject, with wildcards if need be.
            kind: the type of the messages.
            handler: takes a message, and gives the answer, or None.

        Raises:
            MessagingError: the link is closed.
        """

        async def on_message(raw: Msg) -> None:
            answer = await self._answer(raw.data, kind, handler)
            if raw.reply and answer is not None:
                with contextlib.suppress(MessagingError):
                    await self.publish(raw.reply, answer)

        with _as_ours(subject):
            return await self._client.subscribe(subject, cb=on_message)

    async def replies(self, subject: str, payload: bytes, timeout_s: float) -> AsyncGenerator[bytes]:
        """The parts of a reply that comes in several, unread, until the caller has enough.

        Args:
            subject: the subject of the request.
            payload: the payload of the request.
            timeout_s: the time limit for each part.

        Raises:
            MessagingError: nobody answers, or no further part comes in time.
        """
        with _as_ours(subject, timeout_s):
            async with self._asking(subject, payload) as answers:
                while True:
                    yield (await _next(answers, timeout_s)).data

    @contextlib.asynccontextmanager
    async def _asking(self, subject: str, payload: bytes) -> AsyncGenerator[Subscription]:
        """Ask; meanwhile every answer is heard."""
        inbox = self._client.new_inbox()
        answers = await self._client.subscribe(inbox)
        try:
            await self._client.publish(subject, payload, reply=inbox)
            yield answers
        finally:
            with _cancellable(), contextlib.suppress(Exception):
                await answers.unsubscribe()

    async def _answer(self, payload: bytes, kind: type[Kind], handler: Handler[Kind]) -> Message | None:
        try:
            message = decode(payload, kind)
        except MessagingError as error:
            self.counts.unreadable += 1
            return Refusal.of(error.message)
        self.counts.received += 1
        try:
            return await handler(message)
        except AscarError as error:
            self.counts.refused += 1
            return Refusal.of(error.message)

    def _read_reply(self, subject: str, payload: bytes, reply: type[Kind]) -> Kind:
        try:
            answer = decode(payload, reply | Refusal)
        except MessagingError as error:
            self.counts.unreadable += 1
            raise MessagingError(f"{subject}: the answer cannot be understood: {error.message}") from None
        self.counts.received += 1
        if isinstance(answer, Refusal):
            raise RequestRefused(subject, answer.reason)
        return answer

    async def _on_error(self, error: Exception) -> None:
        if self._opening:  # else the client would try the one address again and again
            raise error
        if not isinstance(error, (OSError, nats.errors.NoServersError)):  # those are told by being away
            self.counts.lost += 1

    async def _on_loss(self) -> None:
        if self._lost_since_s is None:
            self._lost_since_s = time.monotonic()

    async def _on_return(self) -> None:
        self.counts.reconnects += 1
        self._lost_since_s = None


@contextlib.contextmanager
def _cancellable() -> Any:
    """A cancellation stays one: the client, and in Python 3.11 `wait_for`, swallow some."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    yield
    if task and task.cancelling() > before:
        raise asyncio.CancelledError


async def _next(answers: Subscription, timeout_s: float) -> Msg:
    """The next answer.

    Raises:
        NoRespondersError: no process answers.
        TimeoutError: none comes in time.
    """
    with _cancellable():
        answer = await answers.next_msg(timeout=timeout_s)
    if answer.headers and answer.headers.get("Status") == "503":
        raise nats.errors.NoRespondersError
    return answer


@contextlib.contextmanager
def _as_ours(what: str, timeout_s: float | None = None) -> Any:
    """The client's errors as ours."""
    try:
        with _cancellable():
            yield
    except nats.errors.NoRespondersError:
        raise MessagingError(f"{what}: no process answers; is it running, on this server?") from None
    except TimeoutError:
        raise MessagingError(f"{what}: no answer within {timeout_s or 0:g} s") from None
    except (nats.errors.Error, OSError, ValueError) as error:
        raise MessagingError(f"{what}: {error or type(error).__name__}") from None


def _no_connection(settings: Settings, error: BaseException) -> str:
    """Why there is no connection, in words."""
    words = str(error) or type(error).__name__
    where = urlsplit(settings.url)
    at = f"{where.scheme}://{where.hostname}:{where.port or 4222}"
    if isinstance(error, TimeoutError):
        words = "no answer in time"
    if "uthorization" in words:
        way = "user and password" if settings.credentials is None else "credentials"
        words = f"the server does not let {settings.user or 'us'} in; check {way}"
    return f"message server {at}: {words[:300]}"
