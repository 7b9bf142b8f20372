"""Nodes with a proxy and its agent each, on one message server."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from ascar.messaging import controller_user
from ascar.messaging.server_config import User
from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.messaging import MessageServer
    from data_plane_peers import Proxy, Starter

RULES = "1,2\n0,2147483647,0,2147483647,100,2147483647,0,300,0\n"


def agent_user() -> User:
    """An agent that also speaks for controllers."""
    rules = controller_user("agent")
    return User(
        "agent", publish=("ascar.capes.>", *rules.publish), subscribe=("ascar.capes.>", *rules.subscribe)
    )


class Site:
    """A message server, and nodes with a proxy and its agent each."""

    def __init__(self, start: Starter, folder: Path, server: MessageServer) -> None:
        self.start, self.folder, self.server = start, folder, server
        self.proxies: list[Proxy] = []
        self.agents: list[subprocess.Popen[bytes]] = []

    def node(self, target: Path) -> None:
        """One node more; its agent may be there before its proxy."""
        number = len(self.proxies) + 1
        folder = self.folder / f"node{number}"
        folder.mkdir()
        (folder / "agent.toml").write_text(
            f'node = "node{number}"\nconnection = "{self.server.settings_path("agent")}"\n'
            f'[[proxy]]\ncontrol = "../proxy{number}/control.sock"\n'
        )
        self.agents.append(self._agent(number))
        proxy = self.start.proxy(target, 'state_directory = "state"\n', controller=f"client{number}")
        self.proxies.append(proxy)

    def _agent(self, number: int) -> subprocess.Popen[bytes]:
        folder = self.folder / f"node{number}"
        command = [find_ascard(), "agent", "--config", folder / "agent.toml"]
        with (folder / "agent.log").open("w") as log:
            return self.start.started(command, stderr=log)

    def agent_again(self, number: int) -> None:
        """An agent that was killed is started anew, with an empty log."""
        self.agents[number - 1] = self._agent(number)

    def log(self, number: int) -> str:
        """What an agent has said."""
        return (self.folder / f"node{number}" / "agent.log").read_text()

    def sharp(self, *words: str, fails: str | None = None) -> Any:
        """What `ascar sharp` prints; or that it fails, and says so."""
        (self.folder / "rules.txt").write_text(RULES)
        connection = ["--connection", self.server.settings_path("manager"), "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "ascar", "sharp", *words, *connection],
            capture_output=True, text=True, check=False, cwd=self.folder,
            env={"ASCAR_RUNTIME_DIR": str(self.folder / "run"), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        if fails is not None:
            assert done.returncode == 1 and fails in done.stderr, (done.returncode, done.stderr)
            return None
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def in_force(self) -> list[str | None]:
        """What each proxy says of itself."""
        return [one.ask({"message": "rules.show/1"})["rules"] for one in self.proxies]
