"""Rules that the library recommends, and what a watched system went through, as commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.pilot.turns import estimates_of
from ascar.results.library import LibraryChoice
from ascar.results.rule_deployment import SharpWatchResult, WatchedEvent
from ascar.sharp.matching.choice import Choice
from ascar.sharp.rule_results import rule_set_result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascar.rules import RuleSet
    from ascar.sharp.matching.rule_watcher import WatchEvent


def choice_result(choice: Choice) -> LibraryChoice:
    """The rules that the library recommends."""
    return LibraryChoice(
        rules=choice.rules,
        made_for=choice.made_for,
        gain=choice.gain,
        gain_low=choice.low,
        nearest=choice.nearest,
        distance=choice.distance,
    )


def watch_result(
    objective: str, time_s: float, events: Iterable[WatchEvent], in_force: RuleSet | None
) -> SharpWatchResult:
    """What came of watching a system.

    Args:
        objective: the objective's text.
        time_s: how long it was watched, in the system's own time.
        events: what happened.
        in_force: the rules at the end; None without any.
    """
    return SharpWatchResult(
        objective=objective,
        virtual_seconds=time_s,
        events=tuple(_event_result(one) for one in events),
        in_force=None if in_force is None else rule_set_result(in_force.bare()),
    )


def _event_result(event: WatchEvent) -> WatchedEvent:
    shown, estimates = event.shown, estimates_of(event.shown)
    choice = event.choice
    return WatchedEvent(
        kind=event.kind,
        at_s=event.at_s,
        rules=None if choice is None else choice.rules,
        choice=choice_result(choice) if isinstance(choice, Choice) else None,
        gain=estimates.pop("gain_relative"),
        **estimates,
        pairs=None if shown is None else len(shown.reference),
        distance=event.distance,
        reason=event.reason,
    )
