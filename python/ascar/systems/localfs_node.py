"""The local file system in a node of user-mode Linux, whose kernel has what this machine's lacks.

The study stays here, with its history: a node that dies takes a trial along and not the study. In the node
one process (`ascar.remote.worker`) has the target and runs the load, by the same code as on a machine. The
node's disk is an image file of this machine. At the end, however it comes, node and image are gone.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import secrets
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from ascar.errors import AscarError, EnvironmentLacks, KeeperLost, StageFailed, StudyError
from ascar.results.machine import Need, RestoreReport
from ascar.results.trial import Change
from ascar.systems.counters import counter_names
from ascar.systems.keeper import Keeper
from ascar.systems.localfs import LocalFileSystem
from ascar.systems.localfs_cycles import cycle_s
from ascar.systems.localfs_space import with_kernel_defaults
from ascar.systems.machine import backing_of, file_system_of
from ascar.systems.node_worker import NodeWorker
from ascar.systems.trial_messages import ToldReadings, ToldSample, TrialHello
from ascar.testbed import user_mode
from ascar.testbed.kernel import KernelNode
from ascar.testbed.kernel_parts import KernelParts
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping
    from types import TracebackType

    from ascar.results.measurement import Readings, Series
    from ascar.space import Configuration, Value
    from ascar.systems import Sample
    from ascar.systems.localfs_options import LocalFileSystemSettings
    from ascar.workspace import LoadTiming

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

MIB = 2**20
NODE = "localfs"
"""The name of the node."""
_DEVICE = "/dev/ubda"
# What the kernel and this Python take there, and what a load without a limit gets.
_SYSTEM_BYTES, _UNLIMITED_BYTES = 384 * MIB, 1024 * MIB
_BOOT_S, _ASK_S, _FILL_S, _OVERRUN_S = 120.0, 120.0, 3600.0, 900.0
# A change has fewer steps than this, each within the study's limit.
_STEPS = 12
_SET_UP = """
for place; do mkdir -p "/dev/shm$place"; mount --bind "$place" "/dev/shm$place"; done
mount -t tmpfs tmpfs /var/lib
for place; do mkdir -p "$place"; mount --move "/dev/shm$place" "$place"; done
for module in nilfs2 bfq; do modprobe -d /run/modules "$module" || echo "$module: not there" >&2; done
"""
# A kernel that dies may still make a file meanwhile.
_REMOVE = 'for _ in 1 2 3 4 5 6 7 8 9; do rm -rf --one-file-system -- "$1" && exit 0; sleep 0.3; done; exit 1'
# Where this package is found.
_SOURCES = Path(__file__).resolve().parents[2]
_STATE = "/var/lib"
"""Where the keeper there has its journal."""
_PATH = re.compile(r"[!-~]{1,180}")
_PROGRAMS = ("ascard", "blkid", "fio")
# What of the study's table is about this machine.
_OWN = ("image", "size", "kernel", "device", "confirmed_device", "direct_io")


class NodeFileSystem(LocalFileSystem):
    """The target of kind "localfs" with `kernel = "user-mode"`.

    Args:
        options: the `[target]` table without its kind.

    Raises:
        StudyError: a key is wrong.
        EnvironmentLacks: a file system that was asked for cannot be made here.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._there = {"kind": "localfs", "device": _DEVICE, "confirmed_device": _DEVICE} | {
            key: value for key, value in options.items() if key not in _OWN
        }
        self._held = ExitStack()
        self._node: KernelNode | None = None
        self._worker: NodeWorker | None = None
        self._described: Mapping[str, Any] = {}
        self._starts_afresh = False

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
        self.settings.check_machine()
        self.restored = None
        try:
            with ExitStack() as held:
                keeper = held.enter_context(Keeper(self.owner, user=True))
                folder = held.enter_context(_folder(keeper))
                held.enter_context(_image(keeper, self.settings, folder / "disk"))
                self._node = held.enter_context(KernelNode(self._parts(folder), folder / "kept", folder))
                hello = self._begin()
                self._check_kernel(hello.mountable)
                self.space = with_kernel_defaults(self.space, hello.defaults)
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
                if self._worker is not None and kind is None:
                    self.restored = self._ask("leave", {}, _ASK_S, RestoreReport)
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

    def _begin(self) -> TrialHello:
        """Boot the node on an empty disk, and have the target entered there."""
        node = self._node
        assert node is not None, "it is made when the target is entered"
        node.cut()
        _blank(self.settings)
        node.boot(_BOOT_S)
        done = node.run(["sh", "-c", _SET_UP, "set-up", *_seen_below_state(node)], _ASK_S)
        if done.status != 0 or done.err:
            _log.warning("target.kernel: %s", (done.err.strip().splitlines() or ["set-up failed"])[-1])
        self._worker = NodeWorker(node, _worker_words())
        return self._ask("open", {"target": self._there}, _BOOT_S, TrialHello)

    def _drop(self) -> None:
        """End the node; the next configuration boots it again."""
        worker, self._worker = self._worker, None
        if self._node is not None:
            self._node.cut()
        if worker is not None:
            worker.close()

    def _ask(
        self,
        ask: str,
        given: Mapping[str, Any],
        limit_s: float,
        kind: type[_T],
        look: Callable[[Mapping[str, Series]], bool] | None = None,
    ) -> _T:
        """Have something done in the node, which answers by a value of a kind.

        One that cannot be asked any more is ended.

        Raises:
            AscarError: as it was raised there.
            StageFailed: the node is not up, has died, or answers by something else.
        """
        worker, node = self._worker, self._node
        if worker is None or node is None:
            raise StageFailed(ask, f"node {NODE}: is not up")
        try:
            return worker.ask(ask, given, limit_s, kind, look)
        except StageFailed as error:
            if not worker.has_failed:
                raise
            said = "\n".join((error.stderr, node.console[-2000:])).strip()
            raise StageFailed(error.stage, error.message.removeprefix(f"{error.stage}: "), said) from error
        finally:
            if worker.has_failed:
                self._drop()

    # One trial.

    def apply(self, configuration: Configuration) -> Change:
        """Make, mount and set it in the node; one that has died is booted again.

        Raises:
            StageFailed: a step failed or ran out of time, or the node does not come up.
        """
        if self._worker is None or self._node is None or not self._node.alive:
            self._drop()
            try:
                self._begin()
            except AscarError as error:
                self._drop()
                raise StageFailed("change", f"node {NODE} does not come up: {error.message}") from error
        given = {"configuration": dict(configuration), "afresh": self._starts_afresh}
        limit_s = _STEPS * self.settings.step_limit_s + _ASK_S
        change = self._ask("apply", given, limit_s, Change)
        self._starts_afresh = False
        return change

    def read(self, names: Collection[str]) -> Mapping[str, Value]:
        """The settings in force of the node's kernel."""
        return self._ask("read", {"names": list(names)}, _ASK_S, dict[str, int | str])

    def settle(self) -> Mapping[str, float]:
        """As on a machine; the caches of the node, and this machine's of its disk, are dropped.

        Raises:
            StageFailed: a step failed or ran out of time.
        """
        limit_s = _STEPS * self.settings.step_limit_s + _ASK_S
        step_s = self._ask("settle", {}, limit_s, dict[str, float])
        if self.settings.options.machine_wide is True:
            with self.settings.image.open("rb") as image:
                os.fdatasync(image.fileno())
                os.posix_fadvise(image.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return step_s

    def start_afresh(self) -> None:
        """Make the next configuration start on a new file system all the same."""
        self._starts_afresh = True

    @property
    def workspace(self) -> Workspace:
        """A place here; the load has one there."""
        return Workspace(Path(tempfile.gettempdir()))

    def prepare_load(self, options: Mapping[str, Any]) -> None:
        """See `Housing`."""
        self._ask("prepare", {"workload": dict(options)}, _FILL_S, NoneType)

    def run_load(self, options: Mapping[str, Any], timing: LoadTiming) -> Readings:
        """See `Housing`."""
        numbers = ("load_min_s", "load_max_s", "reading_s", "ask_from_s")
        given = {
            "workload": dict(options),
            "timing": {name: getattr(timing, name) for name in numbers},
        }
        limit_s = timing.load_max_s + _OVERRUN_S
        return self._ask("run", given, limit_s, ToldReadings, timing.may_end).readings

    def sample(self) -> Sample:
        """Counters of the node's kernel and of its disk."""
        return self._ask("sample", {}, _ASK_S, ToldSample).sample

    def drain(self, limit_s: float) -> None:
        """Write back all dirty pages of the file system there.

        Raises:
            StageFailed: that takes longer.
        """
        self._ask("drain", {"limit_s": limit_s}, limit_s + _ASK_S, NoneType)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The greatest age of dirty pages there, or the commit interval where it is longer."""
        if self._worker is None:
            return cycle_s(configuration)
        given = {"configuration": dict(configuration)}
        return self._ask("cycle_s", given, _ASK_S, float)

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
        told = self._ask("describe", {}, _ASK_S, dict[str, Any])
        directory = self.settings.image.parent
        image = {
            "kind": "image, as the disk of a node of user-mode Linux",
            "image": str(self.settings.image),
            "image_file_system": file_system_of(directory),
            "image_device": backing_of(directory),
        }
        return {**told, "device": {**told.get("device", {}), **image}, "host_kernel": platform.release()}


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


def _worker_words() -> list[str]:
    """The program of the node: this Python, with this package, in this directory."""
    settings = [f"PYTHONPATH={_SOURCES}", "PYTHONDONTWRITEBYTECODE=1"]
    if cache := os.environ.get("PYTHONPYCACHEPREFIX"):
        settings.append(f"PYTHONPYCACHEPREFIX={cache}")
    return ["env", "-C", str(_here()), *settings, sys.executable, "-m", "ascar.remote.worker"]


@contextmanager
def _folder(keeper: Keeper) -> Generator[Path]:
    """A directory of ours for the node, which is removed at the end, however we end.

    Raises:
        EnvironmentLacks: its path cannot be told a kernel.
    """
    place = Path(tempfile.gettempdir(), f"ascar-localfs-{secrets.token_hex(6)}")
    if not _PATH.fullmatch(str(place)) or set(":,") & set(str(place)):
        raise EnvironmentLacks(
            f"folder {str(place.parent)!r}: its path is too long, or has characters that a kernel's command "
            "line cannot hold; set TMPDIR to another"
        )
    removal = ["/bin/sh", "-c", _REMOVE, "remove", str(place)]
    keeper.undo_command(removal)
    place.mkdir(mode=0o700)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            _forget(keeper, removal)


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
