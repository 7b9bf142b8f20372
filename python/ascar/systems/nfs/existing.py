"""The target of kind "nfs" with `server = "existing"`: a mount of this machine, or what it exports.

[target]
kind = "nfs"
server = "existing"
path = "/mnt/data/bench"     # a directory on the mount: the load runs below
remounts = "allowed"         # the mount is made anew for options and slots; nobody may use it meanwhile
export = "/srv/data"         # a directory that this machine exports: threads of the server, the disk below

The keeper of root's sets what the kernel has; mounts are put back by `restoration.py`. A mount that is in use
is refused, and never unmounted by force.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.catalogues.nfs import nfs
from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.nodes.local import LocalNode
from ascar.results.trial import Change
from ascar.study import absolute, convert
from ascar.systems import Sample
from ascar.systems.dirty_pages import MEMINFO, machine_dirty_bytes, write_back, write_back_cycle_s
from ascar.systems.keeper import Keeper, load_directory
from ascar.systems.kernel_parameters import Devices
from ascar.systems.machine import describe_machine
from ascar.systems.mount_table import MOUNTINFO
from ascar.systems.nfs.machine import NfsMachine
from ascar.systems.nfs.mounts import COUNTERS, MOUNTSTATS, check_idle, counters_of, mount_around, sharing
from ascar.systems.nfs.restoration import RESTORE_S, NfsRestoration
from ascar.systems.nfs.settings import NfsEnds, kept_of, options_of
from ascar.systems.nfs.space import chosen, nfs_space
from ascar.systems.nfs.statements import forms_of
from ascar.systems.nfs.target import NfsTarget
from ascar.systems.steps import SecondsByStep
from ascar.systems.undo_record import note
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from types import TracebackType

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Configuration, Value
    from ascar.systems.nfs.mounts import NfsMounted

_log = logging.getLogger(__name__)

_NO_LOCK_S_NAME = re.compile(r"[^A-Za-z0-9._:/-]")
_NAME_CHARACTERS_MAX = 100


class ExistingNfsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` of kind "nfs" with `server = "existing"`.

    Attributes:
        server: "existing".
        path: a directory on a mount of NFS, below which the load runs. None: no client is tuned.
        export: a directory that this machine exports. None: no server is tuned.
        parameters: "expert" or "wide".
        remounts: "allowed": options of the mount and the slots of its connections are tuned too, for which it
            is unmounted and mounted. None: only what takes effect at once.
    """

    server: Literal["existing"]
    path: str | None = None
    export: str | None = None
    parameters: Literal["expert", "wide"] = "expert"
    remounts: Literal["allowed"] | None = None


