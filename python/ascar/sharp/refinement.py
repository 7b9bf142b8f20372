"""Online refinement: a rule's action is changed while it runs, step by step, and put back when that is worse.

Random-restart hill climbing (Li, slides: "online tweaking of rules"; section 6.3.1). Each step compares
intervals under the old and the new rules, in turns, by Pilot's test that may be asked after every pair.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Literal

from ascar.errors import ExpressionError, InputError, WorkError
from ascar.pilot.pairs import PAIRS_MIN, compare_pairs
from ascar.sharp.hill import Bounds, HillClimber
from ascar.sharp.ranges import numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.objective import Objective
    from ascar.pilot.pairs import PairComparison
    from ascar.sharp.rules import Action, RuleSet
    from ascar.sharp.running import Running

__all__ = ["Course", "Refined", "Refiner", "Step"]

_PAIRS_LEAST = 3  # two that agree by chance have no scatter at all
Kind = Literal["better", "worse", "no-difference", "loss", "verified", "put-back"]


@dataclass(frozen=True, slots=True)
class Course:
    """How a refinement goes.

    Attributes:
        settle_s: left out after rules have changed: averages begin anew, windows move.
        measure_s: length of an interval that is compared.
        pairs_max: of intervals a step, at most.
        level: probability of calling equal rules different, in each step.
        margin: relative difference that does not matter.
        loss_max: an interval that is worse by this share than any under the old rules ends a step at once.
        steps_max: in all.
        tries: proposals without gain after which a place counts as a summit.
        restarts: jumps to random actions, from summits.
        verification_least: pairs of intervals before which the last comparison decides nothing.
        verification_pairs: of intervals in the last comparison, with the rules of the beginning, at most.
        verification_level: of the last comparison.
        seed: of the order of proposals, and of jumps.
    """

    settle_s: float = 4.0
    measure_s: float = 10.0
    pairs_max: int = 10
    level: float = 0.05
    margin: float = 0.005
    loss_max: float = 0.3
    steps_max: int = 60
    tries: int = 12
    restarts: int = 2
    verification_least: int = 8
    verification_pairs: int = 20
    verification_level: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is out of range.
        """
        ranges = {
            "settle_s": (0, 1e6), "pairs_max": (_PAIRS_LEAST, 1_000), "steps_max": (1, 1_000_000),
            "tries": (1, 1_000_000), "restarts": (0, 1_000), "verification_least": (PAIRS_MIN, 1_000),
            "verification_pairs": (self.verification_least, 1_000),
        }  # fmt: skip
        for name, (low, high) in ranges.items():
            if not low <= getattr(self, name) <= high:
                raise InputError(f"{name} = {getattr(self, name)}: must be from {low} to {high:g}")
        for name in ("level", "loss_max", "verification_level"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} = {getattr(self, name)}: must be above 0 and below 1")
        if not 0 < self.measure_s <= 1e6:
            raise InputError(f"measure_s = {self.measure_s}: must be above 0, and at most 1e6")


@dataclass(frozen=True, slots=True)
class Step:
    """One comparison.

    Attributes:
        kind: what came of it: "better": the new action is followed; "worse", "no-difference" (none was shown,
            or one that does not matter) and "loss" (far worse at once): it was put back; "verified" and
            "put-back": the end against the beginning.
        restart: how many jumps came before.
        old: action.
        new: action.
        gain_relative: of the score, above zero is better; None where nothing was compared.
        gain_low: lower end of its interval, which holds at all looks together.
        gain_high: upper end.
        pairs: of intervals.
    """

    kind: Kind
    restart: int
    old: Action
    new: Action
    gain_relative: float | None
    gain_low: float | None
    gain_high: float | None
    pairs: int


@dataclass(frozen=True, slots=True)
class Refined:
    """What came of it.

    Attributes:
        rules: in force at the end.
        before: those of the beginning.
        rule: number of the one that was refined.
        steps: all of them.
        verification: the last comparison; None where nothing was changed.
        stopped: why it ended.
        intervals: measured.
    """

    rules: RuleSet
    before: RuleSet
    rule: int
    steps: tuple[Step, ...]
    verification: Step | None
    stopped: Literal["summits", "steps", "time"]
    intervals: int


