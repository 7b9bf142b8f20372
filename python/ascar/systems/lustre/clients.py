"""The clients of a file system whose parameters a study sets: this machine, or several nodes at once."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ascar.errors import AscarError, StageFailed, WorkError
from ascar.nodes import node_of
from ascar.nodes.local import LocalNode
from ascar.space import identifier
from ascar.systems.lustre.lctl import Lctl, allowed_by_all, setting_of
from ascar.systems.lustre.restoration import LustreRestoration, foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ascar.space import Value

_NOT_OF_LOCK = re.compile(r"[^A-Za-z0-9._-]")
AT_A_TIME = 32
"""How many nodes are asked at the same time."""

Answer = TypeVar("Answer")


@dataclass(slots=True)
class LustreNode:
    """A client, or a server that is only asked.

    Attributes:
        table: its `[[node]]` table; None: this machine.
        lctl: asks and sets it.
        prefix: what messages put before the names of its devices.
        known: the settings that it has.
        old: their values from before the study, by full name.
        left: the values that the study has left on all devices, by setting. None: a change is under way.
        idle: its devices whose targets an administrator had deactivated before; nothing of them is set.
    """

    table: dict[str, Any] | None
    lctl: Lctl
    prefix: str = ""
    known: tuple[str, ...] = ()
    old: dict[str, int] = field(default_factory=dict[str, int])
    left: dict[str, int] | None = None
    idle: frozenset[str] = frozenset()

    def values(self, names: Collection[str]) -> dict[str, float]:
        """The values in force by full name.

        Args:
            names: settings that it has.

        Raises:
            StageFailed: a device has come or gone since the study began, or `lctl` fails.
        """
        found = self.present(tuple(names))
        for full in [*found, *self.old]:
            if setting_of(full) in names and (full in found) != (full in self.old):
                what = "is gone" if full in self.old else "has come"
                raise StageFailed(
                    "lctl", f"{full.rpartition('.')[0]}: {what} since the study began; begin anew"
                )
        return found

    def present(self, names: tuple[str, ...]) -> dict[str, float]:
        """The values in force by full name, of whatever devices are used now."""
        found = self.lctl.values(names)
        return {full: value for full, value in found.items() if full.rpartition(".")[0] not in self.idle}

    def check_serving(self) -> None:
        """See that every target is connected, and is used if and only if it was when the study began.

        Raises:
            StageFailed: one is not.
        """
        for device in sorted(self.lctl.check_serving() ^ self.idle):
            what = "was activated" if device in self.idle else "was deactivated"
            raise StageFailed("lctl", f"{device}: {what} since the study began; begin anew")

    def put(self, wanted: Mapping[str, int]) -> None:
        """Set a value for each parameter on all devices."""
        named = {full: identifier(setting_of(full)) for full in self.old}
        chosen = {full: wanted[name] for full, name in named.items() if name in wanted}
        self.lctl.put(chosen)
        self.left = {setting_of(full): value for full, value in chosen.items()}


class LustreClients:
    """All clients of a study. Each has devices of its own, and all have the same values.

    Args:
        tables: their `[[node]]` tables; none: this machine alone.
        program: `lctl`, by path or name.
        file_system: the name of the file system.

    Raises:
        StudyError: a table is wrong.
    """

    def __init__(self, tables: Sequence[Mapping[str, Any]], program: str, file_system: str) -> None:
        self._program, self._file_system = program, file_system
        here = LustreNode(None, Lctl(LocalNode(), program, file_system))
        self._nodes = machines(tables, program, file_system) if tables else [here]
        self._names: tuple[str, ...] = ()

    @property
    def locks(self) -> tuple[str, ...]:
        """The names of what nobody else may tune meanwhile: the file system on each client."""
        hosts = (None if one.table is None else str(one.table.get("host", "")) for one in self._nodes)
        named = (f":{_NOT_OF_LOCK.sub('-', host)[:100]}" if host else "" for host in hosts)
        return tuple(dict.fromkeys(f"lustre:{self._file_system}{host}" for host in named))

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that every client has; empty before `begin`."""
        return self._names

    def begin(self, names: tuple[str, ...], needed: Collection[str] = ()) -> None:
        """Learn the values from before the study.

        Args:
            names: the settings.
            needed: those of them that every client must have; the others are left out where one has not.

        Raises:
            StageFailed: a target of a client is not connected, a value is not whole, or `lctl` fails.
            EnvironmentLacks: a node cannot be reached.
        """
        for one, idle in zip(self._nodes, self._each(lambda one: one.lctl.check_serving()), strict=True):
            one.idle = idle
        for one, known in zip(self._nodes, self._each(lambda one: one.lctl.known(names)), strict=True):
            one.known = tuple(dict.fromkeys((*known, *needed)))
        self._names = tuple(name for name in names if all(name in one.known for one in self._nodes))
        # Lustre may change what only one client has along with what all have: that is put back, too.
        olds = self._each(lambda one: _whole(one.present(one.known)))
        for one, old in zip(self._nodes, olds, strict=True):
            one.old, one.left = old, {}

    def allowed(self) -> dict[str, int]:
        """What all clients and their targets allow, by the names of formulas in `lustre.toml`."""
        found = self._each(lambda one: one.lctl.allowed())
        return allowed_by_all(pair for known in found for pair in known.items())

    @property
    def restorations(self) -> list[LustreRestoration]:
        """What puts each client back to what `begin` has seen."""
        return [
            LustreRestoration(self._program, self._file_system, one.old, one.table, one.left)
            for one in self._nodes
        ]

    def put_back(self) -> list[tuple[LustreRestoration, tuple[str, ...]]]:
        """Put all clients back at the same time; those are returned that are, with what was left alone."""
        restorations = self.restorations
        with ThreadPoolExecutor(min(len(restorations), AT_A_TIME)) as pool:
            done = list(pool.map(_put_back, restorations))
        return [
            (restoration, tuple(f"{one.prefix}{line}" for line in lines))
            for one, restoration, lines in zip(self._nodes, restorations, done, strict=True)
            if lines is not None
        ]

    def check_own(self) -> None:
        """See that nobody else has changed a setting since the study set it.

        Raises:
            WorkError: somebody has; the study ends.
            StageFailed: `lctl` fails.
        """
        found = self._each(lambda one: one.values(one.known))
        for one, present in zip(self._nodes, found, strict=True):
            for line in foreign(one.left, one.old, present).values():
                raise WorkError(f"{one.prefix}{line} in mid-study; the study ends")

    def begin_change(self) -> None:
        """From now on any value may be there, until `put` is done."""
        for one in self._nodes:
            one.left = None

    def check_serving(self) -> None:
        """See that every target of every client is connected, and used as when the study began.

        Raises:
            StageFailed: one is not.
        """
        self._each(LustreNode.check_serving)

    def job_variable(self) -> str:
        """Where the clients find the ID of a job; all must have it from the same place.

        Raises:
            StageFailed: they differ, or `lctl` fails.
        """
        found = self._each(lambda one: one.lctl.job_variable())
        for one, variable in zip(self._nodes, found, strict=True):
            if variable != found[0]:
                raise StageFailed("lctl", f"{one.prefix}jobid_var = {variable:.80}: must be {found[0]:.80}")
        return found[0]

    def version(self) -> tuple[int, int]:
        """The oldest version of a client; one that does not tell it counts as new."""
        return min(self._each(lambda one: one.lctl.version()))

    def osts(self) -> int:
        """The OSTs that every client knows."""
        return min(self._each(lambda one: one.lctl.osts()))

    def values(self) -> dict[str, float]:
        """A value for each parameter, which all devices of all clients have.

        Raises:
            StageFailed: they differ, or `lctl` fails.
        """
        return self._joint(self._each(lambda one: one.values(self._names)))

    def old_values(self) -> dict[str, int]:
        """The same from before the study.

        Raises:
            StageFailed: devices differ.
        """
        return _whole(self._joint([one.old for one in self._nodes]))

    def put(self, wanted: Mapping[str, int]) -> None:
        """Set parameters on all devices of all clients.

        Args:
            wanted: a value for each parameter.

        Raises:
            StageFailed: one is not in force in the end.
        """
        self._each(lambda one: one.put(wanted))

    def check_unchanged(self, wanted: Mapping[str, Value]) -> None:
        """See that all devices of all clients still have the values that were set.

        Args:
            wanted: a value for each parameter.

        Raises:
            StageFailed: one has another: somebody has set it, or its target has connected anew.
        """

        def check(one: LustreNode) -> None:
            for full, value in one.values(self._names).items():
                expected = wanted[identifier(setting_of(full))]
                if value != expected:
                    raise StageFailed(
                        "sample",
                        f"{full} = {value}: is not {expected} any more; somebody has set it, or Lustre "
                        "changed it when the target connected anew (idle_timeout=0 keeps it connected)",
                    )

        self._each(check)

    def disturbances(self) -> frozenset[tuple[str, int, str]]:
        """What imports remember of evictions and the like: device, after its node, second and state."""
        found = self._each(lambda one: [(one.prefix, *seen) for seen in one.lctl.disturbances()])
        return frozenset(
            (f"{prefix}{device}", second, state)
            for client in found
            for prefix, device, second, state in client
        )

    def counters(self) -> dict[str, float]:
        """The counters of all clients together."""
        found = self._each(lambda one: one.lctl.counters())
        return {name: sum(one[name] for one in found) for name in found[0]}

    def _joint(self, found: Sequence[Mapping[str, float]]) -> dict[str, float]:
        joint: dict[str, float] = {}
        for one, values in zip(self._nodes, found, strict=True):
            for full, value in values.items():
                name = identifier(setting_of(full))
                if setting_of(full) not in self._names:
                    continue
                if joint.setdefault(name, value) != value:
                    raise StageFailed(
                        "lctl",
                        f"{one.prefix}{full} = {value}: must be {joint[name]}, as on other devices",
                    )
        return joint

    def _each(self, ask: Callable[[LustreNode], Answer]) -> list[Answer]:
        return ask_each(self._nodes, ask)


