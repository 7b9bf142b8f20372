"""A session of online tuning: its status, its proof, and its outcome."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from ascar.results.measurement import Count

Value = bool | int | float | str
Stopped = Literal["time", "asked", "problem"]


class ParameterState(msgspec.Struct, frozen=True):
    """One key of the setting (docs/capes-protocol.md, keys of settings).

    Attributes:
        key: the key of the setting: `KNOB`, `KNOB@NODE` or `KNOB@NODE/STREAM`.
        value: the value in force; null if it is not known.
        default: the initial value; null if it is not known.
        minimum: the least allowed number; null without one.
        maximum: the greatest allowed number; null without one.
        choices: the allowed values, where they are listed.
    """

    key: str
    value: Value | None
    default: Value | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Value, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether its value differs from the one before the session."""
        return self.default is not None and self.value is not None and self.value != self.default


class NodeState(msgspec.Struct, frozen=True):
    """A node.

    Attributes:
        name: the name of the node.
        is_here: whether the node sent a frame in the last tick.
        indicators: the number of values in that frame.
        seen_tick: the tick of its last frame; null if none was received.
        cut_off: the limit that the node broke, if the interface does not listen to it; null if it does.
    """

    name: str
    is_here: bool
    indicators: int = 0
    seen_tick: int | None = None
    cut_off: str | None = None


class RefusedAction(msgspec.Struct, frozen=True):
    """An action that was refused, or that failed.

    Attributes:
        tick: the tick of the refusal.
        id: the id of the action.
        wanted: the values that the action was to set.
        verdict: "refused" or "failed".
        reason: the reason in the interface's words.
    """

    tick: int
    id: str
    wanted: dict[str, Value]
    verdict: str
    reason: str


class SessionEvent(msgspec.Struct, frozen=True):
    """Something on P.events or P.session.

    Attributes:
        tick: the tick of the event; null if it is not known.
        event: the name of the event.
        detail: the other keys of the event.
    """

    tick: int | None
    event: str
    detail: dict[str, Any]


class ProcessState(msgspec.Struct, frozen=True):
    """A process of a session that `ascar capes up` started.

    Attributes:
        name: the name of the process: "messages", "interface", "agent", "learner", "load".
        state: the state of the process: "running", "waiting" (for a restart), "given up" or "ended".
        pid: the number of the process; null if it does not run.
        restarts: the number of restarts.
    """

    name: str
    state: str
    pid: int | None
    restarts: int


class MeanInterval(msgspec.Struct, frozen=True):
    """A mean with an interval of 95%; the limits are None where there is no honest one.

    Attributes:
        mean: the mean.
        low: the lower end of the 95% interval; null if there is none.
        high: the upper end of that interval.
    """

    mean: float
    low: float | None
    high: float | None


class LearnerReport(msgspec.Struct, frozen=True):
    """The last report of the learner.

    Attributes:
        tick: the tick of the report.
        algorithm: the name of the algorithm.
        phase: the phase of the learner: starting, learning, acting, waiting, holding.
        epsilon: the share of actions that explore; null if the algorithm has none.
        prediction_error: the relative error of the last predictions; null before the first.
        expected: the expected performance at the setting in force; null without a model.
        baseline: the performance at the initial setting, as the learner measured it.
        wanted: the values that the learner asked for.
        changes: the number of its actions that were applied.
        refused: the number of its actions that were refused or failed.
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
        mean: the mean over the ticks at the initial setting.
        low: the 10th percentile of these ticks.
        high: the 90th percentile of these ticks.
        ticks: the number of these ticks among the last 600.
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
        session: the name of the session.
        objective: the objective: "maximize FORMULA" or "minimize FORMULA"; null if it is not known yet.
        interval_s: the length of a tick.
        tick: the last tick; null before the first.
        metrics: the metrics of the last tick; null if a metric has no value.
        performance: pairs of tick and objective, for the last 600 ticks with a value.
        now: the objective in the last tick; null if it has no value.
        baseline: the performance at the initial setting; null with fewer than 5 ticks.
        knobs: the knobs with their values.
        mode: the mode of the interface: observe, approve or automatic; null before the first tick.
        holding: the reason why every action is refused now; null if actions are accepted.
        stored: whether the last tick is on disk.
        workload: the workload that was announced last and has not ended; null without one.
        nodes: all nodes that sent a frame.
        learner: the last report of the learner; null before the first.
        phase: the phase of the session: "learning", "baseline", "tuned" or "ending"; null if it is not known.
        until_s: the end of the session in seconds since 1970; null without a limit.
        parts: the processes of a session that `ascar capes up` runs.
        proof: the last comparison with the baseline; null without one.
        refused: the last 50 refusals and failures, the newest first.
        refusals: the number of refusals by kind, which is the first word of the reason.
        verdicts: the number of actions by verdict.
        happened: the last 50 events, the newest first.
        at_default: the objective in the ticks at the initial setting.
        default_since: the tick since which every knob has its initial value; null if some do not.
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
    knobs: tuple[ParameterState, ...] = ()
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
        first_tick: the first tick with a node in the folder's replay database; null if there was none.
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
    first_tick: int | None = None
    last_tick: int | None
    problem: str | None = None
