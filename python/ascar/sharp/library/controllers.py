"""What the library needs of those who control streams: rules put in force, counted, and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ascar.sharp.rules import RuleSet

__all__ = ["Controllers", "System"]


class Controllers(Protocol):
    """The controllers of a system's streams."""

    @property
    def in_force(self) -> RuleSet | None:
        """The rules that decide now; None: the system's own control does."""
        ...

    def deploy(self, rules: RuleSet | None) -> None:
        """Put rules in force on all of them, or the system's own control again.

        Raises:
            WorkError: one of them refuses or does not answer; what was in force before is so again.
        """
        ...

    def stats(self) -> RuleSet | None:
        """The rules in force with what controllers have counted since `deploy`; None without rules."""
        ...


class System(Protocol):
    """A system at work, with controllers."""

    @property
    def controllers(self) -> Controllers:
        """Its controllers."""
        ...

    @property
    def now_s(self) -> float:
        """Seconds that have passed."""
        ...

    def observe(self, seconds: float) -> dict[str, float]:
        """The features of what it does from now on, as `workload_features` gives them."""
        ...

    def measure(self, seconds: float) -> dict[str, float]:
        """Let it run, and say what it brought in that time: such as throughput_mb_per_s."""
        ...
