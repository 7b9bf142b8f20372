"""Agents of a testbed: what their tables say, who they are on the message server, and their files."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Literal

import msgspec

from ascar.errors import StudyError, WorkError
from ascar.messaging import User, controller_user, manager_user, session_users
from ascar.program.node_binary import find_ascard
from ascar.study import within
from ascar.toml import toml_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PORT = 4222
"""Where the message server is reached in a node, on its loopback."""
_JOURNAL = "/run/ascar/journal"
"""Of the node's keeper: it ends with the node, as what it tells of does."""
_DEVICE = re.compile(r"[A-Za-z0-9_-]{1,32}")
_WORKLOAD = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What blk-mq has at least, whatever it is told; and what rules can reach.
_REQUESTS_MIN, _REQUESTS_MAX = 4, 256
_DEVICES_MAX = 16
_CHECK_S = 20.0


class AgentKnob(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[[agent.knobs]]`.

    Attributes:
        name: a knob of `ascard keeper`, such as "vm.dirty_ratio"; * stands for any device.
        minimum: nothing below it is set.
        maximum: nothing above it is set.
        choices: instead of both: nothing else is set.
    """

    name: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str | int | float, ...] = ()


class AgentWindows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[agent.windows]`: devices whose requests in flight rules limit, by the length of their queue.

    Attributes:
        devices: block devices of the node, such as "nbd15".
        minimum: the least window; the kernel has no less than 4 requests.
        maximum: the greatest window.
        workload: the workload by which rules are deployed on them.
    """

    devices: tuple[str, ...]
    minimum: int = _REQUESTS_MIN
    maximum: int = 128
    workload: str = "blocks"


class AgentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[[agent]]`: an `ascard agent` in a node of kind "kernel", one a node.

    Attributes:
        node: the node that it runs on, which is also its name in the session.
        interval_s: the length of a tick.
        contact_s: the agent puts knobs back after so long without a word from the interface, and windows
            after so long without the message server.
        collectors: what it samples.
        knobs: what the interface may set.
        windows: where rules act on the kernel itself; left out: on the node's proxy, if it has one.
    """

    node: str
    interval_s: float = 1.0
    contact_s: float = 30.0
    collectors: tuple[Literal["block", "cpu", "memory", "network", "nfs", "pressure", "vm"], ...] = (
        "block",
        "cpu",
        "memory",
        "nfs",
        "vm",
    )
    knobs: tuple[AgentKnob, ...] = ()
    windows: AgentWindows | None = None


def check_agents(agents: Sequence[AgentTable], kinds: dict[str, str], proxies: Sequence[str]) -> None:
    """Check the agents of a testbed file.

    Args:
        agents: their tables.
        kinds: the kind of each node by its name.
        proxies: the nodes that have a proxy.

    Raises:
        StudyError: a key is wrong.
    """
    for at, agent in enumerate(agents):
        key = f"agent[{at}]"
        if kinds.get(agent.node) != "kernel":
            there = ", ".join(name for name, kind in kinds.items() if kind == "kernel") or "none"
            raise StudyError(
                f"{key}.node = {agent.node!r:.80}: must be a node of kind 'kernel', whose kernel is its own; "
                f"there are {there}"
            )
        if any(other.node == agent.node for other in agents[:at]):
            raise StudyError(
                f"{key}.node = {agent.node!r}: has an agent already; name all of its knobs there"
            )
        within(f"{key}.interval_s", agent.interval_s, 0.05, 3600)
        within(f"{key}.contact_s", agent.contact_s, 3, 86_400)
        if agent.windows is not None:
            if agent.node in proxies:
                raise StudyError(
                    f"{key}.windows: node {agent.node!r} has a proxy, on which rules act; "
                    "leave one of them out"
                )
            _check_windows(f"{key}.windows", agent.windows)


def _check_windows(key: str, windows: AgentWindows) -> None:
    if not 1 <= len(windows.devices) <= _DEVICES_MAX or len(set(windows.devices)) < len(windows.devices):
        raise StudyError(
            f"{key}.devices = {list(windows.devices)!r:.80}: must be 1 to {_DEVICES_MAX} devices, each once"
        )
    for device in windows.devices:
        if not _DEVICE.fullmatch(device):
            raise StudyError(f"{key}.devices = {device!r:.80}: must be a block device such as 'nbd15'")
    within(f"{key}.minimum", windows.minimum, _REQUESTS_MIN, _REQUESTS_MAX)
    within(f"{key}.maximum", windows.maximum, windows.minimum, _REQUESTS_MAX)
    check_workload(f"{key}.workload", windows.workload)


def check_workload(key: str, name: str) -> None:
    """Check the name of a workload, by which rules are deployed.

    Raises:
        StudyError: it has other signs, or too many.
    """
    if not _WORKLOAD.fullmatch(name):
        raise StudyError(f"{key} = {name!r:.80}: must be 1 to 64 letters, digits, '-' or '_'")


def user_of(node: str) -> str:
    """The user of a node's agent at the message server."""
    return f"agent-{node}"


def users(testbed: str, nodes: Sequence[str]) -> list[User]:
    """Who may connect: a session of CAPES named as the testbed, its agents, and the rule manager.

    Args:
        testbed: the name of the testbed.
        nodes: the nodes with agents.
    """
    agents = {user_of(node): node for node in nodes}
    found = [manager_user()]
    for user in session_users(testbed, agents):
        if user.name in agents:  # its controller, or its proxy's, has its node's name
            follows = controller_user(user.name, (agents[user.name],))
            both = (*user.publish, *follows.publish), (*user.subscribe, *follows.subscribe)
            found.append(User(user.name, *both))
        else:
            found.append(user)
    return found


def agent_text(agent: AgentTable, testbed: str, password: str, control: Path | None) -> str:
    """The file of an agent.

    Args:
        agent: its table.
        testbed: the name of the testbed, which is that of the session.
        password: of its user.
        control: the control socket of the node's proxy; None: it has none.
    """
    return toml_text(
        {
            "session": testbed,
            "node": agent.node,
            "interval_s": agent.interval_s,
            "contact_s": agent.contact_s,
            "state_directory": _JOURNAL,
            "messaging": {
                "url": f"nats://127.0.0.1:{PORT}",
                "user": user_of(agent.node),
                "password": password,
            },
            "collector": [{"kind": kind} for kind in agent.collectors],
            "knob": msgspec.to_builtins(agent.knobs),
            "windows": None if agent.windows is None else msgspec.to_builtins(agent.windows),
            "proxy": None if control is None else [{"control": str(control)}],
        }
    )


def check_text(key: str, text: str, folder: Path) -> None:
    """Have `ascard` itself look at the file of an agent.

    Args:
        key: what the messages begin with.
        text: the file.
        folder: where it lies meanwhile.

    Raises:
        StudyError: it is refused; in its words.
        EnvironmentLacks: there is no `ascard`.
        WorkError: this one has no agent.
    """
    path = folder / "agent-to-check.toml"
    path.touch(mode=0o600)
    try:
        path.write_text(text, "utf-8")
        words = [str(find_ascard()), "agent", "--config", str(path), "--check"]
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=_CHECK_S, check=False
        )
    finally:
        path.unlink()
    if done.returncode == 0:
        return
    said = (done.stderr.strip().splitlines() or ["no message"])[-1]
    told = said.removeprefix("ascard agent: ").removeprefix(f"--config {path}: ")
    if told == said:
        raise WorkError(f"{words[0]}: has no agent: {said[:300]}; `make testbed` builds one that has")
    raise StudyError(f"{key}: {told[:600]}")
