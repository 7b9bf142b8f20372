"""A load that runs where its target is, in a node: the target passes on what the load is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.workloads import Declaring, SelfEnding, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.results.measurement import Readings
    from ascar.systems import Housing
    from ascar.workspace import LoadTiming, Workspace


class LoadThere(Workload):
    """A load in the place of its target.

    Args:
        target: where it runs.
        options: the study's `[workload]` table.
        load: the same load here, which has checked the table, and tells what is known beforehand.
    """

    def __init__(self, target: Housing, options: Mapping[str, Any], load: Workload) -> None:
        self._target, self._options, self._load = target, dict(options), load

    def describe(self) -> Mapping[str, Any]:
        """As the load here."""
        return self._load.describe()

    @property
    def ends_by_itself(self) -> bool:
        """As the load here."""
        return isinstance(self._load, SelfEnding) and self._load.ends_by_itself

    def prepare(self, workspace: Workspace) -> None:  # noqa: ARG002 - the target there knows its own
        """Fill the target's workspace there."""
        self._target.prepare_load(self._options)

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """Run it there; `pace` is asked here."""
        return self._target.run_load(self._options, pace)


class DeclaredLoadThere(LoadThere):
    """The same, of a load that knows beforehand what it reports."""

    def __init__(self, target: Housing, options: Mapping[str, Any], load: Workload) -> None:
        super().__init__(target, options, load)
        assert isinstance(load, Declaring), "load_there chooses"
        self._reported = load.reported

    @property
    def reported(self) -> frozenset[str]:
        """As the load here."""
        return self._reported


def load_there(target: Housing, options: Mapping[str, Any], load: Workload) -> Workload:
    """A load of a study, in the place of its target.

    Args:
        target: where it runs.
        options: the study's `[workload]` table.
        load: the same load here.
    """
    kind = DeclaredLoadThere if isinstance(load, Declaring) else LoadThere
    return kind(target, options, load)
