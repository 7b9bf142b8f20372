"""The daemon that joins the parts: what runs is seen, rules are found, put in force, and verified.

Rules whose gain is not shown are taken back, those as well that were in force before. Rules that are kept are
looked at on and on: when there is a reason to doubt them, the system does without them at once, and they have
to show their gain again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.errors import ExpressionError, InputError, NothingDone
from ascar.pilot.turns import PairTest
from ascar.render import number
from ascar.sharp.client_shares import ClientShares
from ascar.sharp.deployment.managed_system import OtherRules, interval_metrics
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.live_comparison import Lengths, in_turns
from ascar.sharp.matching.choice import FoundRules
from ascar.sharp.matching.doubts import PAIRS_MAX, Checks, Looks
from ascar.sharp.metric_bounds import bounds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.objective import Objective
    from ascar.pilot.turns import InTurns, Side
    from ascar.results.rule_deployment import WatchEventKind
    from ascar.rules import RuleSet
    from ascar.sharp.matching.choice import Choice, Chooser
    from ascar.sharp.matching.simulated_system import WatchableSystem
    from ascar.sharp.metric_bounds import MetricBound

_RATE = "throughput_mb_per_s"
_TRIES = 2
_CHECK_SHARE_MAX = 0.5
_LOOKS = 12  # between two observations of the load
_NOTHING = "the clients did nothing"
_STILL = 2  # looks in a row in which nothing moves, before it is tried without the rules


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How the daemon looks.

    Attributes:
        observe_s: seconds that features are taken from.
        settle_s: left out after rules have changed.
        measure_s: the length of each interval of the comparison.
        look_s: the length of a look at rules that are kept.
        check_share: the share of the time in which the system does without rules that are kept, to check
            them; 0 checks them only when there is a reason to doubt them.
        moved: a workload has changed when its features are farther than this from those it had.
    """

    observe_s: float = 20.0
    settle_s: float = 4.0
    measure_s: float = 8.0
    look_s: float = 5.0
    check_share: float = 0.05
    moved: float = 0.25

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            InputError: one is out of range.
        """
        for name in ("observe_s", "measure_s", "look_s", "moved"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} = {getattr(self, name)}: must be above zero")
        if not self.settle_s >= 0:
            raise InputError(f"settle_s = {self.settle_s}: must be 0 or more")
        if not 0 <= self.check_share <= _CHECK_SHARE_MAX:
            raise InputError(f"--check-share = {self.check_share}: must be from 0% to {_CHECK_SHARE_MAX:.0%}")

    @property
    def check_every_s(self) -> float:
        """The time between two checks that cost the share."""
        return (self.settle_s + self.measure_s) / self.check_share if self.check_share else math.inf


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """What the daemon did.

    Attributes:
        kind: observed: features were taken; same: the workload is the one that it was; changed: it is not;
            none: no rules are predicted to bring a gain; deployed: rules are in force on trial; compared: a
            pair of intervals is over; verified: the gain is shown, the rules stay; rolled-back: it is not,
            what was in force before is so again; checked: a pair of intervals under kept rules and without
            them is over; doubted: kept rules, or those that were in force before, are taken off until they
            have shown their gain again; idle: the clients do nothing, so there is no load to know; replaced:
            others have changed the rules, or try some.
        at_s: the system's time.
        choice: the rules of which it is; None: of none.
        shown: the comparison so far.
        distance: the distance of the workload from its earlier features.
        reason: why rules were doubted, or taken back, or how they were replaced.
    """

    kind: WatchEventKind
    at_s: float
    choice: Choice | FoundRules | None = None
    shown: InTurns | None = None
    distance: float | None = None
    reason: str = ""


@dataclass(slots=True)
class Kept:
    """Rules that were verified and are in force.

    Attributes:
        choice: the rules.
        checks: pairs of intervals with and without them.
        shares: what each client got in these.
        looks: throughput under them.
        checked_s: the system's time at the last check, or when they were verified.
    """

    choice: Choice | FoundRules
    checks: Checks
    shares: ClientShares
    looks: Looks = field(default_factory=Looks)
    checked_s: float = 0.0


@dataclass(slots=True)
class RuleWatcher:
    """Watches one system.

    Attributes:
        system: the system whose load is watched.
        chooser: gives rules for features, or none.
        objective: the objective that gains are measured in.
        pace: the pace of the watch.
        test: the test that ends a comparison.
        listener: told of everything.
        tried: rules that were rolled back on the present workload.
        bounds: what rules must keep; shares are of what each client gets without rules.
    """

    system: WatchableSystem
    chooser: Chooser
    objective: Objective
    pace: WatchOptions = field(default_factory=WatchOptions)
    test: PairTest = field(default_factory=lambda: PairTest(level=0.05, pairs_min=4, pairs_max=12))
    listener: Callable[[WatchEvent], None] = lambda _: None
    tried: set[str] = field(default_factory=set[str])
    bounds: tuple[MetricBound, ...] = field(default_factory=lambda: bounds_of(None))
    _known: dict[str, float] | None = None
    _kept: Kept | None = None
    _doubted: tuple[Choice | FoundRules, str] | None = None
    _replaced: str = ""

    def run(self, until_s: float) -> None:
        """Go on until the system's time; rules that were verified by then stay.

        So do those that were in force before, where it ends or is interrupted before they could be verified.
        """
        try:
            while self.system.time_s < until_s:
                self.cycle()
        except KeyboardInterrupt:
            self._restore()
            raise
        self._restore()

    def cycle(self) -> None:
        """Look at rules that are kept; where nothing speaks against them, or there are none, at the load.

        Rules that were in force before, or that others have put in force, are verified first.
        """
        try:
            if self._doubted is not None:
                self.system.observe(self.pace.look_s)  # until clients are at work again
                self._prove(*self._doubted)
            elif (found := self._found()) is not None:
                self._verify_again(found, "nobody has verified them here")
            elif self._kept is not None and (doubt := self._doubt(self._kept)):
                self._verify_again(self._kept.choice, doubt)
            else:
                self._look_at_load()
            self._replaced = ""
        except NothingDone:
            self._tell("idle")
        except OtherRules as error:
            self._give_way(error.message)

    def _found(self) -> FoundRules | None:
        """Rules in force that are not its own, where it begins, or begins anew."""
        found = self.system.in_force() if self._kept is self._known is None else None
        return None if found is None else FoundRules(rules_id(found), found.bare())

    def _restore(self) -> None:
        """Put back what was in force before and is not shown to be of no use."""
        doubted, self._doubted = self._doubted, None
        if doubted is not None and isinstance(doubted[0], FoundRules):
            self.system.back()
            self._put_back(doubted[0].rule_set)

    def _give_way(self, why: str) -> None:
        """Others have changed the rules: begin anew with what they have put in force."""
        if why != self._replaced:
            self._tell("replaced", reason=why)
        self._replaced, self._kept, self._known, self._doubted = why, None, None, None
        self.tried.clear()
        self.system.look_again()

    def _look_at_load(self) -> None:
        features = self.system.observe(self.pace.observe_s)
        self._tell("observed")
        if self._kept is not None and self._known is None:
            self._known = features  # there was nothing to see when they were verified
        distance = None if self._known is None else self.chooser.distance(features, self._known)
        if distance is not None and distance <= self.pace.moved:
            self._tell("same", distance=distance)
            return
        if self._known is not None:
            self.tried.clear()
            self._tell("changed", distance=distance)
        self._find_rules(features)

    def _find_rules(self, features: dict[str, float] | None = None) -> None:
        """Find rules for the present load, and try them; features under other rules do not count."""
        if features is None or self.system.in_force() is not None:
            # Features in the library are those of workloads without rules.
            self._take_off()
            features = self.system.observe(self.pace.observe_s)
        self._try_rules(features)

    def _take_off(self) -> None:
        """Do without rules, and let that settle."""
        self._kept = None
        if self.system.in_force() is not None:
            self.system.take_off()
            self.system.measure(None, 0.0, max(self.pace.settle_s, 1.0))

    def _doubt(self, kept: Kept) -> str:
        """Look at kept rules for a while, and check them when it is time; why they are doubted, if so."""
        rules, doubt = kept.choice.rule_set, ""
        for _ in range(_LOOKS):
            metrics = self.system.measure(rules, 0.0, self.pace.look_s)
            doubt = kept.looks.doubt(metrics[_RATE])
            if kept.looks.still % _LOOKS == _STILL:
                doubt = self._standstill(kept)
            if not doubt and self.system.time_s - kept.checked_s >= self.pace.check_every_s:
                doubt = self._check(kept)
            if doubt:
                break
        return doubt

    def _standstill(self, kept: Kept) -> str:
        """Nothing moves: why the rules are doubted, if something does without them."""
        doubt = ""
        self.system.take_off()
        try:
            rate = self.system.measure(None, 0.0, self.pace.settle_s + self.pace.look_s)[_RATE]
            if rate > 0:
                doubt = f"nothing moves under these rules, and {number(rate)} MB/s without them"
        except OtherRules as error:
            doubt = error.message
            raise
        finally:
            if not doubt:
                self._put_back(kept.choice.rule_set)
        return doubt

    def _check(self, kept: Kept) -> str:
        """An interval under the rules, and one without: why they are doubted, or nothing."""
        rules, pace, doubt = kept.choice.rule_set, self.pace, ""
        try:
            under = self._interval(kept, "candidate", 0.0)
        except ExpressionError as error:
            return error.message
        self.system.take_off()
        try:
            doubt = kept.checks.doubt(self._interval(kept, "reference", pace.settle_s), under)
            doubt = doubt or kept.shares.broken()
        except ExpressionError as error:
            doubt = error.message
        except OtherRules as error:
            doubt = error.message
            raise
        finally:
            if not doubt:  # whatever ended the interval
                self._put_back(rules)
        if not doubt:
            self.system.measure(rules, 0.0, max(pace.settle_s, 1.0))
        kept.checked_s = self.system.time_s
        self._tell("checked", kept.choice)
        return doubt

    def _interval(self, kept: Kept, side: Side, settle_s: float) -> float:
        """The score of an interval under kept rules, or without them.

        Raises:
            ExpressionError: the objective has no value.
            NothingDone: nothing moved, which says nothing of the rules.
        """
        rules = kept.choice.rule_set if side == "candidate" else None
        clients = self.system.collect(rules, settle_s, self.pace.measure_s)
        metrics = interval_metrics(clients)
        if metrics[_RATE] == 0:
            raise NothingDone(_NOTHING)
        kept.shares.take(side, clients, metrics)
        return self.objective.score(metrics)

    def _put_back(self, rules: RuleSet) -> None:
        self.system.try_out(rules)
        self.system.keep()

    def _verify_again(self, choice: Choice | FoundRules, doubt: str) -> None:
        """Do without rules at once; they are kept if they show their gain again, else others are tried."""
        self._doubted = choice, doubt
        self._take_off()
        self._tell("doubted", choice, reason=doubt)
        self._prove(choice, doubt)

    def _prove(self, choice: Choice | FoundRules, doubt: str) -> None:
        """Doubted rules show their gain again, or others are tried; while clients pause they stay doubted."""
        if self._verified(choice, doubt):
            self._known = self.system.observe(self.pace.observe_s)
        else:
            self.tried = {choice.rules}
            self._find_rules()

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

    def _verified(self, choice: Choice | FoundRules, doubt: str = "") -> bool:
        """Try rules in turns with the system as it is; keep them if they are better and break no bound."""
        shares, keeps = ClientShares(self.bounds), False
        try:
            self._tell("deployed", choice)
            shown = in_turns(
                self.system,
                self.objective,
                (None, choice.rule_set),
                test=self.test,
                lengths=Lengths(self.pace.settle_s, self.pace.measure_s),
                shares=shares,
                told=lambda now: self._compared(choice, now, shares),
            )
            broken = shares.broken() if shown.improved else shares.collapsed()
            keeps = shown.improved and not broken
            if keeps:
                self.system.try_out(choice.rule_set)
                self.system.keep()
        finally:
            self.system.back()  # nothing where they are kept
        self._doubted = None
        if keeps:
            recent = ClientShares(self.bounds, PAIRS_MAX)
            checks = Checks(self.objective.direction)
            self._kept = Kept(choice, checks, recent, checked_s=self.system.time_s)
            self._tell("verified", choice, shown)
        else:
            self._tell("rolled-back", choice, shown, reason=broken or doubt or shown.note)
        return keeps

    def _compared(self, choice: Choice | FoundRules, now: InTurns, shares: ClientShares) -> None:
        if shares.idle():
            raise NothingDone(_NOTHING)
        if now.gain is not None and now.ended != "failures":
            self._tell("compared", choice, now)

    def _tell(
        self,
        kind: WatchEventKind,
        choice: Choice | FoundRules | None = None,
        shown: InTurns | None = None,
        distance: float | None = None,
        reason: str = "",
    ) -> None:
        self.listener(WatchEvent(kind, self.system.time_s, choice, shown, distance, reason))
