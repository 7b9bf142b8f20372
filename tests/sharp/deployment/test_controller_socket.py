"""A controller's own socket, whatever answers there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError, MessagingError
from ascar.messaging import Link, RequestRefused, Settings, encode
from ascar.messaging.rule_subjects import FIND, beat
from ascar.sharp.deployment import Beat, ControllerSocket, Here, Manager, open_link
from ascar.sharp.deployment.manager import ManagerTimeouts
from ascar.sharp.deployment.messages import Find, RuleUse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

HERE = Here(controller="client1", workload="blocks", instance="1f")


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(prefix="ascar-", dir="/tmp") as folder:
        yield Path(folder) / "control.sock"


async def ended(writer: asyncio.StreamWriter) -> None:
    """Close a connection; the other side may have done so before it had all."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def answering(
    path: Path, answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
) -> AsyncIterator[None]:
    """A server, all of whose connections are over at the end."""
    tasks: list[asyncio.Task[None]] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(answer(reader, writer)))

    async with await asyncio.start_unix_server(accept, path):
        try:
            yield
        finally:
            await asyncio.gather(*tasks)


async def asked(path: Path, answers: list[bytes]) -> Here:
    """What comes of a request that is answered so."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        for one in answers:
            writer.write(one)
        await ended(writer)

    async with answering(path, answer):
        return await ControllerSocket(path).request(FIND, Find(), Here, 1.0)


def test_a_line_is_the_answer(path: Path) -> None:
    assert asyncio.run(asked(path, [encode(HERE) + b"\n"])) == HERE


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([], "ended before it answered"),
        ([b'{"message": '], "ended before it answered"),
        ([b"nonsense\n"], "message: "),
        ([b"x" * (2 << 20) + b"\n"], "control.sock"),
        (
            [encode(Beat(controller="a", workload="b", instance="c", tick=1, tick_s=1, mb_per_s=0)) + b"\n"],
            "rules.beat",
        ),
    ],
)
def test_what_is_no_answer(path: Path, answers: list[bytes], words: str) -> None:
    with pytest.raises(MessagingError, match=words):
        asyncio.run(asked(path, answers))


def test_a_refusal_has_its_reason(path: Path) -> None:
    with pytest.raises(RequestRefused, match="because"):
        asyncio.run(asked(path, [b'{"message": "refusal/1", "reason": "because"}\n']))


def test_silence_ends(path: Path) -> None:
    async def ask() -> None:
        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            await ended(writer)

        async with answering(path, wait):
            await ControllerSocket(path).request(FIND, Find(), Here, 0.1)

    with pytest.raises(MessagingError, match=r"no answer within 0\.1 s"):
        asyncio.run(ask())


def test_a_controller_that_is_started_just_now_is_asked_again(path: Path) -> None:
    """And one that stays away, until the time for its answer is over."""
    patience = ManagerTimeouts(answer_s=0.9)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(encode(RuleUse(controller="client1", workload="blocks")) + b"\n")
        await ended(writer)

    async def show() -> tuple[int, list[str]]:
        manager = Manager(ControllerSocket(path), patience)
        asking = asyncio.create_task(manager.shown(["client1"]))
        await asyncio.sleep(0.4)
        async with answering(path, answer):
            shown, problems = await asking
        assert not problems
        path.unlink(missing_ok=True)
        begun_s = time.monotonic()
        _, problems = await manager.shown(["client1"])
        assert 0.4 < time.monotonic() - begun_s < 2.0
        return len(shown), [str(one) for one in problems]

    count, problems = asyncio.run(show())
    assert count == 1
    (problem,) = problems
    assert "client1" in problem and "is the proxy running?" in problem


def test_nobody_is_there(path: Path) -> None:
    async def find() -> None:
        async with await open_link(Settings(f"unix://{path}"), name="test") as link:
            await Manager(link).find()

    async def hear() -> None:
        async with ControllerSocket(path) as link:
            await link.serve(beat("client1"), Beat, lambda _: asyncio.sleep(0))

    for work in (find, hear):
        with pytest.raises(MessagingError, match="is the proxy running"):
            asyncio.run(work())


def test_a_message_server_is_another_thing(path: Path) -> None:
    with pytest.raises(InputError, match="needs a message server"):
        asyncio.run(Link.open(Settings(f"unix://{path}"), name="test"))
