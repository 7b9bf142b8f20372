"""Where the clients of a testbed run, where rules act on them, and the scenario that they come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ascar.errors import StudyError
from ascar.sharp.trials.block_clients import DiskReach
from ascar.simulation import open_scenario, with_control

if TYPE_CHECKING:
    from ascar.simulation import Scenario
    from ascar.testbed.file import TestbedFile

WINDOW_ANY: Final = 256
"""The window of a proxy without one, as scenarios have it: the largest; and of kernels without rules."""


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """Where clients run.

    Attributes:
        node: the node.
        disk: the number of the disk that they work on.
        reach: how they reach it there; None: through the proxy, by the socket that it has once it is up.
    """

    node: str
    disk: int
    reach: DiskReach | None


def places_on(wanted: TestbedFile) -> tuple[ClientPlace, ...]:
    """Where clients run: beside proxies; where there are none, where disks are attached or mounted.

    Raises:
        StudyError: there is no such node.
    """
    numbers = {disk.name: at for at, disk in enumerate(wanted.disk)}
    most = max((len(proxy.disks) for proxy in wanted.proxy), default=0)
    by_proxy = [
        ClientPlace(proxy.node, numbers[proxy.disks[at]], None)
        for at in range(most)
        for proxy in wanted.proxy
        if at < len(proxy.disks)
    ]
    ports = {(disk.node, wanted.port_of(disk)): at for at, disk in enumerate(wanted.disk)}
    attached = [
        ClientPlace(node.name, ports[one.server, one.port], DiskReach("device", one.device))
        for node in wanted.node
        for one in node.attach
        if (one.server, one.port) in ports
    ]
    mounted = [
        ClientPlace(node.name, numbers[one.export], DiskReach("folder", one.place or f"/mnt/{one.export}"))
        for node in wanted.node
        for one in node.mounts
        if one.export in numbers
    ]
    found = by_proxy or attached or mounted
    if not found:
        raise StudyError("proxy: must have a table, or a node must attach or mount a disk; clients run there")
    return tuple(found)


def windows_on(wanted: TestbedFile) -> tuple[int, int] | None:
    """The least and the greatest window of kernels, where rules act on these; None: they act on proxies.

    Raises:
        StudyError: a client's device has no window, or agents differ where they have to agree.
    """
    windows = {agent.node: agent.windows for agent in wanted.agent if agent.windows is not None}
    if wanted.proxy or not windows:
        return None
    for place in places_on(wanted):
        assert place.reach is not None, "there are no proxies"
        own = windows.get(place.node)
        device = Path(place.reach.where).name
        if place.reach.kind == "folder":
            raise StudyError(
                f"node {place.node!r}: mounts {place.reach.where}, whose client has no window that rules can "
                "set; attach a disk instead"
            )
        if own is None or device not in own.devices:
            raise StudyError(
                f"agent: node {place.node!r} must have one with windows = {{ devices = [{device!r}] }}; a "
                "client works on that device there"
            )
    first = next(iter(windows.values()))
    for at, agent in enumerate(wanted.agent):
        for key in ("minimum", "maximum"):
            value, of_first = getattr(agent.windows, key, None), getattr(first, key)
            if value not in (None, of_first):
                raise StudyError(
                    f"agent[{at}].windows.{key} = {value}: must be {of_first} as of the first with windows, "
                    "for one range is searched"
                )
    return first.minimum, first.maximum


def scenario_on(wanted: TestbedFile) -> Scenario:
    """The scenario of a testbed: that of its disks, under the window and the gap of its proxies.

    Where rules act on kernels, any number of requests passes without rules, and no window is less than the
    least of the agents.

    Raises:
        StudyError: it has no disk, or nothing that rules act on; or tables differ where they have to agree.
        ScenarioError: there is no such scenario, or a key of it is wrong.
    """
    if not wanted.disk:
        raise StudyError("disk: must have a table; clients of its scenario are what rules are searched for")
    for at, disk in enumerate(wanted.disk):
        if disk.scenario != wanted.disk[0].scenario:
            raise StudyError(
                f"disk[{at}].scenario = {disk.scenario!r:.200}: must be that of disk[0], for one scenario is "
                "simulated"
            )
    scenario = open_scenario(wanted.disk[0].scenario)
    windows = windows_on(wanted)
    if windows is not None:
        return with_control(scenario, window=WINDOW_ANY, tau_us=0, window_min=windows[0])
    window, gap_us = _of_proxies(wanted)
    return with_control(scenario, window=window, tau_us=gap_us)


def _of_proxies(wanted: TestbedFile) -> tuple[int, int]:
    """The window and the gap of the proxies, in microseconds, which are the same for all."""
    if not wanted.proxy:
        raise StudyError(
            "proxy: must have a table, or agents of nodes of kind 'kernel' must have windows; rules act there"
        )
    kinds = {node.name: node.kind for node in wanted.node}
    first = wanted.proxy[0]
    for at, proxy in enumerate(wanted.proxy):
        if kinds[proxy.node] == "kernel":
            raise StudyError(
                f"proxy[{at}].node = {proxy.node!r}: must be of kind 'process' or 'namespace', whose sockets "
                "this machine reaches; rules act on kernels by windows of agents"
            )
        for key in ("window", "gap_us"):
            if getattr(proxy, key) != getattr(first, key):
                raise StudyError(
                    f"proxy[{at}].{key} = {getattr(proxy, key)!r}: must be that of proxy[0], for one "
                    "default is compared with"
                )
    return first.window or WINDOW_ANY, first.gap_us
