"""The local file system in a node of user-mode Linux, whose kernel has what this machine's lacks.

The study stays here, with its history: a node that dies takes a trial along and not the study. The keeper and
the programs of the load run in the node, by the same code as on a machine. The node's disk is an image file
of this machine. At the end, however it comes, node and image are gone.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ascar.errors import AscarError, EnvironmentLacks, KeeperLost, StageFailed, StudyError
from ascar.results.machine import Need, RestoreReport
from ascar.systems.counters import counter_names
from ascar.systems.keeper import Keeper, scratch_directory
from ascar.systems.kernel_files import KernelFiles
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_rights import owner_of_load
from ascar.systems.localfs_space import vm_in_force, with_kernel_defaults
from ascar.systems.machine import backing_of, file_system_of
from ascar.testbed import user_mode
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_parts import KernelParts

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping
    from types import TracebackType

    from ascar.results.trial import Change
    from ascar.space import Configuration, Value
    from ascar.systems import Sample
    from ascar.systems.localfs_options import LocalFileSystemSettings
    from ascar.workspace import Workspace

_log = logging.getLogger(__name__)

MIB = 2**20
NODE = "localfs"
"""The name of the node."""
_DEVICE = "/dev/ubda"
# What the kernel and programs take there, and what a load without a limit gets.
_SYSTEM_BYTES, _UNLIMITED_BYTES = 384 * MIB, 1024 * MIB
_BOOT_S, _SET_UP_S = 120.0, 120.0
_SET_UP = """
for place; do mkdir -p "/dev/shm$place"; mount --bind "$place" "/dev/shm$place"; done
mount -t tmpfs tmpfs /var/lib
for place; do mkdir -p "$place"; mount --move "/dev/shm$place" "$place"; done
for module in nilfs2 bfq; do modprobe -d /run/modules "$module" || echo "$module: not there" >&2; done
"""
# Where this package is found.
_SOURCES = Path(__file__).resolve().parents[2]
_STATE = "/var/lib"
"""Where the keeper there has its journal."""
_PATH = re.compile(r"[!-+.-9;-~-]{1,180}")  # neither a comma nor a colon
_PROGRAMS = ("ascard", "blkid", "fio")


class NodeFileSystem(LocalFileSystem):
    """The target of kind "localfs" with `kernel = "user-mode"`.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: a file system that was asked for cannot be made here.
    """

    workloads: ClassVar[frozenset[str] | None] = frozenset(
        {"command", "filebench", "fio", "sqlite-transactions"}
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._given = self.settings
        there = msgspec.structs.replace(self.settings.options, device=_DEVICE, confirmed_device=_DEVICE)
        self.settings = msgspec.structs.replace(self.settings, options=there)
        self._held = ExitStack()
        self._owner: tuple[int, int] | None = None
        self._node: KernelNode | None = None
        self._described: Mapping[str, Any] = {}

    @classmethod
    def for_session(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """A session tunes the kernel that others use.

        Raises:
            StudyError: always.
        """
        raise StudyError(
            f"target.kernel = {options['kernel']!r:.80}: a session tunes this machine's own kernel; leave "
            "the key out"
        )

    @classmethod
    def needs(cls) -> tuple[Need, ...]:
        """User-mode Linux, and the programs that are needed there as on a machine. Root is not among them."""
        lack = user_mode.missing()
        there = [one for one in super().needs() if one.name.startswith("mk") or one.name in _PROGRAMS]
        found = None if lack else user_mode.KERNEL
        return (Need("user-mode Linux", "a kernel as a process", found, ("localfs",), remedy=lack), *there)

    # Taking and giving back.

    def __enter__(self) -> NodeFileSystem:
        """Boot the node.

        Raises:
            EnvironmentLacks: user-mode Linux, a program or disk space is missing.
            StudyError: a path of the study is wrong.
            WorkError: the node does not come up.
        """
        lack = user_mode.missing()
        if lack is not None:
            raise EnvironmentLacks(f"target.kernel = 'user-mode': {lack}")
        self._given.check_machine()
        self._owner = owner_of_load(self.settings.options.user, as_root=True)
        self.restored = None
        try:
            with ExitStack() as held:
                keeper = held.enter_context(Keeper(self.owner, user=True))
                folder = held.enter_context(scratch_directory(keeper, "ascar-localfs-"))
                _check_path(folder)
                held.enter_context(_image(keeper, self._given, folder / "disk"))
                self._node = held.enter_context(KernelNode(self._parts(folder), folder / "kept", folder))
                self._files = KernelFiles(self._node)
                self._begin()
                self._described = self._told()
                self._held = held.pop_all()
        except BaseException:
            self._drop()
            self._node = None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back in the node, end it, and remove the image."""
        try:
            with suppress(AscarError):  # with the node all of it is gone
                if self._keeper is not None and kind is None:
                    self.restored = self._keeper.close()
        finally:
            self.restored = self.restored or RestoreReport()
            self._drop()
            self._held.close()
            self._node = None

    def _parts(self, folder: Path) -> KernelParts:
        limit_bytes = self.settings.memory_bytes or _UNLIMITED_BYTES
        return KernelParts(
            NODE,
            memory_mib=(limit_bytes + _SYSTEM_BYTES) // MIB,
            # "t": no discards, of which a device of many GiB would take a million.
            kernel_words=(f"ubd0t={folder / 'disk'}",),
            visible=tuple(map(str, _places_seen())),
        )

    def _begin(self) -> None:
        """Boot the node on an empty disk, and take the disk there."""
        node = self._booted()
        node.cut()
        _blank(self._given)
        node.boot(_BOOT_S)
        done = node.run(["sh", "-c", _SET_UP, "set-up", *_seen_below_state(node)], _SET_UP_S)
        if done.status != 0 or done.err:
            _log.warning("target.kernel: %s", (done.err.strip().splitlines() or ["set-up failed"])[-1])
        self._keeper = Keeper(self.owner, node=node).start()
        self._take(self._keeper, self._owner)
        self.space = with_kernel_defaults(self.space, vm_in_force(self._files))

    def _drop(self) -> None:
        """End the node; the next configuration boots it again."""
        keeper, self._keeper, self._device, self._memory = self._keeper, None, None, None
        self._devices, self._current, self._recipe, self._filled = {}, None, None, False
        if self._node is not None:
            self._node.cut()
        if keeper is not None:
            with suppress(AscarError):
                keeper.close()

    @contextmanager
    def _asked(self, stage: str) -> Generator[KernelNode]:
        """Something is asked of the node; one that cannot be asked any more is ended.

        Raises:
            StageFailed: the node is not up, or has died.
        """
        node = self._booted()
        if self._keeper is None:
            raise StageFailed(stage, f"node {NODE}: is not up")
        try:
            yield node
        except (EnvironmentLacks, KeeperLost) as error:
            said, why = node.last_words, error.message
            self._drop()
            if said is None:
                raise StageFailed(stage, why) from error
            raise StageFailed(stage, f"node {NODE}: it is gone", f"{said}\n{why}") from error

    def _booted(self) -> KernelNode:
        assert self._node is not None, "a target is entered before it is used"
        return self._node

    # One trial.

    def apply(self, configuration: Configuration) -> Change:
        """Make, mount and set it in the node; one that has died is booted again.

        Raises:
            StageFailed: a step failed or ran out of time, or the node does not come up.
        """
        if self._keeper is None or not self._booted().alive:
            self._drop()
            try:
                self._begin()
            except AscarError as error:
                self._drop()
                raise StageFailed("change", f"node {NODE} does not come up: {error.message}") from error
        with self._asked("change"):
            return super().apply(configuration)

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The settings in force of the node's kernel."""
        with self._asked("change"):
            return super().read(names)

    def settle(self) -> Mapping[str, float]:
        """As on a machine; the caches of the node, and this machine's of its disk, are dropped.

        Raises:
            StageFailed: a step failed or ran out of time.
        """
        with self._asked("settle"):
            step_s = super().settle()
        if self.settings.options.machine_wide is True:
            with self.settings.image.open("rb") as image:
                os.fdatasync(image.fileno())
                os.posix_fadvise(image.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return step_s

    @property
    def workspace(self) -> Workspace:
        """The load's directory in the node, where its programs run."""
        with self._asked("load") as node:
            there = super().workspace
            group = None if there.admit is None or self._memory is None else self._memory.group
            return replace(there, admit=None, environment=_python_there(), node=node, group=group)

    def sample(self) -> Sample:
        """Counters of the node's kernel and of its disk."""
        with self._asked("sample"):
            return super().sample()

    def drain(self, limit_s: float) -> None:
        """Write back all dirty pages of the file system there.

        Raises:
            StageFailed: that takes longer.
        """
        with self._asked("drain"):
            super().drain(limit_s)

    @property
    def sampled(self) -> frozenset[str]:
        """The names of the node's counters; it also tells stalls where its kernel does."""
        return counter_names(("device",)) | {f"stall_{one}_s" for one in ("io", "memory", "cpu")}

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for: the node's kernel on this machine."""
        with suppress(StageFailed):  # a node that has died was what it was
            self._described = self._told()
        return self._described

    def _told(self) -> dict[str, Any]:
        with self._asked("describe") as node:
            told, facts = dict(super().describe()), node.facts()
        directory = self.settings.image.parent
        image = {
            "kind": "image, as the disk of a node of user-mode Linux",
            "image": str(self.settings.image),
            "image_file_system": file_system_of(directory),
            "image_device": backing_of(directory),
        }
        there = {"kernel": facts.kernel, "cpus": facts.cpus, "machine_memory_bytes": facts.memory_bytes}
        return {
            **told,
            **there,
            "applied": {},
            "device": {**told["device"], **image},
            "host_kernel": told["kernel"],
        }


def _places_seen() -> list[Path]:
    """Directories of this machine that the process in the node reads, where the node covers them else."""
    places = [Path(sys.prefix), _SOURCES, _here()]
    return [one for one in places if str(one.resolve()) not in (*user_mode.OWN, "/srv", _STATE)]


def _seen_below_state(node: KernelNode) -> list[str]:
    """Those of them, and of what the node itself runs, that its own directory of state would cover."""
    places = [Path(sys.base_prefix), Path(node.ascard).parent, *_places_seen()]
    found = set(user_mode.below_own(places, (_STATE,)))
    return sorted(str(one) for one in found if found.isdisjoint(one.parents))


def _here() -> Path:
    """The directory in which relative paths of the study begin."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


def _python_there() -> dict[str, str]:
    """The environment in which a load of this package finds it."""
    return {"PYTHONPATH": str(_SOURCES), "PYTHONDONTWRITEBYTECODE": "1"}


def _check_path(folder: Path) -> None:
    """See that a kernel can be told of a folder.

    Raises:
        EnvironmentLacks: its path cannot be a word of a command line.
    """
    if not _PATH.fullmatch(str(folder)):
        raise EnvironmentLacks(
            f"folder {str(folder.parent)!r}: its path is too long, or has characters that a kernel's command "
            "line cannot hold; set TMPDIR to another"
        )


@contextmanager
def _image(keeper: Keeper, settings: LocalFileSystemSettings, link: Path) -> Generator[None]:
    """The image file, by a short name; it is removed at the end, however we end.

    Raises:
        StudyError: it cannot be made.
    """
    image = settings.image
    removal = ["/bin/rm", "-f", "--", str(image)]
    # Made before it is noted: killed in between, we leave an empty file, where else somebody's was removed.
    try:
        file = os.open(image, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StudyError(f"image file {str(image)!r}: {error.strerror}; name another place") from error
    os.close(file)
    try:
        keeper.undo_command(removal)
        link.symlink_to(image)
        _blank(settings)
        yield
    finally:
        image.unlink(missing_ok=True)
        _forget(keeper, removal)


def _forget(keeper: Keeper, removal: list[str]) -> None:
    """What is removed need not be undone; a keeper that is gone, nobody needs any more."""
    with suppress(KeeperLost):
        keeper.undo_forget(removal)


def _blank(settings: LocalFileSystemSettings) -> None:
    """Make the image empty: what a node that died has left on it says nothing."""
    with settings.image.open("r+b") as image:
        image.truncate(0)
        image.truncate(settings.size_bytes)
