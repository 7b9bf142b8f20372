"""Trials: evaluations of configurations, their states, costs and failures."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - msgspec reads the annotations
from enum import StrEnum
from typing import Annotated, ClassVar, Self

import msgspec
from msgspec import Meta

from ascar.results.measurement import MaybeNan, Measurement, Series
from ascar.space import Configuration
from ascar.space.difference import Difference


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
    REDUCE = "reduction"
    SWEEP = "sweep"

    @property
    def of_search(self) -> bool:
        """Whether an optimizer proposed it."""
        return self in (Purpose.SEARCH, Purpose.REMEASURE)

    @property
    def of_comparison(self) -> bool:
        """Whether it is one of the runs in turns that a claim rests on."""
        return self in (Purpose.VERIFY, Purpose.REDUCE)


class Origin(StrEnum):
    """Who proposed a trial's configuration."""

    DEFAULT = "default"
    KNOWN = "known"
    """The study, in `[start] configurations`."""
    SIMILAR = "similar"
    """The best of the study that `[start] study` names."""
    LIBRARY = "library"
    """The library: it helped a load like this one."""
    ADVISED = "advised"
    """The system's manual, for a machine like this."""
    PREFERRED = "preferred"
    """The study, in `[start] preferred`."""
    OPTIMIZER = "optimizer"
    EXTERNAL = "external"
    """A program of the user."""
    RETRY = "retry"
    """The loop: the machine went down while the configuration was in force."""
    VERIFICATION = "verification"
    SWEEP = "sweep"


class Failure(msgspec.Struct, frozen=True):
    """Why a trial failed.

    Attributes:
        stage: "change", "fill", "settle", "load", "drain", "degraded", "machine", or "guard": a limit was
            violated.
        message: the message in one line.
        stderr: the failing program's last output.
    """

    stage: str
    message: str
    stderr: str = ""


class Abandonment(msgspec.Struct, frozen=True):
    """Why a trial's load was ended early.

    Attributes:
        rival: number of the trial that it was worse than, the best at that time.
        after_s: age of the load.
        worse_relative: share of the rival's level by which its readings so far were worse on the average.
        worse_least: the least share by which they were worse, given the noise between readings and between
            runs.
        saved_s: seconds that the load would have taken longer, had it lasted as long as usual.
    """

    rival: Annotated[int, Meta(ge=1)]
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


def category_of(difference: Difference) -> int:
    """The category of a difference as `Change` has it: -1 where nothing differs."""
    return -1 if difference.category is None else difference.category


class Change(msgspec.Struct, frozen=True):
    """The cost of putting a configuration in force.

    Attributes:
        parameters: names of the parameters whose values changed.
        category: the highest cost category touched (0 to 3, Cao Table 9.1); -1 if nothing changed.
        step_s: seconds by step ("format", "mount", "knobs", ...).
        filled: the workspace already holds the load's files, as they were after the last fill.
    """

    parameters: tuple[str, ...]
    category: Annotated[int, Meta(ge=-1, le=3)]
    step_s: Mapping[str, float]
    filled: bool = False

    @classmethod
    def of(cls, difference: Difference, step_s: Mapping[str, float], *, filled: bool = False) -> Self:
        """The change that makes up a difference between configurations."""
        return cls(difference.parameters, category_of(difference), step_s, filled)

    @property
    def total_s(self) -> float:
        """Seconds that the whole change took."""
        return sum(self.step_s.values())


class Trial(msgspec.Struct, frozen=True):
    """One evaluation of one configuration.

    Attributes:
        number: counts from 1 within its study.
        configuration: the configuration that was tried.
        purpose: the purpose of the trial.
        state: the state of the trial.
        score: the objective's value; None unless complete or pruned, and then of the readings so far.
        measurement: the objective's mean with its interval; None unless complete or pruned.
        metrics: every metric of the run.
        series: unit readings by metric; rates are over the time of the load and of the deferred work that it
            left.
        change: the cost of putting the configuration in force; null if that never happened.
        stage_s: seconds by stage: "change", "fill", "settle", "load", "drain", "degraded", "measurement",
            "other".
        unmet: constraints on results that this one breaks.
        failure: why it failed; None unless failed or quarantined.
        abandonment: why its load was ended early; None unless pruned.
        started_at: the start of the trial: ISO 8601, UTC.
        origin: who proposed the configuration; null in runs of versions that did not keep it.
        reason: why, in the proposer's words.
    """

    not_in_document: ClassVar = ("series",)

    number: Annotated[int, Meta(ge=1)]
    configuration: Configuration
    purpose: Purpose
    state: TrialState
    score: float | None = None
    measurement: Measurement | None = None
    metrics: Mapping[str, MaybeNan] = msgspec.field(default_factory=dict[str, float])
    series: Mapping[str, Series] = msgspec.field(default_factory=dict[str, "Series"])
    change: Change | None = None
    stage_s: Mapping[str, float] = msgspec.field(default_factory=dict[str, float])
    unmet: tuple[str, ...] = ()
    failure: Failure | None = None
    abandonment: Abandonment | None = None
    started_at: str = ""
    origin: Origin | None = None
    reason: str = ""

    @property
    def total_s(self) -> float:
        """Seconds of all its stages."""
        return sum(self.stage_s.values())

    @property
    def usable(self) -> bool:
        """Whether it may be recommended: complete, and no constraint broken."""
        return self.state is TrialState.COMPLETE and self.score is not None and not self.unmet
