"""A request for a session: what a user adds to the study."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What the user adds to the study.

    Attributes:
        file: the study's path, as it was given.
        duration_s: the duration of the session; None means until `down`.
        prove: whether the gain is shown by phases in turns.
        keep: whether the setting that did best stays.
    """

    file: str
    duration_s: float | None = None
    prove: bool = False
    keep: bool = False
