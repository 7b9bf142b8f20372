"""What became of a configuration: trials, their states, and the events that a loop reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from ascar.measurement import Measurement, Series
    from ascar.space import Configuration
    from ascar.workspace import Change

VerdictKind = Literal["improved", "default-is-fine", "not-verified"]
VerdictEnd = Literal["separated", "equivalent", "runs-max", "time", "failures"]


class TrialState(StrEnum):
    """How a trial stands; a failure is a state, never a score of zero."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    QUARANTINED = "quarantined"


class Purpose(StrEnum):
    """Why a trial was made.

    A re-measurement is a trial of the search whose configuration was measured before: noise hid how good it
    is.
    """

    DEFAULT = "default"
    SEARCH = "search"
    REMEASURE = "re-measurement"
    VERIFY = "verify"
    BIAS = "bias"
    SWEEP = "sweep"

    @property
    def of_search(self) -> bool:
        """Whether an optimizer proposed it."""
        return self in (Purpose.SEARCH, Purpose.REMEASURE)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a trial failed.

    Attributes:
        stage: "change", "fill", "settle", "load", "machine".
        message: one line.
        stderr: the failing program's last output.
    """

    stage: str
    message: str
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Abandonment:
    """Why a trial's load was ended early.

    Attributes:
        rival: number of the trial that it was worse than, the best at that time.
        after_s: age of the load.
        worse_relative: share of the rival's level by which its readings so far were worse on the average.
        worse_least: by so much at least, noise between readings and between runs taken into account.
        saved_s: seconds that the load would have taken longer, had it lasted as long as usual.
    """

    rival: int
    after_s: float
    worse_relative: float
    worse_least: float
    saved_s: float = 0.0

    @property
    def line(self) -> str:
        """It in one line."""
        return (
            f"abandoned after {self.after_s:.1f} s: {self.worse_relative:.1%} worse than trial {self.rival} "
            f"so far, at least {self.worse_least:.1%}"
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One evaluation of one configuration.

    Attributes:
        number: counts from 1 within its study.
        configuration: what was tried.
        purpose: why.
        state: how it ended.
        score: the objective's value; None unless complete or pruned, and then of the readings so far.
        measurement: the objective's mean with its interval; None unless complete or pruned.
        metrics: every metric of the run.
        series: unit readings by metric.
        change: what putting the configuration in force took; None if it never was.
        stage_s: seconds by stage: "change", "fill", "settle", "load", "measurement", "other".
        unmet: constraints on results that this one breaks.
        failure: why it failed; None unless failed or quarantined.
        abandonment: why its load was ended early; None unless pruned.
        started_at: ISO 8601, UTC.
    """

    number: int
    configuration: Configuration
    purpose: Purpose
    state: TrialState
    score: float | None = None
    measurement: Measurement | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    series: Mapping[str, Series] = field(default_factory=dict[str, "Series"])
    change: Change | None = None
    stage_s: Mapping[str, float] = field(default_factory=dict[str, float])
    unmet: tuple[str, ...] = ()
    failure: Failure | None = None
    abandonment: Abandonment | None = None
    started_at: str = ""

    @property
    def total_s(self) -> float:
        """Seconds of all its stages."""
        return sum(self.stage_s.values())

    @property
    def usable(self) -> bool:
        """Whether it may be recommended: complete, and no constraint broken."""
        return self.state is TrialState.COMPLETE and self.score is not None and not self.unmet

    def to_dict(self) -> dict[str, Any]:
        """The trial as JSON-ready values, without its unit readings."""
        measurement, change, failure = self.measurement, self.change, self.failure
        abandonment = self.abandonment
        return {
            "number": self.number,
            "purpose": self.purpose.value,
            "state": self.state.value,
            "configuration": json_ready(self.configuration),
            "score": json_ready(self.score),
            "measurement": None
            if measurement is None
            else {field.name: json_ready(getattr(measurement, field.name)) for field in fields(measurement)},
            "metrics": json_ready(self.metrics),
            "change": None
            if change is None
            else {field.name: json_ready(getattr(change, field.name)) for field in fields(change)},
            "stage_s": json_ready(self.stage_s),
            "unmet": list(self.unmet),
            "failure": None
            if failure is None
            else {"stage": failure.stage, "message": failure.message, "stderr": failure.stderr},
            "abandonment": None
            if abandonment is None
            else {field.name: json_ready(getattr(abandonment, field.name)) for field in fields(abandonment)},
            "started_at": self.started_at,
        }


