"""OSDs of a cluster that people use, started anew one failure domain after the other.

What makes it safe is Ceph's own: the health is HEALTH_OK before each, and `ceph osd ok-to-stop` says that no
placement group would be without enough copies. Who is interrupted goes on where it was: an OSD that runs with
the wanted values is left alone.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ascar.catalogues.ceph import ceph
from ascar.errors import StageFailed
from ascar.systems.existing.restart import ServerRestart  # noqa: TC001 - msgspec reads it
from ascar.systems.program.commands import CommandPlace, done_command

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from ascar.systems.ceph.connection import CephSession

LIMIT_MAX_S = 1800.0
READS = ("osd tree", "osd ok-to-stop ID ...")
"""The commands of `ceph` by which it reads."""
OSD = "osd"
_HOST = "host"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_LOOK_S = 0.5


class _Node(msgspec.Struct, frozen=True):
    id: int
    type: str = ""
    name: str = ""
    status: str = ""
    children: tuple[int, ...] = ()


class _Tree(msgspec.Struct, frozen=True):
    nodes: tuple[_Node, ...] = ()
    stray: tuple[_Node, ...] = ()


class Osd(msgspec.Struct, frozen=True):
    """An OSD of the cluster.

    Attributes:
        number: its number.
        host: the host that it is on, as the CRUSH map names it; "": none.
        is_up: whether it runs.
    """

    number: int
    host: str
    is_up: bool


class RollingRestart(msgspec.Struct, frozen=True):
    """How OSDs are started anew.

    Attributes:
        restart: the command for one; "{id}" and "{host}" stand for its number and its host.
        domain: the type of CRUSH's buckets whose OSDs are started anew together; "osd": one at a time.
    """

    restart: ServerRestart
    domain: str

    def carry_out(self, session: CephSession, wanted: Mapping[str, str]) -> None:
        """Start every OSD anew that does not run with these values.

        Args:
            session: asks the cluster.
            wanted: texts by Ceph's names.

        Raises:
            StageFailed: a domain cannot be stopped, or does not come back healthy with the values in time.
            Refused: the user lacks rights.
        """
        # What is down already harms nobody by a start, and keeps the health from being HEALTH_OK.
        for osds in sorted(self._domains(session), key=lambda domain: all(osd.is_up for osd in domain)):
            stale = [osd for osd in osds if not osd.is_up or not _runs_with(session, osd, wanted)]
            if not stale:
                continue
            if up := [osd for osd in stale if osd.is_up]:
                self._await(session, (), wanted)
                _check_stoppable(session, up)
            for osd in stale:
                self._start(osd)
            self._await(session, stale, wanted)

    def _domains(self, session: CephSession) -> list[list[Osd]]:
        """The OSDs, those of a bucket of the domain's type together.

        Raises:
            StageFailed: the cluster has no bucket of that type.
        """
        tree = session.told(_Tree, "osd", "tree")
        nodes = {node.id: node for node in tree.nodes}
        hosts = {osd: node.name for node in tree.nodes if node.type == _HOST for osd in _below(nodes, node)}
        osds = {
            node.id: Osd(node.id, hosts.get(node.id, ""), node.status == "up")
            for node in (*tree.nodes, *tree.stray)
            if node.type == OSD
        }
        if self.domain == OSD:
            return [[osd] for osd in osds.values()]
        buckets = [_below(nodes, node) for node in tree.nodes if node.type == self.domain]
        if not buckets:
            raise StageFailed(
                "restart", f"target.restart_domain = {self.domain!r}: the cluster has no bucket of that type"
            )
        inside = {number for bucket in buckets for number in bucket}
        alone = [[osd] for osd in osds.values() if osd.number not in inside]
        return [*([osds[number] for number in bucket if number in osds] for bucket in buckets), *alone]

    def _start(self, osd: Osd) -> None:
        if any("{host}" in word for word in self.restart.argv) and not _NAME.fullmatch(osd.host):
            raise StageFailed("restart", f"osd.{osd.number}: host {osd.host!r:.80}: must be a host's name")
        argv = [
            word.replace("{id}", str(osd.number)).replace("{host}", osd.host) for word in self.restart.argv
        ]
        done_command("restart_command", argv, CommandPlace(Path("/"), self.restart.limit_s))

    def _await(self, session: CephSession, osds: Collection[Osd], wanted: Mapping[str, str]) -> None:
        """Wait until OSDs run with the values, and the cluster is healthy.

        Raises:
            StageFailed: it does not come to that in time.
        """
        end_s = time.monotonic() + self.restart.limit_s
        while True:
            late = [osd.number for osd in osds if not _runs_with(session, osd, wanted)]
            status = session.status()
            problem = (
                f"osd.{late[0]} does not run with the values"
                if late
                else status.problem(status.osdmap.num_osds, accepted=())
            )
            if problem is None:
                return
            if time.monotonic() > end_s:
                raise StageFailed(
                    "restart", f"the Ceph cluster is not healthy after {self.restart.limit_s:g} s: {problem}"
                )
            time.sleep(_LOOK_S)


def _below(nodes: Mapping[int, _Node], node: _Node) -> list[int]:
    """The OSDs below a bucket; a tree that names itself ends."""
    return [number for number in _walk(nodes, node, set()) if nodes[number].type == OSD]


def _walk(nodes: Mapping[int, _Node], node: _Node, seen: set[int]) -> Iterator[int]:
    for number in node.children:
        if number in nodes and number not in seen:
            seen.add(number)
            yield number
            yield from _walk(nodes, nodes[number], seen)


def _runs_with(session: CephSession, osd: Osd, wanted: Mapping[str, str]) -> bool:
    """Whether an OSD says that values are in force; one that is down or just starting says nothing."""
    try:
        shown = session.shown(f"osd.{osd.number}")
    except StageFailed:
        return False
    known = ceph()
    return all(
        name not in shown or known[name].value(shown[name]) == known[name].value(text)
        for name, text in wanted.items()
    )


def _check_stoppable(session: CephSession, osds: list[Osd]) -> None:
    """See that OSDs can be stopped together.

    Raises:
        StageFailed: placement groups would be without enough copies.
    """
    numbers = [str(osd.number) for osd in osds]
    try:
        session.ask("osd", "ok-to-stop", *numbers)
    except StageFailed as failure:
        named = ", ".join(f"osd.{number}" for number in numbers)
        raise StageFailed(
            "restart", f"{named}: not ok to stop, none was stopped: {failure.message}"[:400], failure.stderr
        ) from failure
