"""A first phase in simulation: what it found is where the search on the real system begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ascar.sharp.search import search

if TYPE_CHECKING:
    from ascar.sharp.judge import Judge
    from ascar.sharp.plan import Plan

__all__ = ["rehearsed"]


def rehearsed(judge: Judge, plan: Plan) -> Plan:
    """Search on a bench that costs little; the plan for the one that counts.

    That begins with every rule set that was the best for a while, the latest first: where the simulation
    errs in what it found last, something simpler still serves. The sweep is not made again.

    Args:
        judge: of the simulation.
        plan: of the schedule "sharp".

    Raises:
        InputError: the plan is of another schedule.
    """
    wanted = replace(plan, without=plan.without | {"sweep"})
    search(judge, plan)
    found = dict.fromkeys(one.rules for one in reversed(judge.crowned))
    return replace(wanted, others=tuple(rules for rules in found if rules != plan.start))
