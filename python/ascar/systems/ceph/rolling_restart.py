"""OSDs of a cluster that people use, started anew one failure domain after the other.

What makes it safe is Ceph's own: the health is HEALTH_OK before each, and `ceph osd ok-to-stop` says that no
placement group would be without enough copies. Whether an OSD was started anew is told by the cluster's map:
OSDs show many values that they take only when they start as soon as the monitors hold them.
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
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from ascar.systems.ceph.connection import CephSession

LIMIT_MAX_S = 1800.0
READS = ("osd tree", "osd dump", "osd ok-to-stop ID ...")
"""The commands of `ceph` by which it reads."""
OSD = "osd"
_HOST = "host"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_LOOK_S = 0.5


class _Node(msgspec.Struct, frozen=True):
    id: int
    type: str = ""
    name: str = ""
    children: tuple[int, ...] = ()


class _Tree(msgspec.Struct, frozen=True):
    nodes: tuple[_Node, ...] = ()
    stray: tuple[_Node, ...] = ()


class _MapsOsd(msgspec.Struct, frozen=True):
    osd: int
    up: int = 0
    up_from: int = 0


class _Map(msgspec.Struct, frozen=True):
    osds: tuple[_MapsOsd, ...] = ()


class Osd(msgspec.Struct, frozen=True):
    """An OSD of the cluster.

    Attributes:
        number: its number.
        host: the host that it is on, as the CRUSH map names it; "": none.
    """

    number: int
    host: str


class RollingRestart(msgspec.Struct, frozen=True):
    """How OSDs are started anew.

    Attributes:
        restart: the command for one; "{id}" and "{host}" stand for its number and its host.
        domain: the type of CRUSH's buckets whose OSDs are started anew together; "osd": one at a time.
    """

    restart: ServerRestart
    domain: str

    def carry_out(
        self,
        session: CephSession,
        wanted: Mapping[str, str],
        have: Mapping[int, int],
        *,
        accepted: Collection[str] = (),
        begun: Callable[[Collection[int]], None] = lambda _: None,
    ) -> None:
        """Start every OSD anew that does not run with these values.

        Args:
            session: asks the cluster.
            wanted: texts by Ceph's names.
            have: the starts of OSDs that took these values; see `starts_of`.
            accepted: warnings of the health with which an OSD may be started anew all the same.
            begun: told the numbers of OSDs before these are started anew. From then on their starts in the
                map may be older than what they run: a map that has not seen an OSD go down shows it as up
                until it has started, however long that takes.

        Raises:
            StageFailed: a domain cannot be stopped, or does not come back healthy with the values in time.
            Refused: the user lacks rights.
        """
        domains, starts, known = self._domains(session), starts_of(session), dict(have)
        # What is down already harms nobody by a start, and keeps the health from being HEALTH_OK.
        down = [osd for osds in domains for osd in osds if osd.number not in starts]
        for osds in [down, *domains]:
            starts = starts_of(session)
            stale = [osd for osd in osds if starts.get(osd.number) != known.get(osd.number, -1)]
            if not stale:
                continue
            commands = [self._command(osd) for osd in stale]
            self._await_stoppable(session, stale, accepted)
            begun([osd.number for osd in stale])
            starts = starts_of(session)  # one that was coming up may have done so by now
            before = {osd.number: starts.get(osd.number, -1) for osd in stale}
            for argv in commands:
                done_command("restart_command", argv, CommandPlace(Path("/"), self.restart.limit_s))
            self._await(session, lambda before=before: _late(session, before, wanted), accepted)
            starts = starts_of(session)
            known |= {number: starts[number] for number in before if number in starts}

    def _await_stoppable(self, session: CephSession, osds: Sequence[Osd], accepted: Collection[str]) -> None:
        """Wait until OSDs may be stopped together: the cluster is healthy and agrees, or they are down.

        Raises:
            StageFailed: it does not come to that in time.
        """

        def up() -> list[Osd]:
            starts = starts_of(session)
            return [osd for osd in osds if osd.number in starts]

        self._await(session, lambda: None, accepted, unless=lambda: not up())
        if still := up():
            _check_stoppable(session, still)

    def _domains(self, session: CephSession) -> list[list[Osd]]:
        """The OSDs, those of a bucket of the domain's type together.

        Raises:
            StageFailed: the cluster has no bucket of that type.
        """
        tree = session.told(_Tree, "osd", "tree")
        nodes = {node.id: node for node in tree.nodes}
        hosts = {osd: node.name for node in tree.nodes if node.type == _HOST for osd in _below(nodes, node)}
        osds = {
            node.id: Osd(node.id, hosts.get(node.id, ""))
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

    def _command(self, osd: Osd) -> list[str]:
        """The command that starts an OSD anew.

        Raises:
            StageFailed: it needs the OSD's host, which has no name that can be given to a command.
        """
        if any("{host}" in word for word in self.restart.argv) and not _NAME.fullmatch(osd.host):
            raise StageFailed("restart", f"osd.{osd.number}: host {osd.host!r:.80}: must be a host's name")
        return [
            word.replace("{id}", str(osd.number)).replace("{host}", osd.host) for word in self.restart.argv
        ]

    def _await(
        self,
        session: CephSession,
        late: Callable[[], str | None],
        accepted: Collection[str],
        unless: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait until no OSD is late, and the cluster is healthy.

        Args:
            session: asks the cluster.
            late: tells of an OSD that is; None: none is.
            accepted: warnings that count as healthy.
            unless: whether that is not needed any more.

        Raises:
            StageFailed: it does not come to that in time.
        """
        end_s = time.monotonic() + self.restart.limit_s
        while True:
            problem = late()
            if problem is None:
                status = session.status()
                problem = status.problem(status.osdmap.num_osds, accepted)
            if problem is None or unless():
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


def starts_of(session: CephSession) -> dict[int, int]:
    """By OSD that is up, the epoch of the cluster's map in which it came up: a later one is another start.

    Raises:
        StageFailed: the cluster does not answer.
    """
    return {one.osd: one.up_from for one in session.told(_Map, "osd", "dump").osds if one.up}


def _late(session: CephSession, before: Mapping[int, int], wanted: Mapping[str, str]) -> str | None:
    """What is wrong with an OSD that was started anew; None: all are up again, and run with the values.

    Args:
        session: asks the cluster.
        before: their starts before.
        wanted: texts by Ceph's names.
    """
    starts = starts_of(session)
    for number, start in before.items():
        if starts.get(number, start) == start:
            return f"osd.{number} has not come up again"
        if not _runs_with(session, number, wanted):
            return f"osd.{number} does not run with the values"
    return None


def _runs_with(session: CephSession, number: int, wanted: Mapping[str, str]) -> bool:
    """Whether an OSD says that values are in force; one that is down or just starting says nothing."""
    try:
        shown = session.shown(f"osd.{number}")
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
