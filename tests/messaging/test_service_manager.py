"""What a supervised daemon tells the service manager, and that nothing of it can hold the daemon up."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ascar.messaging import ServiceManager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 60.0
LIMIT_US = 60_000


@pytest.fixture(params=["a path", "a name of the kernel's own"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """The service manager's socket, and how it is named in the environment."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as found:
        name = str(tmp_path / "notify") if request.param == "a path" else f"@ascar-test-{os.getpid()}"
        found.bind(name.replace("@", "\0"))
        found.settimeout(PATIENCE_S)
        yield found, name


def heard(manager: socket.socket) -> list[str]:
    """What has come until now."""
    manager.setblocking(False)
    found: list[str] = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return found


async def at_work() -> str:
    await asyncio.sleep(2 * LIMIT_US / 1e6)
    return "done"


def test_a_daemon_is_ready_beats_and_ends(manager: tuple[socket.socket, str]) -> None:
    inbox, name = manager
    told = ServiceManager({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": str(LIMIT_US)})
    told.status("waits\nREADY=0")
    assert asyncio.run(told.supervised(at_work())) == "done"
    status, ready, *beats, end = heard(inbox)
    assert (status, ready, end) == ("STATUS=waits", "READY=1", "STOPPING=1")
    assert set(beats) == {"WATCHDOG=1"} and len(beats) <= 6


def test_a_daemon_that_fails_ends_all_the_same(manager: tuple[socket.socket, str]) -> None:
    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("of the work")

    inbox, name = manager
    with pytest.raises(ValueError, match="of the work"):
        asyncio.run(ServiceManager({"NOTIFY_SOCKET": name}).supervised(failing()))
    assert heard(inbox) == ["READY=1", "STOPPING=1"]


@pytest.mark.parametrize(
    "limit",
    [
        {},
        *({"WATCHDOG_USEC": it} for it in ("", "0", "-5", "soon", "\u0663")),
        {"WATCHDOG_USEC": "3", "WATCHDOG_PID": "1"},
    ],
)
def test_without_a_limit_of_this_process_nothing_beats(
    manager: tuple[socket.socket, str], limit: dict[str, str]
) -> None:
    inbox, name = manager
    asyncio.run(ServiceManager({"NOTIFY_SOCKET": name, **limit}).supervised(asyncio.sleep(0.02)))
    assert heard(inbox) == ["READY=1", "STOPPING=1"]


def test_a_manager_that_is_gone_or_takes_nothing_holds_nobody_up(tmp_path: Path) -> None:
    for name in ("", str(tmp_path / "nothing"), "@", "/" + "x" * 300):
        asyncio.run(ServiceManager({"NOTIFY_SOCKET": name}).supervised(asyncio.sleep(0)))
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as full:
        full.bind(str(tmp_path / "full"))
        told = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "full")})
        for _ in range(2000):
            told.status("x" * 1000)


def test_a_learner_is_ready_before_there_is_a_message_server(tmp_path: Path) -> None:
    (tmp_path / "connection.toml").write_text('url = "nats://127.0.0.1:9"\n')
    (tmp_path / "connection.toml").chmod(0o600)
    (tmp_path / "learner.toml").write_text(
        'session = "files"\nconnection = "connection.toml"\nobjective = "minimize cpu_busy_share"\n'
        f'state = "{tmp_path}/learner.npz"\n'
    )
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as inbox:
        inbox.bind(str(tmp_path / "notify"))
        inbox.settimeout(PATIENCE_S)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
        words = [sys.executable, "-m", "ascar", "capes", "train", "--quiet", "--config"]
        with subprocess.Popen([*words, tmp_path / "learner.toml"], env=environment) as learner:
            waited = {inbox.recv(4096).decode().partition(";")[0] for _ in range(4)}
            learner.send_signal(signal.SIGTERM)
            assert learner.wait(PATIENCE_S) == 0
        assert {"READY=1", "WATCHDOG=1"} <= waited
        assert any(one.startswith("STATUS=") and "127.0.0.1:9" in one for one in waited), waited
        assert heard(inbox)[-1] == "STOPPING=1"
