"""What learning the numbers of rules came to, as one value for the history, people and programs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ascar.history import BegunRun, RunKind
from ascar.pilot.turns import estimates_of
from ascar.results.rule_sets import SharpLearnResult
from ascar.sharp.deployment import rules_id
from ascar.sharp.rule_results import rule_set_result
from ascar.space import Space
from ascar.systems.machine import describe_machine

if TYPE_CHECKING:
    from ascar.rule_learning.learning import Learned
    from ascar.rule_learning.task import LearnTask

_ALL = "all-controllers"


def begun_learning(task: LearnTask) -> tuple[BegunRun, dict[str, Any]]:
    """What the history notes when learning begins: the run, and what its result is valid for."""
    simulated = task.scenario is not None
    name = task.scenario.name if task.scenario is not None else task.workload or _ALL
    # Anybody may learn in a simulation of his own; of the controllers of a workload one learns at a time.
    place = uuid4().hex if simulated else f"{task.connection} {name}"
    begun = BegunRun(
        kind=RunKind.LEARNING,
        name=name,
        digest=hashlib.sha256(place.encode()).hexdigest(),
        objective=task.objective.text,
        seed=task.seed,
        text="",
        space=Space(name=name),
    )
    target = "simulated cluster" if simulated else "controllers"
    valid_for: dict[str, Any] = {"target": target, "scenario" if simulated else "workload": name}
    return begun, valid_for if simulated else {**valid_for, **describe_machine()}


def learn_result(objective: str, found: Learned) -> SharpLearnResult:
    """The result of learning."""
    return SharpLearnResult(
        objective=objective,
        ticks=found.ticks,
        settings=found.settings,
        before=rules_id(found.before),
        rules=rules_id(found.after),
        rule_set=rule_set_result(found.after),
        improved=found.after != found.before,
        broken=found.broken,
        **estimates_of(found.comparison),
        pairs=0 if found.comparison is None else len(found.comparison.reference),
    )
