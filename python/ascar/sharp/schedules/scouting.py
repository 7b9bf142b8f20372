"""Where to split: along the one indicator that explains most.

Algorithm 1 splits into 2^d and so makes rules that nobody needs, each to be improved on its own. Here a rule
is split in two along each indicator on trial, and in each half a narrower and a wider window are tried once.
A parabola through the three points says what a half could bring if it differed from the other; the indicator
with the largest sum is the one to split along.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.rules import INDICATORS, Action
from ascar.sharp.schedules.action_model import Actions
from ascar.sharp.schedules.splitting import split_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.rules import Rule, RuleSet
    from ascar.sharp.schedules.racing import Field
    from ascar.sharp.trials.judge import Judged

_REQUEST_KIB = INDICATORS.index("request_kib")
_FACTOR = 3.0
_WINDOW_MIN, _WINDOW_MAX = 1.0, 64.0
_USED_SHARE_MIN = 0.05
_WINDOW_DEFAULT = 8.0


@dataclass(frozen=True, slots=True)
class Cut:
    """A rule in two.

    Attributes:
        rules: the rule set with both halves, which act as the whole rule did.
        parts: the numbers of the halves, the more promising first.
    """

    rules: RuleSet
    parts: tuple[int, ...]


@dataclass(slots=True)
class Scout:
    """Chooses splits, and remembers which were chosen before.

    Attributes:
        field: runs the probes.
        axes: the numbers of the indicators to split along.
        far: actions that each half is tried with besides, however far they are from the present one.
    """

    field: Field
    axes: Sequence[int] = (0, 1, 2)
    far: Sequence[Action] = ()
    _spent: set[tuple[object, int]] = dataclasses.field(default_factory=set[tuple[object, int]])

    def cut(self, best: Judged) -> Cut | None:
        """The most promising split of the hottest rule that can still be split; None: there is none."""
        for at in _by_heat(best.observed):
            places = [place for axis in self.axes for place in self._places(best, at, axis)]
            cuts = {place: split_at(best.rules, at, *place) for place in places}
            if cuts:
                promises = self._promises(best, at, cuts)
                chosen = max(cuts, key=lambda one: (sum(promises[one]), -places.index(one)))
                # Where several places an axis are probed, the best is as good as splits of this rule get.
                tried = self.axes if self.far else (chosen[0],)
                self._spent |= {(best.rules.rules[at].region, axis) for axis in tried}
                first, second = promises[chosen]
                return Cut(cuts[chosen], (at, at + 1) if first >= second else (at + 1, at))
        return None

    def _places(self, best: Judged, at: int, axis: int) -> list[tuple[int, int]]:
        """Where a rule can be split along an indicator: the indicator, and its value.

        At the observed mean (algorithm 1), unless that was tried or nothing was observed inside; where kinds
        of stream are told apart also at half and at twice as much, since the mean of several scenarios is
        that of the busiest.
        """
        rule = best.observed.rules[at]
        whole = rule.region[axis]
        if (rule.region, axis) in self._spent or rule.observed is None:
            return []
        mean = rule.observed.means[axis]
        values = (mean, mean // 2, 2 * mean) if self.far else (mean,)
        return [(axis, value) for value in values if whole.lo < value < whole.hi]

    def _promises(
        self, best: Judged, at: int, cuts: dict[tuple[int, int], RuleSet]
    ) -> dict[tuple[int, int], tuple[float, float]]:
        """What each half of each split could bring."""
        action = best.rules.rules[at].action
        usual = usual_window(action)
        within = (max(usual / _FACTOR, _WINDOW_MIN), min(usual * _FACTOR, _WINDOW_MAX))
        windows = [window for window in within if window != usual]
        actions = [*(_holding(action, window) for window in windows), *self.far]
        probes = [
            rules.with_action(at + half, other)
            for rules in cuts.values()
            for half in (0, 1)
            for other in actions
        ]
        leads = [one.lead(best) for one in self.field.tried(probes)]
        steps = [math.log(window / usual) for window in windows]
        halves = [leads[first : first + len(actions)] for first in range(0, len(leads), len(actions))]
        promises = [max([_promise(steps, half[: len(steps)]), *half[len(steps) :]]) for half in halves]
        return dict(zip(cuts, zip(promises[::2], promises[1::2], strict=True), strict=True))


def usual_window(action: Action) -> float:
    """The window, in requests, that an action keeps to where it is followed again and again."""
    if not 0 <= action.m100 < 100:
        return _WINDOW_DEFAULT
    return min(max(action.b100 / (100 - action.m100), _WINDOW_MIN), _WINDOW_MAX)


def _holding(action: Action, window: float) -> Action:
    """The action of a gap with a window held."""
    return Actions().leading_to(window, 0, action.tau_us)


def _by_heat(rules: RuleSet) -> list[int]:
    """Numbers of the rules that are used, the hottest first: by bytes where the size of requests is known."""
    uses = [_heat(rule) for rule in rules.rules]
    least = _USED_SHARE_MIN * sum(uses)
    order = sorted(range(len(uses)), key=lambda at: -uses[at])
    return [at for at in order if uses[at] > 0 and uses[at] >= least]


def _heat(rule: Rule) -> int:
    if rule.observed is None:
        return 0
    sizes = rule.observed.means[_REQUEST_KIB : _REQUEST_KIB + 1]
    return rule.observed.used_times * max(1, *sizes, 1)


def _promise(steps: list[float], leads: list[float]) -> float:
    """The largest value, within reach, of the parabola through (0, 0) and two probes; 0 at least."""
    points = [(step, lead) for step, lead in zip(steps, leads, strict=True) if math.isfinite(lead)]
    best = max([0.0, *(lead for _, lead in points)])
    if len(points) < 2:
        return best
    (x1, y1), (x2, y2) = points
    bend = (y1 / x1 - y2 / x2) / (x1 - x2)
    slope = y1 / x1 - bend * x1
    if bend >= 0:
        return best
    return max(best, -(slope**2) / (4 * bend)) if x1 <= -slope / (2 * bend) <= x2 else best
