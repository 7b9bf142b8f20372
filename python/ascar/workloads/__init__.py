"""Loads: programs that exercise the system and tell how it did, reading by reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ascar.errors import StudyError
from ascar.extension import load
from ascar.workspace import LoadTiming

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.results.measurement import Readings
    from ascar.workspace import Workspace

__all__ = ["Declaring", "LoadTiming", "SelfEnding", "Workload", "open_workload"]


@runtime_checkable
class Workload(Protocol):
    """A load. Constructing one checks its options and that its program is there, and touches nothing."""

    def describe(self) -> Mapping[str, Any]:
        """What was run: program, version, options, data-set size in bytes; JSON-ready."""
        ...

    def prepare(self, workspace: Workspace) -> None:
        """Fill an empty workspace with the load's files.

        Raises:
            StageFailed: the program failed or ran out of time.
        """
        ...

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:
        """Run the load in a filled workspace.

        Raises:
            StageFailed: the program failed, hung, or reported nothing.
        """
        ...


@runtime_checkable
class Declaring(Protocol):
    """A load that knows beforehand what it reports, so that a formula over anything else is found at once."""

    @property
    def reported(self) -> frozenset[str]:
        """The metrics that a run may tell; a run may leave out those of operations that did not occur."""
        ...


@runtime_checkable
class SelfEnding(Protocol):
    """A load that may have an end of its own: how long it runs is then up to the work that it does."""

    @property
    def ends_by_itself(self) -> bool:
        """Whether it ends when its work is done, whatever length it is given."""
        ...


def open_workload(
    options: Mapping[str, Any], default_kind: str | None = None, allowed: Collection[str] | None = None
) -> Workload:
    """The load that a study's `[workload]` table asks for.

    Args:
        options: the table.
        default_kind: the kind where the table names none.
        allowed: the kinds that run where the target's files are (`Target.workloads`); None: any.

    Raises:
        StudyError: unknown kind, one that is not allowed, or a key of the table is wrong.
        EnvironmentLacks: its program is missing; the message says how to get it.
    """
    kind = str(options.get("kind", default_kind or "fio"))
    if allowed is not None and kind not in allowed:
        raise StudyError(
            f"workload.kind = {kind!r:.80}: must be one of {', '.join(sorted(allowed))}: the target's files "
            "are on a node of its own, where no other kind runs"
        )
    rest = {key: value for key, value in options.items() if key != "kind"}
    return load("ascar.workloads", kind, "workload.kind")(rest)
