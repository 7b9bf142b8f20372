"""The state of a session as one frozen value, which `ascar.capes.messages.folding` makes from messages."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ascar.pilot.turns import Gain

SUBJECTS = ("ticks", "outcomes", "events", "learner", "session")
"""What has to be listened to."""

Value = float | str | bool


@dataclass(frozen=True, slots=True)
class KnobState:
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
        """Whether its value differs from the one before the session."""
        return self.default is not None and self.value is not None and self.value != self.default


@dataclass(frozen=True, slots=True)
class NodeState:
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
class RefusedAction:
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
class ProcessState:
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
class MeanInterval:
    """A mean with an interval of 95%; the limits are None where there is no honest one."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class LearnerReport:
    """The last report of the learner.

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
    expected: MeanInterval | None = None
    baseline: MeanInterval | None = None
    wanted: dict[str, Value] = field(default_factory=dict[str, "Value"])
    changes: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class BaselineEstimate:
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
    baseline: BaselineEstimate | None = None
    knobs: tuple[KnobState, ...] = ()
    mode: str | None = None
    holding: str | None = None
    stored: bool = True
    workload: str | None = None
    nodes: tuple[NodeState, ...] = ()
    learner: LearnerReport | None = None
    phase: str | None = None
    until_s: float | None = None
    parts: tuple[ProcessState, ...] = ()
    proof: dict[str, Any] | None = None
    refused: tuple[RefusedAction, ...] = ()
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
    def gain(self) -> Gain | None:
        """Of the last 60 ticks' mean over the baseline's: an estimate, and no proof."""
        recent = [value for _, value in self.performance[-60:]]
        if self.baseline is None or not recent:
            return None
        direction = "minimize" if self.lower_is_better else "maximize"
        return Gain.untested(self.baseline.mean, sum(recent) / len(recent), direction)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        whole = asdict(self)
        for key in ("at_default", "default_since"):
            del whole[key]
        gain = None if self.gain is None else self.gain.gain_relative
        return {**whole, "lower_is_better": self.lower_is_better, "gain": gain}
