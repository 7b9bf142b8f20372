"""The result of `ascar compare`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.machine import MachineDifference, MachineRecord
from ascar.results.measure import UsedUp
from ascar.results.measurement import Count, Measurement


class Ranked(Measurement, frozen=True, kw_only=True):
    """One that was compared, with its rank.

    Attributes:
        rank: the rank; equal to the previous one if the two are not separated.
        name: the name of the contestant.
        command: the command; null for recordings.
        file: the file of a recording; null for commands.
        readings: the number of readings in all phases; of a saved result, in the stable phase.
        machine: the machine that it was measured on; null if a recording does not say.
        verdict: the verdict of the comparison with the next.
    """

    rank: Count
    name: str
    command: tuple[str, ...] | None
    file: str | None
    readings: Count
    machine: MachineRecord | None = None
    verdict: Literal["separated", "equivalent", "undecided", "no-interval", "last"]


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two neighbours in the ranking.

    Attributes:
        better: the name of the better one.
        worse: the name of the worse one.
        ratio: the mean of the better over the mean of the worse.
        ratio_low: the lower end of the ratio's interval.
        ratio_high: the upper end of that interval.
        p_value: the p-value of the test that the two differ.
        samples: the number of pairs of rounds, or of independent samples of the side with fewer.
        verdict: the verdict of the comparison.
        verdict_line: the verdict in one line.
        method: the method of the comparison.
        more: an estimate of the further rounds or readings that would decide.
    """

    better: str
    worse: str
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    p_value: float | None
    samples: Count
    verdict: Literal["separated", "equivalent", "undecided", "no-interval"]
    verdict_line: str
    method: str
    more: Count | None


class CompareResult(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="schema",
    tag="ascar/compare/1",
):
    """Which of several commands or recordings is better.

    Attributes:
        mode: whether commands were run or recordings were compared.
        metric: the metric that was compared.
        lower_is_better: whether lower values are better.
        p: probability of any wrong verdict, over all pairs and looks.
        margin: a relative difference that does not matter.
        verdict: whether all neighbours are decided; "undecided" marks a partial result.
        ended: why it ended; empty for recordings.
        seconds: the duration of the session; null for recordings.
        rounds: the number of counted rounds of each command; null for recordings.
        warm_up: rounds of each that were run before and not used.
        seed: the seed of the order of the commands.
        ranking: the best first.
        pairs: neighbours in the ranking.
        bottlenecks: the resources that limited the result.
        machine_differences: the facts in which the machines of saved results differ.
    """

    mode: Literal["live", "recorded"]
    metric: str
    lower_is_better: bool
    p: float
    margin: float
    verdict: Literal["decided", "undecided"]
    ended: str
    seconds: float | None
    rounds: Count | None
    warm_up: Count | None
    seed: Count | None
    ranking: tuple[Ranked, ...]
    pairs: tuple[ComparedPair, ...]
    bottlenecks: tuple[UsedUp, ...]
    machine_differences: tuple[MachineDifference, ...] = ()
