"""When to end a search (Cao 9.6): pure predicates over its progress, composable with any and all.

A criterion is a frozen value that is called with the progress and answers why to stop, or None to go on:

    stop = AnyOf((Elapsed(600.0), AllOf((Trials(30), WindowWithoutGain(25)))))
    reason = stop(progress)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ascar.study import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascar.optimizers import Evaluation
    from ascar.space import Value
    from ascar.study import StopSection


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of a genetic search, as far as stopping and plots need it (Cao Fig. 5.6).

    Attributes:
        alleles: the number of members that carry each value, by parameter, most frequent first. A parameter
            that does not apply to a member counts under None.
        size: members.
        mutations: genes mutated in the children asked for since this generation was selected.
    """

    alleles: Mapping[str, Mapping[Value | None, int]]
    size: int
    mutations: int = 0

    def converged_share(self, members_percent: float) -> float:
        """Share of the parameters, in percent, whose commonest value at least M% of the members carry."""
        if not self.alleles or not self.size:
            return 0.0
        needed = members_percent / 100 * self.size
        converged = sum(1 for counts in self.alleles.values() if counts and max(counts.values()) >= needed)
        return 100 * converged / len(self.alleles)


class Remaining(Protocol):
    """What is known of how much is left to gain; see `ascar.optimizers.remaining`."""

    def share_below(self, gain: float) -> float | None:
        """The probability that no more than this relative gain is left; None where nobody can say."""
        ...


@dataclass(frozen=True, slots=True)
class SearchState:
    """How far a search has come.

    Attributes:
        elapsed_s: seconds since it began.
        trials: search trials that have ended, failed ones included.
        trials_without_gain: trials that have ended since the best loss last fell.
        loss_best: the lowest loss of a complete trial; None before the first.
        targets_met: the formulas that a usable trial met, as text.
        generations: the generations of a genetic search, oldest first; empty for other optimizers.
        remaining: tells what is left to gain; None where nobody does.
    """

    elapsed_s: float
    trials: int
    trials_without_gain: int
    loss_best: float | None
    targets_met: frozenset[str] = frozenset()
    generations: Sequence[Generation] = field(default=())
    remaining: Remaining | None = None


class Criterion(Protocol):
    """Answers why to stop, or None."""

    def __call__(self, progress: SearchState, /) -> str | None:
        """One line for people where the search shall end; None where it goes on."""
        ...


def progress_of(
    evaluations: Iterable[Evaluation], elapsed_s: float, generations: Sequence[Generation] = ()
) -> SearchState:
    """Progress after these evaluations, told in the order in which they ended.

    Interrupted trials say nothing about the search and are not counted.
    """
    trials, last_gain, best = 0, 0, None
    for evaluation in evaluations:
        if evaluation.state == "interrupted":
            continue
        trials += 1
        if evaluation.state != "complete" or evaluation.loss is None:
            continue
        if best is None or evaluation.loss < best:
            best, last_gain = evaluation.loss, trials
    return SearchState(elapsed_s, trials, trials - last_gain, best, generations=tuple(generations))


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """Time-based: so many seconds have passed."""

    limit_s: float

    def __call__(self, progress: SearchState) -> str | None:
        """Why to stop, or None."""
        if progress.elapsed_s < self.limit_s:
            return None
        return f"the time is spent: {progress.elapsed_s:g} of {self.limit_s:g} s"


@dataclass(frozen=True, slots=True)
class TrialLimit:
    """Time-based, counted in evaluations: so many trials have ended."""

    limit: int

    def __call__(self, progress: SearchState) -> str | None:
        """Why to stop, or None."""
        return None if progress.trials < self.limit else f"{progress.trials} of {self.limit} trials are made"


@dataclass(frozen=True, slots=True)
class WindowWithoutGain:
    """Sliding window: nothing better was found within so many consecutive trials (Cao Fig. 9.5)."""

    window: int

    def __call__(self, progress: SearchState) -> str | None:
        """Why to stop, or None. Before the first success there is nothing to gain upon: it goes on."""
        if progress.loss_best is None or progress.trials_without_gain < self.window:
            return None
        return f"nothing better within {progress.trials_without_gain} trials"


