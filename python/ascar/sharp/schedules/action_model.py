"""A model of what a rule's action is worth: a Gaussian process over (m, b, tau), asked what to try next.

Instead of the full product of changed m, b and tau (539 rule sets a round), the model is fitted to the few
actions that were tried, and names those of largest expected improvement (Jones, Schonlau and Welch 1998).

b means something else for each m, so an action is described by its inertia m, by the window to which it leads
from a usual one, `m * usual + b`, on a logarithmic scale, and by the square root of its gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from ascar.rules import Action
from ascar.surrogate.acquisition import expected_improvement
from ascar.surrogate.fitting import fit
from ascar.surrogate.observations import ModelObservations
from ascar.surrogate.process import GaussianProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from ascar.sharp.trials.judge import Judged

WINDOWS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
TAUS_US = (0, 2_500, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 85_000, 100_000)
_INERTIAS_X100 = (0, 50, 80, 100, 120)
_ONCE_X100 = 100
_TAU_SCALE_US = 100_000
_WINDOWS_LOG2 = 6.0
_NEAR = (0.8, 0.9, 1.0, 1.1, 1.25)
_WORST = 4.0  # standard deviations below the middle: a bad action is no place to look into
_BROKEN, _BROKEN_MORE = 0.5, 10.0  # of an action that breaks a bound, and for each 100% of its limit


def _any(action: Action) -> bool:
    del action
    return True


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions that are considered, and how they are described.

    Attributes:
        usual: window, in requests, that the rule usually finds.
        admits: whether what follows the rules can do what an action says.
    """

    usual: float = 8.0
    admits: Callable[[Action], bool] = _any

    def leads_to(self, action: Action) -> float:
        """The window after the rule was applied once to the usual one."""
        m100 = action.m100 if action.m100 >= 0 else _ONCE_X100
        return (m100 * self.usual + action.b100) / 100

    def leading_to(self, window: float, m100: int = 0, tau_us: int = 0) -> Action:
        """The action of that inertia that leads to a window from the usual one."""
        return Action(m100, round(100 * window - m100 * self.usual), tau_us)

    def every(self) -> list[Action]:
        """All of them."""
        return [
            self.leading_to(window, m100, tau_us)
            for m100, window, tau_us in product(_INERTIAS_X100, WINDOWS, TAUS_US)
        ]

    def near(self, action: Action) -> list[Action]:
        """Those that lead to about the same window, with about the same gap."""
        m100 = action.m100 if action.m100 >= 0 else _ONCE_X100
        windows = [max(1.0, self.leads_to(action) * factor) for factor in _NEAR]
        if m100 == 0:  # whole requests are admitted
            windows = [float(round(window)) for window in windows]
        taus_us = [round(action.tau_us * factor) for factor in _NEAR]
        return [self.leading_to(window, m100, tau_us) for window, tau_us in product(windows, taus_us)]

    def columns(self, actions: list[Action]) -> NDArray[np.float64]:
        """(n, 3): each described by numbers of about 0 to 1."""
        rows = [
            (
                (action.m100 if action.m100 >= 0 else _ONCE_X100) / 100,
                math.log2(max(self.leads_to(action), 0.5)) / _WINDOWS_LOG2,
                math.sqrt(action.tau_us / _TAU_SCALE_US),
            )
            for action in actions
        ]
        return np.array(rows, np.float64).reshape(-1, 3)


@dataclass(frozen=True, slots=True)
class PromisingAction:
    """An action that seems worth trying.

    Attributes:
        action: itself.
        improvement: the expected improvement over the best so far, in the unit of the objective.
    """

    action: Action
    improvement: float


def promising(
    actions: Actions, tried: Mapping[Action, Judged], reference: Judged, count: int
) -> list[PromisingAction]:
    """The most promising actions that were not tried, together.

    Each is chosen as if those before it had brought what the model expects (`ModelObservations.believing`).

    Args:
        actions: the actions to consider.
        tried: the actions that were tried, with their results.
        reference: the reference of the differences, on the same random numbers.
        count: the most actions to return.
    """
    seen, scale = _observed(actions, tried, reference)
    model = fit(seen, rough=False)
    best_tried = list(tried)[int(seen.loss.argmin())]
    considered = dict.fromkeys([*actions.every(), *actions.near(best_tried)])
    left = [one for one in considered if one not in tried and actions.admits(one)]
    columns = actions.columns(left)
    best = float(model.predict(seen.columns)[0].min())
    found: list[PromisingAction] = []
    while left and len(found) < count:
        mean, deviation = model.predict(columns)
        worth = expected_improvement(mean, deviation, best)
        at = int(worth.argmax())
        found.append(PromisingAction(left.pop(at), float(worth[at]) * scale))
        believed, columns = columns[at : at + 1], np.delete(columns, at, 0)
        seen = seen.believing(believed, mean[at : at + 1])
        best = min(best, float(mean[at]))
        model = GaussianProcess.condition(seen, model.hyper)
    return found


def _observed(
    actions: Actions, tried: Mapping[Action, Judged], reference: Judged
) -> tuple[ModelObservations, float]:
    """What is known of actions as standardised losses, and the unit of these."""
    differences = [
        np.array([a - b for a, b in zip(one.plain, reference.plain, strict=False)], np.float64)
        for one in tried.values()
    ]
    broken = np.array([fmean(one.excesses) for one in tried.values()])
    means = np.array([float(values.mean()) for values in differences])
    finite = means[np.isfinite(means)]
    middle = float(np.median(finite)) if len(finite) else 0.0
    scale = float(finite.std()) if len(finite) > 1 else 0.0
    scale = scale if scale > 0 else 1.0
    losses = np.where(
        np.isfinite(means), -(np.where(np.isfinite(means), means, 0.0) - middle) / scale, _WORST
    )
    # What a race takes off is so much that the model would see nothing else.
    losses += np.where(broken > 0, _BROKEN + _BROKEN_MORE * np.minimum(broken, 1.0), 0.0)
    scatter = [
        float(((values - values.mean()) ** 2).sum()) / scale**2 if np.isfinite(values).all() else 0.0
        for values in differences
    ]
    count = len(means)
    return (
        ModelObservations(
            actions.columns(list(tried)),
            np.arange(3, dtype=np.intp),
            np.minimum(losses, _WORST),
            np.zeros(count),
            np.array([float(len(values)) for values in differences]),
            np.array(scatter),
        ),
        scale,
    )
