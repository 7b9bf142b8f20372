"""Rule sets as values: regions of the congestion state space, and what to do there (Li, section 3.1.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ascar import _core
from ascar.errors import InputError
from ascar.small_file import SmallFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ascar.errors import AscarError

_FILE_BYTES_MAX = 1 << 20

INFINITY = 2_147_483_647  # what stands for it in rule files


@dataclass(frozen=True, slots=True)
class StateIndicator:
    """What a rule set may tell streams apart by.

    Attributes:
        name: what options call it.
        key: its key in documents, with the unit.
        heading: what tables call it.
        scale: so many of the unit of rule files are one of the heading's.
        words: what there is much or little of, in a sentence; empty for those of the thesis.
        least: its least value.
        middle: where the middle between two kinds of requests is; None: it is no indicator of kinds.
    """

    name: str
    key: str
    heading: str
    scale: int = 1
    words: str = ""
    least: int = 0
    middle: int | None = None


INDICATOR_LIST = (
    StateIndicator("ack_ewma", "ack_ewma_us", "ack ms", 1_000),
    StateIndicator("send_ewma", "send_ewma_us", "send ms", 1_000),
    StateIndicator("pt_ratio", "pt_ratio_x100", "PT ratio", 100, least=100),
    StateIndicator("slow_ack_ewma", "slow_ack_ewma_us", "slow ack ms", 1_000, "slow replies"),
    StateIndicator("timeout_rate", "timeouts_per_1000", "time-outs/1000", words="time-outs"),
    StateIndicator("write_share", "writes_per_1000", "writes/1000", words="writes", middle=500),
    StateIndicator(
        "sequential_share", "sequential_per_1000", "sequential/1000", words="sequential requests", middle=500
    ),
    StateIndicator("request_kib", "request_kib", "request KiB", words="KiB a request", middle=256),
)
"""The indicators in the order of a region's intervals."""
INDICATORS = tuple(one.name for one in INDICATOR_LIST)
"""Their names."""
INDICATORS_OF_THESIS = INDICATORS[:3]
"""Those that every rule bounds; rules that bound more are followed by the extended controller."""
KINDS = {one.name: one.middle for one in INDICATOR_LIST if one.middle is not None}
"""The indicators of what a stream requests, and where the middle between two kinds of it is."""


def indicator_numbers(names: Sequence[str]) -> tuple[int, ...]:
    """The places of indicators in a region, ascending, each once.

    Raises:
        InputError: a name is none of `INDICATORS`, or there is none.
    """
    unknown = next((name for name in names if name not in INDICATORS), None if names else "")
    if unknown is not None:
        raise InputError(f"--along = {unknown[:80]!r}: allowed: {', '.join(INDICATORS)}")
    return tuple(sorted({INDICATORS.index(name) for name in names}))


@dataclass(frozen=True, slots=True)
class Interval:
    """`[lo, hi)` of an indicator: microseconds, or 100 times the ratio of process times."""

    lo: int
    hi: int

    def contains(self, value: int) -> bool:
        """Whether a value is inside."""
        return self.lo <= value < self.hi


@dataclass(frozen=True, slots=True)
class Action:
    """`window = m * window + b`, and requests at least tau apart.

    Attributes:
        m100: m times 100; below zero: do not multiply.
        b100: b times 100, in requests.
        tau_us: microseconds.
    """

    m100: int
    b100: int
    tau_us: int


