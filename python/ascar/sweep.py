"""The sweep: every configuration of a space, which makes a dataset; the offline loop without a search."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ascar.campaign import Bench, ignore, take_up
from ascar.errors import InputError
from ascar.outcome import Event, Outcome, Purpose, TrialState, Verdict

if TYPE_CHECKING:
    from ascar.campaign import Campaign
    from ascar.evaluation import Clock
    from ascar.history import History
    from ascar.outcome import Listener
    from ascar.space import Configuration, Space
    from ascar.study import Study

__all__ = ["CONFIGURATIONS_MAX", "Plan", "in_cheap_order", "sweep", "sweep_study"]

CONFIGURATIONS_MAX = 100_000
"""More than this nobody measures one by one: at three seconds each it is four days."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of it.

    Attributes:
        replicates: how often each configuration is measured.
        budget_s: seconds for all of it; None: until it is done. The study's own budget is for a search.
    """

    replicates: int = 1
    budget_s: float | None = None


def sweep_study(study: Study) -> Study:
    """The study under which a sweep is kept: of its own name, so that a tuning run is never taken for one."""
    return msgspec.structs.replace(study, name=f"{study.name}-sweep")


def sweep(
    study: Study,
    history: History,
    plan: Plan = Plan(),
    *,
    resume: bool = False,
    listener: Listener = ignore,
    clock: Clock | None = None,
) -> Outcome:
    """Measure every valid configuration of a study's space, in an order that makes few expensive changes.

    Replicates are made pass by pass, so that a drift of the machine does not pass for a difference between
    configurations.

    Args:
        study: what is measured, under which load.
        history: where every trial is kept.
        plan: how much of it.
        resume: go on with the latest unfinished sweep of this study.
        listener: told of everything that happens.
        clock: seconds, monotonic; None: the target's own where it has one (`simulated`), else the machine's.

    Returns:
        What was seen; `stopped` is empty where nothing is left to measure. No gain is claimed: the best of
        many looks better than it is.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
        KeyboardInterrupt: interrupted; completed trials are kept, the machine is put back.
    """
    bench = Bench.open(sweep_study(study), clock)
    in_cheap_order(bench.space)  # refuses what is too large before anything is touched
    with take_up(bench, history, resume=resume, listener=listener) as campaign:
        configurations = in_cheap_order(campaign.bench.space)
        # Of this process: what was measured before an interruption costs nothing now.
        campaign.budget_s = math.inf if plan.budget_s is None else campaign.elapsed_s + plan.budget_s
        campaign.announce(budget_s=plan.budget_s, planned_trials=len(configurations) * plan.replicates)
        stopped = _walk(campaign, configurations * plan.replicates)
        outcome = _outcome(campaign, stopped)
        if not stopped:
            campaign.run.finish(outcome)
    listener(Event("study-finished", outcome.to_dict()))
    return outcome


def in_cheap_order(space: Space) -> list[Configuration]:
    """Every valid configuration; the parameters that are expensive to change vary slowest (Cao 9.4).

    Raises:
        InputError: there are more than CONFIGURATIONS_MAX, or endlessly many.
    """
    count = space.count()
    if count is None or count > CONFIGURATIONS_MAX:
        number = "endlessly many" if count is None else f"{count:,}"
        raise InputError(
            f"the space has {number} valid configurations, a sweep takes at most {CONFIGURATIONS_MAX:,}; "
            "restrict it with space.parameters, space.pin or space.allow_cost"
        )
    ranked = sorted(space.parameters, key=lambda parameter: -parameter.cost.rank)
    places = {
        parameter.name: {value: index for index, value in enumerate(space.domain(parameter.name).each())}
        for parameter in ranked
    }

    def place(configuration: Configuration) -> tuple[int, ...]:
        return tuple(
            places[parameter.name][configuration[parameter.name]] if parameter.name in configuration else -1
            for parameter in ranked
        )

    return sorted(space.enumerate(), key=place)


def _walk(campaign: Campaign, configurations: list[Configuration]) -> str:
    """Measure what is left; returns why it ended early, empty where it did not."""
    done = Counter(
        trial.configuration for trial in campaign.trials if trial.state is not TrialState.INTERRUPTED
    )
    for trial in campaign.trials:
        if trial.state is TrialState.QUARANTINED:
            done[trial.configuration] = len(configurations)
    for configuration in configurations:
        if done[configuration] > 0:
            done[configuration] -= 1
        elif campaign.left_s <= 0:
            return "the time budget is spent"
        else:
            campaign.attempt(configuration, Purpose.SWEEP)
    return ""


def _outcome(campaign: Campaign, stopped: str) -> Outcome:
    """What was seen, in one value."""
    usable = [trial for trial in campaign.trials if trial.usable]
    sign = campaign.bench.study.objective.sign
    default = campaign.bench.space.default()
    return Outcome(
        run_id=campaign.run.id,
        study=campaign.bench.study.name,
        best=max(usable, key=lambda trial: sign * (trial.score or 0.0), default=None),
        default=next((trial for trial in usable if trial.configuration == default), None),
        recommended=default,
        verdict=Verdict("not-verified", note="a sweep measures every configuration and claims no gain"),
        stage_s=campaign.stage_s,
        counts=campaign.counts,
        stopped=stopped,
        machine=campaign.run.machine,
    )
