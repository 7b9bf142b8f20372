"""Rule sets judged: each run several times where needed, every run remembered, until a limit is reached."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import TYPE_CHECKING
from zlib import crc32

from ascar.errors import ExpressionError, InputError
from ascar.pilot import analyze
from ascar.sharp.metric_bounds import excess_of, penalty
from ascar.sharp.trials.bench import RuleTrial, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ascar.objective import Objective
    from ascar.rules import RuleSet
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.trials.bench import Bench, RuleRun
    from ascar.sharp.trials.run_journal import Journal

RUNS = 3
"""Runs of the winner of a round, and of a rule set whose results vary (section 3.1.6)."""
_UNEVEN_PERCENT = 20.0
# Without common random numbers: repeats of a rule set, and how many sets have their own, below `bench.FRESH`.
_APART, _APART_MAX = 50, 19_000


class Over(Exception):  # named for what happened
    """A limit is reached; `reason` is which: "evaluations" or "time"."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """When a search ends at the latest.

    Attributes:
        evaluations: runs of the workload; None: any number.
        budget_s: seconds, those of the parts before an interruption included; None: any time.
    """

    evaluations: int | None = None
    budget_s: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is not above zero.
        """
        if self.evaluations is not None and self.evaluations < 1:
            raise InputError(f"evaluations = {self.evaluations}: must be 1 or more")
        if self.budget_s is not None and not self.budget_s > 0:
            raise InputError(f"budget = {self.budget_s} s: must be above zero")


