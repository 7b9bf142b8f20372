"""What `ascar capes train` does: until it is told to stop, or once through stored ticks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ascar.cli.output import emit, people, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.capes.process.learner_file import Plan
    from ascar.capes.process.learner_process import LearnerProcess
    from ascar.capes.process.offline_training import OfflineTraining
    from ascar.results.capes import CapesTrainResult

_USER = "learner"


def live(plan: Plan, others: Sequence[str], *, quiet: bool, json: bool) -> int:
    """Until a signal; then what it knows is on disk."""
    from ascar.capes.process.online_training import run
    from ascar.messaging import ServiceManager, find_settings, run_until_asked

    settings = find_settings(_USER, plan.connection)
    manager = ServiceManager(os.environ)

    def say_line(text: str) -> None:
        manager.status(text)
        if not quiet:
            say(f"ascar capes train: {text}")

    learner = run_until_asked(lambda asked: manager.supervised(run(plan, settings, asked, say_line, others)))
    if json:
        emit("capes-train", _result(plan, learner))
    return 0


def replayed(plan: Plan, others: Sequence[str], steps: int | None, *, quiet: bool, json: bool) -> int:
    """Once through stored ticks."""
    from ascar.capes.process.offline_training import train_connected
    from ascar.cli.capes.progress import showing
    from ascar.messaging import find_settings, run_interruptible

    settings = find_settings(_USER, plan.connection)
    with showing(quiet=quiet) as listener:
        training = run_interruptible(train_connected(plan, settings, others, steps, listener))
    plan = training.learner.plan
    result = _result(plan, training.learner, training)
    if json:
        emit("capes-train", result)
        return 0
    console = people()
    console.print(f"learnt from      {training.ticks} stored ticks, {training.steps} steps of training")
    for at, error in _few(training.errors):
        console.print(f"prediction error {error:.4g} after {at}")
    console.print(f"state            {plan.state}")
    return 0


def _result(
    plan: Plan, learner: LearnerProcess | None, training: OfflineTraining | None = None
) -> CapesTrainResult:
    from ascar.results.capes import CapesTrainResult, PredictionError

    errors = () if training is None else training.errors
    return CapesTrainResult(
        session=plan.file.session,
        algorithm=plan.file.algorithm,
        objective=plan.objective.text,
        only_history=training is not None,
        ticks=0 if training is None else training.ticks,
        steps=0 if training is None else training.steps,
        errors=tuple(PredictionError(at=at, prediction_error=error) for at, error in errors),
        report=None if learner is None else learner.report(),
        state=None if learner is None else str(plan.state),
    )


def _few(errors: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """At most ten, the last one among them."""
    every = max(1, -(-len(errors) // 10))
    return errors[::-1][::every][::-1]
