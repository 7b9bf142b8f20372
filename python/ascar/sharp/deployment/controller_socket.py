"""A controller on this machine, asked on its own socket: a line a message, without a message server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self, TypeVar

from ascar.errors import MessagingError
from ascar.messaging import (
    MESSAGE_BYTES_MAX,
    Link,
    Message,
    Refusal,
    RequestRefused,
    decode,
    encode,
    end_tasks,
)
from ascar.sharp.deployment.messages import Listen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path
    from types import TracebackType

    from ascar.messaging import Settings

Kind = TypeVar("Kind", bound=Message)


class ControllerSocket:
    """What a `Link` is to a manager, to the one controller that listens on a socket of this machine.

    Each request is a connection of its own, so that one that is not answered leaves nothing behind. Subjects
    say nothing here: who listens on the socket is meant.

    Args:
        path: the socket.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hearing: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Hear nothing any more."""
        if self._hearing:
            await end_tasks(self._hearing)
            self._hearing.clear()

    async def request(self, subject: str, message: Message, reply: type[Kind], timeout_s: float) -> Kind:
        """Ask the controller.

        Raises:
            RequestRefused: it says no.
            MessagingError: it is not there, does not answer in time, or the answer cannot be understood.
        """
        try:
            async with asyncio.timeout(timeout_s), self._connected(message) as reader:
                line = await reader.readline()
        except TimeoutError:
            raise MessagingError(f"{subject}: no answer within {timeout_s:g} s") from None
        return self._read(subject, line, reply)

    async def gather(
        self, subject: str, message: Message, reply: type[Kind], timeout_s: float, enough: int | None = None
    ) -> list[Kind]:
        """Ask whoever is there: the controller, or nobody where it has nothing to say.

        Raises:
            RequestRefused: it answers nobody now.
            MessagingError: it is not there.
        """
        del enough  # there is only one
        try:
            return [await self.request(subject, message, reply, timeout_s)]
        except RequestRefused as refused:
            if not refused.reason.startswith("workload:"):  # another one is meant
                raise
            return []

    async def serve(
        self, subject: str, kind: type[Kind], handler: Callable[[Kind], Awaitable[Message | None]]
    ) -> None:
        """Hear what the controller says at the end of each tick, until it is gone.

        Raises:
            MessagingError: it is not there.
        """
        heard = asyncio.Event()

        async def hear() -> None:
            with contextlib.suppress(MessagingError):
                async with self._connected(Listen()) as reader:
                    heard.set()
                    while line := await reader.readline():
                        await handler(self._read(subject, line, kind))

        task = asyncio.create_task(hear())
        self._hearing.append(task)
        waiting = asyncio.create_task(heard.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not heard.is_set():
            raise MessagingError(f"{self._path}: nobody listens there; is the proxy running?")

    @contextlib.asynccontextmanager
    async def _connected(self, message: Message) -> AsyncGenerator[asyncio.StreamReader]:
        """Ask, on a connection of its own."""
        payload = encode(message)
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=MESSAGE_BYTES_MAX)
        except OSError as error:
            why = error.strerror or error
            raise MessagingError(f"{self._path}: {why}; is the proxy running?") from None
        try:
            writer.write(payload + b"\n")
            await writer.drain()
            yield reader
        except (OSError, ValueError) as error:
            raise MessagingError(f"{self._path}: {error}") from None
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _read(self, subject: str, line: bytes, reply: type[Kind]) -> Kind:
        if not line.endswith(b"\n"):
            raise MessagingError(f"{self._path}: the proxy has ended before it answered")
        answer = decode(line, reply | Refusal)
        if isinstance(answer, Refusal):
            raise RequestRefused(subject, answer.reason)
        return answer


async def open_link(settings: Settings, *, name: str) -> Link | ControllerSocket:
    """The way to controllers that settings say: a message server, or the socket of one controller.

    Args:
        settings: the address and the credentials.
        name: the name of this client, for the server's log.

    Raises:
        InputError: the settings are wrong.
        MessagingError: the message server cannot be reached.
    """
    path = settings.check().socket
    return await Link.open(settings, name=name) if path is None else ControllerSocket(path)
