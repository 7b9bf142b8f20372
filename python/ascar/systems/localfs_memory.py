"""How much memory the load on a file system may have, in a control group of the keeper's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StudyError
from ascar.systems.dirty_pages import MEMINFO, group_dirty_bytes, machine_dirty_bytes
from ascar.systems.localfs_options import MEMORY_BYTES_MIN
from ascar.units import format_size

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ascar.systems.keeper import Keeper
    from ascar.systems.kernel_files import KernelFiles
    from ascar.systems.localfs_options import LocalFileSystemSettings


class MemoryLimit:
    """A limit that the study gives, or one in proportion to the size of the load's data.

    Args:
        settings: the study's.
        keeper: makes the group.
        files: reads files of the keeper's machine.

    Raises:
        EnvironmentLacks: a limit is wanted, and this machine has no control groups for memory.
    """

    def __init__(self, settings: LocalFileSystemSettings, keeper: Keeper, files: KernelFiles) -> None:
        self._keeper, self._files = keeper, files
        self._ratio = settings.options.dataset_to_memory
        self._given_bytes = settings.memory_bytes
        self.kind = keeper.capabilities.cgroup_memory
        """The kind of control group; None: there are none."""
        self.bytes: int | None = None
        """The limit in force; None: none, or none yet."""
        self.dataset_bytes: int | None = None
        """Size of the load's data, once it is filled."""
        self.group: Path | None = None
        """The directory of the control group; None: there is none, or none yet."""
        self._dirty_before_bytes = 0.0
        if self.kind is None and (self._given_bytes is not None or self._ratio is not None):
            raise EnvironmentLacks(
                "target.memory: this machine has no control groups for memory; mount them, or set "
                'target.memory = "none" and use a load much larger than the memory'
            )

    def enforce(self) -> None:
        """Set the limit that is known from the start, if there is one."""
        if self._given_bytes is not None:
            self._limit(self._given_bytes)

    def measure(self, directory: Path) -> None:
        """Learn the size of the load's data, and limit the memory by it where the study wants that.

        Raises:
            StudyError: the data is too small for the wanted proportion.
        """
        if self.dataset_bytes is None:
            self.dataset_bytes = self._files.bytes_below(directory)
        if self._ratio is None or self.bytes is not None:
            return
        memory_bytes = int(self.dataset_bytes / self._ratio) // 4096 * 4096
        if memory_bytes < MEMORY_BYTES_MIN:
            raise StudyError(
                f"target.dataset_to_memory = {self._ratio:g}: with {format_size(self.dataset_bytes)} of data "
                f"that is less than {format_size(MEMORY_BYTES_MIN)} of memory; use a larger load"
            )
        self._limit(memory_bytes)

    @property
    def admit(self) -> Callable[[int], None] | None:
        """Puts a process under the limit; None where there is none."""
        return None if self.bytes is None else self._keeper.cgroup_add

    def settle(self) -> None:
        """From here on dirty pages are the load's."""
        self._dirty_before_bytes = 0.0
        self._dirty_before_bytes = self.dirty_bytes

    @property
    def dirty_bytes(self) -> float:
        """Dirty pages since the load has settled: its group's, or the machine's where there is none."""
        now_bytes = None
        if self.group is not None:
            now_bytes = group_dirty_bytes(self._text(self.group / "memory.stat"))
        if now_bytes is None:
            now_bytes = machine_dirty_bytes(self._text(MEMINFO))
        return max(0.0, now_bytes - self._dirty_before_bytes)

    def end_load(self) -> None:
        """Kill whatever runs under the limit."""
        if self.bytes is not None:
            self._keeper.cgroup_kill()

    def _limit(self, memory_bytes: int) -> None:
        self.group = self._keeper.cgroup_create(memory_bytes).path
        self.bytes = memory_bytes

    def _text(self, path: Path) -> str:
        return self._files.texts([path])[path]