def machines(tables: Sequence[Mapping[str, Any]], program: str, file_system: str) -> list[LustreNode]:
    """The machines of `[[node]]` tables.

    Args:
        tables: the tables.
        program: `lctl` there.
        file_system: the name of the file system.

    Raises:
        StudyError: a table is wrong.
    """
    nodes = [(dict(table), node_of(table)) for table in tables]
    return [
        LustreNode(table, Lctl(node, program, file_system), f"node {node.name}: ") for table, node in nodes
    ]


def ask_each(nodes: Sequence[LustreNode], ask: Callable[[LustreNode], Answer]) -> list[Answer]:
    """What each machine answers, in their order; the first failure is told once all have answered."""

    def named(one: LustreNode) -> Answer:
        try:
            return ask(one)
        except StageFailed as failure:
            said = failure.message.removeprefix(f"{failure.stage}: ")
            raise StageFailed(failure.stage, f"{one.prefix}{said}", failure.stderr) from failure

    if len(nodes) == 1:
        return [named(nodes[0])]
    with ThreadPoolExecutor(min(len(nodes), AT_A_TIME)) as pool:
        return list(pool.map(named, nodes))


def _whole(values: Mapping[str, float]) -> dict[str, int]:
    for full, value in values.items():
        if value != int(value):
            raise StageFailed("lctl", f"{full} = {value}: set it to a whole number before the study")
    return {full: int(value) for full, value in values.items()}


def _put_back(restoration: LustreRestoration) -> tuple[str, ...] | None:
    try:
        return restoration.carry_out()
    except AscarError:
        return None  # the keeper tries again, and says why