@dataclass(frozen=True, slots=True)
class Judged:
    """A rule set with what its runs brought.

    Attributes:
        rules: the rules without statistics.
        results: a run each, repeat 0 first.
        scores: larger is better, whichever way the objective points; minus infinity where it has no value,
            and far less where the run breaks a bound.
        plain: the same without what broken bounds take off.
        excesses: by how much each run breaks bounds, as shares of the limits.
    """

    rules: RuleSet
    results: tuple[RuleRun, ...]
    scores: tuple[float, ...]
    plain: tuple[float, ...]
    excesses: tuple[float, ...]

    @classmethod
    def not_run(cls, rules: RuleSet) -> Judged:
        """A rule set before its first run."""
        return cls(rules, (), (), (), ())

    @property
    def score(self) -> float:
        """The mean over the runs."""
        return fmean(self.scores)

    @property
    def observed(self) -> RuleSet:
        """The rules with the statistics of all runs."""
        return merged([one.rules for one in self.results if one.rules is not None])

    @property
    def uneven(self) -> bool:
        """Whether 100 * stdev / mean of the steady readings is above 20: such results are looked at again."""
        readings = [value for one in self.results for value in _steady(one.readings)]
        mean = fmean(readings) if readings else 0.0
        return mean <= 0 or 100 * pstdev(readings) / mean > _UNEVEN_PERCENT

    def lead(self, reference: Judged | None) -> float:
        """By how much it is ahead, on the repeats that both have; without a reference: its score."""
        if reference is None or self.score == -math.inf:
            return self.score
        if reference.score == -math.inf:
            return math.inf
        both = list(zip(self.scores, reference.scores, strict=False))
        return fmean(one for one, _ in both) - fmean(other for _, other in both)

    def gain(self, reference: Judged) -> float:
        """Its lead as a share of the reference's score; 0 where that is no number to compare with."""
        lead, score = self.lead(reference), reference.score
        return lead / abs(score) if math.isfinite(lead) and math.isfinite(score) and score else 0.0


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How a search stands.

    Attributes:
        epoch: the epoch, from 1.
        round: the round of the search, from 1; 0 before the first.
        done: candidates of the round run.
        of: candidates of the round.
        evaluations: runs so far.
        best: score of the best rule set so far as the objective has it; None: none yet.
        rules: the number of rules in the rule set.
        elapsed_s: the time that the search has taken so far.
        left_s: about so long at most; None: nothing tells.
    """

    epoch: int
    round: int
    done: int
    of: int
    evaluations: int
    best: float | None
    rules: int
    elapsed_s: float
    left_s: float | None


def ignore(moment: SearchProgress) -> None:
    """Listen to nothing."""


@dataclass(slots=True)
class Judge:
    """Runs rule sets on a bench, and knows all that was run.

    Attributes:
        bench: the bench that runs rule sets.
        objective: the objective that scores the results.
        journal: the journal that keeps the results.
        limits: the limits of the search.
        clock: seconds, monotonic.
        listener: told after every run.
        bounds: the bounds that rules must keep.
        epoch: the present epoch of the search.
        round: the present round of the search.
        evaluations: runs that the search has asked for, remembered ones included.
        best: the best of the rule sets held so far.
        course: the numbers of evaluations at which the best changed, with its score from then on.
        best_in_order: the best, one after the other.
        seen: every rule set of this round.
        shared: whether run k of every rule set has the same random numbers; else each has its own.
    """

    bench: Bench
    objective: Objective
    journal: Journal
    limits: SearchLimits = field(default_factory=SearchLimits)
    clock: Callable[[], float] = time.monotonic
    listener: Callable[[SearchProgress], None] = ignore
    bounds: Sequence[MetricBound] = ()
    epoch: int = 0
    round: int = 0
    evaluations: int = 0
    best: Judged | None = None
    course: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    best_in_order: list[Judged] = field(default_factory=list["Judged"])
    seen: list[Judged] = field(default_factory=list[Judged])
    shared: bool = True
    _begun_s: float = 0.0
    _before_s: float = 0.0
    _scale: float | None = None

    def __post_init__(self) -> None:
        """The clock runs from here, on top of what the journal says."""
        self._begun_s, self._before_s = self.clock(), self.journal.elapsed_s

    @property
    def elapsed_s(self) -> float:
        """Seconds of all parts of the search."""
        return self._before_s + self.clock() - self._begun_s

    def first_runs(self, rule_sets: Sequence[RuleSet]) -> None:
        """Run each once: the candidates of a round, kept in `seen` in their order.

        Of the evaluations so many are left as make sure of the best of them.
        """
        self.seen = []
        trials = [RuleTrial(rules.bare()) for rules in rule_sets]
        for trial, result in zip(trials, self._results(trials, keep=RUNS - 1), strict=True):
            assert trial.rules is not None, "a candidate has rules"
            self.seen.append(self._judged(trial.rules, (result,)))
            self._tell(len(self.seen), len(trials))

    def measured(self, rules: RuleSet, runs: int = RUNS) -> Judged:
        """Run one until it has so many runs."""
        self.seen = []
        return self.again(Judged.not_run(rules.bare()), runs)

    def again(self, judged: Judged, runs: int) -> Judged:
        """Run one that was run before until it has so many runs."""
        (found,) = self.extended([judged], runs)
        return found

    def extended(self, several: Sequence[Judged], runs: int) -> list[Judged]:
        """Run several until each has so many runs, all of them at once."""
        trials = [
            [self._trial(one.rules, repeat) for repeat in range(len(one.results), runs)] for one in several
        ]
        made = self._results([trial for own in trials for trial in own])
        found: list[Judged] = []
        for one, own in zip(several, trials, strict=True):
            results = (*one.results, *(next(made) for _ in own))
            found.append(self._judged(one.rules, results))
            self._tell(len(found), len(several))
        return found

    def take_as_best(self, judged: Judged) -> None:
        """Keep the winner of a comparison as the best, whatever its score on other random numbers."""
        self.best = judged
        self.best_in_order.append(judged)
        self.course.append((self.evaluations, self.objective.sign * judged.score))

    def hold(self, judged: Judged) -> None:
        """Keep the best of those that a round was won by."""
        if self.best is None or judged.score > self.best.score:
            self.take_as_best(judged)

    def score(self, result: RuleRun) -> float:
        """The score of a run, larger is better; minus infinity where the formula has no value there."""
        try:
            return self.objective.sign * self.objective.score(result.metrics)
        except ExpressionError:
            return -math.inf

    def value(self, result: RuleRun) -> float:
        """What the search goes by: the score, and far less where the run breaks a bound, the less the more.

        A run that breaks one is worth less than the first run was, by the size of its score at least.
        """
        score = self.score(result)
        if self._scale is None and math.isfinite(score):
            self._scale = abs(score)
        return score - penalty(score, self._scale or 0.0, excess_of(self.bounds, result.metrics))

    def _judged(self, rules: RuleSet, results: tuple[RuleRun, ...]) -> Judged:
        return Judged(
            rules,
            results,
            scores=tuple(map(self.value, results)),
            plain=tuple(map(self.score, results)),
            excesses=tuple(excess_of(self.bounds, one.metrics) for one in results),
        )

    def _trial(self, rules: RuleSet, repeat: int) -> RuleTrial:
        if self.shared:
            return RuleTrial(rules, repeat)
        assert repeat < _APART, "the numbers of one rule set end where those of another begin"
        return RuleTrial(rules, repeat + _APART * (1 + crc32(rules.text().encode()) % _APART_MAX))

    def fetch(self, trials: Sequence[RuleTrial]) -> list[RuleRun]:
        """Results of trials that no limit holds for, such as those of the last comparison."""
        return list(self._made(trials))

    def _results(self, trials: Sequence[RuleTrial], keep: int = 0) -> Iterator[RuleRun]:
        """As `_made`, up to the limits; `keep` evaluations are left for what follows."""
        most = self.limits.evaluations
        left = len(trials) if most is None else max(0, min(len(trials), most - keep - self.evaluations))
        for result in self._made(trials[:left], limited=True):
            self.evaluations += 1
            yield result
        if left < len(trials):
            raise Over("evaluations")

    def _made(self, trials: Sequence[RuleTrial], *, limited: bool = False) -> Iterator[RuleRun]:
        """Results in order, each from the journal where it is known, else run now and written down."""
        wanted = [trial for trial in trials if self.journal.known(trial) is None]
        running = self.bench.run(dict.fromkeys(wanted))
        try:
            for trial in trials:
                known = self.journal.known(trial)
                if limited:
                    self._check_time(new=known is None)
                if known is None:
                    known = next(running)
                    self.journal.add(trial, known, self.elapsed_s)
                yield known
        finally:
            running.close()

    def _check_time(self, *, new: bool) -> None:
        """What an earlier part of the search has run is gone through again, however long that part took."""
        taken_s = self.elapsed_s if new else self.clock() - self._begun_s
        if self.limits.budget_s is not None and taken_s >= self.limits.budget_s:
            raise Over("time")

    def _tell(self, done: int, of: int) -> None:
        best, elapsed_s, limits = self.best, self.elapsed_s, self.limits
        left = [] if limits.budget_s is None else [max(0.0, limits.budget_s - elapsed_s)]
        if limits.evaluations is not None and self.evaluations:
            left.append((limits.evaluations - self.evaluations) * elapsed_s / self.evaluations)
        self.listener(
            SearchProgress(
                epoch=self.epoch,
                round=self.round,
                done=done,
                of=of,
                evaluations=self.evaluations,
                best=None if best is None else self.objective.sign * best.score,
                rules=0 if best is None else len(best.rules.rules),
                elapsed_s=elapsed_s,
                left_s=min(left) if left else None,
            )
        )


def _steady(readings: tuple[float, ...]) -> tuple[float, ...]:
    """Those that Pilot takes for the stable phase."""
    if not readings:
        return ()
    found = analyze(readings)
    return readings[found.stable_start : found.stable_end]
