"""Agents that run: `ascard agent` in a node that is a kernel, and its way to a message server here."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ascar.errors import WorkError
from ascar.testbed.agents import PORT
from ascar.testbed.service import Served
from ascar.testbed.tunnel import TunnelEnd

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.messaging import MessageServer
    from ascar.testbed.kernel import KernelNode

_CONNECT_S, _HELLO_S, _END_S = 2.0, 30.0, 20.0
# The end of its input asks it to end; so the program here only has to close that.
_RUN = """
exec 3<&0
"$@" </dev/null 3<&- &
agent=$!
( read -r nothing <&3; kill -TERM "$agent" 2>/dev/null ) >/dev/null 2>&1 &
exec 3<&-
wait "$agent"
"""


class ServedAgent(Served):
    """An agent, and the tunnel from its node to the message server.

    Args:
        name: what messages call it.
        machine: the node.
        log: the file of what it says.
        config: its file, as the node sees it.
        server: the message server.
        follows_rules: whether the rule manager is to reach it, or a proxy through it.
    """

    def __init__(
        self,
        name: str,
        machine: KernelNode,
        log: Path,
        config: Path,
        server: MessageServer,
        *,
        follows_rules: bool,
    ) -> None:
        words = ["sh", "-c", _RUN, "agent", machine.ascard, "agent", "--config", str(config)]
        super().__init__(name, machine, log, words, self._is_connected)
        self._node, self._log_file, self._server = machine, log, server
        self._follows_rules = follows_rules
        self._tunnel: _Tunnel | None = None

    def start(self) -> None:
        """See `Served.start`: it serves once it is connected."""
        self._end_tunnel()
        self._tunnel = _Tunnel(self.name, self._node, self._log_file, self._server)
        super().start()

    def end(self) -> None:
        """See `Served.end`: it puts back what it has set."""
        process = self._process
        if process is not None and process.poll() is None and process.stdin is not None:
            process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
        super().end()
        self._end_tunnel()

    def gone(self) -> None:
        """See `Served.gone`."""
        super().gone()
        self._end_tunnel()

    def _is_connected(self, served: Served) -> bool:
        tunnel = self._tunnel
        if not served.alive or tunnel is None or not tunnel.carries.is_set():
            return False
        return not self._follows_rules or " reaches controller " in served.said

    def _end_tunnel(self) -> None:
        tunnel, self._tunnel = self._tunnel, None
        if tunnel is not None:
            tunnel.end()


class _Tunnel:
    """A tunnel from a node to a message server, which a thread of this process serves.

    Raises:
        WorkError: its end in the node does not listen in time.
    """

    def __init__(self, name: str, node: KernelNode, log: Path, server: MessageServer) -> None:
        self.carries = threading.Event()
        """Set once it has carried a connection."""
        self._listens = threading.Event()
        where = urlsplit(server.url)
        self._target = where.hostname or "", where.port or 0
        with log.open("ab") as said:
            self._process = node.open(node.tunnel_words(PORT), said)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._end = TunnelEnd(
            self._process.stdout.fileno(),
            self._process.stdin.fileno(),
            connect=self._connect,
            on_hello=self._listens.set,
        )
        self._thread = threading.Thread(target=self._end.serve, name=f"tunnel of {name}", daemon=True)
        self._thread.start()
        end_s = time.monotonic() + _HELLO_S
        while not self._listens.wait(0.02):
            if self._process.poll() is not None or time.monotonic() > end_s:
                self.end()
                raise WorkError(f"{name}: its way to the message server does not open; {log} says why")

    def end(self) -> None:
        """End it, and the connections that it carries."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _connect(self) -> socket.socket:
        line = socket.create_connection(self._target, _CONNECT_S)
        self.carries.set()
        return line
