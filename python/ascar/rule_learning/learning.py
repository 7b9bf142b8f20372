"""The numbers of rules learned while controllers follow them, and kept if they are shown to be better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.capes.modern.learner import Modern
from ascar.sharp.live_comparison import kept_if_better

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.capes.axes import Setting
    from ascar.objective import Objective
    from ascar.pilot.turns import InTurns
    from ascar.rule_learning.system import RuleSystem
    from ascar.rules import RuleSet
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.running import TickedSystem

_TOLD_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Learned:
    """What learning came to.

    Attributes:
        before: rules that were kept at the beginning.
        after: rules that are kept at the end.
        comparison: the comparison of the two settings in turns; None if there was nothing to compare.
        ticks: the number of ticks that were read.
        settings: the number of settings that were visited.
        broken: the bound that better rules broke, so that they were not kept; else empty.
    """

    before: RuleSet
    after: RuleSet
    comparison: InTurns | None
    ticks: int
    settings: int
    broken: str = ""


def learn_numbers(
    system: TickedSystem,
    turned: RuleSystem,
    objective: Objective,
    *,
    learn_s: float,
    seed: int = 0,
    bounds: Sequence[MetricBound] = (),
    told: Callable[[float, int], None] = lambda _left_s, _settings: None,
) -> Learned:
    """Turn the numbers until the time is over, and keep the best of them if they are shown to be better.

    Args:
        system: follows rules.
        turned: the same system with its numbers as knobs.
        objective: the objective over an interval's metrics.
        learn_s: the learning time, in the system's own time.
        seed: the seed of the learner.
        bounds: what the best rules must keep to be kept.
        told: hears of the seconds left and the settings seen, once a minute of the system's time.

    Raises:
        KeyboardInterrupt: interrupted; the rules that were kept are in force.
        WorkError: the system does not do as it is told, or the objective has no value.
    """
    policy = Modern(turned.knobs, np.random.default_rng(seed))
    setting, ticks, until_s = turned.start(), 0, system.time_s + learn_s
    told_s = system.time_s
    try:
        while system.time_s < until_s:
            setting = policy.decide(turned.step(setting))
            ticks += 1
            if system.time_s - told_s >= _TOLD_EVERY_S:
                told_s = system.time_s
                told(max(0.0, until_s - told_s), len(policy.surface.places))
    finally:
        turned.end()
    before = turned.rules
    best = turned.rules_at(_best(policy, turned))
    after, comparison, broken = kept_if_better(system, objective, before, best, bounds)
    return Learned(before, after, comparison, ticks, len(policy.surface.places), broken)


def _best(policy: Modern, turned: RuleSystem) -> Setting:
    """Of the settings that were visited, the one that the model of the performance holds for best."""
    places = policy.surface.places
    if not places:
        return turned.start()
    mean, _ = policy.surface.fitted().predict(np.array([one.columns for one in places.values()]))
    return list(places)[int(np.argmax(mean))]
