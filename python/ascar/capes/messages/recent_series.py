"""The recent past of a session: series over the last ticks, completed from the replay database."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.capes.messages.folding import fold
from ascar.capes.messages.parts import add_settings
from ascar.capes.messages.state import SessionState
from ascar.capes.process.tick_history import TickHistory, part_of
from ascar.errors import MessagingError

if TYPE_CHECKING:
    from ascar.capes.messages.bus import Bus

TICKS = 600
"""So many are shown."""
_PART_S = 10.0
_CHANGES_MAX = 2000


@dataclass(frozen=True, slots=True)
class RecentSeries:
    """Over the last `TICKS`.

    Attributes:
        settings: (tick, setting), from then on.
        told: (tick, epsilon, prediction error) of the learner; None where it has none.
    """

    settings: tuple[tuple[int, dict[str, Any]], ...] = ()
    told: tuple[tuple[int, float | None, float | None], ...] = ()

    def after(self, state: SessionState, what: str) -> RecentSeries:
        """After a message on the subject `what`, which has made this state."""
        if what == "ticks" and state.tick is not None:
            setting = {one.key: one.value for one in state.knobs if one.value is not None}
            if not self.settings or self.settings[-1][1] != setting:
                return replace(self, settings=_recent((*self.settings, (state.tick, setting)), state.tick))
        if what == "learner" and state.learner is not None and state.learner.tick is not None:
            learner, tick = state.learner, state.learner.tick
            told = (*self.told, (tick, learner.epsilon, learner.prediction_error))
            return replace(self, told=tuple(one for one in told[-TICKS:] if one[0] > tick - TICKS))
        return self


async def with_past(bus: Bus, state: SessionState, series: RecentSeries) -> tuple[SessionState, RecentSeries]:
    """The same with what the interface has stored of the last ticks; as they are where it does not answer."""
    if state.tick is None:
        return state, series
    try:
        found, actions = await _stored(bus, state.tick - TICKS + 1, state.tick)
    except MessagingError:
        return state, series
    metrics = found.metrics_by_tick()
    past = SessionState(
        state.session, objective=state.objective, interval_s=state.interval_s, knobs=state.knobs
    )
    for tick in sorted(metrics):
        setting = found.setting(tick) or {}
        past = fold(past, "ticks", {"tick": tick, "metrics": metrics[tick], "setting": setting})
    for one in actions:
        past = fold(past, "outcomes", one)
    if past.tick is None:
        return state, series
    newer = (one for one in state.performance if one[0] > (past.tick or 0))
    whole = msgspec.structs.replace(
        state,
        performance=(*past.performance, *newer)[-TICKS:],
        baseline=past.baseline,
        at_default=past.at_default,
        default_since=past.default_since,
        refused=past.refused,
        refusals=past.refusals,
        verdicts=past.verdicts,
    )
    settings = (*found.settings, *(one for one in series.settings if one[0] > (past.tick or 0)))
    return whole, replace(series, settings=_recent(settings, state.tick))


def _recent(
    settings: tuple[tuple[int, dict[str, Any]], ...], tick: int
) -> tuple[tuple[int, dict[str, Any]], ...]:
    """Those that were in force in the last ticks."""
    ordered = sorted(settings[-_CHANGES_MAX:], key=lambda one: one[0])
    old = sum(one[0] <= tick - TICKS for one in ordered)
    return tuple(ordered[max(0, old - 1) :])


async def _stored(bus: Bus, first: int, last: int) -> tuple[TickHistory, list[dict[str, Any]]]:
    """Metrics, settings and actions of some ticks, without the nodes' indicators.

    Raises:
        MessagingError: nobody answers, or what comes is no answer.
    """
    found, actions = TickHistory(), list[dict[str, Any]]()
    request: dict[str, Any] = {"version": 1, "from_tick": first, "to_tick": last + 1, "nodes": []}
    async with aclosing(bus.replies("history", request, _PART_S)) as parts:
        async for payload in parts:
            part = part_of(payload)
            if part.block is not None and part.header["node"] is None:
                found.metrics.append(part)
            add_settings(found.settings, part.header.get("settings"))
            actions += _objects(part.header.get("actions"))
            if part.header.get("last"):
                break
    found.settings.sort(key=lambda one: one[0])
    return found, actions


def _objects(entries: object) -> list[dict[str, Any]]:
    held = cast("list[object]", entries) if isinstance(entries, list) else []
    return [cast("dict[str, Any]", one) for one in held if isinstance(one, dict)]
