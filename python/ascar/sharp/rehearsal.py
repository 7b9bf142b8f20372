"""A first phase in simulation: what it found is where the search on the real system begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.sharp.search import search

if TYPE_CHECKING:
    from ascar.sharp.judge import Judge
    from ascar.sharp.plan import Plan


def rehearsed(judge: Judge, plan: Plan) -> Plan:
    """Search on a bench that costs little; the plan for the one that counts.

    That begins with every rule set that was the best for a while, the latest first: where the simulation
    errs in what it found last, something simpler still serves. The sweep is made again only when less than
    half of the gain that was found in simulation comes true: a model of another load misleads.

    Args:
        judge: the judge of the simulation.
        plan: the plan, of the schedule "sharp".

    Raises:
        InputError: the plan is of another schedule.
    """
    if plan.schedule != "sharp":
        raise InputError(f"schedule = {plan.schedule!r}: only 'sharp' has two phases")
    search(judge, plan)
    found = dict.fromkeys(one.rules for one in reversed(judge.crowned))
    others = tuple(rules for rules in found if rules != plan.start)
    hoped = judge.crowned[-1].gain(judge.crowned[0]) if others else None
    return replace(plan, others=others, hoped=hoped)
