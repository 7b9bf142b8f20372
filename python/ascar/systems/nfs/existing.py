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

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar.catalogues.nfs import nfs
from ascar.errors import EnvironmentLacks, StageFailed, StudyError
from ascar.nodes.local import LocalNode
from ascar.study import absolute, convert
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.kernel_parameters import Devices
from ascar.systems.live_machine import LiveMachine
from ascar.systems.machine import describe_machine
from ascar.systems.nfs.machine import EXPORTS, NfsMachine, exported_in
from ascar.systems.nfs.mount_settings import NfsMountSettings
from ascar.systems.nfs.mounts import COUNTERS, MOUNTSTATS, counters_of
from ascar.systems.nfs.restoration import RESTORE_S
from ascar.systems.nfs.settings import kept_of
from ascar.systems.nfs.space import chosen, nfs_space
from ascar.systems.nfs.statements import forms_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ascar.catalogues.nfs import NfsSetting
    from ascar.space import Configuration, Value

_OF_MOUNT = ("mount", "client")


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


class ExistingNfs(LiveMachine):
    """A mount, or an export, of this machine.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
    """

    listed = staticmethod(nfs)
    default_workload: str | None = "fio"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = convert(options, ExistingNfsOptions, "target")
        if self.options.path is None and self.options.export is None:
            raise StudyError("target.path: missing; name a directory on a mount of NFS, or target.export")
        if self.options.remounts is not None and self.options.path is None:
            raise StudyError("target.remounts = 'allowed': is for a mount; name target.path")
        for key, path in (("path", self.options.path), ("export", self.options.export)):
            if path is not None:
                absolute(f"target.{key}", path)
        super().__init__("nfs")
        self._settings = {one.parameter_name: one for one in _chosen(self.options)}
        self._mount: NfsMountSettings | None = None
        self._disk: str | None = None
        self.space = nfs_space(self._settings.values(), {})

    def __enter__(self) -> ExistingNfs:
        """The values in force become the defaults.

        Raises:
            EnvironmentLacks: no root, no keeper, or this machine has nothing to tune.
            StudyError: the directory is on no mount of NFS, or is not exported.
            Refused: the mount is in use, and the study would unmount it.
        """
        if os.geteuid() != 0:
            raise EnvironmentLacks("target.server = 'existing': needs root; run ascar through sudo")
        given = self.options
        if given.path is not None:
            settings = [one for one in self._settings.values() if one.where in _OF_MOUNT]
            self._mount = NfsMountSettings(given.path, settings, remounts=given.remounts is not None)
            self._beside = (self._mount,)
        if given.export is not None:
            self._disk = Devices.below(absolute("target.export", given.export, is_there=True)).disk
            _check_exported(given.export)
        try:
            key, path = ("path", given.path) if given.path else ("export", given.export or "")
            taken = self._take(f"target.{key}", path, RESTORE_S)
            self._entered().lock(*(self._native(name) for name in self._settings if self._is_knob(name)))
            present = {self._settings[name].name: value for name, value in self._in_force().items()}
            self._settings = self._tunable(taken, present)
            self.space = nfs_space(self._settings.values(), present, largest=self._largest())
            self._current = self.space.default()
        except BaseException:
            self._opened.close()
            raise
        return self

    def _tunable(self, taken: Collection[str], present: Mapping[str, Value]) -> dict[str, NfsSetting]:
        """The settings that this machine has; an NFS server without a thread is none that a study starts."""
        found = {
            name: one
            for name, one in self._settings.items()
            if one.name in (taken if one.where in _OF_MOUNT else present)
            and (one.name != "nfsd.threads" or present[one.name] != 0)
        }
        if not found:
            raise EnvironmentLacks("target: this machine has nothing of NFS to tune here")
        return found

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The values in force; what the disk's scheduler does not have is missing."""
        return {name: value for name, value in self._in_force().items() if name in names}

    def _in_force(self) -> dict[str, Value]:
        mount = {} if self._mount is None else self._mount.values()
        knobs = [one for name, one in self._settings.items() if self._is_knob(name)]
        told = mount | NfsMachine(LocalNode()).values(knobs, self._disk)
        return {name: told[one.name] for name, one in self._settings.items() if one.name in told}

    def _counted(self) -> Mapping[str, float]:
        """What the client counts of its mount."""
        if self._mount is None:
            return {}
        return counters_of(NfsMachine(LocalNode()).read([MOUNTSTATS])[0], self._mount.place)

    @property
    def sampled(self) -> frozenset[str]:
        """The names of those counters."""
        return frozenset(COUNTERS if self.options.path is not None else ())

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for."""
        mount = {} if self._mount is None else self._mount.described
        return {"target": "nfs", **describe_machine(), **mount, "device": {"name": self._disk}}

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """nfs.conf, fstab, sysctl.d and udev, and commands for now."""
        if self._mount is None:
            return forms_of(configuration, chosen)
        mount = self._mount.mount
        given = kept_of(mount.given, nfs(), "mount")
        return forms_of(configuration, chosen, source=mount.source, place=mount.place, given=given)

    def _native(self, name: str) -> str:
        one = self._settings[name]
        return one.knob_of(self._disk) if self._is_knob(name) else one.name

    def _is_knob(self, name: str) -> bool:
        """Whether the keeper of root's sets it; a server without a disk of its own has no queue."""
        where = self._settings[name].where
        return where == "server" or (where == "disk" and self._disk is not None)

    def _largest(self) -> int | None:
        """The most that the server has granted in a request; greater sizes would be made smaller silently."""
        if self._mount is None:
            return None
        return max(int(nfs()[name].value_in(self._mount.mount.options)) for name in ("rsize", "wsize"))


def _check_exported(directory: str) -> None:
    """See that this machine exports a directory.

    Raises:
        StudyError: it does not.
    """
    try:
        exported_in(KernelFiles().text(Path(EXPORTS)), directory)
    except (EnvironmentLacks, StageFailed) as failure:
        raise StudyError(f"target.export = {directory!r:.80}: {failure.message}") from failure


def _chosen(options: ExistingNfsOptions) -> Iterable[NfsSetting]:
    """The settings that such a study may change."""
    where = (() if options.path is None else _OF_MOUNT) + (
        () if options.export is None else ("server", "disk")
    )
    return [
        one
        for one in chosen(options.parameters, where)
        if one.name not in ("vers", "nfsd.max_block_size")
        and (options.remounts is not None or one.context == "dynamic")
    ]
