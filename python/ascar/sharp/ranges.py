"""How far the numbers of a rule are varied while it runs: by a learner or a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ascar.sharp.schedules.candidates import B100, M100, TAU_US

if TYPE_CHECKING:
    from ascar.rules import Action
    from ascar.sharp.schedules.candidates import Steps

FIELDS: Final[dict[str, Steps]] = {"m100": M100, "b100": B100, "tau_us": TAU_US}
"""Fields of an action that can be turned, each with its range and steps of table 3.2."""

_WINDOWS_X100 = (100, 6_400)
_ONCE_X100 = 100  # what "do not multiply" multiplies by


def ranges(action: Action) -> dict[str, tuple[int, int]]:
    """Least and most of each field around an action.

    Those of table 3.2, wider where the action's own number lies outside. An action that multiplies by less
    than the table's least sets the window rather than changes it: its b is the window, from 1 to 64 requests.
    """
    found = {name: (int(steps.lower), int(steps.upper)) for name, steps in FIELDS.items()}
    if sets_window(action):
        found |= {"m100": (0, int(M100.upper)), "b100": _WINDOWS_X100}
    own = numbers(action)
    return {name: (min(low, own[name]), max(high, own[name])) for name, (low, high) in found.items()}


def sets_window(action: Action) -> bool:
    """Whether b is the window, or nearly so: m is below the least of table 3.2, b at least a request."""
    return 0 <= action.m100 < M100.lower and action.b100 >= _WINDOWS_X100[0]


def numbers(action: Action) -> dict[str, int]:
    """By field, with the multiplier that "do not multiply" means."""
    m100 = action.m100 if action.m100 >= 0 else _ONCE_X100
    return {"m100": m100, "b100": action.b100, "tau_us": action.tau_us}
