"""How to search: which schedule, from where, how long without gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from ascar.errors import InputError
from ascar.rules import INDICATORS_OF_THESIS, Action, RuleSet, indicator_numbers

Schedule = Literal["sharp", "faithful", "remy"]
SCHEDULES: tuple[str, ...] = get_args(Schedule)
"""sharp: ours; faithful: Li's algorithm 1 to the letter; remy: all rules an epoch, a split every fourth."""

Part = Literal["racing", "common-numbers", "surrogate", "one-axis", "sweep"]
PARTS: tuple[str, ...] = get_args(Part)
"""What our schedule has beyond algorithm 1; a search can do without any of them, to see what each brings."""

FIRST = RuleSet.uniform(Action(100, 0, 20_000))
"""One rule that holds everywhere (algorithm 1, line 4)."""

FIRST_OF_KERNELS = RuleSet.uniform(Action(100, 0, 0))
"""The same without a gap: windows stay as they are."""

RULES_MAX = 256
ACTIVE_FILES_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How to search.

    Attributes:
        schedule: the schedule, one of `SCHEDULES`.
        start: the rule set to begin with.
        patience: end after so many epochs in a row without gain; 0: never. Algorithm 1 never does.
        others: further rule sets to begin with, such as those found in a simulation; the best of all counts.
        hoped: gain of the best of these over `start` where they were found, as a share of its score; None:
            nothing is known of it. The sweep is made only when much less of it comes true.
        without: the `PARTS` that the schedule "sharp" does without.
        active_files: limits on the files of a stream that may have requests in flight at once, tried with the
            best of those that the search begins with.
        along: the indicators that rules may be split along, of `INDICATORS`; algorithm 1 has those of the
            thesis.
        windows: the least and the greatest window where rules act on queues of kernels, which have neither
            gaps nor turns, and count what the indicators of the thesis need alone; None: any.
    """

    schedule: Schedule = "sharp"
    start: RuleSet = FIRST
    patience: int = 3
    others: tuple[RuleSet, ...] = ()
    hoped: float | None = None
    without: frozenset[Part] = frozenset()
    active_files: tuple[int, ...] = ()
    along: tuple[str, ...] = INDICATORS_OF_THESIS
    windows: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        """Check the plan.

        Raises:
            InputError: the patience is below zero, a part is none of `PARTS`, another schedule than "sharp"
                is given what only that can do, or queues of kernels what they cannot do.
        """
        if self.patience < 0:
            raise InputError(f"patience = {self.patience}: must be 0 (never) or more epochs")
        for part in sorted(self.without):
            if part not in PARTS:
                raise InputError(f"without = {str(part)[:80]!r}: must be of {', '.join(PARTS)}")
        if any(not 1 <= limit <= ACTIVE_FILES_MAX for limit in self.active_files):
            shown = ",".join(map(str, self.active_files))[:80]
            raise InputError(f"--active-files = {shown}: must be numbers from 1 to {ACTIVE_FILES_MAX}")
        indicator_numbers(self.along)
        others = self.active_files or self.along != INDICATORS_OF_THESIS or self.windows
        if self.schedule != "sharp" and (self.without or self.others or others):
            raise InputError(
                f"schedule = {self.schedule!r}: begins with one rule set, has no parts to do without, no "
                "--active-files and no --along; use the schedule 'sharp'"
            )
        if self.windows is not None:
            self._check_for_kernels()

    def _check_for_kernels(self) -> None:
        """Refuse what agents refuse, before a search that would come to it."""
        turns = {"--active-files": self.active_files, "--rules": self.start.active_files}
        for option, limits in turns.items():
            if limits:
                raise InputError(f"{option}: active_files: a kernel's queue has no turns; leave them out")
        if further := [name for name in self.along if name not in INDICATORS_OF_THESIS]:
            raise InputError(
                f"--along = {','.join(further)}: kernels count what {', '.join(INDICATORS_OF_THESIS)} need; "
                "leave the others out"
            )
        for at, rule in enumerate(self.start.rules, start=1):
            if rule.action.tau_us or len(rule.region) > len(INDICATORS_OF_THESIS):
                raise InputError(
                    f"--rules: rule {at}: a kernel's queue has no gap (tau), and no indicators beyond "
                    f"{', '.join(INDICATORS_OF_THESIS)}; leave them out"
                )

    def admits(self, action: Action) -> bool:
        """Whether what follows the rules can do what an action says."""
        if self.windows is None:
            return True
        least, most = self.windows
        return action.tau_us == 0 and (action.m100 != 0 or 100 * least <= action.b100 <= 100 * most)

    @property
    def name(self) -> str:
        """The schedule, with what it does without and how many it begins with."""
        left_out = "".join(f" without {part}" for part in sorted(self.without))
        files = "".join(f" files {limit}" for limit in self.active_files)
        further = "".join(f" {name}" for name in self.along if name not in INDICATORS_OF_THESIS)
        fewer = "".join(f" not {name}" for name in INDICATORS_OF_THESIS if name not in self.along)
        windows = "" if self.windows is None else " windows {}-{}".format(*self.windows)
        return f"{self.schedule}{left_out}{files}{further}{fewer}{windows}"

    @property
    def axes(self) -> tuple[int, ...]:
        """The numbers of the indicators that rules may be split along."""
        return indicator_numbers(self.along)

    def widened(self, rules: RuleSet) -> RuleSet:
        """Rules over all indicators that the search may split them along."""
        return rules.with_indicators(max(self.axes) + 1)


def plan_of(schedule: str, start: RuleSet = FIRST, patience: int | None = None) -> SearchPlan:
    """A plan from plain values; None leaves the patience as it is.

    Raises:
        InputError: as `SearchPlan`.
    """
    if schedule not in SCHEDULES:
        raise InputError(f"schedule = {schedule[:80]!r}: must be one of {', '.join(SCHEDULES)}")
    chosen = cast("Schedule", schedule)
    return SearchPlan(chosen, start) if patience is None else SearchPlan(chosen, start, patience)
