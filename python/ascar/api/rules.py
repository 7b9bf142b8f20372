"""`ascar.make_rules`: the rule loop from Python, on the simulated cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.api.showing import ProgressLines
from ascar.history import History
from ascar.loops import rules as loop
from ascar.pilot.turns import PairTest
from ascar.render import duration as shown_duration
from ascar.render import number
from ascar.sharp import objective_of
from ascar.sharp.metric_bounds import bounds_of
from ascar.sharp.plan import plan_of
from ascar.sharp.task import Ends, Task
from ascar.simulation import Scenario, open_scenario
from ascar.simulation.reading import check
from ascar.study import duration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from ascar.sharp import SearchProgress


def make_rules(
    scenario: Scenario | str | PathLike[str],
    out: str | PathLike[str],
    objective: str = "throughput",
    *,
    constraints: Sequence[str] | None = None,
    budget: str | None = None,
    evaluations: int | None = None,
    schedule: str = "sharp",
    pairs: int = 20,
    seed: int | None = None,
    threads: int | None = None,
    resume: bool = False,
    progress: bool | None = None,
) -> loop.Made:
    """Make congestion rules for a simulated cluster, and compare the best with the cluster as it is.

    Args:
        scenario: a scenario, its file, or the name of one that comes with ascar, e.g. "random-write".
        out: the file of the rules that are found; every run is kept beside it, in `out`.journal.
        objective: an objective by name, as `ascar sharp search --objective`, or "maximize FORMULA".
        constraints: what rules must keep, as `ascar sharp search --constraint`; None:
            "group_share_min >= 0.9".
        budget: time for all of it; None: the search ends by itself.
        evaluations: the greatest number of runs of the search; None: any number.
        schedule: "sharp", or the published ones, "faithful" and "remy".
        pairs: pairs of runs that the last comparison makes at most.
        seed: the seed, instead of the scenario's.
        threads: runs at a time; None: one a core.
        resume: go on with the runs in the journal.
        progress: whether progress is shown; None: in a notebook and on a terminal.

    Raises:
        InputError: an argument is wrong, or a journal is there already and `resume` is False.
        KeyboardInterrupt: the runs that have ended are kept.
    """
    chosen: Any = scenario if isinstance(scenario, Scenario) else open_scenario(str(scenario))
    if seed is not None:
        chosen = msgspec.structs.replace(chosen, seed=seed)
        check(chosen)
    task = Task(
        system=chosen,
        also=(),
        first_in=None,
        objective=objective_of(objective),
        bounds=bounds_of(constraints),
        plan=plan_of(schedule),
        ends=Ends(evaluations, None if budget is None else duration("budget", budget)),
        test=PairTest(pairs_max=pairs),
        threads=threads,
        out=Path(out),
        begin="resume" if resume else "new",
    )
    lines = ProgressLines(progress)

    def tell(moment: SearchProgress) -> None:
        best = "none yet" if moment.best is None else f"{number(moment.best)} by {moment.rules} rules"
        spent = f"{moment.evaluations} runs in {shown_duration(moment.elapsed_s)}"
        lines.say(f"epoch {moment.epoch}, round {moment.round}; best {best}; {spent}", now=False)

    made = loop.make_rules(task, History, tell)
    if made.found.best is not None:
        task.out.write_text(made.found.best.observed.text(), "utf-8")
    return made
