"""Results of `ascar capes`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ascar.results.measurement import Count


class GamePlayed(msgspec.Struct, frozen=True, kw_only=True):
    """One game.

    Attributes:
        ticks: until convergence; null where it did not converge.
        near_share: of all ticks, those within 10% of the ideal, noise aside.
    """

    seed: Count
    ticks: Count | None
    near_share: float


class CapesGameResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-game/1",
):
    """How often and how soon a learner converges at StorageGameSim.

    Attributes:
        noise: standard deviation of a measurement, a share of the throughput.
        delay: ticks after which a change of the window shows.
        game: and the criterion by which it is won.
        success_rate: share of the runs that converged.
        ticks_median: until convergence, of the runs that converged.
        ticks_limit: ticks of a run.
    """

    noise: float
    delay: Count
    algorithm: Literal["modern", "classic", "sweep", "random"]
    game: Literal["thesis", "hard"]
    runs: Count
    success_rate: float
    ticks_median: float | None
    ticks_max: Count | None
    ticks_limit: Count
    played: tuple[GamePlayed, ...]


class PredictionError(msgspec.Struct, frozen=True, kw_only=True):
    """The prediction error on the way.

    Attributes:
        at: ticks, of the classic learner steps.
    """

    at: Count
    prediction_error: float


class CapesTrainResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-train/1",
):
    """What a learner has done: until it was told to stop, or once through stored ticks.

    Attributes:
        only_history: whether it only learnt from stored ticks.
        ticks: stored ones that it learnt from; 0 where it did not only do that.
        steps: of the classic learner's training on stored ticks.
        errors: on the way, where it only learnt from stored ticks.
        report: its last one on P.learner; null: it never began.
        state: file with what it has learnt.
    """

    session: str
    algorithm: Literal["modern", "classic"]
    objective: str
    only_history: bool
    ticks: Count
    steps: Count
    errors: tuple[PredictionError, ...]
    report: dict[str, Any] | None
    state: str | None


class CapesControlResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-control/1",
):
    """What was asked of a session, and its answer.

    Attributes:
        asked: the request's keys, see capes-protocol.
        answer: the interface's, see capes-protocol.
    """

    session: str
    operation: str
    asked: dict[str, Any]
    answer: dict[str, Any]


class CapesProveResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-prove/1",
):
    """What a session gains: tuned and untuned phases in turns.

    Attributes:
        pairs: of phases with and without tuning; the independent samples of the interval.
        baseline_mean: over the phases' means.
        baseline_ticks: that count.
        baseline_samples: independent samples that these ticks are worth.
        gain: relative, above zero is better; null with fewer than two pairs, and where not all
            means are above 0.
        gain_low: lower end of its interval.
        difference: in the objective's unit; above zero is better.
        difference_low: of an interval that holds at all looks together.
        p_value: always-valid.
        claim: none: the interval holds zero.
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


class BaselineLevel(msgspec.Struct, frozen=True, kw_only=True):
    """The objective while every knob stood where it was."""

    mean: float
    low: float
    high: float
    ticks: Count


class KnobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A knob and its value.

    Attributes:
        value: in force.
        default: before the session.
    """

    key: str
    value: str | float | bool | None
    default: str | float | bool | None
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A node and whether it is there."""

    name: str
    is_here: bool
    indicators: Count
    seen_tick: int | None


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with its interval."""

    mean: float
    low: float | None
    high: float | None


class LearnerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the learner says of itself.

    Attributes:
        expected: with an interval of 95%.
        baseline: with an interval of 95%.
        wanted: by key of the setting, see capes-protocol.
    """

    tick: int | None
    algorithm: str | None
    phase: str | None
    epsilon: float | None
    prediction_error: float | None
    expected: Band | None
    baseline: Band | None
    wanted: dict[str, str | float | bool]
    changes: Count
    refused: Count


class PartStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the session."""

    name: str
    state: str
    pid: Count | None
    restarts: Count


class RefusedAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was refused.

    Attributes:
        wanted: by key of the setting, see capes-protocol.
    """

    tick: int
    id: str
    wanted: dict[str, str | float | bool]
    verdict: str
    reason: str


class SessionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in the session."""

    tick: int | None
    event: str
    detail: dict[str, Any]


class CapesStatusResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-status/1",
):
    """How a session stands; with --follow one on a line after each tick.

    Attributes:
        tick: the last one.
        metrics: null: cannot be told.
        performance: tick and objective, the last 600 that had one.
        now: the objective in the last tick.
        gain: of the last minute over the baseline, not tested; above zero is better; null where not all
            means are above 0.
        baseline: while every knob stood where it was: mean, 10th and 90th percentile.
        holding: why every action is refused now.
        stored: whether the last tick is on disk.
        phase: of the session: learning, baseline, tuned, ending.
        until_s: when it ends by itself, seconds since 1970.
        proof: as in capes-prove, so far.
        refused: the last 50, newest first.
        refusals: by kind.
        verdicts: by verdict.
        happened: the last 50, newest first.
    """

    session: str
    objective: str | None
    lower_is_better: bool
    interval_s: float
    tick: int | None
    metrics: dict[str, float | None]
    performance: tuple[Annotated[tuple[float, ...], Meta(min_length=2, max_length=2)], ...]
    now: float | None
    gain: float | None
    baseline: BaselineLevel | None
    knobs: tuple[KnobStatus, ...]
    mode: str | None
    holding: str | None
    stored: bool
    workload: str | None
    nodes: tuple[NodeStatus, ...]
    learner: LearnerStatus | None
    phase: str | None
    until_s: float | None
    parts: tuple[PartStatus, ...]
    proof: dict[str, Any] | None
    refused: tuple[RefusedAction, ...]
    refusals: dict[str, Count]
    verdicts: dict[str, Count]
    happened: tuple[SessionEvent, ...]


class CapesDownResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-down/1",
):
    """A session that was ended.

    Attributes:
        keep: whether the learnt setting was to stay.
    """

    session: str
    pid: Count
    keep: bool


class ProofMade(msgspec.Struct, frozen=True, kw_only=True):
    """What a proof says, so far or at its end.

    Attributes:
        pairs: of phases with and without tuning; the independent samples of the interval.
        baseline_mean: over the phases' means.
        baseline_ticks: that count.
        baseline_samples: independent samples that these ticks are worth.
        gain: relative, above zero is better; null with fewer than two pairs, and where not all
            means are above 0.
        gain_low: lower end of its interval.
        difference: in the objective's unit; above zero is better.
        difference_low: of an interval that holds at all looks together.
        p_value: always-valid.
        claim: none: the interval holds zero.
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


class CapesUpResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/capes-up/1",
):
    """What came of a session.

    Attributes:
        seconds: from the first tick on.
        setting: that did best.
        defaults: before the session.
        kept: knobs that stay set; null: none were to.
        left_changed: knobs that could not be put back; empty is good.
        broken_pairs: pairs of phases that did not count.
        restarts: of each process.
        verdicts: on actions.
        refusals: by kind.
        problem: why it ended early.
    """

    session: str
    study: str
    seconds: float
    stopped: Literal["time", "asked", "problem"]
    setting: dict[str, str | float | bool]
    defaults: dict[str, str | float | bool]
    kept: dict[str, str | float | bool] | None
    left_changed: dict[str, str | float | bool]
    proof: ProofMade | None
    broken_pairs: Count
    restarts: dict[str, Count]
    verdicts: dict[str, Count]
    refusals: dict[str, Count]
    last_tick: int | None
    problem: str | None