class ExistingNfs(NfsTarget):
    """A mount, or an export, of this machine.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    works_already = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingNfsOptions, "target")
        if self.options.path is None and self.options.export is None:
            raise StudyError("target.path: missing; name a directory on a mount of NFS, or target.export")
        if self.options.remounts is not None and self.options.path is None:
            raise StudyError("target.remounts = 'allowed': is for a mount; name target.path")
        for key, path in (("path", self.options.path), ("export", self.options.export)):
            if path is not None:
                absolute(f"target.{key}", path)
        super().__init__(_chosen(self.options))
        self.owner = "nfs"
        self._opened = ExitStack()
        self._keeper: Keeper | None = None
        self._mount: NfsMounted | None = None
        self._directory: Path | None = None

    def __enter__(self) -> ExistingNfs:
        """Note what undoes every change; the values in force become the defaults.

        Raises:
            EnvironmentLacks: no root, or no keeper.
            StudyError: the directory is on no mount of NFS, or is not exported.
            Refused: the mount is in use, and the study would unmount it.
        """
        if os.geteuid() != 0:
            raise EnvironmentLacks("target.server = 'existing': needs root; run ascar through sudo")
        try:
            self._find()
            undo = self._opened.enter_context(Keeper(self.owner, user=True))
            # Ended first: a new mount takes some of the kernel's settings.
            self._keeper = self._opened.enter_context(Keeper(self.owner))
            self._keeper.lock(*self._held())
            # The keepers have put back what a killed study had left: only now it is the mount of before.
            self._find()
            present = self._ends.values(self._settings.values())
            self._settings = self._tunable(present)
            if self._mount is not None:
                note(undo, self._restoration(self._mount, present), None, RESTORE_S)
            key, path = ("path", self.options.path) if self.options.path else ("export", self.options.export)
            # Removed before: nothing of ours is on the mount when it is unmounted.
            self._directory = load_directory(undo, f"target.{key}", path or "", "nfs", RESTORE_S)
            self.space = nfs_space(self._settings.values(), present, largest=self._largest())
            self._current = self.space.default()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back; the keepers do."""
        self._keeper = None
        self._opened.close()

    def apply(self, configuration: Configuration) -> Change:
        """Set what differs; the mount is made anew only for what takes effect no earlier.

        Raises:
            StageFailed: the mount is in use, or the kernel refuses a value, or allows another one.
        """
        keeper, steps = self._entered(), SecondsByStep()
        before, self._current = self._current, {}
        difference, wanted = self.space.change(before, configuration), self._wanted(configuration)
        with steps.step("settings"):
            for name, value in wanted.items():
                if knob := self._knob_of(nfs()[name]):
                    keeper.knob_write(knob, value)
        if any(one.context == "connection" for one in self._differing(before, configuration)):
            with steps.step("mount"):
                self._mount_anew(wanted)
        with steps.step("settings"):
            self._ends.set_now(
                {name: value for name, value in wanted.items() if nfs()[name].where == "client"}
            )
            self._ends.check(wanted)
        self._current = configuration
        return Change.of(difference, steps.seconds)

    def sample(self) -> Sample:
        """What the client counts of its mount, and the dirty pages of the machine."""
        machine = NfsMachine(LocalNode())
        stats, meminfo = machine.read([MOUNTSTATS, str(MEMINFO)])
        counters = {} if self._mount is None else counters_of(stats, self._mount.place)
        return Sample(counters, deferred={"dirty_bytes": machine_dirty_bytes(meminfo)})

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return frozenset(COUNTERS if self.options.path is not None else ())

    def drain(self, limit_s: float) -> None:
        """Write back all dirty pages of the machine that are there now.

        Raises:
            StageFailed: that takes longer.
        """
        write_back(LocalNode(), limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The greatest age of dirty pages."""
        return write_back_cycle_s({})

    @property
    def workspace(self) -> Workspace:
        """A directory below the study's path, removed at the end."""
        assert self._directory is not None, "a target is entered before it is used"
        return Workspace(self._directory)

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        mount = {} if self._mount is None else {"mount": self._mount.source, "place": self._mount.place}
        return {"target": "nfs", **describe_machine(), **mount, "device": {"name": self._ends.disk}}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """nfs.conf, fstab, sysctl.d and udev, and commands for now."""
        mount = self._mount
        if mount is None:
            return forms_of(configuration, chosen)
        given = kept_of(mount.given, nfs(), "mount")
        return forms_of(configuration, chosen, source=mount.source, place=mount.place, given=given)

    def _find(self) -> None:
        """The mount and the export that the study names.

        Raises:
            StudyError: there is none.
            Refused: the mount is in use, and the study would unmount it.
        """
        machine, given = NfsMachine(LocalNode()), self.options
        if given.path is not None:
            mountinfo = machine.read([MOUNTINFO])[0]
            self._mount = mount_around(mountinfo, given.path)
            if given.remounts is not None:
                check_idle(self._mount.place, mountinfo)
                self._leave_out_shared(sharing(mountinfo, self._mount))
        disk = None if given.export is None else _disk_below(given.export)
        self._ends = NfsEnds(
            None if self._mount is None else machine,
            None if given.export is None else machine,
            "" if self._mount is None else self._mount.place,
            disk,
            given.export or "",
        )
        if given.export is not None:
            try:
                self._ends.export_options()
            except StageFailed as failure:
                raise StudyError(f"target.export = {given.export!r:.80}: {failure.message}") from failure

    def _tunable(self, present: Mapping[str, Value]) -> dict[str, NfsSetting]:
        """The settings that this machine has; an NFS server without a thread is none that a study starts.

        Raises:
            EnvironmentLacks: there are none.
        """
        found = {name: one for name, one in self._settings.items() if present.get(one.name) is not None}
        if present.get("nfsd.threads") == 0:
            found.pop("nfsd_threads", None)
        if not found:
            raise EnvironmentLacks("target: this machine has nothing of NFS to tune here")
        return found

    def _leave_out_shared(self, places: Collection[str]) -> None:
        """Leave out what a new mount would take from the connections of others that stay."""
        shared = [name for name, one in self._settings.items() if one.name == "nconnect" or _is_window(one)]
        if places and shared:
            for name in shared:
                del self._settings[name]
            _log.warning(
                "target.path: %s: of the same server, whose connections mounts share: %s are not tuned",
                ", ".join(places),
                ", ".join(shared),
            )

    def _held(self) -> list[str]:
        """The names of what nobody else may tune meanwhile, for the keeper's locks."""
        place = "" if self._mount is None else _NO_LOCK_S_NAME.sub("_", f"nfs:{self._mount.place}")
        names = (place[:_NAME_CHARACTERS_MAX], *map(self._knob_of, self._settings.values()))
        return [one for one in names if one]

    def _knob_of(self, setting: NfsSetting) -> str:
        """The keeper's name of a setting; empty: it is none that the keeper sets."""
        disk = self._ends.disk
        is_knob = setting.where == "server" or _is_window(setting) or (setting.where == "disk" and disk)
        return setting.knob_of(disk) if is_knob else ""

    def _restoration(self, mount: NfsMounted, present: Mapping[str, Value]) -> NfsRestoration:
        settings = {
            name: int(value)
            for name, value in present.items()
            if nfs()[name].where == "client" and not isinstance(value, str)
        }
        mounts = self.options.remounts is not None
        return NfsRestoration(mount.source, mount.place, mount.given, settings, mounts)

    def _largest(self) -> int | None:
        """The most that the server has granted in a request; greater sizes would be made smaller silently."""
        if self._mount is None or not {"rsize", "wsize"} & set(self._settings):
            return None
        return max(int(nfs()[name].value_in(self._mount.options)) for name in ("rsize", "wsize"))

    def _mount_anew(self, wanted: Mapping[str, Value]) -> None:
        """Unmount it and mount it with these options; or else with those of before."""
        client, mount = self._ends.client, self._mount
        assert client is not None, "options are those of a client"
        assert mount is not None, "options are those of a client"
        options = [*kept_of(mount.given, wanted, "mount"), *options_of(wanted, "mount")]
        client.unmount(mount.place)
        try:
            client.mount(mount.source, mount.place, options)
        except StageFailed:
            client.mount(mount.source, mount.place, mount.given)
            raise

    def _entered(self) -> Keeper:
        assert self._keeper is not None, "a target is entered before it is used"
        return self._keeper


def _disk_below(export: str) -> str | None:
    """The disk of an exported directory; None where it has none.

    Raises:
        StudyError: there is no such directory.
    """
    try:
        return Devices.below(Path(export)).disk
    except OSError as error:
        raise StudyError(
            f"target.export = {export!r:.80}: {error.strerror}; must be a directory that this machine exports"
        ) from error


def _is_window(setting: NfsSetting) -> bool:
    """Whether it is a setting of the kernel's that new connections take."""
    return setting.where == "client" and setting.context == "connection"


def _chosen(options: ExistingNfsOptions) -> Iterable[NfsSetting]:
    """The settings that such a study may change."""
    where = (() if options.path is None else ("mount", "client")) + (
        () if options.export is None else ("server", "disk")
    )
    return [
        one
        for one in chosen(options.parameters, where)
        if one.name not in ("vers", "nfsd.max_block_size")
        and (options.remounts is not None or one.context == "dynamic")
    ]
