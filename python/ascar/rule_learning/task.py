"""Rules whose numbers are to be learned: the system that follows them, the rules, the time.

The simulated cluster keeps the given rules from the beginning. Live controllers have to keep them already.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.rule_learning.learning import learn_numbers
from ascar.rule_learning.result import begun_learning, learn_result
from ascar.rule_learning.system import RuleSystem
from ascar.sharp.client_shares import check_bounds
from ascar.sharp.deployment import ExpectedDeployment, ManagedSystem, rules_id
from ascar.sharp.deployment.managed_system import check_objective
from ascar.sharp.ranges import FIELDS
from ascar.sharp.running import SimulatedRunning

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from ascar.history import History
    from ascar.objective import Objective
    from ascar.rule_learning.learning import Learned
    from ascar.sharp import RuleSet
    from ascar.sharp.deployment import Roster
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.running import TickedSystem
    from ascar.simulation import Scenario


@dataclass(frozen=True, slots=True)
class LearnTask:
    """What is asked for.

    Attributes:
        objective: the objective over an interval's metrics.
        learn_s: the learning time, in the system's own time.
        scenario: the simulated cluster; None: the controllers behind a message server.
        workload: the workload of the controllers; None: all controllers.
        connection: the connection file of the message server; None: it is found elsewhere.
        rules: the rules whose numbers are learned; None: those in force.
        fields: the numbers of a rule's action to learn.
        at: numbers of the rules, from 0; None: all.
        seed: the seed of the learner.
        bounds: what the best rules must keep to be kept.
    """

    objective: Objective
    learn_s: float
    scenario: Scenario | None = None
    workload: str | None = None
    connection: Path | None = None
    rules: RuleSet | None = None
    fields: tuple[str, ...] = tuple(FIELDS)
    at: tuple[int, ...] | None = None
    seed: int = 0
    bounds: tuple[MetricBound, ...] = ()

    @contextmanager
    def system(self) -> Generator[TickedSystem]:
        """The system that follows the rules; at the end rules on trial are removed.

        Raises:
            MessagingError: there is no connection, or no controller.
        """
        if self.scenario is not None:
            yield SimulatedRunning(self.scenario, self.rules)
            return
        with ManagedSystem.connected(self.workload, self.connection) as system:
            yield system

    def kept(self, system: TickedSystem) -> RuleSet:
        """The rules whose numbers are learned, kept by the system.

        Raises:
            InputError: the system keeps none, or others than the given ones.
        """
        kept = system.in_force()
        if kept is None:
            where = (
                "give --rules FILE"
                if self.scenario is not None
                else "deploy some with `ascar sharp deploy` first"
            )
            raise InputError(f"rules: no rules are in force; {where}")
        if self.rules is not None and self.rules != kept.bare():
            raise InputError("--rules: other rules are in force; `ascar sharp deploy` these first")
        return kept.bare()


def learn_rules(
    task: LearnTask,
    roster: Roster,
    open_history: Callable[[], History],
    told: Callable[[float, int], None],
) -> Learned:
    """Learn the numbers of rules online, and keep the best of them if they are shown to be better.

    Args:
        task: says what is asked for.
        roster: is told which rules the controllers of a workload follow from now on.
        open_history: opens the history that keeps what learning came to, once the task is known to be good.
        told: hears of the seconds left and the settings seen, once a minute of the system's time.

    Raises:
        InputError: the objective names what a running system does not tell, or there are no rules.
        KeyboardInterrupt: interrupted; the rules that were kept are in force.
        WorkError: the system does not do as it is told, or the objective has no value.
    """
    check_objective(task.objective)
    check_bounds(task.bounds)
    with task.system() as system:
        rule_system = RuleSystem(system, task.kept(system), task.objective).turn(task.fields, task.at)
        with open_history() as history, history.recording(*begun_learning(task)) as run:
            found = learn_numbers(
                system,
                rule_system,
                task.objective,
                learn_s=task.learn_s,
                seed=task.seed,
                bounds=task.bounds,
                told=told,
            )
            run.conclude(learn_result(task.objective.text, found))
        if isinstance(system, ManagedSystem) and task.workload is not None:
            followed = rules_id(found.after)
            roster.write(ExpectedDeployment(task.workload, followed, system.controllers))
    return found
