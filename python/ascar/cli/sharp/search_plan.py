"""The plan and the ends of a search, as options of `ascar sharp search` describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.sharp import SearchPlan
    from ascar.sharp.task import Ends


def names_in(along: str) -> tuple[str, ...]:
    """The names that --along has."""
    return tuple(name.strip() for name in along.split(","))


def plan_from(
    schedule: str,
    start: Path | None,
    patience: int | None,
    active_files: str | None = None,
    along: str | None = None,
) -> SearchPlan:
    """The plan that options describe.

    Raises:
        InputError: one of them is wrong.
    """
    from dataclasses import replace

    from ascar.cli.sharp.files import read
    from ascar.cli.sim.options import numbers
    from ascar.errors import InputError
    from ascar.sharp.plan import FIRST, plan_of

    # Algorithm 1 itself never ends; ours does when epochs bring nothing.
    endless = schedule == "faithful" and patience is None
    plan = plan_of(schedule, FIRST if start is None else read(start).bare(), 0 if endless else patience)
    if along is not None:
        plan = replace(plan, along=names_in(along))
    if active_files is None:
        return plan
    limits = numbers("--active-files", active_files)
    if any(limit != round(limit) for limit in limits):
        raise InputError(f"--active-files = {active_files[:80]!r}: must be whole numbers")
    return replace(plan, active_files=tuple(round(limit) for limit in limits))


def ends_of(plan: SearchPlan, budget: str | None, evaluations: int | None) -> Ends:
    """When the search ends at the latest.

    Raises:
        InputError: nothing ends it, or the budget is no time.
    """
    from ascar.errors import InputError
    from ascar.sharp.task import Ends
    from ascar.study import duration

    budget_s = None if budget is None else duration("--budget", budget)
    if plan.patience == 0 and budget_s is None and evaluations is None:
        raise InputError("--budget, --evaluations: must be given where nothing else ends the search")
    return Ends(evaluations, budget_s)
