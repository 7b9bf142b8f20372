"""A session of online tuning: its status, its proof, and its outcome."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from ascar.results.measurement import Count

Value = float | str | bool
Stopped = Literal["time", "asked", "problem"]


class KnobState(msgspec.Struct, frozen=True):
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


class NodeState(msgspec.Struct, frozen=True):
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


class RefusedAction(msgspec.Struct, frozen=True):
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


class SessionEvent(msgspec.Struct, frozen=True):
    """Something on P.events or P.session.

    Attributes:
        tick: when; None where it was not said.
        event: its name.
        detail: the other keys.
    """

    tick: int | None
    event: str
    detail: dict[str, Any]


class ProcessState(msgspec.Struct, frozen=True):
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


class MeanInterval(msgspec.Struct, frozen=True):
    """A mean with an interval of 95%; the limits are None where there is no honest one."""

    mean: float
    low: float | None
    high: float | None


class LearnerReport(msgspec.Struct, frozen=True):
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
    wanted: dict[str, Value] = {}
    changes: int = 0
    refused: int = 0


class BaselineEstimate(msgspec.Struct, frozen=True):
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


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of tuned phases with phases at the baseline.

    Attributes:
        pairs: the number of pairs of phases, which are the independent samples of the interval.
        baseline_mean: the mean of the baseline phases' means; null without pairs.
        tuned_mean: the mean of the tuned phases' means; null without pairs.
        baseline_ticks: the number of ticks of baseline phases that count.
        tuned_ticks: the number of ticks of tuned phases that count.
        baseline_samples: the number of independent samples that the baseline's ticks are worth.
        tuned_samples: the number of independent samples that the tuned phases' ticks are worth.
        gain: the relative gain, above zero if tuning is better; null with fewer than two pairs, and if some
            means are not above 0.
        gain_low: the lower end of the gain's interval, which holds at all looks together.
        gain_high: the upper end of that interval.
        difference: the difference in the objective's unit, above zero if tuning is better.
        difference_low: the lower end of its interval, which holds at all looks together.
        difference_high: the upper end of that interval.
        confidence: the confidence of the intervals.
        p_value: the always-valid p-value of the comparison.
        claim: "gain" or "loss"; "none" if the interval contains zero.
        method: the method of the comparison.
    """

    pairs: Count
    baseline_mean: float | None
    tuned_mean: float | None
    baseline_ticks: Count
    tuned_ticks: Count
    baseline_samples: Count
    tuned_samples: Count
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    confidence: float
    p_value: float | None
    claim: Literal["gain", "loss", "none"]
    method: str


class SessionStatus(msgspec.Struct, frozen=True):
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

    not_in_document: ClassVar = ("at_default", "default_since")

    session: str
    objective: str | None = None
    interval_s: float = 1.0
    tick: int | None = None
    metrics: dict[str, float | None] = {}
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
    proof: Proof | None = None
    refused: tuple[RefusedAction, ...] = ()
    refusals: dict[str, int] = {}
    verdicts: dict[str, int] = {}
    happened: tuple[SessionEvent, ...] = ()
    at_default: tuple[float, ...] = ()
    default_since: int | None = None


class SessionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a session.

    Attributes:
        session: the name of the session.
        study: the name of the study.
        seconds: the duration from the first tick on.
        stopped: the reason of the end.
        setting: the best setting (by its mean less two standard errors), or the last one if no setting was in
            force for ten ticks.
        defaults: the initial setting.
        kept: the knobs that stay set on request; null without a request.
        left_changed: the knobs that could not be put back, with their values; empty is good.
        proof: the comparison of phases; null without one, and before the first pair of phases.
        broken_pairs: the number of pairs of phases that do not count.
        restarts: the number of restarts of each process.
        verdicts: the number of actions by verdict.
        refusals: the number of refused actions by kind.
        last_tick: the last tick; null if there was none.
        problem: the reason of an early end; null without one.
    """

    session: str
    study: str
    seconds: float
    stopped: Stopped
    setting: dict[str, Value]
    defaults: dict[str, Value]
    kept: dict[str, Value] | None = None
    left_changed: dict[str, Value] = {}
    proof: Proof | None
    broken_pairs: Count
    restarts: dict[str, Count]
    verdicts: dict[str, Count]
    refusals: dict[str, Count]
    last_tick: int | None
    problem: str | None = None
