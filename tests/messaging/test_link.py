"""Publish, request, gather, answer: with time-outs, limits, and garbage on every subject."""

from __future__ import annotations

import asyncio
import types
from typing import TYPE_CHECKING, Any, cast

import nats
import pytest

from ascar.errors import InputError, MessagingError
from ascar.messaging import (
    MESSAGE_BYTES_MAX,
    Link,
    Message,
    RequestRefused,
    decode,
    encode,
    subject,
    token,
)

if TYPE_CHECKING:
    from ascar.messaging import MessageServer


class Ask(Message, frozen=True, tag="ask/1"):
    number: int
    text: str = ""


class Answer(Message, frozen=True, tag="answer/1"):
    number: int


GARBAGE = (
    b"",
    b"garbage",
    b"\xff\xfe\x00",
    b"null",
    b"[]",
    b"{}",
    b'{"message":"ask/1"}',
    b'{"message":"ask/2","number":1}',
    b'{"message":"ask/1","number":"1"}',
    b'{"message":"ask/1","number":1.5}',
    b'{"message":"ask/1","number":1,"more":2}',
    b'{"message":"answer/1","number":1}',
    b'{"message":"ask/1","number":1,"text":' + b"[" * 100_000,
    b'{"message":"ask/1","number":' + b"9" * 10_000 + b"}",
)


async def doubled(message: Ask) -> Answer:
    if message.number < 0:
        raise InputError(f"number = {message.number}: must be 0 or more")
    return Answer(number=2 * message.number)


@pytest.mark.parametrize("payload", GARBAGE)
def test_garbage_is_refused(payload: bytes) -> None:
    with pytest.raises(MessagingError, match="message"):
        decode(payload, Ask)


def test_a_message_is_read_as_it_was_written() -> None:
    assert decode(encode(Ask(number=3, text="ä")), Ask | Answer) == Ask(number=3, text="ä")
    with pytest.raises(MessagingError, match="at most 1048576"):
        encode(Ask(number=1, text="x" * MESSAGE_BYTES_MAX))
    with pytest.raises(MessagingError, match="at most 1048576"):
        decode(b" " * (MESSAGE_BYTES_MAX + 1), Ask)


def test_subjects() -> None:
    assert subject("ascar", "ask", "*") == "ascar.ask.*"
    for bad in ("", "a.b", "a b", "*", ">", "a" * 65, "ä", "a\r\nPUB x 0"):
        with pytest.raises(InputError, match="must be 1 to 64"):
            token("name", bad)


def test_requests(server: MessageServer) -> None:
    async def run() -> None:
        manager = await Link.open(server.settings("manager"), name="manager")
        node = await Link.open(server.settings("node"), name="node")
        async with manager, node:
            await node.serve("ascar.ask.one", Ask, doubled)
            await node.flush()
            assert await manager.request("ascar.ask.one", Ask(number=4), Answer, 60.0) == Answer(number=8)
            with pytest.raises(RequestRefused, match="number = -1: must be 0 or more") as caught:
                await manager.request("ascar.ask.one", Ask(number=-1), Answer, 60.0)
            assert caught.value.reason == "number = -1: must be 0 or more"
            with pytest.raises(MessagingError, match="no process answers"):
                await manager.request("ascar.ask.nobody", Ask(number=1), Answer, 60.0)
            with pytest.raises(RequestRefused, match="same version"):
                await manager.request("ascar.ask.one", Answer(number=1), Answer, 60.0)
            assert node.counts.received == 2
            assert (node.counts.unreadable, node.counts.refused) == (1, 1)

    asyncio.run(run())


def test_whoever_is_silent_is_not_waited_for(server: MessageServer) -> None:
    async def silent(_: Ask) -> None:
        return None

    async def run() -> None:
        async with await Link.open(server.settings("manager"), name="manager") as manager:
            await manager.serve("ascar.ask.silent", Ask, silent)
            with pytest.raises(MessagingError, match=r"no answer within 0\.2 s"):
                await manager.request("ascar.ask.silent", Ask(number=1), Answer, 0.2)

    asyncio.run(run())


