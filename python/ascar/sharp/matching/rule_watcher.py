"""The daemon that joins the parts: what runs is seen, rules are found, put in force, and verified.

Rules whose gain is not shown are taken back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ascar.errors import InputError
from ascar.pilot.turns import PairTest
from ascar.sharp.live_comparison import Lengths, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.objective import Objective
    from ascar.pilot.turns import InTurns
    from ascar.sharp.matching.choice import Choice, Chooser
    from ascar.sharp.matching.simulated_system import WatchableSystem

Kind = Literal["observed", "same", "changed", "none", "deployed", "compared", "verified", "rolled-back"]


_TRIES = 2


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How the daemon looks.

    Attributes:
        observe_s: seconds that features are taken from.
        settle_s: left out after rules have changed.
        measure_s: the length of each interval of the comparison.
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
class WatchEvent:
    """What the daemon did.

    Attributes:
        kind: observed: features were taken; same: the workload is the one that it was; changed: it is not;
            none: no rules are predicted to bring a gain; deployed: rules are in force on trial; compared: a
            pair of intervals is over; verified: the gain is shown, the rules stay; rolled-back: it is not,
            what was in force before is so again.
        at_s: the system's time.
        choice: the rules of which it is; None: of none.
        shown: the comparison so far.
        distance: the distance of the workload from its earlier features.
    """

    kind: Kind
    at_s: float
    choice: Choice | None = None
    shown: InTurns | None = None
    distance: float | None = None


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
    """

    system: WatchableSystem
    chooser: Chooser
    objective: Objective
    pace: WatchOptions = field(default_factory=WatchOptions)
    test: PairTest = field(default_factory=lambda: PairTest(level=0.05, pairs_min=4, pairs_max=12))
    listener: Callable[[WatchEvent], None] = lambda _: None
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
        try:
            self._tell("deployed", choice)
            shown = in_turns(
                self.system,
                self.objective,
                (None, choice.rule_set),
                test=self.test,
                lengths=Lengths(self.pace.settle_s, self.pace.measure_s),
                told=lambda now: self._compared(choice, now),
            )
            if shown.improved:
                self.system.try_out(choice.rule_set)
                self.system.keep()
        finally:
            self.system.back()  # nothing where they are kept
        self._tell("verified" if shown.improved else "rolled-back", choice, shown)
        return shown.improved

    def _compared(self, choice: Choice, now: InTurns) -> None:
        if now.gain is not None and now.ended != "failures":
            self._tell("compared", choice, now)

    def _tell(
        self,
        kind: Kind,
        choice: Choice | None = None,
        shown: InTurns | None = None,
        distance: float | None = None,
    ) -> None:
        self.listener(WatchEvent(kind, self.system.time_s, choice, shown, distance))
