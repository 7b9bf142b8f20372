"""The sweep: every configuration of a space, which makes a dataset; the offline loop without a search."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ascar.campaign import take_up
from ascar.errors import InputError
from ascar.events import Event, ignore
from ascar.optimizers.proposals import Proposal
from ascar.prepared_study import PreparedStudy
from ascar.results.encode import json_ready
from ascar.results.outcome import Outcome
from ascar.results.trial import Origin, Purpose, TrialState
from ascar.results.verdict import Verdict
from ascar.space import Choices

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ascar.campaign import Campaign
    from ascar.evaluation import Clock
    from ascar.events import Listener
    from ascar.history import History
    from ascar.space import Configuration, Space
    from ascar.study import Study

CONFIGURATIONS_MAX = 100_000
"""More than this nobody measures one by one: at three seconds each it is four days."""

_SUBSET_STREAM = 1_000_000  # apart from the passes' own
_PARTS_MAX = 1_000
_DIGITS_MAX = 9
_SAMPLES_MAX = 100  # drawn in search of one without a configuration twice


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """How much of it.

    Attributes:
        replicates: the number of measurements of each configuration; 0: only the subset is measured.
        budget_s: seconds for all of it; None: until it is done. The study's own budget is for a search.
        subset: the number of configurations, chosen by Latin hypercube sampling, that are measured more
            often.
        subset_replicates: the number of measurements of these, the replicates included.
        part: the number of this process and the number of processes or machines that share the work, e.g. (2,
            3).
    """

    replicates: int = 1
    budget_s: float | None = None
    subset: int = 0
    subset_replicates: int = 0
    part: tuple[int, int] = (1, 1)

    def check(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is out of range, or two contradict each other.
        """
        limits = {"replicates": 1000, "subset": CONFIGURATIONS_MAX, "subset_replicates": 1000}
        for name, most in limits.items():
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise InputError(f"--{name.replace('_', '-')} = {value}: must be from 0 to {most}")
        part, parts = self.part
        if not 1 <= part <= parts <= _PARTS_MAX:
            raise InputError(f"--part = {part}/{parts}: must be K/N, K from 1 to N, N at most {_PARTS_MAX}")
        if (self.subset > 0) != (self.subset_replicates > 0):
            raise InputError(
                f"--subset = {self.subset}, --subset-replicates = {self.subset_replicates}: say both, how "
                "many configurations and how often each, or neither"
            )
        if self.subset and self.subset_replicates <= self.replicates:
            raise InputError(
                f"--subset-replicates = {self.subset_replicates}: every configuration is measured "
                f"{self.replicates} times anyway; ask for more than that"
            )
        if not self.subset and not self.replicates:
            raise InputError(
                "--replicates = 0: nothing would be measured; add a --subset or ask for 1; see --help"
            )


def sweep_study(study: Study) -> Study:
    """The study under which a sweep is kept: of its own name, so that a tuning run is never taken for one."""
    return msgspec.structs.replace(study, name=f"{study.name}-sweep")


