"""The outcome of a study, a sweep, or a run of the history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ascar.results.measurement import Count
from ascar.results.parsimony import Parsimony
from ascar.results.trial import Trial, TrialState
from ascar.results.verdict import Verdict
from ascar.space import Configuration

Counts = Annotated[
    Mapping[TrialState, Count],
    Meta(extra_json_schema={"propertyNames": {"enum": [state.value for state in TrialState]}}),
]
"""Trials by how they ended."""


class Outcome(msgspec.Struct, frozen=True):
    """What a study came to: its recommendation, how sure that is, and what the time went on.

    Attributes:
        run_id: the run's id in the history.
        study: the study's name.
        best: the trial of the configuration that the verdict is about: the best usable one of the search, or
            a run of the smaller configuration that took its place; None if there is none.
        default: the first complete trial of the default configuration; None if there is none.
        recommended: the configuration to put in force: the best one's, or the default.
        verdict: the verdict of the last comparison.
        stage_s: seconds by stage over the whole run, by the stages that a trial has.
        counts: trials by how they ended.
        stopped: why the search ended, one line.
        machine: the machine for which the result is valid, as the target describes it.
        saved_s: seconds of load that abandoning worse configurations saved.
        parsimony: how the best configuration was reduced to what is needed; None if that was not tried.
    """

    run_id: Count
    study: str
    best: Trial | None
    default: Trial | None
    recommended: Configuration
    verdict: Verdict
    stage_s: Mapping[str, float]
    counts: Counts
    stopped: str
    machine: Mapping[str, Any]
    saved_s: float = 0.0
    parsimony: Parsimony | None = None


class StoppedEarly(KeyboardInterrupt):
    """An interrupt after something was proven: that is kept, and everything was put back.

    Attributes:
        outcome: what is proven, also in the history; a run that is resumed goes on from there.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("interrupted; what is proven is kept")
        self.outcome = outcome


def saved_s(trials: Iterable[Trial]) -> float:
    """Seconds of load that abandoning these trials saved."""
    return sum(trial.abandonment.saved_s for trial in trials if trial.abandonment is not None)
