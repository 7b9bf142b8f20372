"""The client of a Lustre file system: parameters by `lctl set_param`, until the study ends.

[target]
kind = "lustre"
file_system = "scratch"         # its name, as `lfs mdts` and `mount` have it
path = "/scratch/ascar"         # an existing directory on it: the load runs below
parameters = "expert"           # or "wide"
osts = 8                        # tunes the layout of the load's files too, over at most so many OSTs
nodes = ["client1", "client2"]  # sets the clients of these [[node]] tables instead of this machine
servers = ["oss1", "mds1"]      # counts what these servers do for the load's job, and for all others
"""

from __future__ import annotations

import logging
import re
import shutil
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.errors import EnvironmentLacks, StageFailed, StudyError, WorkError
from ascar.nodes import node_of
from ascar.nodes.local import LocalNode
from ascar.quoting import comment, shell_line
from ascar.results.machine import Need
from ascar.results.trial import Change
from ascar.space import identifier
from ascar.study import absolute, convert
from ascar.systems import Sample, Starter, Target
from ascar.systems.catalogue import KnownParameter, catalogue_of
from ascar.systems.keeper import Keeper, load_directory
from ascar.systems.lustre.clients import LustreClients
from ascar.systems.lustre.job_statistics import JobStatistics, load_job
from ascar.systems.lustre.layout import (
    LAYOUT,
    OSTS_MAX,
    PROGRESSIVE_SINCE,
    UNKNOWN,
    Layout,
    Lfs,
    layout_constraints,
    layout_of,
    layout_parameters,
)
from ascar.systems.lustre.parameters import chosen_settings, lustre_space
from ascar.systems.machine import describe_machine
from ascar.systems.mount_table import mount_around
from ascar.systems.playbook import Playbook, PlaybookTask
from ascar.systems.starter import PLAIN
from ascar.systems.undo_record import forget, note
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from types import TracebackType

    from ascar.catalogues.lustre import LustreSetting
    from ascar.space import Configuration, Space, Value
    from ascar.systems.lustre.restoration import LustreRestoration

_FILE_SYSTEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,7}")
_log = logging.getLogger(__name__)
_EVICTED = "EVICTED"
_UNDO_S = 60.0


class LustreOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "lustre".

    Attributes:
        file_system: the name of the file system.
        path: an existing directory on it; the load runs in one below, which is removed at the end.
        settings: the settings to tune, such as "osc.max_dirty_mb". None: those of `parameters`.
        parameters: "expert" or "wide".
        osts: the layout of new files is tuned too, over at most so many OSTs. None: it is not.
        nodes: the clients whose parameters are set, by the names of [[node]] tables; none: this machine.
        servers: the servers whose job statistics become metrics, by the names of [[node]] tables.
        job: the ID of the load's job. None: the environment variable that the clients' jobid_var names.
        lctl: the program, by name or path; on nodes it is theirs.
        lfs: the program that sets layouts, by name or path.
    """

    file_system: str
    path: str
    settings: tuple[str, ...] | None = None
    parameters: Literal["expert", "wide"] = "expert"
    osts: int | None = None
    nodes: tuple[dict[str, Any], ...] = ()
    servers: tuple[dict[str, Any], ...] = ()
    job: str | None = None
    lctl: str = "lctl"
    lfs: str = "lfs"


class LustreClient(Target):
    """The target of kind "lustre".

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    default_workload: str | None = "fio"
    starter = Starter(
        target={"file_system": '"scratch"', "path": '"/scratch/ascar"', "parameters": '"expert"'},
        space={
            **PLAIN,
            "allow_cost": '#allow_cost = ["dyn-kernel"]',
            "pinned": "osc_max_pages_per_rpc = 1024",
            "constraint": "osc_max_dirty_mb >= 64",
            "forbidden": "osc_max_rpcs_in_flight = 1, mdc_max_rpcs_in_flight = 2",
        },
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, LustreOptions, "target")
        _check(self.options)
        self._settings = {identifier(name): one for name, one in _chosen(self.options).items()}
        self._has_progressive = True
        self.space = self._space({}, {})
        self.owner = "lustre"
        self._opened = ExitStack()
        self._clients: LustreClients | None = None
        self._keeper: Keeper | None = None
        self._lfs: Lfs | None = None
        self._jobs: JobStatistics | None = None
        self._layout: Layout | None = None
        self._directory: Path | None = None
        self._disturbances: frozenset[tuple[str, int, str]] = frozenset()
        self._current: Mapping[str, Value] = {}

    def __enter__(self) -> LustreClient:
        """Note what undoes every change; the values in force become the defaults.

        Raises:
            EnvironmentLacks: there is no `lctl`, or no `lfs` for layouts.
            Refused: another study has the file system on one of the clients.
            StageFailed: the file system is not mounted, or a target is not connected.
            StudyError: it has fewer OSTs than the study names, or the directory cannot be written to.
        """
        nodes = self.options.nodes
        program = self.options.lctl if nodes else _program("lctl", self.options.lctl)
        clients = LustreClients(nodes, program, self.options.file_system)
        try:
            self._keeper = self._opened.enter_context(Keeper(self.owner, user=True))
            self._keeper.lock(*clients.locks)  # the values of another study's trial are no old ones
            self._begin(clients, self._keeper)
        except BaseException:
            self._keeper = None
            self._opened.close()
            raise
        self._clients = clients
        return self

    def _begin(self, clients: LustreClients, keeper: Keeper) -> None:
        """Learn what is in force, and note what puts it back."""
        clients.begin(self._names, self.options.settings or ())
        self._settings = {name: one for name, one in self._settings.items() if one.name in clients.names}
        if self.options.osts is not None:
            self._lfs = Lfs(LocalNode(), _program("lfs", self.options.lfs))
            self._has_progressive = clients.version() >= PROGRESSIVE_SINCE
            if self.options.osts > (osts := clients.osts()):
                raise StudyError(
                    f"target.osts = {self.options.osts}: must be at most {osts}, the OSTs of "
                    f"{self.options.file_system!r}"
                )
        if self.options.servers:
            job = load_job(self.options.job, clients.job_variable())
            servers = self.options.servers
            self._jobs = JobStatistics(servers, self.options.lctl, self.options.file_system, job)
            self._jobs.counters()
        self.space = self._space(clients.allowed(), clients.old_values())
        self._current = dict(self.space.default())
        for restoration in clients.restorations:
            note(keeper, restoration, None, _UNDO_S)
        self._directory = load_directory(keeper, "target.path", self.options.path, "lustre")
        _look_at(self.options.path, self.options.file_system)
        self._layout, self._disturbances = None, clients.disturbances()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back; the keeper does, one client after the other, what is not back yet.

        Raises:
            WorkError: what somebody else has changed meanwhile was left alone.
        """
        clients, keeper, self._clients, self._keeper = self._clients, self._keeper, None, None
        left: list[str] = []
        with self._opened:
            if clients is not None and keeper is not None:
                for restoration, lines in clients.put_back():
                    forget(keeper, restoration)
                    left += lines
        if left:
            raise WorkError(f"left alone: {'; '.join(left)}")

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The values in force; a layout was read back when it was set."""
        present = {**self._current, **self._entered().values()}
        return {name: present[name] for name in names}

    def apply(self, configuration: Configuration) -> Change:
        """Set what differs on every device; nothing while a target recovers.

        Another layout is that of a new directory, which the load fills again.

        Raises:
            StageFailed: a target is not connected, or Lustre refuses a value or a layout.
            WorkError: somebody else has changed a setting of the study.
        """
        clients, start_s = self._entered(), time.monotonic()
        clients.check_serving()
        clients.check_own()
        before = clients.restorations
        clients.begin_change()
        before = self._noted(clients, before)
        clients.put({name: int(configuration[name]) for name in self._settings})
        self._noted(clients, before)
        steps = {"settings": time.monotonic() - start_s}
        if (layout := layout_of(configuration)) != self._layout:
            start_s = time.monotonic()
            self._lay_out(layout)
            steps["layout"] = time.monotonic() - start_s
        self._disturbances = clients.disturbances()
        difference = self.space.change(self._current, configuration)
        self._current = dict(configuration)
        return Change.of(difference, steps)

    def _noted(self, clients: LustreClients, before: Sequence[LustreRestoration]) -> list[LustreRestoration]:
        """Have the keeper's journal say what undoes it, instead of what it said before."""
        assert self._keeper is not None, "the target is entered"
        restorations = clients.restorations
        for restoration, previous in zip(restorations, before, strict=True):
            note(self._keeper, restoration, previous, _UNDO_S)
        return restorations

    def _lay_out(self, layout: Layout | None) -> None:
        """Replace the load's directory by an empty one with this layout."""
        assert self._lfs is not None, "a study without `osts` has no layout"
        directory, self._layout = self.workspace.directory, UNKNOWN
        try:
            shutil.rmtree(directory)
            directory.mkdir(0o700)
        except OSError as error:
            raise StageFailed("lfs", f"{directory}: {error.strerror}") from error
        if layout is not None:
            self._lfs.set_layout(directory, layout)
        self._layout = layout

    def sample(self) -> Sample:
        """Requests and bytes of the client, and of jobs on servers; a trial with an eviction fails.

        Raises:
            StageFailed: the client was evicted or lost a target since the last change, a target is not
                connected, or a value is not in force any more.
        """
        clients = self._entered()
        # An eviction begins with the loss of a connection, and tells more.
        fresh = sorted(clients.disturbances() - self._disturbances, key=lambda one: (one[2] != _EVICTED, one))
        if fresh:
            device, second, state = fresh[0]
            what = "was evicted" if state == _EVICTED else "lost the target, and recovered"
            raise StageFailed("sample", f"{device}: the client {what} at {second} ({state})")
        clients.check_serving()
        clients.check_unchanged({name: self._current[name] for name in self._settings})
        jobs = {} if self._jobs is None else self._jobs.counters()
        return Sample({**clients.counters(), **jobs})

    @property
    def workspace(self) -> Workspace:
        """A directory on the file system, whose files have the layout, removed at the end."""
        assert self._directory is not None, "a target is entered before it is used"
        return Workspace(self._directory)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        nodes = [node_of(one).name for one in self.options.nodes]
        told = {"target": "lustre", **describe_machine(), "file_system": self.options.file_system}
        return {**told, "nodes": nodes} if nodes else told

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """`lctl` of the client."""
        remedy = "mount a Lustre file system: its client packages bring lctl"
        return (
            Need("lctl", "a Lustre client's parameters", shutil.which("lctl"), ("lustre",), remedy=remedy),
        )

    @classmethod
    def catalogue(cls, options: Mapping[str, Any]) -> Mapping[str, KnownParameter]:
        """The settings that the study names."""
        read = convert(options, LustreOptions, "target")
        known = {identifier(name): KnownParameter(numbers=True) for name in _chosen(read)}
        return known | (catalogue_of(layout_parameters(read.osts)) if read.osts is not None else {})

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """`lctl set_param` for now, and as comments what a person runs on the MGS to make it stay.

        A layout is that of new files in the study's `path`.
        """
        wanted = [name for name in self._settings if name in chosen]
        words = [
            f"{self._settings[name].pattern(self.options.file_system)}={int(configuration[name])}"
            for name in wanted
        ]
        lines: dict[str, list[str]] = {
            name: ["lctl", "set_param", word] for name, word in zip(wanted, words, strict=True)
        }
        stays = [comment(f"to stay, on the MGS: lctl set_param -P {shell_line([word])}") for word in words]
        layout = layout_of(configuration)
        if layout is not None and any(name in LAYOUT for name in chosen):
            lines["layout of new files"] = ["lfs", "setstripe", *layout.words, self.options.path]
            stays.append(comment("files that exist keep their layout; lfs migrate gives them another"))
        module = "ansible.builtin.command"
        tasks = [PlaybookTask(name, module, {"argv": [*line]}) for name, line in lines.items()]
        remarks = ["Until the client is mounted anew; to make it stay, run `lctl set_param -P` on the MGS."]
        playbook = Playbook("Lustre", "lustre_clients", tasks, remarks=remarks)
        return {"shell": [*map(shell_line, lines.values()), *stays], "ansible": playbook.lines()}

    def _space(self, allowed: Mapping[str, int], present: Mapping[str, int]) -> Space:
        space = lustre_space(self._settings.values(), allowed, present)
        if self.options.osts is None:
            return space
        layouts = layout_parameters(self.options.osts, progressive=self._has_progressive)
        constraints = layout_constraints() if self._has_progressive else []
        return replace(
            space,
            parameters=(*space.parameters, *layouts),
            constraints=(*space.constraints, *constraints),
        )

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self._settings.values())

    def _entered(self) -> LustreClients:
        assert self._clients is not None, "a target is entered before it is used"
        return self._clients


