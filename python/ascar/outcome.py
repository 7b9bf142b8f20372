"""What became of a configuration: trials, their states, and the events that a loop reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.measurement import Measurement, Series
    from ascar.space import Configuration
    from ascar.workspace import Change

__all__ = ["Event", "Failure", "Listener", "Purpose", "Trial", "TrialState"]


class TrialState(StrEnum):
    """How a trial stands; a failure is a state, never a score of zero."""

    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    QUARANTINED = "quarantined"


class Purpose(StrEnum):
    """Why a trial was made."""

    DEFAULT = "default"
    SEARCH = "search"
    VERIFY = "verify"
    BIAS = "bias"
    SWEEP = "sweep"


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
class Trial:
    """One evaluation of one configuration.

    Attributes:
        number: counts from 1 within its study.
        configuration: what was tried.
        purpose: why.
        state: how it ended.
        score: the objective's value; None unless complete or pruned.
        measurement: the objective's mean with its interval; None unless complete or pruned.
        metrics: every metric of the run.
        series: unit readings by metric.
        change: what putting the configuration in force took; None if it never was.
        stage_s: seconds by stage: "change", "fill", "settle", "load", "measurement", "other".
        unmet: constraints on results that this one breaks.
        failure: why it failed; None unless failed or quarantined.
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
    started_at: str = ""

    @property
    def usable(self) -> bool:
        """Whether it may be recommended: complete, and no constraint broken."""
        return self.state is TrialState.COMPLETE and self.score is not None and not self.unmet


@dataclass(frozen=True, slots=True)
class Event:
    """Something a loop reports while it runs.

    Attributes:
        kind: "study-started", "trial-started", "reading", "trial-finished", "verifying", "study-finished".
        data: numbers and names with the unit in the key; JSON-ready.
        trial: the trial it is about, where there is one.
    """

    kind: str
    data: Mapping[str, object] = field(default_factory=dict[str, object])
    trial: Trial | None = None


Listener = Callable[[Event], None]
