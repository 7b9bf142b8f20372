"""What each client of a system at work gets under rules and without them, and bounds on that.

Of a system at work no more is known than what each client gets: a group is a client here.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascar.pilot.turns import PAIRS_MIN
from ascar.render import number, percentage
from ascar.sharp.deployment.managed_system import METRICS, check_told
from ascar.sharp.effects import group_changes, standings
from ascar.sharp.metric_bounds import bounds_of
from ascar.sharp.trials.bench import RuleRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.pilot.turns import Side
    from ascar.results.rule_search import BoundStanding
    from ascar.sharp.metric_bounds import MetricBound

INTERVALS_MAX = 100
"""Intervals of a side that are kept; older ones are forgotten."""
COLLAPSE = 0.25
"""Below this share of all throughput without the rules, one interval is enough: some client gets less yet."""
_RATE = "throughput_mb_per_s"
_OF_CLIENTS = frozenset(("group_share_min", "client_share_min"))


def check_bounds(bounds: Sequence[MetricBound]) -> None:
    """Refuse a bound on what an interval of a running system does not tell.

    Raises:
        InputError: it names another metric.
    """
    check_told("--constraint", (one.metric for one in bounds), METRICS | _OF_CLIENTS)


@dataclass(slots=True)
class ClientShares:
    """Intervals of a system at work, by client.

    Attributes:
        bounds: what rules must keep.
        most: the intervals of a side that are kept.
        names: the clients; those of the first interval.
    """

    bounds: tuple[MetricBound, ...] = field(default_factory=lambda: bounds_of(None))
    most: int = INTERVALS_MAX
    names: tuple[str, ...] = ()
    _sides: dict[Side, deque[RuleRun]] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without intervals."""
        self._sides = {"reference": deque(maxlen=self.most), "candidate": deque(maxlen=self.most)}

    def take(self, side: Side, clients: Mapping[str, Sequence[float]], metrics: Mapping[str, float]) -> None:
        """Take in an interval.

        Args:
            side: "reference" without the rules, "candidate" under them.
            clients: throughput by client in MB/s, a value a tick.
            metrics: what the interval tells of the whole system.
        """
        self.names = self.names or tuple(clients)
        rates = tuple(
            sum(values) / len(values) if (values := clients.get(one)) else 0.0 for one in self.names
        )
        self._sides[side].append(RuleRun(dict(metrics), (), None, rates))

    def idle(self) -> bool:
        """Whether nothing moved in the last interval without the rules."""
        without = self._sides["reference"]
        return bool(without) and without[-1].metrics[_RATE] == 0

    def collapsed(self) -> str:
        """How far the throughput fell in the last interval under the rules, in words.

        Empty where it did not fall below `COLLAPSE` of every interval without them, and where no bound is on
        what clients get.
        """
        without, under = self._sides["reference"], self._sides["candidate"]
        if not (without and under and any(one.metric in _OF_CLIENTS for one in self.bounds)):
            return ""
        least = min(one.metrics[_RATE] for one in without)
        now = under[-1].metrics[_RATE]
        if not 0 <= now < COLLAPSE * least:
            return ""
        return f"the throughput is {number(now)} MB/s under them, and {number(least)} or more without"

    def broken(self) -> str:
        """The first bound that the intervals show to be broken, in words; empty: none is."""
        if why := self.collapsed():
            return why
        pairs = min(len(one) for one in self._sides.values())
        if pairs < PAIRS_MIN:
            return ""
        without, under = (tuple(one)[-pairs:] for one in self._sides.values())
        runs = (without, under)
        found = standings(self.bounds, runs, group_changes(self.names, runs))
        return next((_words(one) for one in found if one.standing == "broken"), "")


def _words(one: BoundStanding) -> str:
    if one.value is None or one.low is None or one.high is None:
        return f"{one.bound} is not kept"
    if "share" in one.bound:
        limits = f"{percentage(one.low)} to {percentage(one.high)}"
        share = f"a client gets {percentage(one.value)} ({limits})"
        return f"{one.bound} is not kept: {share} of what it got before"
    return f"{one.bound} is not kept: it is {one.value:.4g} ({one.low:.4g} to {one.high:.4g})"
