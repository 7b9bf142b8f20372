"""A proxy that runs, and what stands on its two sides."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from typing import IO, TYPE_CHECKING, Any

import pytest

from ascar.program.node_binary import find_ascard
from waiting import until

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

WAIT_S = 20.0


def needed(program: str, package: str) -> str:
    """Where a program is; skips where it is missing."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is missing: apt-get install {package}")
    return found


class Proxy:
    """A running `ascard proxy`.

    Args:
        folder: of its file, sockets and log.
        keys: of its file.
        routes: listening sockets and servers.
        controller: its name.
        terms: more keys and tables of each route.
    """

    def __init__(
        self, folder: Path, keys: str, routes: dict[str, str], controller: str = "client1", *, terms: str = ""
    ) -> None:
        self.folder, self.control = folder, folder / "control.sock"
        self.config, self._log = folder / "proxy.toml", folder / "proxy.log"
        tables = "".join(
            f"[[route]]\nlisten = {json.dumps(listen)}\nserver = {json.dumps(server)}\n{terms}"
            for listen, server in routes.items()
        )
        head = f'controller = "{controller}"\nworkload = "blocks"\ncontrol = "control.sock"\n'
        self.config.write_text(head + keys + tables)
        (folder / "connection.toml").write_text(f'url = "unix://{self.control}"\n')
        self.process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        command = [find_ascard(), "proxy", "--config", self.config]
        with self._log.open("w") as log:
            process = subprocess.Popen(command, stderr=log)
        until(lambda: self._listens() or process.poll() is not None)
        if process.poll() is not None:
            pytest.fail(self.log())
        return process

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as asking:
            return asking.connect_ex(str(self.control)) == 0

    def again(self, by: signal.Signals) -> None:
        """End it by a signal, and start it anew, with an empty log."""
        self.process.send_signal(by)
        self.process.wait(WAIT_S)
        self.process = self._begun()

    def log(self) -> str:
        """What it has said."""
        return self._log.read_text()

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer on the control socket."""
        return json.loads(self.ask_line(json.dumps(message).encode() + b"\n"))

    def ask_line(self, line: bytes) -> bytes:
        """The answer to bytes."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(WAIT_S)
            asking.connect(str(self.control))
            asking.sendall(line)
            return asking.makefile("rb").readline()

    def streams(self) -> list[dict[str, Any]]:
        """What its streams show."""
        return self.ask({"message": "rules.observe/1"})["streams"]

    def stop(self) -> None:
        """At once, whatever it does."""
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """As it is told to."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)


class Starter:
    """Starts what ends with the test."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._count = 0

    def proxy(
        self,
        server: Path | str,
        keys: str = "",
        controller: str = "client1",
        *,
        terms: str = "",
        listen: str = "unix:disk.sock",
        **routes: str,
    ) -> Proxy:
        """A proxy whose clients connect to `disk.sock` in its folder, or where they are listened for."""
        self._count += 1
        folder = self._folder / f"proxy{self._count}"
        folder.mkdir()
        address = server if isinstance(server, str) else f"unix:{server}"
        proxy = Proxy(folder, keys, {listen: address, **routes}, controller, terms=terms)
        self._stack.callback(proxy.stop)
        return proxy

    def nbdkit(self, *words: str) -> Path:
        """A server of nbdkit, by its filters, its plugin and their parameters; its socket."""
        self._count += 1
        path = self._folder / f"nbdkit{self._count}.sock"
        command = [needed("nbdkit", "nbdkit"), "-f", "-U", path, *words]
        process = self.started(command)
        until(lambda: path.exists() or process.poll() is not None)
        assert process.poll() is None
        return path

    def started(self, command: list[Any], stderr: IO[str] | None = None) -> subprocess.Popen[bytes]:
        """A program."""
        process = subprocess.Popen(command, stderr=stderr)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process


def disk_of(proxy: Proxy) -> Path:
    """Where clients connect to."""
    return proxy.folder / "disk.sock"


def fio(path: Path, *, depth: int, seconds: float, read: str = "randread") -> dict[str, Any]:
    """What fio's job of one thread measured: its JSON."""
    command = [
        needed("fio", "fio"), "--name=load", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={path}",
        f"--rw={read}", "--bs=4k", f"--iodepth={depth}", "--time_based", f"--runtime={seconds:g}",
        "--output-format=json", "--randseed=1",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]  # a word of the engine comes before