@dataclass(frozen=True, slots=True)
class Observed:
    """How often a rule was used, and the mean of each indicator when it was."""

    used_times: int
    means: tuple[int, ...]

    @classmethod
    def merged(cls, several: Sequence[Observed]) -> Observed:
        """What was observed in several places or runs, as one."""
        uses = sum(one.used_times for one in several)
        axes = zip(*([mean * one.used_times for mean in one.means] for one in several), strict=True)
        return cls(uses, tuple(sum(axis) // max(uses, 1) for axis in axes))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: an interval an indicator, in the order ack_ewma, send_ewma, pt_ratio, and further ones."""

    region: tuple[Interval, ...]
    action: Action
    observed: Observed | None = None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules that cover the space; of those that hold the first counts.

    Attributes:
        rules: the rules in order.
        updates_per_second: window changes a second at most.
        active_files: files of a stream that may have requests in flight at once, in turns; 0: any number.
    """

    rules: tuple[Rule, ...]
    updates_per_second: int = 2
    active_files: int = 0

    @classmethod
    def uniform(cls, action: Action) -> RuleSet:
        """One rule that holds everywhere: where a search begins (algorithm 1, line 4)."""
        everywhere = tuple(
            Interval(one.least, INFINITY) for one in INDICATOR_LIST[: len(INDICATORS_OF_THESIS)]
        )
        return cls((Rule(everywhere, action),))

    def with_indicators(self, count: int) -> RuleSet:
        """The same over the first `count` of `INDICATORS`, or more if it has more; without statistics."""
        further = tuple(
            Interval(one.least, INFINITY) for one in INDICATOR_LIST[len(self.rules[0].region) : count]
        )
        rules = (replace(rule, region=rule.region + further, observed=None) for rule in self.rules)
        return replace(self, rules=tuple(rules)) if further else self.bare()

    @classmethod
    def read(cls, path: Path, what: str, error: Callable[[str], AscarError] = InputError) -> RuleSet:
        """Read a rule file.

        Args:
            path: the path of the file.
            what: the file in the user's words, for errors.
            error: the type of the errors.

        Raises:
            InputError: it cannot be read, or is not a rule set: the file, the line, the field.
        """
        advice = "give a rule file of `ascar sharp search`"
        text = SmallFile(path, what, _FILE_BYTES_MAX, advice, error).text()
        try:
            return cls.parse(text)
        except InputError as problem:
            raise error(f"{what}: {problem.message}") from None

    @classmethod
    def parse(cls, text: str) -> RuleSet:
        """Read the text of a rule file.

        Raises:
            InputError: line and field that cannot be read, or the region for which no rule is given.
        """
        try:
            found, updates_per_second, active_files = _core.read_rule_set(text)
        except ValueError as error:
            raise InputError(f"rule set: {error}") from None
        rules = (
            Rule(
                tuple(Interval(lo, hi) for lo, hi in bounds),
                Action(*action),
                None if seen is None else Observed(seen[0], tuple(seen[1])),
            )
            for bounds, action, seen in found
        )
        return cls(tuple(rules), updates_per_second, active_files)

    def text(self) -> str:
        """The text of its file.

        Raises:
            InputError: the rules leave a gap, or a number is out of its range.
        """
        values = [
            (
                [(at.lo, at.hi) for at in rule.region],
                (rule.action.m100, rule.action.b100, rule.action.tau_us),
                None if rule.observed is None else (rule.observed.used_times, rule.observed.means),
            )
            for rule in self.rules
        ]
        try:
            return _core.write_rule_set(values, self.updates_per_second, self.active_files)
        except (ValueError, OverflowError) as error:
            raise InputError(f"rule set: {error}") from None

    def hottest(self) -> int:
        """The number of the rule that was used most; the first of equals, and of rules never used."""
        uses = [0 if rule.observed is None else rule.observed.used_times for rule in self.rules]
        return uses.index(max(uses))

    def bare(self) -> RuleSet:
        """The same without statistics."""
        return replace(self, rules=tuple(replace(rule, observed=None) for rule in self.rules))

    def with_action(self, at: int, action: Action) -> RuleSet:
        """The same with another action in one rule."""
        return self.with_rules(at, (replace(self.rules[at], action=action),))

    def with_rules(self, at: int, rules: tuple[Rule, ...]) -> RuleSet:
        """The same with others in the place of one rule."""
        return replace(self, rules=(*self.rules[:at], *rules, *self.rules[at + 1 :]))
