"""What is known of a running study, event by event."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ascar.results.trial import Purpose, TrialState

if TYPE_CHECKING:
    from ascar.events import Event
    from ascar.objective import Objective
    from ascar.results.trial import Trial

READINGS_SHOWN = 60


@dataclass(slots=True)
class StudyProgress:
    """A study as far as its events tell.

    Attributes:
        objective: gives the score's direction and unit.
        study: the name of the study.
        run_id: the run's id in the history; 0 before the study has started.
        budget_s: seconds for all of it; 0 where there is no limit.
        valid_configurations: the number of valid configurations of the space; None if it is unknown.
        left_s: seconds left when the last trial began or ended.
        planned: trials that the current phase will make, where that is known; 0 otherwise.
        best: the best usable trial so far, of the search and the default's runs.
        default: the first complete trial of the default.
        current: the trial under way.
        scores: the objective's unit readings of the current trial, the last READINGS_SHOWN.
        counts: trials by how they ended.
        verified: runs of the last comparison that are done.
    """

    objective: Objective
    study: str = ""
    run_id: int = 0
    budget_s: float = 0.0
    valid_configurations: int | None = None
    left_s: float = 0.0
    planned: int = 0
    best: Trial | None = None
    default: Trial | None = None
    current: Trial | None = None
    scores: list[float] = field(default_factory=list[float])
    counts: Counter[TrialState] = field(default_factory=Counter[TrialState])
    verified: int = 0

    @property
    def trials(self) -> int:
        """Trials that have ended."""
        return self.counts.total()

    @property
    def failed(self) -> int:
        """Trials that came to nothing."""
        return self.counts[TrialState.FAILED] + self.counts[TrialState.QUARANTINED]

    def take(self, event: Event) -> None:
        """Learn from one event."""
        data = event.data
        if "left_s" in data:
            self.left_s = _number(data["left_s"])
        match event.kind:
            case "study-started":
                self.study = str(data.get("study", ""))
                self.run_id = int(_number(data.get("run_id")))
                self.budget_s = self.left_s = _number(data.get("budget_s"))
                self.planned = int(_number(data.get("planned_trials")))
                if data.get("valid_configurations") is not None:
                    self.valid_configurations = int(_number(data["valid_configurations"]))
            case "trial-started":
                self.current, self.scores = event.trial, []
            case "reading":
                self.scores = [*self.scores[1 - READINGS_SHOWN :], _number(data.get("score"))]
            case "verifying":
                self.planned = 0
            case "trial-recalled" | "trial-finished" if event.trial is not None:
                self._finish(event.trial)
            case _:
                pass

    def _finish(self, trial: Trial) -> None:
        self.current = None
        self.counts[trial.state] += 1
        if trial.purpose.of_comparison:
            self.verified += trial.purpose is Purpose.VERIFY
            return
        if trial.purpose is Purpose.DEFAULT and self.default is None and trial.usable:
            self.default = trial
        if not trial.usable or trial.score is None:
            return
        if (
            self.best is None
            or self.best.score is None
            or self.objective.better(trial.score, self.best.score)
        ):
            self.best = trial


def _number(value: object) -> float:
    return float(cast("float", value)) if isinstance(value, (int, float)) else 0.0