def sweep(
    study: Study,
    history: History,
    plan: SweepPlan = SweepPlan(),
    *,
    resume: bool = False,
    listener: Listener = ignore,
    clock: Clock | None = None,
) -> Outcome:
    """Measure every valid configuration of a study's space, in an order that makes few expensive changes.

    Replicates are made pass by pass, so that a drift of the machine does not pass for a difference between
    configurations, and whatever ends it early leaves complete passes; see `passes`.

    Args:
        study: the study to measure.
        history: the history that keeps every trial.
        plan: the number of measurements.
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
    plan.check()
    prepared = PreparedStudy.open(sweep_study(study), clock)
    passes(prepared.space, plan, study.seed)  # refuses what is too large before anything is touched
    with take_up(prepared, history, resume=resume, listener=listener) as campaign:
        planned = passes(campaign.prepared.space, plan, study.seed)
        # Of this process: what was measured before an interruption costs nothing now.
        campaign.budget_s = math.inf if plan.budget_s is None else campaign.elapsed_s + plan.budget_s
        campaign.announce(budget_s=plan.budget_s, planned_trials=len(planned))
        stopped = _walk(campaign, planned)
        outcome = _outcome(campaign, stopped)
        if not stopped:
            campaign.run.finish(outcome)
    listener(Event("study-finished", json_ready(outcome)))
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
            "restrict it with space.parameters, space.pinned or space.allow_cost, or measure a subset of it "
            "(--replicates 0 --subset 100 --subset-replicates 3)"
        )
    return _sorted(space, space.enumerate())


def _sorted(space: Space, configurations: Iterable[Configuration]) -> list[Configuration]:
    """With the parameters that are expensive to change varying slowest."""
    ranked = sorted(space.parameters, key=lambda parameter: -parameter.cost.rank)
    domains = {parameter.name: space.domain(parameter.name) for parameter in ranked}
    places = {
        name: {value: index for index, value in enumerate(domain.values)}
        for name, domain in domains.items()
        if isinstance(domain, Choices)
    }

    def place(configuration: Configuration) -> list[float]:
        return [
            -math.inf
            if (value := configuration.get(name)) is None
            else float(places[name][value] if name in places else value)
            for name in domains
        ]

    return sorted(configurations, key=place)


def part_of(text: str) -> tuple[int, int]:
    """Read "K/N".

    Raises:
        InputError: it is something else.
    """
    part, slash, parts = text.partition("/")
    if not (slash and part.isascii() and part.isdigit() and parts.isascii() and parts.isdigit()):
        raise InputError(f"--part = {text!r}: must be K/N, e.g. 1/2")
    if max(len(part), len(parts)) > _DIGITS_MAX:
        raise InputError(f"--part = {text[:20]!r}: must be K/N, N at most {_PARTS_MAX}")
    return int(part), int(parts)


def passes(space: Space, plan: SweepPlan, seed: int) -> list[Configuration]:
    """Every measurement of a plan, in order.

    A pass measures each configuration once and changes what is expensive least often. The first goes through
    the space in order; every later one takes its groups (all that have the most expensive parameters in
    common, such as a format) in a random order of its own, so that none is always measured after the same
    other. The subset's further passes come last.

    Where several share the work, each has a part of every pass: every N-th group, shifted by one from pass to
    pass, so that the replicates of a configuration are from different ones.

    Args:
        space: the space to measure.
        plan: the number of measurements.
        seed: the seed of the subset and of the orders.

    Raises:
        InputError: there are too many configurations to measure each.
    """
    everything = list(_groups(space, in_cheap_order(space))) if plan.replicates else []
    chosen = list(_groups(space, subset_of(space, plan.subset, seed))) if plan.subset else []
    part, parts = plan.part
    planned: list[Configuration] = []
    for number in range(max(plan.replicates, plan.subset_replicates)):
        groups = everything if number < plan.replicates else chosen
        order = list(range(len(groups)))
        if number > 0:
            order = np.random.default_rng([seed, number]).permutation(len(groups)).tolist()
        mine = [index for index in order if (index + number) % parts == part - 1]
        planned += [configuration for index in mine for configuration in groups[index]]
    return planned


def subset_of(space: Space, n: int, seed: int) -> list[Configuration]:
    """`n` different configurations by Latin hypercube sampling (Cao 6.3), or all, in cheap order."""
    count = space.count()
    if count is not None and count <= n:
        return in_cheap_order(space)
    rng = np.random.default_rng([seed, _SUBSET_STREAM])
    chosen: dict[Configuration, None] = {}
    for _ in range(_SAMPLES_MAX):  # in a small space a sample has the same configuration twice now and then
        chosen = max(chosen, dict.fromkeys(space.latin_hypercube(rng, n)), key=len)
        if len(chosen) == n:
            break
    while len(chosen) < n:
        chosen.update(dict.fromkeys(space.latin_hypercube(rng, n - len(chosen))))
    return _sorted(space, chosen)


def _groups(space: Space, ordered: Sequence[Configuration]) -> Iterator[list[Configuration]]:
    """Neighbours that have all of the most expensive parameters in common."""
    rank = max((parameter.cost.rank for parameter in space.parameters), default=0)
    names = [parameter.name for parameter in space.parameters if parameter.cost.rank == rank]
    for _, group in groupby(ordered, key=lambda one: [one.get(name) for name in names]):
        yield list(group)


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
            campaign.attempt(Proposal(configuration, Origin.SWEEP), Purpose.SWEEP)
    return ""


def _outcome(campaign: Campaign, stopped: str) -> Outcome:
    """What was seen, in one value."""
    usable = [trial for trial in campaign.trials if trial.usable]
    sign = campaign.prepared.study.objective.sign
    default = campaign.prepared.space.default()
    return Outcome(
        run_id=campaign.run.id,
        study=campaign.prepared.study.name,
        best=max(usable, key=lambda trial: sign * (trial.score or 0.0), default=None),
        default=next((trial for trial in usable if trial.configuration == default), None),
        recommended=default,
        verdict=Verdict("not-verified", note="a sweep measures every configuration and claims no gain"),
        stage_s=campaign.stage_s,
        counts=campaign.counts,
        stopped=stopped,
        machine=campaign.run.machine,
    )
