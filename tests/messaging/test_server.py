"""The server of our own: private, watched, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ascar.errors import EnvironmentLacks, MessagingError, Refused
from ascar.messaging import Link, MessageServer, Settings, User, read_settings
from ascar.messaging import server as server_module
from process_state import alive
from waiting import until

WAIT_S = 100.0


async def reaches(settings: Settings) -> bool:
    async with await Link.open(settings, name="test") as link:
        return link.connected


def test_files_are_private_and_no_password_is_on_a_command_line(server: MessageServer) -> None:
    password = server.settings("manager").password
    assert password is not None and len(password) >= 32
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
    for path in ("server.conf", "manager.toml", "node.toml"):
        assert stat.S_IMODE((server.directory / path).stat().st_mode) == 0o600
    line = Path(f"/proc/{server.pid}/cmdline").read_text()
    assert password not in line
    assert read_settings(server.settings_path("manager")) == server.settings("manager")
    assert server.settings("node").password != password


def test_it_listens_on_loopback_alone(server: MessageServer) -> None:
    port = int(server.url.rsplit(":", 1)[1])
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{server.pid}/net/{name}").read_text().splitlines()[1:]
    ]
    listening = [row[1] for row in rows if row[3] == "0A" and int(row[1].rsplit(":", 1)[1], 16) == port]
    assert listening == [f"0100007F:{port:04X}"]


def test_who_knows_the_password_is_let_in_and_nobody_else(server: MessageServer) -> None:
    assert asyncio.run(reaches(server.settings("manager")))
    for wrong in (
        Settings(url=server.url),
        Settings(url=server.url, user="manager", password="guess"),
        Settings(url=server.url, user="nobody", password=server.settings("manager").password),
        Settings(url=server.url, token="guess"),
    ):
        with pytest.raises(MessagingError, match="does not let"):
            asyncio.run(reaches(wrong))


def test_stopped_it_is_gone_with_its_files(tmp_path: Path) -> None:
    server = MessageServer(tmp_path, [User("manager")])
    with server:
        pid = server.pid
        assert pid is not None and alive(pid)
    assert not alive(pid)
    assert server.pid is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "server.err", "server.log"]
    server.stop()  # again, for nothing


def test_killed_it_comes_back_at_the_same_address(server: MessageServer) -> None:
    async def survives() -> None:
        async with await Link.open(server.settings("manager"), name="test") as link:
            pid, url = server.pid, server.url
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(WAIT_S):
                while not (link.counts.reconnects and link.connected):
                    await asyncio.sleep(0.02)
            assert server.url == url
            assert server.pid != pid
            assert server.restarts == 1
            assert link.lost_for_s == 0

    asyncio.run(survives())


def test_that_dies_again_and_again_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_RESTARTS_MAX", 1)
    with MessageServer(tmp_path, [User("manager")]) as server:
        for _ in range(2):
            until(lambda: server.pid is not None)
            pid = server.pid
            assert pid is not None
            until(lambda: asyncio.run(answers(server)))
            os.kill(pid, signal.SIGKILL)
            until(lambda gone=pid: server.pid != gone)
        until(lambda: server.problem is not None)
        assert "died 1 times within a minute" in str(server.problem)


async def answers(server: MessageServer) -> bool:
    try:
        return await reaches(server.settings("manager"))
    except MessagingError:
        return False


PARENT = """
import sys, time
from pathlib import Path
from ascar.messaging import MessageServer, User
server = MessageServer(Path(sys.argv[1]), [User("manager")])
server.start()
print(server.pid, flush=True)
if sys.argv[2] == "wait":
    time.sleep(600)
"""


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "exit"])
def test_it_ends_with_the_process_that_started_it(tmp_path: Path, how: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), "exit" if how == "exit" else "wait"],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if how != "exit":
            assert alive(pid)
            parent.send_signal(signal.Signals[how])
        parent.wait(WAIT_S)
    until(lambda: not alive(pid))
    with MessageServer(tmp_path, [User("manager")]) as server:  # the folder is free again
        assert asyncio.run(reaches(server.settings("manager")))


def test_one_server_a_folder(server: MessageServer) -> None:
    with pytest.raises(Refused, match="another message server runs there"):
        MessageServer(server.directory, [User("manager")]).start()
    assert asyncio.run(reaches(server.settings("manager")))


def test_a_program_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    false = tmp_path / "nats-server"
    false.write_text("#!/bin/sh\necho no such option >&2\nexit 3\n")
    false.chmod(0o755)
    monkeypatch.setattr(server_module, "find_nats_server", lambda: false)
    with pytest.raises(MessagingError, match="ended with status 3 at its start; no such option"):
        MessageServer(tmp_path / "messages", [User("manager")]).start()


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = tmp_path / "nats-server"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    monkeypatch.setattr(server_module, "find_nats_server", lambda: hanging)
    server = MessageServer(tmp_path / "messages", [User("manager")], start_timeout_s=0.5)
    with pytest.raises(MessagingError, match="did not answer within"):
        server.start()
    assert server.pid is None


def test_without_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match=r"ascar\[online\]"):
        server_module.find_nats_server()
