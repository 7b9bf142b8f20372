"""The result of `ascar compare`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measure import UsedUp
from ascar.results.measurement import Count, Measurement


class Ranked(Measurement, frozen=True, kw_only=True):
    """One that was compared, with its rank.

    Attributes:
        rank: shared with the one before where the two are not separated.
        readings: of all phases.
        verdict: against the next.
    """

    rank: Count
    name: str
    command: tuple[str, ...] | None
    file: str | None
    readings: Count
    verdict: Literal["separated", "equivalent", "undecided", "no-interval", "last"]


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two neighbours in the ranking.

    Attributes:
        ratio: mean of the better over mean of the worse.
        samples: pairs of rounds, or independent samples of the side with fewer.
        more: about how many more rounds or readings would decide.
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
        metric: what was compared.
        p: probability of any wrong verdict, over all pairs and looks.
        margin: a relative difference that does not matter.
        verdict: if commands are undecided, this is a partial result.
        ended: why it ended; empty for recordings.
        rounds: of each, that count; null for recordings.
        warm_up: rounds of each that were run before and not used.
        seed: of the order of the commands.
        ranking: the best first.
        pairs: neighbours in the ranking.
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
