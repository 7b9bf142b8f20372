"""The rule loop: rule set -> candidates -> controllers -> workload -> pilot, objective -> split (Li, alg. 1).

An epoch improves one rule, round by round; a round tries candidates for its action. Then a rule is split, so
that its parts can differ. What a run is, and when all is over, is `judge`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ascar.sharp.schedules.economy import economical
from ascar.sharp.schedules.published import faithful, remy
from ascar.sharp.trials.judge import RUNS, Over

if TYPE_CHECKING:
    from ascar.results.rule_search import SearchEnd
    from ascar.sharp.plan import SearchPlan
    from ascar.sharp.trials.judge import Judge, Judged

_SCHEDULES = {"sharp": economical, "faithful": faithful, "remy": remy}


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Attributes:
        best: the best rule set; None: nothing was run.
        stopped: "evaluations", "time", "no-gain" or "rules" (no more of them are allowed).
    """

    best: Judged | None
    stopped: SearchEnd


def search(judge: Judge, plan: SearchPlan) -> Found:
    """Search until a limit of the judge is reached, or epochs bring nothing.

    The same journal, bench and plan lead to the same end, wherever a search was interrupted.
    """
    try:
        stopped = _SCHEDULES[plan.schedule](judge, plan)
    except Over as over:
        stopped = over.reason
        if plan.schedule != "sharp" or judge.best is None:
            _make_sure(judge)
    return Found(judge.best, cast("SearchEnd", stopped))


def _make_sure(judge: Judge) -> None:
    """The best of the round that was cut off gets its runs, too, if they are still allowed."""
    if not judge.seen:
        return
    leader = max(judge.seen, key=lambda one: one.lead(judge.best))
    if judge.best is not None and leader.lead(judge.best) <= 0:
        return
    try:
        judge.hold(judge.again(leader, RUNS))
    except Over:
        if judge.best is None:
            judge.hold(leader)
