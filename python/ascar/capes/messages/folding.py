"""A session's messages folded into its state, one by one; pure.

Nothing here connects to anything, and whatever a message holds, a state comes of it.
`ascar.capes.messages.following` brings the messages.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
from msgspec.structs import replace

from ascar import typed
from ascar.errors import ExpressionError, InputError
from ascar.objective import Objective
from ascar.results.session import (
    BaselineEstimate,
    LearnerReport,
    MeanInterval,
    NodeState,
    ParameterState,
    ProcessState,
    Proof,
    RefusedAction,
    SessionEvent,
    Value,
)
from ascar.typed import finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.capes.messages.state import SessionState

SUBJECTS = ("ticks", "outcomes", "events", "learner", "session")
"""What has to be listened to: the last parts of the subjects."""

_KEPT_TICKS, _KEPT_LISTS, _NAMES_MAX, _TEXT_MAX = 600, 50, 1000, 400
_BASELINE_MIN, _SETTLE_TICKS = 5, 5


def fold(state: SessionState, what: str, document: Mapping[str, Any]) -> SessionState:
    """The state after a message.

    Args:
        state: the state before the message.
        what: the last part of its subject, one of `SUBJECTS`; another one changes nothing.
        document: the message; of keys that are missing or of a wrong type nothing is believed.
    """
    take = {
        "ticks": _after_tick,
        "outcomes": _after_outcome,
        "events": _after_event,
        "learner": _after_learner,
        "session": _after_session,
    }.get(what)
    return state if take is None or document.get("version", 1) != 1 else take(state, document)


def _after_tick(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    tick = _whole(document.get("tick"))
    if tick is None or (state.tick is not None and tick < state.tick):
        return state
    nodes = _nodes(state, tick, document)
    if tick == state.tick:  # another part of the same one
        return replace(state, nodes=nodes, knobs=_knobs(state, document))
    metrics = {name: finite(value) for name, value in _items(document.get("metrics"))}
    knobs = _knobs(state, document)
    is_default = bool(knobs) and all(one.default is not None and not one.is_changed for one in knobs)
    since = (tick if state.default_since is None else state.default_since) if is_default else None
    value = _score(state.objective, metrics)
    performance, at_default, baseline = state.performance, state.at_default, state.baseline
    if value is not None:
        performance = (*performance, (tick, value))[-_KEPT_TICKS:]
        first = state.tick is None  # at the beginning nothing has to settle
        if since is not None and (tick - since >= _SETTLE_TICKS or (first and tick == since)):
            at_default = (*at_default, value)[-_KEPT_TICKS:]
            baseline = _baseline(at_default)
    return replace(
        state,
        tick=tick,
        metrics=metrics,
        performance=performance,
        now=value,
        baseline=baseline,
        knobs=knobs,
        mode=_text(document.get("mode")),
        holding=_text(document.get("holding")),
        stored=document.get("stored") is not False,
        workload=_text(document.get("workload")),
        nodes=nodes,
        at_default=at_default,
        default_since=since,
    )


def _after_outcome(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    verdict, tick = _text(document.get("verdict")), _whole(document.get("tick"))
    if verdict is None or tick is None:
        return state
    verdicts = _counted(state.verdicts, verdict)
    if verdict not in ("refused", "failed"):
        return replace(state, verdicts=verdicts)
    reason = _text(document.get("reason")) or ""
    one = RefusedAction(tick, _text(document.get("id")) or "", _setting(document.get("set")), verdict, reason)
    kind = reason.replace(":", " ").split(" ")[0] or "unknown"
    return replace(
        state,
        verdicts=verdicts,
        refused=(one, *state.refused)[:_KEPT_LISTS],
        refusals=_counted(state.refusals, kind),
    )


def _after_event(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    event = _text(document.get("event"))
    if event is None:
        return state
    others = {key: value for key, value in document.items() if key not in ("event", "tick", "version")}
    detail = _plain(others)
    one = SessionEvent(_whole(document.get("tick")), event, detail)
    return replace(state, happened=(one, *state.happened)[:_KEPT_LISTS])


def _after_learner(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    learner = LearnerReport(
        tick=_whole(document.get("tick")),
        algorithm=_text(document.get("algorithm")),
        phase=_text(document.get("phase")),
        epsilon=finite(document.get("epsilon")),
        prediction_error=finite(document.get("prediction_error")),
        expected=_band(document.get("expected")),
        baseline=_band(document.get("baseline")),
        wanted=_setting(document.get("wanted")),
        changes=_whole(document.get("changes")) or 0,
        refused=_whole(document.get("refused")) or 0,
    )
    # Where nobody runs the session as a whole, the learner alone tells where its knobs stood before.
    before = _setting(document.get("before"))
    knobs = tuple(
        replace(one, default=before.get(one.key)) if one.default is None else one for one in state.knobs
    )
    objective = state.objective or _text(document.get("objective"))
    return replace(state, learner=learner, objective=objective, knobs=knobs)


def _after_session(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    event = _text(document.get("event"))
    if event != "here":
        return _after_event(state, document)
    tables = [cast("dict[str, Any]", one) for one in _list(document.get("knobs")) if isinstance(one, dict)]
    ranges = {name: one for one in tables if (name := _text(one.get("name")))}
    defaults = _setting(document.get("defaults"))
    values = {one.key: one.value for one in state.knobs}
    keys = sorted({*values, *defaults})[:_NAMES_MAX]
    knobs = tuple(_knob(key, values.get(key), defaults.get(key), ranges.get(_name_of(key))) for key in keys)
    interval_s = finite(document.get("interval_s"))
    return replace(
        state,
        objective=_text(document.get("objective")) or state.objective,
        interval_s=interval_s if interval_s is not None and interval_s > 0 else state.interval_s,
        knobs=knobs,
        phase=_text(document.get("phase")),
        until_s=finite(document.get("until_s")),
        parts=_parts(document.get("parts")),
        proof=_proof(document.get("proof")),
    )


def _nodes(state: SessionState, tick: int, document: Mapping[str, Any]) -> tuple[NodeState, ...]:
    known = {one.name: one for one in state.nodes}
    if tick != state.tick:
        known = {name: replace(one, is_here=False, cut_off=None) for name, one in known.items()}
    for name, row in _items(document.get("nodes")):
        values = _list(_list(row)[1]) if len(_list(row)) > 1 else []
        known[name] = NodeState(name, True, len(values), tick)
    for missing in _list(document.get("missing"))[:_NAMES_MAX]:
        if isinstance(missing, str):
            before = known.get(missing[:_TEXT_MAX])
            known[missing[:_TEXT_MAX]] = NodeState(
                missing[:_TEXT_MAX], False, 0, before.seen_tick if before else None
            )
    for name, reason in _items(document.get("cut_off"))[:_NAMES_MAX]:
        known[name] = replace(known.get(name, NodeState(name, False)), is_here=False, cut_off=_text(reason))
    return tuple(known[name] for name in sorted(known)[: 20 * _NAMES_MAX])


def _knobs(state: SessionState, document: Mapping[str, Any]) -> tuple[ParameterState, ...]:
    """What is known of the knobs, with the values in force."""
    if document.get("setting") is None:  # a long one that was told before
        return state.knobs
    values = _setting(document.get("setting"))
    before = {one.key: one for one in state.knobs}
    if (_whole(document.get("parts")) or 1) > 1:  # it may be a piece: the other keys are in other parts
        values = {one.key: one.value for one in state.knobs if one.value is not None} | values
    keys = sorted({*values, *before})[:_NAMES_MAX]
    return tuple(replace(before.get(key, ParameterState(key, None)), value=values.get(key)) for key in keys)


def _knob(
    key: str, value: Value | None, default: Value | None, found: Mapping[str, Any] | None
) -> ParameterState:
    known = found or {}
    choices = tuple(
        one for one in _list(known.get("choices"))[:100] if isinstance(one, bool | int | float | str)
    )
    return ParameterState(
        key, value, default, finite(known.get("minimum")), finite(known.get("maximum")), choices
    )


def _parts(found: object) -> tuple[ProcessState, ...]:
    parts: list[ProcessState] = []
    for name, one in _items(found):
        facts = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        restarts = _whole(facts.get("restarts")) or 0
        parts.append(
            ProcessState(name, _text(facts.get("state")) or "unknown", _whole(facts.get("pid")), restarts)
        )
    return tuple(parts)


def _baseline(values: tuple[float, ...]) -> BaselineEstimate | None:
    if len(values) < _BASELINE_MIN:
        return None
    low, high = np.quantile(values, [0.1, 0.9])
    return BaselineEstimate(float(np.mean(values)), float(low), float(high), len(values))


def _band(found: object) -> MeanInterval | None:
    facts = dict(_items(found))
    mean = finite(facts.get("mean"))
    return None if mean is None else MeanInterval(mean, finite(facts.get("low")), finite(facts.get("high")))


@lru_cache(maxsize=16)
def _objective(text: str) -> Objective | None:
    try:
        return Objective.parse(text)
    except InputError:
        return None


def _score(text: str | None, metrics: Mapping[str, float | None]) -> float | None:
    """The objective's value; None where it has none."""
    objective = None if text is None else _objective(text)
    if objective is None:
        return None
    try:
        score = objective.score({name: value for name, value in metrics.items() if value is not None})
    except ExpressionError:
        return None
    return finite(score)


