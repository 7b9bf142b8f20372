"""The offline loop: space -> optimizer -> target.apply -> workload.run -> pilot -> history, verify, reduce.

One trial is `evaluation`; the trials of a run are a `campaign`; what is tried next is the `search`; what may
be claimed at the end is the `verification`; what of it is needed is the `parsimony`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ascar.campaign import take_up
from ascar.events import Event, ignore
from ascar.parsimony import reduce
from ascar.prepared_study import PreparedStudy
from ascar.results.encode import json_ready
from ascar.results.outcome import Outcome, StoppedEarly
from ascar.search import Search, best_of_similar
from ascar.similar_loads import library_of, proposals, remember
from ascar.verification import Verification

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.campaign import Campaign
    from ascar.evaluation import Clock
    from ascar.events import Listener
    from ascar.history import History, Run
    from ascar.results.trial import Trial
    from ascar.results.verdict import Verdict
    from ascar.space import Configuration
    from ascar.study import Study


def tune(
    study: Study,
    history: History,
    *,
    library: Path | None = None,
    resume: bool = False,
    listener: Listener = ignore,
    clock: Clock | None = None,
    spent_s: float = 0.0,
) -> Outcome:
    """Search for the best configuration of a study within its budget, and verify it against the default.

    Args:
        study: the study to tune.
        history: the history that keeps every trial.
        library: the file of the library. It gives configurations that helped similar loads, if the study asks
            for them, and keeps a proven gain. None: there is none.
        resume: go on with the latest unfinished run of this study instead of beginning a new one.
        listener: told of everything that happens.
        clock: seconds, monotonic; None: the target's own where its time is virtual, else the machine's.
        spent_s: real seconds of the budget that were spent before, on the start of the program.

    Returns:
        What the study came to. "The default is fine" is a result too.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
        WorkError: the default configuration cannot be measured, or everything fails.
        KeyboardInterrupt: interrupted; completed trials are kept, the machine is put back.
        StoppedEarly: the same, after an improvement was proven: the outcome so far is its `outcome`.
    """
    prepared = PreparedStudy.open(study, clock, spent_s=spent_s)
    similar, known_loads = best_of_similar(study, history), library_of(study, library)
    with take_up(prepared, history, resume=resume, listener=listener) as campaign:
        campaign.announce(budget_s=study.budget_s)
        search = Search(campaign, similar)
        default = search.measure_default()
        search.proposals.put(*proposals(campaign, known_loads))
        best, verdict, stopped = _decide(campaign, search)
        outcome = _outcome(campaign, default, best, verdict, stopped)
        campaign.keep(outcome)
        outcome = campaign.accounted(_reduced(campaign, outcome))
        campaign.run.finish(outcome)
        remember(campaign, outcome, library)
    listener(Event("study-finished", json_ready(outcome)))
    return outcome


def _reduced(campaign: Campaign, outcome: Outcome) -> Outcome:
    """The outcome without what does not earn its place; an interrupt tells what is proven until then.

    Raises:
        KeyboardInterrupt: interrupted, with nothing proven.
        StoppedEarly: interrupted, with an improvement proven.
    """
    try:
        return reduce(campaign, outcome)
    except StoppedEarly:
        raise
    except KeyboardInterrupt:
        if outcome.verdict.kind != "improved":
            raise
        raise StoppedEarly(campaign.accounted(outcome)) from None


def verify(
    study: Study,
    history: History,
    run: Run,
    candidate: Configuration,
    *,
    against: Trial | None = None,
    afresh: bool = False,
    listener: Listener = ignore,
    clock: Clock | None = None,
    spent_s: float = 0.0,
) -> Outcome:
    """The last comparison of a run alone, at once or weeks later; it goes on with the pairs that the run has.

    On another machine a run of its own begins: its pairs are never put together with the first one's.

    Args:
        study: the run's study; its budget is for this comparison.
        history: the history that keeps the run.
        run: the run.
        candidate: the configuration to compare.
        against: the trial whose configuration it is compared with; None: the default.
        afresh: whether the pairs that the run has do not count, because they are of another time.
        listener: told of everything that happens.
        clock: as for `tune`.
        spent_s: as for `tune`.

    Returns:
        What the run comes to now. Of a comparison with another trial only the verdict is new.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
        KeyboardInterrupt: interrupted; completed runs are kept, the machine is put back.
    """
    prepared = PreparedStudy.open(study, clock, spent_s=spent_s)
    with take_up(prepared, history, resume=run, listener=listener) as campaign:
        campaign.budget_s += campaign.spent_before_s
        campaign.announce(budget_s=campaign.budget_s)
        after = max((one.number for one in campaign.trials), default=0) if afresh else 0
        verification = Verification(campaign, against, after)
        verdict = verification.verify(candidate)
        known = run.outcome()
        outcome = _outcome(campaign, known.default, verification.best, verdict, known.stopped)
        if candidate == known.recommended:
            outcome = replace(outcome, parsimony=known.parsimony)
        campaign.run.finish(outcome if against is None else known)
    listener(Event("study-finished", json_ready(outcome)))
    return outcome


def _decide(campaign: Campaign, search: Search) -> tuple[Trial | None, Verdict, str]:
    """Search, and verify the best found; search on where that fails, or is not decided within the budget.

    A run that goes on takes up the comparison that it left undecided first, if the budget holds what that
    will take.
    """
    verification, stopped = Verification(campaign), "the comparison that was left undecided went on"
    verification.warn_of_short_budget()
    while True:
        best = verification.unsettled()
        if best is None:
            stopped = search.run(verification.reserve())
            best = verification.promising(search.best(verification.rejected))
        verdict = verification.verify(None if best is None else best.configuration, search.may_go_on)
        if verdict.is_decided or best is None or not search.may_go_on():
            return verification.best, verdict, stopped


def _outcome(
    campaign: Campaign, default: Trial | None, best: Trial | None, verdict: Verdict, stopped: str
) -> Outcome:
    """Everything the run came to, in one value."""
    recommended = campaign.prepared.space.default()
    if best is not None and verdict.kind == "improved":
        recommended = best.configuration
    return Outcome(
        run_id=campaign.run.id,
        study=campaign.prepared.study.name,
        best=best,
        default=default,
        recommended=recommended,
        verdict=verdict,
        stage_s=campaign.stage_s,
        counts=campaign.counts,
        stopped=stopped,
        machine=campaign.run.machine,
        saved_s=campaign.saved_s,
    )
