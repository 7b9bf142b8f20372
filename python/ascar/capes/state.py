"""How a session stands: one value, made from what is told on its subjects, message by message.

Nothing here connects to anything: `SessionState.after` is a pure function, and gives a state whatever a
message holds. `ascar.capes.watching` brings the messages.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ascar.errors import ExpressionError, InputError
from ascar.objective import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "SUBJECTS",
    "Band",
    "Baseline",
    "Happened",
    "Knob",
    "Learner",
    "Node",
    "Part",
    "Refused",
    "SessionState",
]

SUBJECTS = ("ticks", "outcomes", "events", "learner", "session")
"""What has to be listened to."""

Value = float | str | bool

_KEPT_TICKS, _KEPT_LISTS, _NAMES_MAX, _TEXT_MAX = 600, 50, 1000, 400
_BASELINE_MIN, _SETTLE_TICKS = 5, 5
_GONE_TICKS = 5


@dataclass(frozen=True, slots=True)
class Knob:
    """One key of the setting (docs/capes-protocol.md, keys of settings).

    Attributes:
        key: `KNOB`, `KNOB@NODE` or `KNOB@NODE/STREAM`.
        value: in force; None where it is not known.
        default: before the session; None where it is not known.
        minimum: least allowed number, or None.
        maximum: greatest, or None.
        choices: allowed words.
    """

    key: str
    value: Value | None
    default: Value | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether it stands elsewhere than before the session."""
        return self.default is not None and self.value is not None and self.value != self.default


@dataclass(frozen=True, slots=True)
class Node:
    """A node.

    Attributes:
        name: of it.
        is_here: whether it sent a frame in the last tick.
        indicators: how many values it sent then.
        seen_tick: when it last did; None: not since we listen.
    """

    name: str
    is_here: bool
    indicators: int = 0
    seen_tick: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """An action that was refused, or that failed.

    Attributes:
        tick: when.
        id: of the action.
        wanted: what it was to set.
        verdict: "refused" or "failed".
        reason: in the interface's words.
    """

    tick: int
    id: str
    wanted: dict[str, Value]
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Happened:
    """Something on P.events or P.session.

    Attributes:
        tick: when; None where it was not said.
        event: its name.
        detail: the other keys.
    """

    tick: int | None
    event: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A process of a session that `ascar capes up` started.

    Attributes:
        name: "messages", "interface", "agent", "learner", "load".
        state: "running", "waiting" (to be started again), "given up" or "ended".
        pid: of its process, or None.
        restarts: how often it died and was started again.
    """

    name: str
    state: str
    pid: int | None
    restarts: int


@dataclass(frozen=True, slots=True)
class Band:
    """A mean with an interval of 95%; the limits are None where there is no honest one."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Learner:
    """What the learner told last.

    Attributes:
        tick: of which.
        algorithm: its name.
        phase: starting, learning, acting, waiting, holding.
        epsilon: share of actions that explore; None where the algorithm has none.
        prediction_error: relative, of its last predictions; None where there is none yet.
        expected: performance at the setting in force by its model: mean, low, high; None where it has none.
        baseline: performance before the session as it measured it, in the same form.
        wanted: where it wants the knobs.
        changes: its actions that were applied.
        refused: its actions that were refused, or failed.
    """

    tick: int | None = None
    algorithm: str | None = None
    phase: str | None = None
    epsilon: float | None = None
    prediction_error: float | None = None
    expected: Band | None = None
    baseline: Band | None = None
    wanted: dict[str, Value] = field(default_factory=dict[str, "Value"])
    changes: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Baseline:
    """Performance while every knob stood where it was before the session.

    Attributes:
        mean: over those ticks.
        low: their 10th percentile.
        high: their 90th.
        ticks: how many, of the last 600.
    """

    mean: float
    low: float
    high: float
    ticks: int


