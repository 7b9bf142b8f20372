"""What loops report while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ascar.results.trial import Trial


@dataclass(frozen=True, slots=True)
class Event:
    """Something a loop reports while it runs.

    Attributes:
        kind: "study-started", "trial-recalled" (each one of an earlier part), "trial-started", "reading",
            "trial-finished", "waiting" (for a window of [guard]), "budget-short" (it will probably
            not suffice for a decision), "verifying", "compared" (after each pair of the verification),
            "reducing" (the best
            against one that changes fewer parameters), "reduced", "study-finished", "not-remembered" (the
            library cannot be written).
        data: numbers and names with the unit in the key; JSON-ready.
        trial: the trial it is about, where there is one.
    """

    kind: str
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    trial: Trial | None = None


Listener = Callable[[Event], None]


def ignore(event: Event) -> None:
    """A listener for those who want none."""