@dataclass(frozen=True, slots=True)
class ObjectiveGain:
    """What the last comparison says of one of several objectives.

    Attributes:
        objective: as the study says it.
        best_mean: of the best configuration's runs.
        default_mean: of the default's.
        gain_relative: of the best over the default's mean, above zero is better; None where scores are not
            all above zero.
        gain_low: lower end of its interval; all objectives' intervals hold together at `p_value_limit`.
        gain_high: upper end.
        difference: in the objective's unit, above zero is better.
        difference_low: lower end of its interval, or None.
        difference_high: upper end, or None.
    """

    objective: str
    best_mean: float
    default_mean: float
    gain_relative: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the last, interleaved comparison of the best configuration with the default says.

    Attributes:
        kind: "improved": the best beats the default at `p_value_limit`; "default-is-fine": it does not, or
            nothing better was found; "not-verified": no comparison was made, `note` says why.
        gain_relative: of the best over the default's mean, e.g. 0.31; above zero is better whichever way the
            objective points. None without a comparison, and where scores are not all above zero.
        gain_low: lower end of the gain's interval (confidence 1 - `p_value_limit`, at all looks together);
            None without one.
        gain_high: upper end, or None.
        p_value: always-valid, of the test that the two differ; None without a comparison.
        runs_per_side: how many pairs of runs were made, failed ones included.
        best_scores: the best configuration's scores in the pairs that could be compared, in the order taken.
        default_scores: the default's in the same pairs.
        p_value_limit: the level at which the two are called different.
        note: one line: the method, or why there is no comparison.
        reuse_bias: what reusing the state of the trial before did to the default's mean, e.g. -0.05; None
            where every trial started afresh.
        reuse_bias_low: lower end of its interval (confidence 1 - `p_value_limit`).
        reuse_bias_high: upper end.
        margin: relative difference below which two count as equivalent; 0: never.
        ended: why no more pairs were made: "separated": the two are told apart; "equivalent"; "runs-max";
            "time"; "failures": not one pair could be compared. None without a comparison.
        objectives: of a study with several, what the comparison says of each; the rest of the verdict is of
            their compromise.
        difference: of the best and the default in the objective's unit, above zero is better whichever way
            the objective points; None without a comparison.
        difference_low: lower end of its interval, or None.
        difference_high: upper end, or None.
    """

    kind: VerdictKind
    gain_relative: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    p_value: float | None = None
    runs_per_side: int = 0
    best_scores: tuple[float, ...] = ()
    default_scores: tuple[float, ...] = ()
    p_value_limit: float = 0.01
    note: str = ""
    reuse_bias: float | None = None
    reuse_bias_low: float | None = None
    reuse_bias_high: float | None = None
    margin: float = 0.0
    ended: VerdictEnd | None = None
    objectives: tuple[ObjectiveGain, ...] = ()
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready values, key by key."""
        known = {name: json_ready(getattr(self, name)) for name in self.__slots__ if name != "objectives"}
        return known | {"objectives": [json_ready(asdict(one)) for one in self.objectives]}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a study came to: its recommendation, how sure that is, and what the time went on.

    Attributes:
        run_id: the run's id in the history.
        study: the study's name.
        best: the best usable trial of the search; None if there is none.
        default: the first complete trial of the default configuration; None if there is none.
        recommended: the configuration to put in force: the best one's, or the default.
        verdict: what the last comparison says.
        stage_s: seconds by stage over the whole run, by the stages that a trial has.
        counts: trials by how they ended.
        stopped: why the search ended, one line.
        machine: what the result is valid for, as the target describes it; JSON-ready.
        saved_s: seconds of load that abandoning worse configurations saved.
    """

    run_id: int
    study: str
    best: Trial | None
    default: Trial | None
    recommended: Configuration
    verdict: Verdict
    stage_s: Mapping[str, float]
    counts: Mapping[TrialState, int]
    stopped: str
    machine: Mapping[str, Any]
    saved_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON-ready values; trials without their unit readings."""
        return {
            "run_id": self.run_id,
            "study": self.study,
            "best": None if self.best is None else self.best.to_dict(),
            "default": None if self.default is None else self.default.to_dict(),
            "recommended": json_ready(self.recommended),
            "verdict": self.verdict.to_dict(),
            "stage_s": json_ready(self.stage_s),
            "counts": {
                state.value: self.counts.get(state, 0) for state in TrialState if state in self.counts
            },
            "stopped": self.stopped,
            "machine": json_ready(self.machine),
            "saved_s": json_ready(self.saved_s),
        }


def saved_s(trials: Iterable[Trial]) -> float:
    """Seconds of load that abandoning these trials saved."""
    return sum(trial.abandonment.saved_s for trial in trials if trial.abandonment is not None)


def json_ready(value: Any) -> Any:
    """`value` as what strict JSON can say: tuples as lists, NaN and infinities as null."""
    if value is None or isinstance(value, (bool, int, str)):
        return value.value if isinstance(value, StrEnum) else value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): json_ready(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, (Sequence, set, frozenset)):
        return [json_ready(item) for item in cast("Sequence[Any]", value)]
    if hasattr(value, "item"):  # a NumPy scalar
        return json_ready(value.item())
    return str(value)


@dataclass(frozen=True, slots=True)
class Event:
    """Something a loop reports while it runs.

    Attributes:
        kind: "study-started", "trial-recalled" (each one of an earlier part), "trial-started", "reading",
            "trial-finished", "verifying", "compared" (after each pair of the verification),
            "study-finished".
        data: numbers and names with the unit in the key; JSON-ready.
        trial: the trial it is about, where there is one.
    """

    kind: str
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    trial: Trial | None = None


Listener = Callable[[Event], None]