@dataclass(frozen=True, slots=True)
class SessionState:
    """See the module.

    Attributes:
        session: its name.
        objective: what is tuned for, "maximize FORMULA" or "minimize FORMULA"; None: not known yet.
        interval_s: length of a tick.
        tick: the last one; None before the first.
        metrics: its metrics; None where one could not be told.
        performance: (tick, value) of the objective, the last 600 ticks that had one.
        now: the objective in the last tick; None where it could not be told.
        baseline: of the same; None while there are fewer than 5 such ticks.
        knobs: the setting.
        mode: observe, approve or automatic; None before the first tick.
        holding: why every action is refused now; None where none is.
        stored: whether the last tick is on disk.
        workload: that was announced last and has not ended.
        nodes: all that were heard of.
        learner: what it told; None: nothing yet.
        phase: of the session: "learning", "baseline", "tuned"; None where nobody said.
        until_s: when the session ends by itself, seconds since 1970; None: not.
        parts: its processes, where `ascar capes up` runs it.
        proof: the last comparison with the baseline, as told; None where there is none.
        refused: the last 50 refusals and failures, the newest first.
        refusals: how many by kind, the first word of the reason.
        verdicts: how many by verdict.
        happened: the last 50 events, the newest first.
        at_default: what the baseline is made from.
        default_since: the tick since when every knob stands where it was; None: not all do.
    """

    session: str
    objective: str | None = None
    interval_s: float = 1.0
    tick: int | None = None
    metrics: dict[str, float | None] = field(default_factory=dict[str, "float | None"])
    performance: tuple[tuple[int, float], ...] = ()
    now: float | None = None
    baseline: Baseline | None = None
    knobs: tuple[Knob, ...] = ()
    mode: str | None = None
    holding: str | None = None
    stored: bool = True
    workload: str | None = None
    nodes: tuple[Node, ...] = ()
    learner: Learner | None = None
    phase: str | None = None
    until_s: float | None = None
    parts: tuple[Part, ...] = ()
    proof: dict[str, Any] | None = None
    refused: tuple[Refused, ...] = ()
    refusals: dict[str, int] = field(default_factory=dict[str, int])
    verdicts: dict[str, int] = field(default_factory=dict[str, int])
    happened: tuple[Happened, ...] = ()
    at_default: tuple[float, ...] = ()
    default_since: int | None = None

    @property
    def lower_is_better(self) -> bool:
        """Whether less of the objective is better."""
        return self.objective is not None and self.objective.startswith("minimize")

    @property
    def gain(self) -> float | None:
        """Mean of the last 60 ticks over the baseline's, minus one; a look, and no proof."""
        recent = [value for _, value in self.performance[-60:]]
        if self.baseline is None or not recent or not self.baseline.mean:
            return None
        return sum(recent) / len(recent) / self.baseline.mean - 1

    def after(self, what: str, document: Mapping[str, Any]) -> SessionState:
        """The state after a message.

        Args:
            what: the last part of its subject, one of `SUBJECTS`.
            document: the message; of keys that are missing or of a wrong type nothing is believed.
        """
        take = {
            "ticks": _after_tick,
            "outcomes": _after_outcome,
            "events": _after_event,
            "learner": _after_learner,
            "session": _after_session,
        }.get(what)
        return self if take is None or document.get("version", 1) != 1 else take(self, document)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        whole = asdict(self)
        for key in ("at_default", "default_since"):
            del whole[key]
        return {**whole, "lower_is_better": self.lower_is_better, "gain": self.gain}


