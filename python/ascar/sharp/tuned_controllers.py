"""Published controllers, and the static window and gap, tuned to a workload as rules are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from ascar.errors import ExpressionError, InputError
from ascar.optimizers import Evaluation, open_optimizer
from ascar.results.trial import TrialState
from ascar.sharp.metric_bounds import excess_of, penalty
from ascar.sharp.trials.bench import combined, metrics_of
from ascar.simulation import run_many, seeded
from ascar.simulation.controlled import controls_of, with_control, with_controller
from ascar.simulation.groups import rates_of, shares_of
from ascar.space import Space, floating

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.objective import Objective
    from ascar.results.cluster import ClusterOutcome
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.simulation import Scenario
    from ascar.simulation.controlled import Followers
    from ascar.space import Configuration

STATIC: Final = "fixed"
"""The controller whose window and gap stay as they are."""
SEEDS = 2
"""Runs of each setting, on the same seeds for all."""
_LATENCY = ("latency_ms_max", 2.0, 5_000.0, 200.0)
_RANGES: Final[Mapping[str, tuple[tuple[str, float, float, float], ...]]] = {
    "fixed": (("window", 1.0, 256.0, 8.0), ("gap_ms", 0.1, 200.0, 0.1)),
    "aimd": (_LATENCY, ("aimd_decrease", 0.3, 0.97, 0.5)),
    "cubic": (_LATENCY, ("cubic_decrease", 0.3, 0.97, 0.7), ("cubic_growth", 0.01, 100.0, 0.4)),
    "bbr": (("bbr_window_gain", 0.3, 16.0, 2.0), ("bbr_probe_gain", 1.02, 1.9, 1.25)),
    "bbr3": (_LATENCY, ("bbr_window_gain", 0.3, 16.0, 2.0), ("bbr_probe_gain", 1.02, 1.9, 1.25)),
    "vegas": (("vegas_alpha", 0.1, 64.0, 2.0), ("vegas_spread", 0.1, 64.0, 2.0)),
    "gradient2": (("gradient2_queue", 0.1, 64.0, 4.0), ("gradient2_smoothing", 0.02, 1.0, 0.2)),
    "copa": (("copa_delta", 0.01, 16.0, 0.5),),
}
"""Name, least, greatest and published value of each setting; all are searched on a logarithmic scale."""
TUNABLE: Final = tuple(name for name in _RANGES if name != STATIC)


@dataclass(frozen=True, slots=True)
class TunedController:
    """A controller with the settings that were best of those tried.

    Attributes:
        controller: the controller.
        settings: its settings, by key of the scenario's control.
        runs: the number of runs that were made to find them.
        followers: the streams that it was tuned for.
    """

    controller: str
    settings: Mapping[str, float]
    runs: int
    followers: Followers = None

    def of(self, scenario: Scenario) -> Scenario:
        """A scenario under it."""
        return under_settings(scenario, self.controller, self.settings, self.followers)


def tune_controller(
    scenarios: Sequence[Scenario],
    controller: str,
    objective: Objective,
    runs: int,
    *,
    bounds: Sequence[MetricBound] = (),
    followers: Followers = None,
    threads: int | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> TunedController:
    """Search the settings of a controller with ascar's own optimizer; its published ones are tried first.

    Args:
        scenarios: the scenarios; what counts is the mean over them. Runs have their seeds and those after.
        controller: one of `TUNABLE`, or `STATIC`.
        objective: the objective over the metrics of a run.
        runs: the greatest number of runs.
        bounds: what must hold besides.
        followers: the streams that it controls.
        threads: runs at a time; None: one a core.
        told: hears how many runs were made.

    Raises:
        InputError: there is no such controller, or there are too few runs.
    """
    if controller not in _RANGES:
        raise InputError(f"controller = {controller[:80]!r}: must be of {', '.join(_RANGES)}")
    if runs < len(scenarios) * SEEDS:
        raise InputError(f"runs = {runs}: must be {len(scenarios) * SEEDS} or more")
    space = _space(controller)
    optimizer = open_optimizer({"kind": "auto"}, space, 1, (space.default(),))
    each = len(scenarios) * SEEDS
    worth = _Worth(objective, bounds, run_many(_seeded(scenarios), threads=threads))
    best, least, made = space.default(), math.inf, 0
    while made + each <= runs:
        configuration = optimizer.ask()
        settings = _settings(controller, configuration)
        outcomes = run_many(
            _seeded([under_settings(one, controller, settings, followers) for one in scenarios]),
            threads=threads,
        )
        loss = -worth.of(outcomes)
        made += each
        told(made)
        if not math.isfinite(loss):
            optimizer.tell(Evaluation(configuration, TrialState.FAILED, None))
            continue
        optimizer.tell(Evaluation(configuration, TrialState.COMPLETE, loss))
        if loss < least:
            best, least = configuration, loss
    return TunedController(controller, _settings(controller, best), made, followers)


@dataclass(frozen=True, slots=True)
class _Worth:
    """What runs are worth; larger is better.

    Attributes:
        objective: the objective.
        bounds: what must hold besides.
        without: the runs of the scenario as it is, on the same seeds.
    """

    objective: Objective
    bounds: Sequence[MetricBound]
    without: Sequence[ClusterOutcome]

    def of(self, outcomes: Sequence[ClusterOutcome]) -> float:
        """The mean over seeds of the score of all scenarios together, less what it breaks of the bounds."""
        return fmean(self._of_seed(outcomes, seed) for seed in range(SEEDS))

    def _of_seed(self, outcomes: Sequence[ClusterOutcome], seed: int) -> float:
        metrics, before = self._metrics(outcomes, seed), self._metrics(self.without, seed)
        score, scale = self._score(metrics), abs(self._score(before))
        return score - penalty(score, scale, excess_of(self.bounds, metrics))

    def _metrics(self, outcomes: Sequence[ClusterOutcome], seed: int) -> dict[str, float]:
        names = self.objective.formula.names
        pairs = zip(outcomes[seed::SEEDS], self.without[seed::SEEDS], strict=True)
        return combined(
            [metrics_of(one, names) | shares_of(rates_of(one), rates_of(other)) for one, other in pairs]
        )

    def _score(self, metrics: Mapping[str, float]) -> float:
        try:
            return self.objective.sign * self.objective.score(metrics)
        except ExpressionError:
            return -math.inf


def _space(controller: str) -> Space:
    return Space(
        tuple(
            floating(name, (least, most), default=usual, log=True)
            for name, least, most, usual in _RANGES[controller]
        ),
        name=controller,
    )


def _settings(controller: str, configuration: Configuration) -> dict[str, float]:
    """By key of the scenario's control."""
    values = {name: float(configuration[name]) for name, *_ in _RANGES[controller]}
    if controller == STATIC:
        gap_ms = values["gap_ms"]
        return {"window": values["window"], "tau_us": 0.0 if gap_ms <= 0.1 else gap_ms * 1_000}
    if "vegas_spread" in values:
        values["vegas_beta"] = values["vegas_alpha"] + values.pop("vegas_spread")
    return values


def under_settings(
    scenario: Scenario, controller: str, settings: Mapping[str, float], followers: Followers = None
) -> Scenario:
    """A scenario whose streams have a controller with these settings, as far as their bounds allow."""
    if controller == STATIC:
        fixed = with_controller(scenario, controller, followers=followers)
        controls = controls_of(fixed, followers)
        least = max(one.window_min for one in controls)
        most = min(one.window_max for one in controls)
        window = max(least, min(settings["window"], most))
        return with_control(fixed, window=window, tau_us=settings["tau_us"], followers=followers)
    return with_controller(scenario, controller, settings, followers)


def _seeded(scenarios: Sequence[Scenario]) -> list[Scenario]:
    return [one for scenario in scenarios for one in seeded(scenario, SEEDS)]