def _program(key: str, name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise EnvironmentLacks(f"target.{key} = {name!r:.80}: there is no such program")
    return str(Path(found).absolute())


def _look_at(path: str, file_system: str) -> None:
    """Say so if a load in a directory would not use what is tuned.

    Raises:
        StudyError: it is on another Lustre file system.
    """
    with suppress(StageFailed):  # the kernel does not tell
        mount = mount_around(path)
        if mount.kind != "lustre":
            _log.warning("target.path = %r: is on %s, not on Lustre: a load there uses nothing of it",
                         path, mount.kind)  # fmt: skip
        elif mount.source.rpartition(":")[2].strip("/").split("/")[0] != file_system:
            raise StudyError(
                f"target.path = {path!r:.200}: is on {mount.source:.80}, not on {file_system!r}; name a "
                "directory of that"
            )


def _chosen(options: LustreOptions) -> Mapping[str, LustreSetting]:
    return chosen_settings(options.settings, wide=options.parameters == "wide")


def _check(options: LustreOptions) -> None:
    for one in (*options.nodes, *options.servers):
        node_of(one)
    if options.job is not None and not options.servers:
        raise StudyError(f"target.job = {options.job!r:.80}: is allowed beside `servers` alone")
    if not _FILE_SYSTEM.fullmatch(options.file_system):
        raise StudyError(
            f"target.file_system = {options.file_system!r:.80}: must be the name of a Lustre file system, "
            "of at most 8 letters and digits"
        )
    absolute("target.path", options.path)
    if options.osts is not None and not 1 <= options.osts <= OSTS_MAX:
        raise StudyError(f"target.osts = {options.osts}: must be from 1 to {OSTS_MAX}")