def _after_tick(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    tick = _whole(document.get("tick"))
    if tick is None or (state.tick is not None and tick < state.tick):
        return state
    nodes = _nodes(state, tick, document)
    if tick == state.tick:  # another part of the same one
        return replace(state, nodes=nodes)
    metrics = {name: _number(value) for name, value in _items(document.get("metrics"))}
    knobs = _knobs(state, document.get("setting"))
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
    one = Refused(tick, _text(document.get("id")) or "", _setting(document.get("set")), verdict, reason)
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
    detail = {key: value for key, value in document.items() if key not in ("event", "tick", "version")}
    one = Happened(_whole(document.get("tick")), event, detail)
    return replace(state, happened=(one, *state.happened)[:_KEPT_LISTS])


def _after_learner(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    learner = Learner(
        tick=_whole(document.get("tick")),
        algorithm=_text(document.get("algorithm")),
        phase=_text(document.get("phase")),
        epsilon=_number(document.get("epsilon")),
        prediction_error=_number(document.get("prediction_error")),
        expected=_band(document.get("expected")),
        baseline=_band(document.get("baseline")),
        wanted=_setting(document.get("wanted")),
        changes=_whole(document.get("changes")) or 0,
        refused=_whole(document.get("refused")) or 0,
    )
    return replace(state, learner=learner, objective=state.objective or _text(document.get("objective")))


def _after_session(state: SessionState, document: Mapping[str, Any]) -> SessionState:
    event = _text(document.get("event"))
    if event == "proof":
        detail = {key: value for key, value in document.items() if key not in ("event", "version")}
        return replace(state, proof=detail)
    if event != "here":
        return _after_event(state, document)
    tables = [cast("dict[str, Any]", one) for one in _list(document.get("knobs")) if isinstance(one, dict)]
    ranges = {name: one for one in tables if (name := _text(one.get("name")))}
    defaults = _setting(document.get("defaults"))
    values = {one.key: one.value for one in state.knobs}
    keys = sorted({*values, *defaults})[:_NAMES_MAX]
    knobs = tuple(_knob(key, values.get(key), defaults.get(key), ranges.get(_name_of(key))) for key in keys)
    interval_s = _number(document.get("interval_s"))
    return replace(
        state,
        objective=_text(document.get("objective")) or state.objective,
        interval_s=interval_s if interval_s is not None and interval_s > 0 else state.interval_s,
        knobs=knobs,
        phase=_text(document.get("phase")),
        until_s=_number(document.get("until_s")),
        parts=_parts(document.get("parts")),
    )


def _nodes(state: SessionState, tick: int, document: Mapping[str, Any]) -> tuple[Node, ...]:
    known = {one.name: one for one in state.nodes}
    if tick != state.tick:
        known = {name: replace(one, is_here=False) for name, one in known.items()}
    for name, row in _items(document.get("nodes")):
        values = _list(_list(row)[1]) if len(_list(row)) > 1 else []
        known[name] = Node(name, True, len(values), tick)
    for missing in _list(document.get("missing"))[:_NAMES_MAX]:
        if isinstance(missing, str):
            before = known.get(missing[:_TEXT_MAX])
            known[missing[:_TEXT_MAX]] = Node(
                missing[:_TEXT_MAX], False, 0, before.seen_tick if before else None
            )
    return tuple(known[name] for name in sorted(known)[: 20 * _NAMES_MAX])


def _knobs(state: SessionState, setting: object) -> tuple[Knob, ...]:
    """What is known of the knobs, with the values in force."""
    values = _setting(setting)
    before = {one.key: one for one in state.knobs}
    keys = sorted({*values, *before})[:_NAMES_MAX]
    return tuple(replace(before.get(key, Knob(key, None)), value=values.get(key)) for key in keys)


def _knob(key: str, value: Value | None, default: Value | None, found: Mapping[str, Any] | None) -> Knob:
    known = found or {}
    choices = tuple(one for one in _list(known.get("choices"))[:100] if isinstance(one, str))
    return Knob(key, value, default, _number(known.get("minimum")), _number(known.get("maximum")), choices)


def _parts(found: object) -> tuple[Part, ...]:
    parts: list[Part] = []
    for name, one in _items(found):
        facts = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        restarts = _whole(facts.get("restarts")) or 0
        parts.append(Part(name, _text(facts.get("state")) or "unknown", _whole(facts.get("pid")), restarts))
    return tuple(parts)


def _baseline(values: tuple[float, ...]) -> Baseline | None:
    if len(values) < _BASELINE_MIN:
        return None
    low, high = np.quantile(values, [0.1, 0.9])
    return Baseline(float(np.mean(values)), float(low), float(high), len(values))


def _band(found: object) -> Band | None:
    facts = dict(_items(found))
    mean = _number(facts.get("mean"))
    return None if mean is None else Band(mean, _number(facts.get("low")), _number(facts.get("high")))


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
    return _number(score)


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
        if isinstance(value, bool | str) or _number(value) is not None
    }


def _items(found: object) -> list[tuple[str, Any]]:
    if not isinstance(found, dict):
        return []
    some = list(cast("dict[Any, Any]", found).items())[: 20 * _NAMES_MAX]
    return [(str(key)[:_TEXT_MAX], value) for key, value in some]


def _list(found: object) -> list[Any]:
    return cast("list[Any]", found) if isinstance(found, list) else []


def _text(found: object) -> str | None:
    return found[:_TEXT_MAX] if isinstance(found, str) else None


def _number(found: object) -> float | None:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        number = float(found)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _whole(found: object) -> int | None:
    number = _number(found)
    return None if number is None or not number.is_integer() else int(number)
