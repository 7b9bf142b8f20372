"""`ascar history pareto`: what a run offers where several objectives pull apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import Json, ObjectiveTexts, StudyOrRun

if TYPE_CHECKING:
    from ascar.history import Run
    from ascar.objective import Objective

EXAMPLES = examples(
    "ascar history pareto mailserver        of a study with several objectives",
    "ascar history pareto mailserver --objective 'minimize latency_ms_p99'     beside the study's own",
    "ascar history pareto 3 --objective 'maximize ops_per_s' --objective 'minimize cpu_s / ops'",
)


def pareto(
    run: StudyOrRun,
    objective: ObjectiveTexts = None,
    json: Json = False,
) -> int:
    """Show the Pareto set of a run: what no other configuration beats without losing in another objective.

    Of the configurations that were measured and met the study's constraints; scores are means over each one's
    trials, with 95% intervals: between trials, or where there is only one, of its readings. Two points whose
    intervals overlap may change places when measured again.
    """
    from ascar.cli.compromise import front_of, print_front
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_run
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.results.history import HistoryParetoResult

    with History.existing() as history:
        found = find_run(history, run)
        front = front_of(found, _objectives(found, objective or []))
        if not front.points:
            raise InputError(f"run {found.id} has no trial that was measured and met its constraints")
        if json:
            result = HistoryParetoResult(
                run_id=found.id,
                study=found.name,
                objectives=tuple(one.text for one in front.objectives),
                configurations=len(front.points),
                points=tuple(front.chosen),
                default=front.default,
            )
            emit("history-pareto", result)
        else:
            head = f"{found.name} (run {found.id}): {len(front.chosen)} configurations"
            people().print(head, style="bold", markup=False)
            print_front(people(), front, found.outcome().recommended)
    return 0


def _objectives(run: Run, texts: list[str]) -> list[Objective]:
    """What is asked for, beside the study's own where that is one.

    Raises:
        InputError: there is only one objective.
    """
    from ascar.errors import InputError
    from ascar.objective import Objective

    asked = [Objective.parse(text, "--objective") for text in texts]
    if len(asked) > 1:
        return asked
    objectives = [*run.objectives, *asked]
    if len(objectives) < 2:
        raise InputError(
            f"--objective: missing; study {run.name} has one objective, {run.objective.text!r}; "
            "name another, e.g. --objective 'minimize latency_ms_p99'"
        )
    return objectives
