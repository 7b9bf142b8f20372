"""Trials, verdicts and outcomes, as several results have them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ascar.results.mean import Count


class TrialMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean with what is known about it.

    Attributes:
        ci_low: null where no honest interval exists.
        n: readings in the stable phase.
        independent_samples: how many independent samples the interval rests on.
        reason: why there is no interval; empty where there is one.
    """

    mean: float
    ci_low: float | None
    ci_high: float | None
    confidence: float
    n: Count
    independent_samples: float
    autocorrelation: float | None
    subsession_size: Count
    stable_start: Count
    stable_end: Count
    change_points: tuple[Count, ...]
    method: str
    reason: str


class ChangeMade(msgspec.Struct, frozen=True, kw_only=True):
    """What putting the configuration in force took.

    Attributes:
        category: highest cost category touched; -1: none.
        step_s: seconds by step.
    """

    parameters: tuple[str, ...]
    category: Annotated[int, Meta(ge=-1, le=3)]
    step_s: dict[str, float]
    filled: bool


class FailureTold(msgspec.Struct, frozen=True, kw_only=True):
    """Why a trial failed."""

    stage: str
    message: str
    stderr: str


class EndedEarly(msgspec.Struct, frozen=True, kw_only=True):
    """Why the load of a pruned trial was ended early.

    Attributes:
        rival: the trial that it was worse than.
        after_s: age of the load.
        worse_relative: share of the rival's level by which its readings were worse.
        worse_least: the same at least, noise of readings and of runs taken into account.
        saved_s: against the usual load of a trial.
    """

    rival: Annotated[int, Meta(ge=1)]
    after_s: float
    worse_relative: float
    worse_least: float
    saved_s: float


class TrialResult(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of one configuration.

    Attributes:
        configuration: a value for every parameter that is active; one that does not apply is
            absent.
        score: the objective's value; null unless complete or pruned.
        measurement: a mean with what is known about it.
        metrics: every metric of the run; the unit is in the name.
        change: what putting the configuration in force took.
        stage_s: seconds by stage.
        unmet: constraints on results that this trial breaks.
        abandonment: why the load of a pruned trial was ended early.
        started_at: ISO 8601, UTC.
    """

    number: Annotated[int, Meta(ge=1)]
    purpose: Literal["default", "search", "re-measurement", "verify", "bias", "sweep"]
    state: Literal["running", "complete", "pruned", "failed", "interrupted", "quarantined"]
    configuration: dict[str, str | float | bool]
    score: float | None
    measurement: TrialMean | None
    metrics: dict[str, float | None]
    change: ChangeMade | None
    stage_s: dict[str, float]
    unmet: tuple[str, ...]
    failure: FailureTold | None
    abandonment: EndedEarly | None
    started_at: str


class GainByObjective(msgspec.Struct, frozen=True, kw_only=True):
    """What the last comparison says of one of several objectives.

    Attributes:
        gain_relative: above zero is better; null where scores are not all above zero.
        gain_low: all objectives' intervals hold together.
        difference: in the objective's unit; above zero is better.
        difference_low: of an interval that holds at all looks together.
    """

    objective: str
    best_mean: float
    default_mean: float
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None


class VerdictReached(msgspec.Struct, frozen=True, kw_only=True):
    """What the last, interleaved comparison of the best configuration with the default says.

    Attributes:
        gain_relative: over the default's mean; above zero is better whichever way the objective
            points; null where scores are not all above zero.
        gain_low: of an interval that holds at all looks together.
        p_value: always-valid.
        runs_per_side: pairs of runs that were made, failed ones included.
        best_scores: of the pairs that could be compared, in the order taken.
        margin: relative difference below which two count as equivalent; 0: never.
        ended: why no more pairs were made; null without a comparison.
        objectives: of a study with several, each one's gain; the rest of the verdict is of their
            compromise.
        difference: in the objective's unit; above zero is better.
        difference_low: of an interval that holds at all looks together.
    """

    kind: Literal["improved", "default-is-fine", "not-verified"]
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    p_value: float | None
    runs_per_side: Count
    best_scores: tuple[float, ...]
    default_scores: tuple[float, ...]
    p_value_limit: float
    note: str
    reuse_bias: float | None
    reuse_bias_low: float | None
    reuse_bias_high: float | None
    margin: float
    ended: Literal["separated", "equivalent", "runs-max", "time", "failures"] | None
    objectives: tuple[GainByObjective, ...]
    difference: float | None
    difference_low: float | None
    difference_high: float | None


class ParetoPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration with its scores.

    Attributes:
        configuration: a value for every parameter that is active; one that does not apply is
            absent.
        scores: means over the trials, in the order of the objectives.
        intervals: 95%, low and high: between trials, or of the one trial's readings; null: not
            known.
    """

    configuration: dict[str, str | float | bool]
    scores: tuple[float, ...]
    intervals: tuple[tuple[float, ...] | None, ...]
    trials: tuple[Count, ...]
    is_default: bool


class OutcomeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a study came to.

    Attributes:
        run_id: in the history.
        best: one evaluation of one configuration.
        default: one evaluation of one configuration.
        recommended: a value for every parameter that is active; one that does not apply is absent.
        verdict: what the last, interleaved comparison of the best configuration with the default
            says.
        stage_s: seconds by stage, over the whole run.
        counts: trials by how they ended.
        stopped: why the search ended.
        machine: what the result is valid for.
        saved_s: seconds of load that abandoning worse configurations saved.
    """

    run_id: Count
    study: str
    best: TrialResult | None
    default: TrialResult | None
    recommended: dict[str, str | float | bool]
    verdict: VerdictReached
    stage_s: dict[str, float]
    counts: Annotated[
        dict[str, Count],
        Meta(
            extra_json_schema={
                "propertyNames": {
                    "enum": ["running", "complete", "pruned", "failed", "interrupted", "quarantined"]
                }
            }
        ),
    ]
    stopped: str
    machine: dict[str, Any]
    saved_s: float
