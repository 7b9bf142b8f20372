"""Loads: programs that exercise the system and tell how it did, reading by reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ascar.extension import load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.measurement import Readings, Series
    from ascar.workspace import Workspace

__all__ = ["Pace", "Workload", "open_workload"]


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a load runs, and how often it is read.

    Attributes:
        load_min_s: run at least this long.
        load_max_s: and at most this long.
        reading_s: time between unit readings.
        enough: called with all series after each reading, once load_min_s has passed; True ends the load.
    """

    load_min_s: float
    load_max_s: float
    reading_s: float
    enough: Callable[[Mapping[str, Series]], bool]


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

    def run(self, workspace: Workspace, pace: Pace) -> Readings:
        """Run the load in a filled workspace.

        Raises:
            StageFailed: the program failed, hung, or reported nothing.
        """
        ...


def open_workload(options: Mapping[str, Any], default_kind: str | None = None) -> Workload:
    """The load that a study's `[workload]` table asks for.

    Raises:
        StudyError: unknown kind, or a key of the table is wrong.
        EnvironmentLacks: its program is missing; the message says how to get it.
    """
    kind = str(options.get("kind", default_kind or "fio"))
    rest = {key: value for key, value in options.items() if key != "kind"}
    return load("ascar.workloads", kind, "workload.kind")(rest)