def _counted(counts: Mapping[str, int], name: str) -> dict[str, int]:
    if name not in counts and len(counts) >= _KEPT_LISTS:
        return dict(counts)
    return {**counts, name: counts.get(name, 0) + 1}


def _name_of(key: str) -> str:
    return key.partition("@")[0]


def _setting(found: object) -> dict[str, Value]:
    return {
        key: value
        for key, value in _items(found)
        if isinstance(value, bool | str) or finite(value) is not None
    }


def _items(found: object) -> list[tuple[str, Any]]:
    if not isinstance(found, dict):
        return []
    some = list(cast("dict[Any, Any]", found).items())[: 20 * _NAMES_MAX]
    return [(str(key)[:_TEXT_MAX], value) for key, value in some]


def _list(found: object) -> list[Any]:
    return cast("list[Any]", found) if isinstance(found, list) else []


def _plain(found: Any, depth: int = 3) -> Any:
    """JSON-ready, of limited size: what is too deep or no number is null."""
    if isinstance(found, str | bool):
        return found if isinstance(found, bool) else found[:_TEXT_MAX]
    if depth and isinstance(found, dict):
        return {key: _plain(value, depth - 1) for key, value in _items(cast("object", found))[:100]}
    if depth and isinstance(found, list):
        return [_plain(value, depth - 1) for value in cast("list[Any]", found)[:100]]
    return found if isinstance(found, int) and abs(found) < 2**63 else finite(found)


def _text(found: object) -> str | None:
    return found[:_TEXT_MAX] if isinstance(found, str) else None


def _whole(found: object) -> int | None:
    number = finite(found)
    return None if number is None or not number.is_integer() else int(number)


def _proof(told: object) -> Proof | None:
    """The proof in a message; None without one, or where it is of another form."""
    try:
        return None if told is None else typed.convert(told, Proof)
    except msgspec.ValidationError:
        return None
