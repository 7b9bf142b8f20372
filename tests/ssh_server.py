"""An SSH server of the tests' own, and a node behind it."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

if TYPE_CHECKING:
    from collections.abc import Generator

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")


class Server:
    """An SSH server of the tests' own, with keys of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
        # With another home, a shell reads no start-up files.
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPasswordAuthentication no\n"
            f"PermitRootLogin prohibit-password\nUsePAM no\nSetEnv HOME={folder}\n"
        )
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {(folder / 'host.pub').read_text()}")
        (folder / "settings").write_text(
            f"Host *\nIdentityFile {folder}/user\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
            f"StrictHostKeyChecking yes\nUser {getpass.getuser()}\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True) if os.geteuid() == 0 else None
        self.log = (folder / "log").open("wb")
        self.process = subprocess.Popen(
            [str(SSHD), "-D", "-e", "-f", folder / "sshd_config"], stderr=self.log, start_new_session=True
        )

    def table(self, **keys: Any) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.port, "settings": str(self.folder / "settings"), **keys}

    def ready(self) -> None:
        end_s = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert time.monotonic() < end_s, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def cut(self) -> None:
        """Every connection ends at once, as when the network is gone."""
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, check=False)
        for pid in listed.stdout.split():
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(int(pid), signal.SIGKILL)

    def end(self) -> None:
        self.cut()
        self.process.kill()
        self.process.wait()
        self.log.close()


@contextmanager
def running_server() -> Generator[Server]:
    """A server that is ready; skips where OpenSSH is not installed."""
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("the OpenSSH server is not installed")
    with tempfile.TemporaryDirectory(prefix="ascar-sshd-") as folder:
        server = Server(Path(folder))
        try:
            server.ready()
            yield server
        finally:
            server.end()
