"""A machine that people use: its settings are changed while it works, and put back."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ascar.catalogues.coupling import to_write
from ascar.nodes.local import LocalNode
from ascar.nodes.process import failing
from ascar.results.trial import Change
from ascar.systems import Sample, Target
from ascar.systems.dirty_pages import MEMINFO, machine_dirty_bytes, write_back, write_back_cycle_s
from ascar.systems.keeper import Keeper, load_directory
from ascar.systems.kernel_files import KernelFiles
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from ascar.nodes import Node
    from ascar.space import Configuration, Value
    from ascar.systems.noted_settings import NotedSettings


class LiveMachine(Target):
    """Settings of a kernel, which the keeper of root's changes, and others that are noted beside it.

    A kind makes the space, and says which settings there are beside and what each parameter is a setting of.

    Args:
        kind: the kind of the target.
        node: the machine; None: this one.
    """

    default_workload: str | None = None
    works_already = True

    def __init__(self, kind: str, node: Node | None = None) -> None:
        self.owner = self._kind = kind
        self._node = node
        self._beside: tuple[NotedSettings[Any], ...] = ()
        self._opened = ExitStack()
        self._keeper: Keeper | None = None
        self._directory: Path | None = None
        self._current: Mapping[str, Value] = {}

    def _native(self, name: str) -> str:
        """What the keeper, or what is beside it, calls the setting of a parameter."""
        raise NotImplementedError

    def _chosen(self, beside: NotedSettings[Any]) -> list[str]:
        """The settings of a place beside that the study may change."""
        return list(beside.settings)

    def _counted(self) -> Mapping[str, float]:
        """The counters of a sample.

        Raises:
            StageFailed: they cannot be read.
        """
        raise NotImplementedError

    def _take(self, key: str, above: str, remove_s: float = 10.0) -> list[str]:
        """Start the keepers, and take the values in force beside for those of before; nothing is changed.

        Args:
            key: the key of the study that names the directory in which that of the load is made.
            above: that directory.
            remove_s: how long it may take to remove it.

        Returns:
            The settings beside that can be changed.
        """
        keeper = self._keeper = self._opened.enter_context(Keeper(self.owner, node=self._node))
        of_user = self._opened.enter_context(Keeper(self.owner, user=True, hold=self.keeps))
        if not self.keeps:
            self._directory = load_directory(of_user, key, above, self._kind, remove_s)
        taken: list[str] = []
        for one in self._beside:
            for holder in (keeper, of_user):  # for all, and as long as the change may stay
                holder.lock(*one.locks)
            taken += one.enter(of_user, self._chosen(one))
        return taken

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back; what is to stay does so unless there is an error."""
        self._keeper = None
        try:
            with ExitStack() as putting_back:
                for one in self._beside if error is not None or not self.keeps else ():
                    putting_back.callback(one.put_back)
        except BaseException as failure:
            self._opened.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._opened.__exit__(kind, error, trace)

    def apply(self, configuration: Configuration) -> Change:
        """Write what differs, and once more what the kernel resets with that.

        Raises:
            StageFailed: the kernel refuses a value.
            WorkError: somebody else changed a setting beside the keeper.
        """
        keeper, start_s = self._entered(), time.monotonic()
        # Where a write is refused, what is in force is not known, and the next time everything is written.
        before, self._current = self._current, {}
        natives = {self._native(name): name for name in configuration}
        wanted = {native: configuration[name] for native, name in natives.items()}
        beside = [
            (one, {native: wanted.pop(native) for native in tuple(wanted) if native in one.settings})
            for one in self._beside
        ]
        present = {native: before[name] for native, name in natives.items() if name in before}
        for native in to_write(wanted, present):
            keeper.knob_write(native, wanted[native])
        steps = {"settings": time.monotonic() - start_s}
        for one, values in beside:
            begun_s = time.monotonic()
            if one.change(values):
                steps[one.step] = time.monotonic() - begun_s
        difference = self.space.change(before, configuration)
        self._current = dict(configuration)
        return Change.of(difference, steps)

    def sample(self) -> Sample:
        """Counters, and the dirty pages of the machine, whoever wrote them.

        Raises:
            StageFailed: what was set beside the keeper is not in force any more.
        """
        for one in self._beside:
            one.check()
        with failing("sample"):
            meminfo = KernelFiles(self._node).text(MEMINFO)
        return Sample(self._counted(), deferred={"dirty_bytes": machine_dirty_bytes(meminfo)})

    def drain(self, limit_s: float) -> None:
        """Write back all dirty pages of the machine that are there now.

        Raises:
            StageFailed: that takes longer.
        """
        write_back(LocalNode() if self._node is None else self._node, limit_s)

    def cycle_s(self, configuration: Configuration, metrics: Mapping[str, float]) -> float:  # noqa: ARG002
        """The greatest age of dirty pages."""
        return write_back_cycle_s(configuration, KernelFiles(self._node).in_force)

    @property
    def workspace(self) -> Workspace:
        """A directory that is removed at the end, below the study's path where it names one."""
        assert self._directory is not None, "a target is entered before it is used"
        return Workspace(self._directory)

    def _entered(self) -> Keeper:
        assert self._keeper is not None, "a target is entered before it is used"
        return self._keeper
