"""Where a load runs: a value handed from the target to the workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["Change", "Workspace"]


@dataclass(frozen=True, slots=True)
class Workspace:
    """A place for a load to run.

    Attributes:
        directory: where its files go.
        memory_bytes: the most page cache and memory that the load may use; None: unlimited.
        user: account to run as; None: the caller's.
        admit: puts a program, by its process id, into the control group that holds the load to
            `memory_bytes`. A load calls it while the program still waits to begin, so that nothing is
            allocated outside the group. None: there is no group.
    """

    directory: Path
    memory_bytes: int | None = None
    user: str | None = None
    admit: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What putting a configuration in force took.

    Attributes:
        parameters: names whose values changed.
        category: highest cost category touched (0-3, Cao Table 9.1), -1 when nothing changed.
        step_s: seconds by step ("format", "mount", "knobs", ...).
        filled: the workspace already holds the load's files, as they were after the last fill.
    """

    parameters: tuple[str, ...]
    category: int
    step_s: Mapping[str, float]
    filled: bool = False

    @property
    def total_s(self) -> float:
        """Seconds that the whole change took."""
        return sum(self.step_s.values())
