"""Rules in force as a system that CAPES tunes: a knob for each of their numbers (Li, 6.3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ascar.capes.axes import Axis, checked, initial
from ascar.capes.policy import TickObservation
from ascar.errors import ExpressionError
from ascar.sharp.deployment.managed_system import interval_metrics
from ascar.sharp.ranges import FIELDS
from ascar.sharp.rule_knobs import knobs, with_values
from ascar.space import Range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.capes.axes import Setting
    from ascar.objective import Objective
    from ascar.sharp import RuleSet
    from ascar.sharp.running import TickedSystem
    from ascar.space import Parameter

_STEPS: Final = {"m100": 5.0, "b100": 6.0, "tau_us": 500.0}
_RENEW_TICKS: Final = 20


class RuleSystem:
    """A tick is a reading of all clients under rules with the numbers of a setting, on trial.

    Args:
        system: follows the rules.
        rules: the rules whose numbers are tuned.
        objective: the objective over an interval's metrics.
        tick_s: length of a tick.

    Attributes:
        rules: whose numbers are turned.
        knobs: the knobs of the rules.
    """

    def __init__(
        self, system: TickedSystem, rules: RuleSet, objective: Objective, tick_s: float = 1.0
    ) -> None:
        self._system, self.rules, self._objective, self._tick_s = system, rules.bare(), objective, tick_s
        self.knobs: tuple[Axis, ...] = ()
        self._tick = 0
        self._setting: Setting | None = None
        self._held = 0

    def turn(self, fields: Sequence[str] = tuple(FIELDS), at: Sequence[int] | None = None) -> RuleSystem:
        """Choose what is turned.

        Args:
            fields: the numbers of the actions to tune.
            at: numbers of the rules, from 0; None: all.

        Raises:
            InputError: no such field or rule.
        """
        self.knobs = tuple(map(_knob, knobs(self.rules, fields, at)))
        return self

    def start(self) -> Setting:
        """The numbers that the rules have."""
        return initial(self.knobs)

    def rules_at(self, setting: Setting) -> RuleSet:
        """The rules with the numbers of a setting."""
        values = {knob.name: round(value) for knob, value in zip(self.knobs, setting, strict=True)}
        return with_values(self.rules, values)

    def step(self, setting: Setting) -> TickObservation:
        """A tick under a setting; the first one after a change is not read.

        Raises:
            InputError: the setting is out of range.
            WorkError: a controller does not follow, or is lost.
        """
        setting = checked(self.knobs, setting)
        rules = self.rules_at(setting)
        changed = setting != self._setting
        if changed:
            self._system.back()
            self._system.try_out(rules)
            self._setting, self._held = setting, 0
        elif self._held % _RENEW_TICKS == _RENEW_TICKS - 1:
            self._system.renew()
        self._held += 1
        series = self._system.collect(rules, 0.0, self._tick_s, going_on=not changed)
        self._tick += 1
        metrics = interval_metrics(series)
        try:
            performance = self._objective.sign * self._objective.score(metrics)
        except ExpressionError:
            performance = float("nan")
        nodes = [[float(np.mean(own))] for own in series.values()]
        return TickObservation(self._tick, performance, np.array(nodes, np.float32), setting)

    def end(self) -> None:
        """The rules that are kept are in force again."""
        self._system.back()
        self._setting = None


def _knob(parameter: Parameter) -> Axis:
    """With the range of a parameter of `knobs`; for the range steps are as fine as in table 3.2's."""
    _, _, field = parameter.name.partition("_")
    domain, default, usual = parameter.domain, parameter.default, FIELDS[field]
    assert isinstance(domain, Range), "numbers of rules have ranges"
    assert isinstance(default, int), "and are whole"
    low, high = float(domain.low), float(domain.high)
    step = _STEPS[field] * max(1.0, (high - low) / (usual.upper - usual.lower))
    return Axis(parameter.name, float(default), low, high, step, domain.log)
