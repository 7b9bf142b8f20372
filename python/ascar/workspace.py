"""Where a load runs: a value handed from the target to the workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["Change", "Workspace"]

# A constant script: the command comes as positional arguments, so no user string is ever parsed by a shell.
# Entering the group before exec leaves no moment in which the load could allocate memory outside it.
_ENTER_CGROUP = 'echo $$ > "$1/cgroup.procs" || exit 97; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class Workspace:
    """A place for a load to run.

    Attributes:
        directory: where its files go.
        memory_bytes: the most page cache and memory that the load may use; None: unlimited.
        cgroup: the control group that holds it to that; None: unlimited.
        user: account to run as; None: the caller's.
    """

    directory: Path
    memory_bytes: int | None = None
    cgroup: Path | None = None
    user: str | None = None

    def command(self, argv: Sequence[str]) -> list[str]:
        """`argv`, preceded by what puts it inside the control group."""
        if self.cgroup is None:
            return list(argv)
        return ["/bin/sh", "-c", _ENTER_CGROUP, "sh", str(self.cgroup), *argv]


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
