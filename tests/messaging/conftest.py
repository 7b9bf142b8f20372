"""A message server a test, and certificates by a CA of the test's own."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from ascar.messaging import MessageServer, User
from ascar.messaging.server import find_nats_server
from certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MessageServer]:
    users = (User("manager"), User("node", publish=("ascar.beat.*",), subscribe=("ascar.ask.*",)))
    with MessageServer(tmp_path / "messages", users) as started:
        yield started


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ca.pem, other-ca.pem; server.pem and its key, of localhost by name alone; client.pem and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    ca, _ = Authority(folder), Authority(folder, "other-ca")
    ca.issue("server", "serverAuth", "DNS:localhost")
    ca.issue("client", "clientAuth", "email:manager@ascar")
    return folder


@contextmanager
def _serving(folder: Path, settings: str) -> Iterator[int]:
    (folder / "server.conf").write_text(f"ports_file_dir: {json.dumps(str(folder))}\n{settings}")
    with subprocess.Popen(
        [find_nats_server(), "-c", "server.conf"], cwd=folder, stderr=subprocess.PIPE
    ) as process:
        try:
            end_s = time.monotonic() + 60
            while not (files := list(folder.glob("*.ports"))) or not files[0].read_text().endswith("}"):
                assert process.poll() is None, process.stderr and process.stderr.read().decode()
                assert time.monotonic() < end_s
                time.sleep(0.02)
            yield int(json.loads(files[0].read_text())["nats"][0].rsplit(":", 1)[1])
        finally:
            process.kill()


@pytest.fixture(scope="session")
def serving() -> Callable[[Path, str], AbstractContextManager[int]]:
    """Run a server in a folder with settings of the test's own; the context is its port."""
    return _serving
