"""What comparing commands, functions or recordings came to: a ranking with its terms, and its result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.pilot.direction import lower_is_better
from ascar.pilot.machine import machine_differences
from ascar.pilot.measured import used_up
from ascar.render import number, p_value
from ascar.results.compare import ComparedPair, CompareResult, Ranked
from ascar.results.encode import extended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.pilot.contest import ComparisonTerms, Pair, Standing
    from ascar.pilot.interleaving import ContestPlan, ContestSession
    from ascar.pilot.resources import Resources
    from ascar.results.machine import MachineDifference, MachineRecord
    from ascar.results.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Contestant:
    """One that was compared.

    Attributes:
        label: the contestant's name.
        command: the command or function that was run; None: its readings are those of a file.
        file: the file that was read; None: it was run.
        measurement: the contestant's own mean.
        readings: (n,) its readings, in order; empty where a saved result has only their mean.
        machine: the machine that it was measured on; None: that of the comparison, or unknown.
    """

    label: str
    command: tuple[str, ...] | None
    file: str | None
    measurement: Measurement
    readings: Sequence[float]
    machine: MachineRecord | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """What a comparison came to.

    Attributes:
        metric: the metric that was compared.
        terms: the terms of the comparison.
        entries: the contestants, in the order they were given.
        standing: the ranking.
        session: the rounds; None: recorded readings.
        plan: the plan of the session, or None.
        used: the resources that the machine used during the comparison, or None.
        machine: the machine that commands were run on; None: nothing was run.
    """

    metric: str
    terms: ComparisonTerms
    entries: tuple[Contestant, ...]
    standing: Standing
    session: ContestSession | None = None
    plan: ContestPlan | None = None
    used: Resources | None = None
    machine: MachineRecord | None = None

    @classmethod
    def of(
        cls,
        contestants: Sequence[tuple[str, tuple[str, ...]]],
        plan: ContestPlan,
        session: ContestSession,
        confidence: float,
        used: Resources,
    ) -> Compared:
        """What a session of rounds came to.

        Args:
            contestants: the label and the command of each.
            plan: the plan of the session.
            session: the rounds.
            confidence: the confidence of each mean's interval.
            used: the resources that the machine used during the session.
        """
        contest = session.contest
        entries = tuple(
            Contestant(
                label, command, None, contest.measurement(index, confidence), contest.values(index).tolist()
            )
            for index, (label, command) in enumerate(contestants)
        )
        return cls(plan.metric, plan.terms, entries, session.standing, session, plan, used)

    @property
    def machine_differences(self) -> tuple[MachineDifference, ...]:
        """In what the machines of saved results differ."""
        if self.session is not None:
            return ()
        return machine_differences({entry.label: entry.machine for entry in self.entries})

    @property
    def ranked(self) -> list[Contestant]:
        """The best first."""
        return [self.entries[index] for index in self.standing.order]

    def pair_at(self, place: int) -> Pair | None:
        """The entry at a place against the next; None for the last."""
        return self.standing.pairs[place] if place < len(self.standing.pairs) else None

    def line(self, pair: Pair) -> str:
        """How one stands against the next, in words."""
        return pair_line(pair, self.terms, self.metric, "rounds" if self.session else "readings")

    def result(self) -> CompareResult:
        """The result as a value."""
        session, plan = self.session, self.plan
        return CompareResult(
            mode="recorded" if session is None else "live",
            metric=self.metric,
            lower_is_better=self.terms.lower_is_better,
            p=self.terms.p,
            margin=self.terms.margin,
            verdict="decided" if self.standing.decided else "undecided",
            ended="" if session is None else session.ended,
            seconds=None if session is None else session.seconds,
            rounds=None if session is None else len(session.blocks),
            warm_up=None if plan is None else plan.warm_up,
            seed=None if plan is None else plan.seed,
            ranking=tuple(self._ranked(place) for place in range(len(self.entries))),
            pairs=tuple(self._pair(pair) for pair in self.standing.pairs),
            bottlenecks=() if self.used is None else used_up(self.used),
            machine_differences=self.machine_differences,
        )

    def _ranked(self, place: int) -> Ranked:
        entry, pair = self.entries[self.standing.order[place]], self.pair_at(place)
        return extended(
            Ranked,
            entry.measurement,
            rank=self.standing.ranks[place],
            name=entry.label,
            command=entry.command,
            file=entry.file,
            readings=len(entry.readings) or entry.measurement.n,
            machine=entry.machine or self.machine,
            verdict="last" if pair is None else pair.verdict,
        )

    def _pair(self, pair: Pair) -> ComparedPair:
        return ComparedPair(
            better=self.entries[pair.better].label,
            worse=self.entries[pair.worse].label,
            ratio=pair.ratio,
            ratio_low=pair.ratio_low,
            ratio_high=pair.ratio_high,
            p_value=pair.p_value,
            samples=pair.samples,
            verdict=pair.verdict,
            verdict_line=self.line(pair),
            method=pair.method,
            more=pair.more,
        )


def pair_line(pair: Pair, terms: ComparisonTerms, metric: str, of: str) -> str:
    """How one stands against the next, e.g. "1.9% to 2.4% faster", "no difference above 1%".

    Args:
        pair: the two.
        terms: the terms of the comparison.
        metric: the metric that was compared.
        of: the unit of the samples: "rounds" or "readings".
    """
    if pair.verdict == "equivalent":
        return f"no difference above {100 * terms.margin:.3g}%"
    if pair.verdict == "no-interval":
        return "cannot be told: one of them has no honest interval"
    if pair.verdict == "undecided":
        more = "" if pair.more is None else f": about {pair.more:,} more {of} would do"
        return f"not separated yet{more}" if of == "rounds" else f"not separated{more}"
    return _lead(pair, terms, metric)


def _lead(pair: Pair, terms: ComparisonTerms, metric: str) -> str:
    """By how much one is better."""
    low, high = pair.ratio_low, pair.ratio_high
    # Of means below zero the smaller has the larger ratio, and shares of it mean nothing.
    backwards = pair.ratio is not None and (pair.ratio > 1) == terms.lower_is_better
    if low is None or high is None or low <= 0 or backwards:
        return f"better, {p_value(pair.p_value)}"
    if not terms.lower_is_better:
        return _gain(low, high, "higher", "high")
    if lower_is_better(metric):
        return _gain(1 / high, 1 / low, "faster", "fast")
    return f"{_span(1 - high, 1 - low)} lower"


def _gain(low: float, high: float, more: str, as_much: str) -> str:
    """A factor's interval in words."""
    if low >= 2:
        return f"{number(low, 3)} to {number(high, 3)} times as {as_much}"
    return f"{_span(low - 1, high - 1)} {more}"


def _span(low: float, high: float) -> str:
    """An interval of shares, with digits enough to tell its ends apart."""
    digits = 1 if high - low >= 0.002 else 2
    return f"{max(low, 0.0):.{digits}%} to {high:.{digits}%}"