def test_gathering_from_many(server: MessageServer) -> None:
    async def run() -> None:
        links = [await Link.open(server.settings("node"), name=f"node {at}") for at in range(5)]
        manager = await Link.open(server.settings("manager"), name="manager")
        try:
            for at, link in enumerate(links):

                async def numbered(message: Ask, own: int = at) -> Answer:
                    if own == 2:
                        raise InputError("not today")
                    return Answer(number=message.number + own)

                await link.serve("ascar.ask.all", Ask, numbered)
                await link.flush()
            found = await manager.gather("ascar.ask.all", Ask(number=10), Answer, 30.0, enough=4)
            assert sorted(one.number for one in found) == [10, 11, 13, 14]
            assert await manager.gather("ascar.ask.none", Ask(number=10), Answer, 30.0) == []
        finally:
            for link in (*links, manager):
                await link.close()

    asyncio.run(run())


def test_garbage_on_a_subject_is_only_counted(server: MessageServer) -> None:
    async def run() -> None:
        settings = server.settings("manager")
        heard: list[int] = []

        async def hear(message: Ask) -> None:
            heard.append(message.number)

        raw = await nats.connect(settings.url, user=settings.user, password=settings.password)
        async with await Link.open(settings, name="hearer") as link:
            await link.serve("ascar.beat.one", Ask, hear)
            await link.flush()
            for payload in GARBAGE:
                await raw.publish("ascar.beat.one", payload)
            await raw.publish("ascar.beat.one", encode(Ask(number=7)))
            await raw.flush()
            async with asyncio.timeout(100):
                while not heard:
                    await asyncio.sleep(0.01)
            assert heard == [7]
            assert link.counts.unreadable == len(GARBAGE)
        await raw.close()

    asyncio.run(run())


def test_a_user_may_do_what_it_was_allowed_and_no_more(server: MessageServer) -> None:
    async def run() -> None:
        heard: list[int] = []

        async def hear(message: Ask) -> None:
            heard.append(message.number)

        manager = await Link.open(server.settings("manager"), name="manager")
        node = await Link.open(server.settings("node"), name="node")
        async with manager, node:
            for subject_ in ("ascar.rules", "ascar.beat.one"):
                await manager.serve(subject_, Ask, hear)
            await manager.flush()
            await node.publish("ascar.rules", Ask(number=1))  # not allowed
            await node.publish("ascar.beat.one", Ask(number=2))
            await node.flush()
            async with asyncio.timeout(100):
                while not (heard and node.counts.lost):
                    await asyncio.sleep(0.01)
            assert heard == [2]

    asyncio.run(run())


def test_nobody_there() -> None:
    from ascar.messaging import Settings

    with pytest.raises(MessagingError, match=r"message server nats://127\.0\.0\.1:1: .*onnect"):
        asyncio.run(Link.open(Settings(url="nats://127.0.0.1:1"), name="test"))


@pytest.mark.parametrize(
    "words", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"INFO {not json\r\n", b"INFO []\r\n", b""]
)
def test_something_else_listens_there(words: bytes) -> None:
    from ascar.messaging import Settings

    async def run() -> None:
        async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(words)
            await writer.drain()
            writer.close()

        other = await asyncio.start_server(speak, "127.0.0.1", 0)
        port = other.sockets[0].getsockname()[1]
        with pytest.raises(MessagingError, match="message server nats://127"):
            await Link.open(Settings(url=f"nats://127.0.0.1:{port}"), name="test")
        other.close()

    asyncio.run(run())


class _Swallowing:
    """A client that goes on with the answer when it is cancelled, as `wait_for` does in Python 3.11."""

    def __init__(self, begun):
        self.begun = begun

    async def request(self, *_, **__):
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return types.SimpleNamespace(data=encode(Answer(number=1)))


def test_a_cancellation_that_the_client_swallows_stays_one():
    async def run():
        begun = asyncio.Event()
        link: Any = Link(cast("Any", _Swallowing(begun)), "nats://127.0.0.1", "anyone")
        task = asyncio.create_task(link.request("x", Ask(number=1), Answer, 60))
        await begun.wait()
        task.cancel()
        await asyncio.wait((task,))
        return task.cancelled()

    assert asyncio.run(run())
