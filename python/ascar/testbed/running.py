"""A testbed that is up: its nodes, and what serves on them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, cast

from ascar.errors import StudyError
from ascar.messaging import MessageServer
from ascar.results.testbed import TestbedAgent, TestbedDisk, TestbedNode, TestbedProxy
from ascar.testbed import inside
from ascar.testbed.agent_service import ServedAgent
from ascar.testbed.agents import agent_text, check_text, user_of, users
from ascar.testbed.machine import close_all
from ascar.testbed.node_kinds import kind_of
from ascar.testbed.service import (
    Served,
    check_disks,
    control_of,
    disk_serves,
    disk_words,
    proxy_serves,
    proxy_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from ascar.testbed.agents import AgentTable
    from ascar.testbed.file import DiskTable, ProxyTable, TestbedFile
    from ascar.testbed.folder import TestbedFolder
    from ascar.testbed.kernel import KernelNode
    from ascar.testbed.machine import TestbedMachine

BOOT_S = 120.0
"""How long a node may take to boot."""
_LOOK_S = 0.1
_MESSAGES = "messages.d"  # which no node is called
_PATIENCE_S = 10.0


class RunningTestbed:
    """A testbed that is up while the context lasts; whatever ends the process that entered it ends all of it.

    Args:
        wanted: what is to be up.
        folder: where; it must have been entered.
        tell: hears in a few words what is done now.

    Raises:
        StudyError: a disk's scenario, size or file is refused, or what an agent is to set.
        EnvironmentLacks: what a kind of nodes needs is not there.
        WorkError: a node does not boot, or a disk, proxy or agent does not serve.
    """

    def __init__(
        self, wanted: TestbedFile, folder: TestbedFolder, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._wanted, self._folder, self._tell = wanted, folder, tell
        kinds = {
            kind: kind_of(kind, wanted, folder) for kind in dict.fromkeys(one.kind for one in wanted.node)
        }
        self._kinds = {node.name: kinds[node.kind] for node in wanted.node}
        self._machines: dict[str, TestbedMachine] = {}
        self._disks: dict[str, Served] = {}
        self._proxies: dict[str, Served] = {}
        self._agents: dict[str, Served] = {}
        self._messages: MessageServer | None = None
        self._since_s: dict[str, tuple[bool, float]] = {}
        # One node may wait for another: each is changed by itself.
        self._changing = {node.name: threading.RLock() for node in wanted.node}
        self._booting: set[str] = set()
        self._joining = threading.Lock()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        check_disks(self._wanted.disk)
        with ExitStack() as stack:
            self._remover(stack)
            for kind in dict.fromkeys(self._kinds.values()):
                kind.begin(stack, BOOT_S)
            self._start_messages(stack)
            self._boot_all(stack)
            stack.callback(self._end_served)
            for kind, served in (("disk", self._disks), ("proxy", self._proxies), ("agent", self._agents)):
                for name, one in served.items():
                    self._tell(f"{kind} {name} starts")
                    one.start()
            self._stack = stack.pop_all()
        self.look()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end_s = time.monotonic() + _PATIENCE_S
        with ExitStack() as held:
            for name, lock in self._changing.items():
                while not (taken := lock.acquire(timeout=_LOOK_S)) and time.monotonic() < end_s:
                    if name in self._booting:
                        self._machines[name].cut()  # nobody waits for it any more
                if taken:
                    held.callback(lock.release)
            self._stack.close()

    def _end_served(self) -> None:
        """End agents, proxies, then disks: side by side, for each may have much to put back or to write."""
        for several in (self._agents, self._proxies, self._disks):
            with ThreadPoolExecutor(max(1, len(several))) as pool:
                for ending in [pool.submit(one.end) for one in several.values()]:
                    ending.result()

    def machine(self, name: str) -> TestbedMachine:
        """A node.

        Raises:
            StudyError: there is none of this name.
        """
        if name not in self._machines:
            raise StudyError(f"NODE = {name!r:.80}: must be one of {', '.join(self._machines)}")
        return self._machines[name]

    def folder_of(self, node: str) -> Path:
        """The folder in which programs of a node begin, as the node sees it."""
        return self._kinds[node].folder(node)

    def cut(self, name: str) -> None:
        """Cut the power of a node: all that runs there is killed, also while it boots.

        Raises:
            StudyError: there is none of this name.
        """
        self.machine(name)
        while not self._changing[name].acquire(timeout=_LOOK_S):
            self._cut_power(name)
        try:
            self._cut_power(name)
            for served in self._served_on(name):
                served.gone()
            self._note(name)
        finally:
            self._changing[name].release()

    def _cut_power(self, name: str) -> None:
        with self._joining:
            self._kinds[name].part(name)
        self._machines[name].cut()

    def boot(self, name: str, limit_s: float = BOOT_S) -> None:
        """Boot a node that is off, with its disks, its proxy and its agent; one that is on stays as it is.

        Raises:
            StudyError: there is none of this name.
            EnvironmentLacks: what it needs is not there any more.
            WorkError: it does not boot, or a disk, proxy or agent does not serve.
        """
        machine = self.machine(name)
        with self._changing[name]:
            if not machine.alive:
                for served in self._served_on(name):
                    served.gone()
                self._turn_on(name, limit_s)
            for served in self._served_on(name):
                if not served.alive:
                    served.start()
            self._note(name)

    def _turn_on(self, name: str, limit_s: float) -> None:
        self._booting.add(name)
        try:
            self._machines[name].boot(limit_s)
            with self._joining:
                self._kinds[name].join(name)
        except BaseException:
            self._cut_power(name)  # without its network it would pass for one that is on
            raise
        finally:
            self._booting.discard(name)

    def look(self) -> None:
        """Note what has ended since the last look; of a node that ended by itself nothing is left running.

        A node that is cut or boots just now stands as it did before.
        """
        for name, machine in self._machines.items():
            lock = self._changing[name]
            if not lock.acquire(timeout=_LOOK_S):
                continue
            try:
                if not machine.alive and self._since_s.get(f"node {name}", (False,))[0]:
                    machine.cut()
                    for served in self._served_on(name):
                        served.gone()
                self._note(name)
            finally:
                lock.release()

    def _note(self, node: str) -> None:
        """Note whether a node and what serves on it is on, and since when."""
        now_s = time.time()
        on_it = {
            f"disk {disk.name}": self._disks.get(disk.name) for disk in self._wanted.disk if disk.node == node
        }
        on_it[f"proxy {node}"] = self._proxies.get(node)
        on_it[f"agent {node}"] = self._agents.get(node)
        for what, one in {f"node {node}": self._machines[node], **on_it}.items():
            if one is not None and self._since_s.get(what, (None,))[0] != (alive := one.alive):
                self._since_s[what] = alive, now_s

    def nodes(self) -> tuple[TestbedNode, ...]:
        """How the nodes stand."""
        return tuple(
            TestbedNode(
                name=node.name,
                kind=node.kind,
                **self._standing("node", node.name),
                address=self._kinds[node.name].address(node.name),
                folder=str(self.folder_of(node.name)),
            )
            for node in self._wanted.node
        )

    def disks(self) -> tuple[TestbedDisk, ...]:
        """How the disks stand."""
        return tuple(map(self._disk_standing, self._wanted.disk))

    def proxies(self) -> tuple[TestbedProxy, ...]:
        """How the proxies stand."""
        return tuple(
            TestbedProxy(
                node=proxy.node,
                **self._standing("proxy", proxy.node),
                sockets={disk: str(self.folder_of(proxy.node) / f"{disk}.sock") for disk in proxy.disks},
                control=str(control_of(self.folder_of(proxy.node))),
                connection=str(self.folder_of(proxy.node) / "connection.toml"),
            )
            for proxy in self._wanted.proxy
        )

    def agents(self) -> tuple[TestbedAgent, ...]:
        """How the agents stand."""
        return tuple(
            TestbedAgent(node=agent.node, **self._standing("agent", agent.node))
            for agent in self._wanted.agent
        )

    def connections(self) -> dict[str, str]:
        """The connection file of each user of the message server; empty: there is none."""
        server = self._messages
        if server is None:
            return {}
        known = users(self._wanted.name, [agent.node for agent in self._wanted.agent])
        return {user.name: str(server.settings_path(user.name)) for user in known}

    def _standing(self, kind: str, name: str) -> dict[str, Any]:
        """Of a disk that its node starts by itself: how the node stands."""
        if kind == "disk" and name not in self._disks:
            kind, name = "node", next(disk.node for disk in self._wanted.disk if disk.name == name)
        alive, since_s = self._since_s[f"{kind} {name}"]
        return {"alive": alive, "since": datetime.fromtimestamp(since_s, UTC).isoformat(timespec="seconds")}

    def _served_on(self, node: str) -> list[Served]:
        on_it = (disk.name for disk in self._wanted.disk if disk.node == node)
        found = [self._disks[name] for name in on_it if name in self._disks]
        return found + [several[node] for several in (self._proxies, self._agents) if node in several]

    def _start_messages(self, stack: ExitStack) -> None:
        """The message server that agents connect to, once what they are to do is known to be right."""
        nodes = [agent.node for agent in self._wanted.agent]
        if not nodes:
            return
        server = MessageServer(self._folder.path / _MESSAGES, users(self._wanted.name, nodes))
        self._tell("the message server starts")
        self._messages = stack.enter_context(server)
        for at, agent in enumerate(self._wanted.agent):
            check_text(f"agent[{at}] ({agent.node})", self._agent_text(agent), server.directory)

    def _remover(self, stack: ExitStack) -> None:
        """The process that removes what is left where this one is killed."""
        path, mark = str(self._folder.path), self._folder.mark
        words = [sys.executable, "-I", "-S", inside.__file__, "remove", path, mark]
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )

        def end() -> None:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.write(b"\n")
                process.stdin.close()
            process.wait()

        stack.callback(end)

    def _boot_all(self, stack: ExitStack) -> None:
        stack.callback(lambda: close_all(self._machines.values()))
        for node in self._wanted.node:
            self._machines[node.name] = self._kinds[node.name].machine(node)

        def boot(name: str) -> None:
            self._tell(f"node {name} boots")
            self._machines[name].boot(BOOT_S)

        # All at once: one may wait for another, as a client that mounts what a server exports.
        with ThreadPoolExecutor(len(self._machines)) as pool:
            booting = [pool.submit(boot, name) for name in self._machines]
            try:
                for one in as_completed(booting):
                    one.result()
            except BaseException:
                while wait(booting, _LOOK_S).not_done:  # such as who waits for the one that failed
                    for machine in self._machines.values():
                        machine.cut()
                raise
        for kind in dict.fromkeys(self._kinds.values()):
            stack.callback(kind.settle)
        for name, kind in self._kinds.items():
            kind.join(name)
        for disk in self._wanted.disk:
            if not self._kinds[disk.node].boots_disks:
                self._disks[disk.name] = self._disk(disk)
        for proxy in self._wanted.proxy:
            self._proxies[proxy.node] = self._proxy(proxy)
        for agent in self._wanted.agent:
            self._agents[agent.node] = self._agent(agent)

    def _disk_standing(self, disk: DiskTable) -> TestbedDisk:
        kind = self._kinds[disk.node]
        address = kind.serves_at(disk)
        exports = () if address is None else kind.exports(disk)
        return TestbedDisk(
            name=disk.name,
            node=disk.node,
            **self._standing("disk", disk.name),
            address=address,
            exports=exports,
            uris=tuple(_uri(address or "", export) for export in exports),
        )

    def _log(self, node: str, name: str) -> Path:
        folder = self._folder.path / node
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / name

    def _disk(self, disk: DiskTable) -> Served:
        machine, address = self._machines[disk.node], self._kinds[disk.node].serves_at(disk)
        assert address is not None, "it is started because it serves"
        words = disk_words(machine.ascard, disk, address)
        return Served(
            f"disk {disk.name}", machine, self._log(disk.node, f"{disk.name}.disk.log"), words, disk_serves
        )

    def _proxy(self, proxy: ProxyTable) -> Served:
        machine, folder = self._machines[proxy.node], self.folder_of(proxy.node)
        servers = {disk.name: self._kinds[disk.node].serves_at(disk) or "" for disk in self._wanted.disk}
        servers = {name: servers[name] for name in proxy.disks}
        sockets = [control_of(folder), *(folder / f"{disk}.sock" for disk in servers)]
        files = {
            folder / "proxy.toml": proxy_text(proxy, servers, folder),
            folder / "connection.toml": f'url = "unix://{control_of(folder)}"\n',
        }
        words = [machine.ascard, "proxy", "--config", str(folder / "proxy.toml")]
        log = self._log(proxy.node, "proxy.log")
        served = Served(f"proxy of {proxy.node}", machine, log, words, proxy_serves(sockets))
        served.files, served.sockets = files, sockets
        return served

    def _agent(self, agent: AgentTable) -> Served:
        # The file was checked: agents are on such nodes alone.
        machine = cast("KernelNode", self._machines[agent.node])
        assert self._messages is not None, "it was started because there are agents"
        config = self.folder_of(agent.node) / "agent.toml"
        log = self._log(agent.node, "agent.log")
        has_proxy = agent.node in self._proxies
        served = ServedAgent(
            f"agent of {agent.node}",
            machine,
            log,
            config,
            self._messages,
            follows_rules=has_proxy or agent.windows is not None,
        )
        served.files = {config: self._agent_text(agent)}
        return served

    def _agent_text(self, agent: AgentTable) -> str:
        assert self._messages is not None, "it was started because there are agents"
        password = self._messages.settings(user_of(agent.node)).password or ""
        has_proxy = any(proxy.node == agent.node for proxy in self._wanted.proxy)
        control = control_of(self.folder_of(agent.node)) if has_proxy else None
        return agent_text(agent, self._wanted.name, password, control)


def _uri(address: str, export: str) -> str:
    """The URI of an export, as NBD's own tools take it."""
    kind, _, where = address.partition(":")
    return f"nbd+unix:///{export}?socket={where}" if kind == "unix" else f"nbd://{where}/{export}"
