"""The daemon that joins the parts: what runs is seen, rules are found, put in force, and verified.

Rules whose gain is not shown are taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ascar.errors import ExpressionError, InputError
from ascar.pilot.pairs import PAIRS_MIN, compare_pairs
from ascar.sharp.verification import Terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.objective import Objective
    from ascar.sharp.library.choice import Choice, Chooser
    from ascar.sharp.library.simulated import System
    from ascar.sharp.rules import RuleSet

__all__ = ["Event", "Pace", "Shown", "Watcher"]

Kind = Literal["observed", "same", "changed", "none", "deployed", "compared", "verified", "rolled-back"]


_TRIES = 2


@dataclass(frozen=True, slots=True)
class Pace:
    """How the daemon looks.

    Attributes:
        observe_s: seconds that features are taken from.
        settle_s: left out after rules have changed.
        measure_s: of each interval of the comparison.
        moved: a workload has changed when its features are farther than this from those it had.
    """

    observe_s: float = 20.0
    settle_s: float = 4.0
    measure_s: float = 8.0
    moved: float = 0.25

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is out of range.
        """
        for name in ("observe_s", "measure_s", "moved"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} = {getattr(self, name)}: must be above zero")
        if not self.settle_s >= 0:
            raise InputError(f"settle_s = {self.settle_s}: must be 0 or more")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a comparison of intervals with and without rules has shown; intervals hold at all looks.

    Attributes:
        improved: told apart, and better with the rules.
        gain: relative, above zero is better whichever way the objective points; None: nothing to compare.
        low: lower end of its interval.
        high: upper end.
        pairs: of intervals.
    """

    improved: bool
    gain: float | None
    low: float | None
    high: float | None
    pairs: int


@dataclass(frozen=True, slots=True)
class Event:
    """What the daemon did.

    Attributes:
        kind: observed: features were taken; same: the workload is the one that it was; changed: it is not;
            none: no rules are predicted to bring a gain; deployed: rules are in force on trial; compared: a
            pair of intervals is over; verified: the gain is shown, the rules stay; rolled-back: it is not,
            what was in force before is so again.
        at_s: the system's time.
        choice: the rules of which it is; None: of none.
        shown: so far.
        distance: of the workload from what it was.
    """

    kind: Kind
    at_s: float
    choice: Choice | None = None
    shown: Shown | None = None
    distance: float | None = None


@dataclass(slots=True)
class Watcher:
    """Watches one system.

    Attributes:
        system: whose load is watched.
        chooser: gives rules for features, or none.
        objective: what gains are measured in.
        pace: of looking.
        terms: when a comparison ends.
        listener: told of everything.
        tried: rules that were rolled back on the present workload.
    """

    system: System
    chooser: Chooser
    objective: Objective
    pace: Pace = field(default_factory=Pace)
    terms: Terms = field(default_factory=lambda: Terms(level=0.05, pairs_max=12, pairs_min=4))
    listener: Callable[[Event], None] = lambda _: None
    tried: set[str] = field(default_factory=set[str])
    _known: dict[str, float] | None = None

    def run(self, until_s: float) -> None:
        """Go on until the system's time; rules that were verified by then stay."""
        while self.system.time_s < until_s:
            self.cycle()

    def cycle(self) -> None:
        """Look once; where the workload is another one, find rules for it and try them."""
        features = self.system.observe(self.pace.observe_s)
        self._tell("observed")
        distance = None if self._known is None else self.chooser.distance(features, self._known)
        if distance is not None and distance <= self.pace.moved:
            self._tell("same", distance=distance)
            return
        if self._known is not None:
            self.tried.clear()
            self._tell("changed", distance=distance)
        if self.system.in_force() is not None:
            # Features in the library are those of workloads without rules.
            self.system.take_off()
            self.system.measure(None, 0.0, max(self.pace.settle_s, 1.0))
            features = self.system.observe(self.pace.observe_s)
        self._try_rules(features)

    def _try_rules(self, features: dict[str, float]) -> None:
        """Try what is predicted to be best, and the next best where it disappoints."""
        for _ in range(_TRIES):
            choice = self.chooser.choose(features, without=self.tried)
            if choice is None:
                self._tell("none")
                break
            if self._verified(choice):
                # Rules change what is seen: from here on it is compared with this.
                features = self.system.observe(self.pace.observe_s)
                break
            self.tried.add(choice.rules)
        self._known = features

    def _verified(self, choice: Choice) -> bool:
        """Try rules against the system as it is, in turns; keep them if they are shown to be better."""
        shown = Shown(improved=False, gain=None, low=None, high=None, pairs=0)
        try:
            shown = self._compared(choice)
            if shown.improved:
                self.system.try_out(choice.rule_set)
                self.system.keep()
        finally:
            self.system.back()  # nothing where they are kept
        self._tell("verified" if shown.improved else "rolled-back", choice, shown)
        return shown.improved

    def _compared(self, choice: Choice) -> Shown:
        """Intervals with and without in turns, the first of a pair alternating, until told apart or equal."""
        without: list[float] = []
        within: list[float] = []
        shown = Shown(improved=False, gain=None, low=None, high=None, pairs=0)
        self._tell("deployed", choice)
        for pair in range(self.terms.pairs_max):
            order: list[tuple[RuleSet | None, list[float]]] = [(None, without), (choice.rule_set, within)]
            for rules, scores in order[::-1] if pair % 2 else order:
                score = self._interval(rules)
                if score is None:
                    return shown
                scores.append(score)
            if pair + 1 >= PAIRS_MIN:
                shown, decided = self._shown(without, within)
                self._tell("compared", choice, shown)
                if decided:
                    break
        return shown

    def _shown(self, without: list[float], within: list[float]) -> tuple[Shown, bool]:
        """What the pairs so far show, and whether that is enough."""
        found = compare_pairs(without, within, self.terms.level, self.terms.margin)
        gain, low, high = found.gain_relative, found.gain_low, found.gain_high
        if self.objective.sign < 0:
            gain, low, high = -gain, None if high is None else -high, None if low is None else -low
        better = found.decision == ("higher" if self.objective.sign > 0 else "lower")
        enough = len(without) >= self.terms.pairs_min
        return Shown(better and enough, gain, low, high, len(without)), enough and found.decision != "open"

    def _interval(self, rules: RuleSet | None) -> float | None:
        """The objective's value under these rules; None: the formula has none there."""
        if rules is None:
            self.system.back()
        else:
            self.system.try_out(rules)
        try:
            return self.objective.score(self.system.measure(rules, self.pace.settle_s, self.pace.measure_s))
        except ExpressionError:
            return None

    def _tell(
        self,
        kind: Kind,
        choice: Choice | None = None,
        shown: Shown | None = None,
        distance: float | None = None,
    ) -> None:
        self.listener(Event(kind, self.system.time_s, choice, shown, distance))
