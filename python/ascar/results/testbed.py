"""Results of `ascar testbed`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count


class TestbedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a testbed.

    Attributes:
        name: the name of the node.
        kind: its kind.
        alive: whether it is on.
        since: since when it is so: ISO 8601, UTC.
        address: its address in the testbed; null if it has none of its own.
        folder: the folder in which programs begin there.
    """

    name: str
    kind: Literal["process", "namespace", "kernel"]
    alive: bool
    since: str
    address: str | None
    folder: str


class TestbedDisk(msgspec.Struct, frozen=True, kw_only=True):
    """A disk of a testbed.

    Attributes:
        name: the name of the disk.
        node: the node that it runs on.
        alive: whether it serves.
        since: since when it is so: ISO 8601, UTC.
        address: where it listens: unix:PATH or tcp:HOST:PORT; null if its node alone has it.
        exports: the names of its exports.
        uris: the URI of each export, as clients of network block devices take it.
    """

    name: str
    node: str
    alive: bool
    since: str
    address: str | None
    exports: tuple[str, ...]
    uris: tuple[str, ...]


class TestbedProxy(msgspec.Struct, frozen=True, kw_only=True):
    """A proxy of a testbed.

    Attributes:
        node: the node that it runs on.
        alive: whether it serves.
        since: since when it is so: ISO 8601, UTC.
        sockets: the socket on which clients reach each disk, by the disk's name.
        control: the socket on which it takes rules.
        connection: the connection file with which `ascar sharp deploy` reaches it.
    """

    node: str
    alive: bool
    since: str
    sockets: dict[str, str]
    control: str
    connection: str


class TestbedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent of a testbed.

    Attributes:
        node: the node that it runs on.
        alive: whether it runs.
        since: since when it is so: ISO 8601, UTC.
    """

    node: str
    alive: bool
    since: str


class TestbedStanding(msgspec.Struct, frozen=True, kw_only=True):
    """A testbed that is up.

    Attributes:
        testbed: the name of the testbed.
        pid: the process that holds it.
        file: the testbed file.
        started_at: the time since which it is up: ISO 8601, UTC.
        folder: its folder.
        nodes: the nodes.
        disks: the disks.
        proxies: the proxies.
        agents: the agents.
        connections: the connection file of each user of the message server that agents are connected to;
            empty where there are no agents.
    """

    testbed: str
    pid: Count
    file: str
    started_at: str
    folder: str
    nodes: tuple[TestbedNode, ...]
    disks: tuple[TestbedDisk, ...]
    proxies: tuple[TestbedProxy, ...]
    agents: tuple[TestbedAgent, ...] = ()
    connections: dict[str, str] = {}


class TestbedUpResult(
    TestbedStanding, frozen=True, kw_only=True, tag_field="schema", tag="ascar/testbed-up/1"
):
    """A testbed that is up now, all of whose nodes are on."""


class TestbedStatusResult(
    TestbedStanding, frozen=True, kw_only=True, tag_field="schema", tag="ascar/testbed-status/1"
):
    """How a testbed stands."""


class TestbedCutResult(
    TestbedStanding, frozen=True, kw_only=True, tag_field="schema", tag="ascar/testbed-cut/1"
):
    """A testbed of which a node was cut."""


class TestbedBootResult(
    TestbedStanding, frozen=True, kw_only=True, tag_field="schema", tag="ascar/testbed-boot/1"
):
    """A testbed of which a node was booted."""


class TestbedDownResult(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag="ascar/testbed-down/1"
):
    """A testbed that was ended.

    Attributes:
        testbed: the name of the testbed.
        pid: the process that held it; null where it had been killed, and what it left was removed now.
    """

    testbed: str
    pid: Count | None
