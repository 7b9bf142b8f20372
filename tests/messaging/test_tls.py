"""TLS: the documented server, and who is not spoken to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.errors import InputError, MessagingError
from ascar.messaging import Link, MessageServer, Settings, Tls, controller_user, manager_user, read_settings
from ascar.messaging.rule_subjects import ask, beat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

DOCUMENTED = Path(__file__).resolve().parents[2] / "docs" / "messaging.md"
MANAGER = ("manager", "a long random word")


@pytest.fixture(scope="module")
def port(
    certificates: Path,
    tmp_path_factory: pytest.TempPathFactory,
    serving: Callable[[Path, str], AbstractContextManager[int]],
) -> Iterator[int]:
    """A server with the documented configuration."""
    folder = tmp_path_factory.mktemp("tls")
    text = re.search(r"tests start a server with it -->\n```\n(.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    assert text is not None
    config = text[1].replace('"0.0.0.0:4222"', '"127.0.0.1:-1"')
    for name in ("server.pem", "server.key", "ca.pem"):
        (folder / name).write_bytes((certificates / name).read_bytes())
    with serving(folder, config) as port:
        yield port


def settings(
    port: int, certificates: Path, ca: str = "ca", *, host: str = "localhost", own: bool = True
) -> Settings:
    files = (str(certificates / "client.pem"), str(certificates / "client.key")) if own else (None, None)
    tls = Tls(ca=str(certificates / f"{ca}.pem"), certificate=files[0], key=files[1])
    return Settings(url=f"tls://{host}:{port}", user=MANAGER[0], password=MANAGER[1], tls=tls)


async def connect(given: Settings) -> bool:
    async with await Link.open(given, name="test") as link:
        await link.flush()
        return link.connected


def test_the_documented_server_lets_in_whom_it_is_told_to(port: int, certificates: Path) -> None:
    assert asyncio.run(connect(settings(port, certificates)))


def test_a_connection_file_with_all_of_it(port: int, certificates: Path) -> None:
    path = certificates / "connection.toml"
    path.write_text(
        f'url = "tls://localhost:{port}"\nuser = "manager"\npassword = "a long random word"\n'
        '[tls]\nca = "ca.pem"\ncertificate = "client.pem"\nkey = "client.key"\n'
    )
    path.chmod(0o600)
    found = read_settings(path)
    assert asyncio.run(connect(found))
    again = certificates / "again.toml"
    again.write_text(found.to_toml())
    again.chmod(0o600)
    assert read_settings(again) == found


def test_a_server_of_another_authority_is_not_spoken_to(port: int, certificates: Path) -> None:
    with pytest.raises(MessagingError, match="certificate verify failed"):
        asyncio.run(connect(settings(port, certificates, ca="other-ca")))


def test_a_server_of_another_name_is_not_spoken_to(port: int, certificates: Path) -> None:
    with pytest.raises(MessagingError, match="certificate is not valid|certificate verify failed"):
        asyncio.run(connect(settings(port, certificates, host="127.0.0.1")))


def test_without_a_certificate_of_our_own_we_are_not_let_in(port: int, certificates: Path) -> None:
    with pytest.raises(MessagingError, match="message server tls://localhost"):
        asyncio.run(connect(settings(port, certificates, own=False)))


def test_a_wrong_password_is_not_let_in(port: int, certificates: Path) -> None:
    wrong = settings(port, certificates)
    wrong = Settings(url=wrong.url, user="manager", password="guess", tls=wrong.tls)
    with pytest.raises(MessagingError, match="does not let manager in"):
        asyncio.run(connect(wrong))


def test_a_server_without_tls_hears_nothing_where_tls_was_asked_for(
    tmp_path: Path, certificates: Path
) -> None:
    """Somebody in between who says that there is no TLS gets no password."""

    async def run() -> bytes:
        heard = bytearray()

        async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(
                b'INFO {"server_id":"x","version":"2.11.0","max_payload":1048576,"auth_required":true}\r\n'
            )
            await writer.drain()
            heard.extend(await reader.read())
            writer.close()

        between = await asyncio.start_server(speak, "127.0.0.1", 0)
        port = between.sockets[0].getsockname()[1]
        with pytest.raises(MessagingError, match="offers no TLS"):
            await connect(settings(port, certificates))
        between.close()
        await asyncio.sleep(0.1)
        return bytes(heard)

    assert b"long random" not in (heard := asyncio.run(run())) and b"CONNECT" not in heard
    with MessageServer(tmp_path, [manager_user()]) as server:
        own = server.settings("manager")
        plain = Settings(url=own.url.replace("nats://", "tls://"), user=own.user, password=own.password)
        with pytest.raises(MessagingError, match="offers no TLS"):
            asyncio.run(connect(plain))


def test_bytes_in_clear_behind_the_greeting_are_refused(port: int, certificates: Path) -> None:
    """Somebody in between who has no key adds what may be read as if it had come inside TLS."""
    added = b"PONG\r\nMSG ascar.rules.find 1 2\r\n{}\r\n"

    async def run() -> None:
        ended = asyncio.Event()

        async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
            writer.write(await from_server.readline() + added)
            await asyncio.gather(_relay(reader, to_server), _relay(from_server, writer))
            ended.set()

        between = await asyncio.start_server(speak, "127.0.0.1", 0)
        try:
            with pytest.raises(MessagingError, match="in clear behind its greeting"):
                await connect(settings(between.sockets[0].getsockname()[1], certificates))
        finally:
            between.close()
        await asyncio.wait_for(ended.wait(), 60)

    asyncio.run(run())


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def test_files_that_are_no_certificates(port: int, certificates: Path, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_bytes(os.urandom(200))
    for name in (str(garbage), str(tmp_path / "missing.pem")):
        given = Settings(url=f"tls://localhost:{port}", tls=Tls(ca=name))
        with pytest.raises(InputError, match=re.escape(name)):
            asyncio.run(connect(given))


def test_the_documented_permissions_are_those_of_our_own_server() -> None:
    text = DOCUMENTED.read_text()
    manager, controller = manager_user(), controller_user("controller")
    for subject in (*manager.publish, *manager.subscribe, *controller.publish):
        assert f'"{subject}"' in text, subject
    assert controller.subscribe == ("ascar.rules.find", "ascar.rules.*.*")
    assert (ask("load", "a"), beat("a")) == ("ascar.rules.load.a", "ascar.rules.beat.a")
    for verb in ("find", "load.NAME", "keep.NAME", "back.NAME", "stop.NAME", "show.NAME", "beat.NAME"):
        assert f"`ascar.rules.{verb}`" in text
