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
    """

    schedule: Schedule = "sharp"
    start: RuleSet = FIRST
    patience: int = 3
    others: tuple[RuleSet, ...] = ()
    hoped: float | None = None
    without: frozenset[Part] = frozenset()
    active_files: tuple[int, ...] = ()
    along: tuple[str, ...] = INDICATORS_OF_THESIS

    def __post_init__(self) -> None:
        """Check the plan.

        Raises:
            InputError: the patience is below zero, a part is none of `PARTS`, or another schedule than
                "sharp" is given what only that can do.
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
        others = self.active_files or self.along != INDICATORS_OF_THESIS
        if self.schedule != "sharp" and (self.without or self.others or others):
            raise InputError(
                f"schedule = {self.schedule!r}: begins with one rule set, has no parts to do without, no "
                "--active-files and no --along; use the schedule 'sharp'"
            )

    @property
    def name(self) -> str:
        """The schedule, with what it does without and how many it begins with."""
        left_out = "".join(f" without {part}" for part in sorted(self.without))
        files = "".join(f" files {limit}" for limit in self.active_files)
        further = "".join(f" {name}" for name in self.along if name not in INDICATORS_OF_THESIS)
        fewer = "".join(f" not {name}" for name in INDICATORS_OF_THESIS if name not in self.along)
        return f"{self.schedule}{left_out}{files}{further}{fewer}"

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