@dataclass(frozen=True, slots=True)
class TargetReached:
    """User-specified: good enough.

    Attributes:
        loss: the search ends at this loss or below; None where only the formula decides.
        formula: a formula of the study, as text; the loop reports it as met (`SearchState.targets_met`).
    """

    loss: float | None = None
    formula: str | None = None

    def __call__(self, progress: SearchState) -> str | None:
        """Why to stop, or None."""
        below = self.loss is not None and progress.loss_best is not None and progress.loss_best <= self.loss
        return "the target is reached" if below or self.formula in progress.targets_met else None


@dataclass(frozen=True, slots=True)
class Diversity:
    """Algorithm-specific: a genetic population has lost its diversity (Cao 9.6, Fig. 9.6).

    A gene has converged when at least `members_percent` (M) of the population share its value; the search
    has when at least `genes_percent` (N) of the genes have. It ends once `mutations` more genes were mutated
    since: they may still leave a local optimum.

    Attributes:
        members_percent: M.
        genes_percent: N.
        mutations: the number of mutations that must follow convergence.
    """

    members_percent: float = 80.0
    genes_percent: float = 80.0
    mutations: int = 9

    def __call__(self, progress: SearchState) -> str | None:
        """Why to stop, or None."""
        since = self.since(progress.generations)
        if since is None or since < self.mutations:
            return None
        return (
            f"the population has converged: {self.genes_percent:g}% of the parameters share one value among "
            f"{self.members_percent:g}% of its members, {since} mutations ago"
        )

    def since(self, generations: Sequence[Generation]) -> int | None:
        """Mutations since the search converged; None where it has not.

        A population that diversifies again starts the count anew.
        """
        since: int | None = None
        for generation in reversed(generations):
            if generation.converged_share(self.members_percent) < self.genes_percent:
                break
            since = (since or 0) + generation.mutations
        return since


@dataclass(frozen=True, slots=True)
class RemainingGain:
    """Ours: by all that is known, hardly anything is left to gain.

    Attributes:
        below: the relative gain that is not worth going on for.
        confidence: the probability with which no more than that must be left.
    """

    below: float = 0.02
    confidence: float = 0.9

    def __call__(self, progress: SearchState) -> str | None:
        """Why to stop, or None. Where nobody can say what is left, it goes on."""
        share = None if progress.remaining is None else progress.remaining.share_below(self.below)
        if share is None or share < self.confidence:
            return None
        return f"no more than {self.below:.2%} is left to gain, with a probability of {share:.1%}"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Ends when one of the criteria does; none at all never ends."""

    criteria: tuple[Criterion, ...]

    def __call__(self, progress: SearchState) -> str | None:
        """The first reason, or None."""
        return next((reason for criterion in self.criteria if (reason := criterion(progress))), None)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Ends when every one of the criteria does; none at all never ends."""

    criteria: tuple[Criterion, ...]

    def __call__(self, progress: SearchState) -> str | None:
        """All reasons, or None."""
        reasons: list[str] = []
        for criterion in self.criteria:
            reason = criterion(progress)
            if reason is None:  # the rest, which may be dear to ask, is not asked
                return None
            reasons.append(reason)
        return " and ".join(reasons) or None


def criterion_of(stop: StopSection) -> Criterion:
    """What a study's `[stop]` table says: any of its keys suffices; `any` and `all` hold further tables."""
    criteria: list[Criterion] = []
    if stop.target is not None:
        criteria.append(TargetReached(formula=stop.target))
    if stop.trials is not None:
        criteria.append(TrialLimit(stop.trials))
    if stop.trials_without_gain is not None:
        criteria.append(WindowWithoutGain(stop.trials_without_gain))
    if stop.time is not None:
        criteria.append(TimeLimit(duration("stop.time", stop.time)))
    if stop.diversity is not None:
        wanted = stop.diversity
        criteria.append(Diversity(wanted.members_percent, wanted.genes_percent, wanted.mutations))
    if stop.remaining_gain is not None:
        criteria.append(RemainingGain(stop.remaining_gain.below, stop.remaining_gain.confidence))
    criteria += [criterion_of(table) for table in stop.any]
    if stop.all:
        criteria.append(AllOf(tuple(criterion_of(table) for table in stop.all)))
    return AnyOf(tuple(criteria))