@dataclass(slots=True)
class Refiner:
    """Refines one rule of a system at work.

    Attributes:
        system: whose rules are changed.
        objective: over `METRICS`.
        bounds: where the action may go; None: those around it.
        course: how it goes.
        over: asked before each step whether the time is over.
        listener: told of each step.
    """

    system: Running
    objective: Objective
    bounds: Bounds | None = None
    course: Course = field(default_factory=Course)
    over: Callable[[], bool] = lambda: False
    listener: Callable[[Step], None] = lambda _: None
    _now: RuleSet | None = None  # what is in force
    _intervals: int = 0
    _steps: list[Step] = field(default_factory=list[Step])
    _restart: int = 0
    _bounds: Bounds = field(default_factory=Bounds)

    def refine(self, rules: RuleSet, at: int) -> Refined:
        """Refine a rule of those that are kept.

        Whatever ends it, an error included, the system follows rules that were shown to be better than those
        of the beginning, or those themselves.

        Args:
            rules: kept by the system.
            at: number of the rule.

        Raises:
            InputError: there is no such rule, or its action is outside of the bounds.
            WorkError: the system does not do as it is told.
        """
        if not 0 <= at < len(rules.rules):
            raise InputError(f"rule {at + 1}: there are rules 1 to {len(rules.rules)}")
        action = rules.rules[at].action
        self._bounds = Bounds.around(action) if self.bounds is None else self.bounds
        if not self._bounds.hold(action):
            own = ", ".join(f"{name} {value}" for name, value in numbers(action).items())
            raise InputError(f"rule {at + 1}: {own}: is outside of the bounds; widen them")
        before = self._now = rules.bare()
        best = before
        try:
            best, stopped = self._climb_all(best, at)
            verification = None
            if best != before:
                verification = self._verify(before, best, at)
                best = best if verification.kind == "verified" else before
        except BaseException:
            self._put_back(before)
            raise
        steps = tuple(self._steps)
        return Refined(best, before, at, steps, verification, stopped, self._intervals)

    def _climb_all(self, best: RuleSet, at: int) -> tuple[RuleSet, Literal["summits", "steps", "time"]]:
        """Climb from where it is, then from random places; the best summit is kept."""
        climber = HillClimber(self._bounds, Random(self.course.seed), best.rules[at].action)  # noqa: S311
        for restart in range(self.course.restarts + 1):
            self._restart = restart
            here, begun = best, "no-difference"
            if restart:
                here = best.with_action(at, climber.jump())
                begun = self._compare(best, here, at)
                if begun == "loss":
                    continue  # nobody climbs out of there while others have to live with it
                climber.begin(here.rules[at].action)
            summit, ended = self._climb(climber, here, at, kept=restart == 0)
            if restart == 0:
                best = summit
            elif summit != here or begun == "better":
                best = self._kept_if_better(best, summit, at)
            if ended is not None:
                self._return_to(best)
                return best, ended
            climber.begin(best.rules[at].action)
        self._return_to(best)
        return best, "summits"

    def _climb(
        self, climber: HillClimber, here: RuleSet, at: int, *, kept: bool
    ) -> tuple[RuleSet, Literal["steps", "time"] | None]:
        """To a summit; from the rules that are kept, what is better is kept."""
        without_gain = 0
        while without_gain < self.course.tries:
            if self.over():
                return here, "time"
            if len(self._steps) >= self.course.steps_max:
                return here, "steps"
            action = climber.propose()
            if action is None:
                break
            proposed = here.with_action(at, action)
            if self._compare(here, proposed, at) == "better":
                if kept:
                    self._follow(proposed)
                    self.system.keep()
                here, without_gain = proposed, 0
                climber.moved(action)
            else:
                climber.stayed(action)
                without_gain += 1
        return here, None

    def _kept_if_better(self, best: RuleSet, summit: RuleSet, at: int) -> RuleSet:
        if summit == best or self._compare(best, summit, at) != "better":
            return best
        self._follow(summit)
        self.system.keep()
        return summit

    def _compare(self, old: RuleSet, new: RuleSet, at: int) -> Kind:
        """Intervals under both in turns until told apart; the step is written down."""
        course = self.course
        scores: tuple[list[float], list[float]] = [], []
        kind: Kind = "no-difference"
        found: PairComparison | None = None
        for pair in range(course.pairs_max):
            self._pair((old, new), pair, scores)
            if self._worse_by(scores) > course.loss_max:
                kind = "loss"
                break
            if len(scores[0]) < _PAIRS_LEAST:
                continue
            found = compare_pairs(*scores, course.level, course.margin)
            if found.decision != "open":
                better = "higher" if self.objective.sign > 0 else "lower"
                kind = "better" if found.decision == better else "worse"
                kind = "no-difference" if found.decision == "equivalent" else kind
                break
        self._note(kind, (old.rules[at].action, new.rules[at].action), found, len(scores[0]))
        return kind

    def _verify(self, before: RuleSet, best: RuleSet, at: int) -> Step:
        """The end against the beginning, on fresh intervals; put back unless it is shown to be better."""
        course = self.course
        scores: tuple[list[float], list[float]] = [], []
        found: PairComparison | None = None
        for pair in range(course.verification_pairs):
            self._pair((before, best), pair, scores)
            if len(scores[0]) >= course.verification_least:
                found = compare_pairs(*scores, course.verification_level, course.margin)
                if found.decision != "open":
                    break
        better = "higher" if self.objective.sign > 0 else "lower"
        improved = found is not None and found.decision == better
        if improved:
            self._return_to(best)
        else:
            self._put_back(before)
        kind: Kind = "verified" if improved else "put-back"
        actions = before.rules[at].action, best.rules[at].action
        return self._note(kind, actions, found, len(scores[0]))

    def _pair(
        self, both: tuple[RuleSet, RuleSet], pair: int, scores: tuple[list[float], list[float]]
    ) -> None:
        """One interval of each: old new, new old, old new, so that a drift favours neither."""
        for side in (1, 0) if pair % 2 else (0, 1):
            scores[side].append(self._score(both[side]))

    def _score(self, rules: RuleSet) -> float:
        changed = rules != self._now
        self._follow(rules)
        self._intervals += 1
        course = self.course
        metrics = self.system.measure(rules, course.settle_s if changed else 0.0, course.measure_s)
        try:
            return self.objective.formula.number(metrics)
        except ExpressionError as error:
            raise WorkError(f"objective: {error.message}") from None

    def _follow(self, rules: RuleSet) -> None:
        """Have rules in force, on trial unless they are kept."""
        if rules == self._now:
            return
        self._return()
        if rules != self._now:
            self.system.try_out(rules)
            self._now = rules

    def _return(self) -> None:
        self.system.back()
        kept = self.system.in_force()
        self._now = None if kept is None else kept.bare()

    def _return_to(self, rules: RuleSet) -> None:
        """Have rules in force that are kept."""
        self._return()
        assert self._now == rules, "the best is kept"

    def _put_back(self, rules: RuleSet) -> None:
        """Keep these again."""
        self._return()
        if self._now != rules:
            self.system.try_out(rules)
            self.system.keep()
            self._now = rules

    def _worse_by(self, scores: tuple[list[float], list[float]]) -> float:
        """Share by which the newest interval under the new rules is worse than the worst under the old."""
        sign = self.objective.sign
        old, new = min(scores[0], key=lambda score: sign * score), scores[1][-1]
        return sign * (old - new) / abs(old) if old else 0.0

    def _note(
        self, kind: Kind, actions: tuple[Action, Action], found: PairComparison | None, pairs: int
    ) -> Step:
        gain = low = high = None
        if found is not None:
            gain, low, high = found.gain_relative, found.gain_low, found.gain_high
            if self.objective.sign < 0:
                gain, low, high = -gain, None if high is None else -high, None if low is None else -low
        step = Step(kind, self._restart, *actions, gain, low, high, pairs)
        self._steps.append(step)
        self.listener(step)
        return step
