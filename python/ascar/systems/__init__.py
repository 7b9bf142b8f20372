"""What is tuned: systems that know their space, take a configuration, and offer a place for a load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ascar.extension import load

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import TracebackType

    from ascar.results.trial import Change
    from ascar.space import Configuration, Space
    from ascar.workspace import Workspace

__all__ = ["Adopting", "Owned", "Reusing", "Target", "open_target"]


@runtime_checkable
class Target(Protocol):
    """A system under tuning.

    A target is entered before it is touched and puts everything back when it is left, whatever the reason.
    Constructing one checks its options and what the machine offers, and touches nothing.
    """

    space: Space
    """Every configuration it can take; the study may restrict it."""

    default_workload: str | None
    """Workload kind for studies that name none; None where one must be named."""

    def __enter__(self) -> Target:
        """Take what is needed: locks, devices, directories."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put everything back."""
        ...

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration in force and make the workspace ready to be filled.

        Raises:
            StageFailed: a step failed or ran out of time; the next configuration can be applied all the same.
        """
        ...

    def settle(self) -> Mapping[str, float]:
        """After the fill, bring caches and layout to the same state each time; seconds by step."""
        ...

    @property
    def workspace(self) -> Workspace:
        """Where the load runs; valid after `apply`."""
        ...

    def counters(self) -> Mapping[str, float]:
        """Totals that only grow (bytes, joules, CPU seconds), by name with unit; deltas become metrics."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """What results are valid for: kernel, device stack, memory; JSON-ready."""
        ...

    def commands(self, configuration: Configuration, chosen: Collection[str]) -> Mapping[str, list[str]]:
        """How an administrator would do it: lines by form ("shell", "fstab", "sysctl", "udev", "tuned").

        Args:
            configuration: the configuration to put in force.
            chosen: the parameters to speak of (see `Space.departures`); the others are the system's own
                defaults, and stay as they are. Forms with nothing to say are empty or missing.
        """
        ...


@runtime_checkable
class Owned(Protocol):
    """A target that takes machine-wide locks, in the name of whoever runs it."""

    owner: str
    """What others who are refused a lock are told."""


@runtime_checkable
class Adopting(Protocol):
    """A target that does not know by itself what it costs to change a study's own parameters."""

    def adopt(self, space: Space) -> None:
        """Learn the study's space."""
        ...


@runtime_checkable
class Reusing(Protocol):
    """A target that can leave a trial the state that the one before left: faster, and biased by age."""

    @property
    def reuses_state(self) -> bool:
        """Whether it does so in this study."""
        ...

    def start_afresh(self) -> None:
        """Make the next configuration start from a newly made state all the same."""
        ...


def open_target(options: Mapping[str, Any]) -> Target:
    """The target that a study's `[target]` table asks for, not yet entered.

    Args:
        options: the table; "kind" says which, the other keys are that kind's own.

    Raises:
        StudyError: unknown kind, or a key of the table is wrong.
        EnvironmentLacks: the machine lacks what it needs.
    """
    kind = str(options.get("kind", "localfs"))
    rest = {key: value for key, value in options.items() if key != "kind"}
    if kind == "function":  # which only Python can name, so that it is no entry point
        from ascar.systems.function import PythonFunction

        return PythonFunction(rest)
    return load("ascar.systems", kind, "target.kind")(rest)
