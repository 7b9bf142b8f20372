"""The surface: a model of the performance over settings, a Gaussian process fitted to visits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ascar.capes.axes import units
from ascar.capes.modern.loss_scale import LossScale
from ascar.surrogate.fitting import most_probable
from ascar.surrogate.hyperparameters import SHORT, WIDE, KernelHyperparameters
from ascar.surrogate.observations import ModelObservations
from ascar.surrogate.posterior import HyperparameterPosterior
from ascar.surrogate.process import GaussianProcess, JointPrediction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting

REACH = 1 / 16
_SETTINGS_MAX = 160
_TICK_SD_FIRST = 0.1
_FLOOR = 0.05
_SCALE_MIN, _SCALE_MIN_NOISY = 0.03, 0.1
_GROWTH = 1.3
NOISY = 0.3
"""Standard deviation of a tick, as a share, from which on single ticks say little: losses are not compressed,
lengths taken to be twice as long and about anything, and no visit ends before it has settled."""
_MOST, _STRAIGHT, _SLOPE_MIN = 0.15, 1e3, 0.05
_FEW, _NOISY_REACH = 3, 2.0
_ITERATIONS_MAX = 25


@dataclass(slots=True)
class VisitedSetting:
    """A setting that was visited.

    Attributes:
        columns: float64 (knobs,), where it is in the unit cube.
        visits: the number of visits; a long stay counts as several.
        ticks: measured in all.
        mean: the mean over the ticks.
        between: sum over visits of the squared difference of their mean from the mean of all.
        within: sum over ticks of the squared difference from their visit's mean.
        last: the visit's number among all when it was here last.
    """

    columns: NDArray[np.float64]
    visits: int = 0
    ticks: int = 0
    mean: float = 0.0
    between: float = 0.0
    within: float = 0.0
    last: int = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add a visit's ticks (Chan, Golub and LeVeque 1979, for the sums)."""
        mean, n = float(values.mean()), len(values)
        self.within += float(((values - mean) ** 2).sum())
        self.visits += 1
        step = mean - self.mean
        self.mean += step * n / (self.ticks + n)
        self.between += step * (mean - self.mean) if self.ticks else 0.0
        self.ticks += n


@dataclass(frozen=True, slots=True, eq=False)
class SurfacePosterior:
    """The posterior over the surface, in the objective's units.

    Attributes:
        process: the posterior over the standardised loss.
        centre: the centre of the performance.
        scale: the scale of the performance.
        reach: the unit of length, see `Surface`.
        loss_scale: the scale of losses; means and deviations are on this scale.
    """

    process: GaussianProcess
    centre: float
    scale: float
    reach: float
    loss_scale: LossScale

    @property
    def visit_sd(self) -> float:
        """Standard deviation between visits to the same setting, beyond the noise of ticks."""
        return self.scale * self.process.noise_variance**0.5

    def predict(self, columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of the performance without noise, losses compressed, each (m,)."""
        return self.of(self.joint(columns))

    def expected(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean of the performance, losses as they are, (m,)."""
        return self.loss_scale.plain(self.predict(columns)[0])

    def joint(self, columns: NDArray[np.float64]) -> JointPrediction:
        """The posterior at some places, for `of` and `sample`."""
        return self.process.joint(columns / self.reach)

    def of(self, joint: JointPrediction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of the performance without noise, losses compressed, each (m,)."""
        return self.centre - self.scale * joint.mean, self.scale * joint.sd

    def sample(self, joint: JointPrediction, rng: np.random.Generator) -> NDArray[np.float64]:
        """(m,): one surface that may be the true one, at some places."""
        covariance = self.process.covariance(joint, joint)
        covariance[np.diag_indices_from(covariance)] += 1e-6 * max(1e-9, float(np.diag(covariance).max()))
        factor = np.linalg.cholesky(covariance)
        loss = joint.mean + factor @ rng.standard_normal(len(joint.mean))
        return self.centre - self.scale * loss


@dataclass(slots=True)
class Surface:
    """Visits to settings, and the model fitted to them.

    The noise of a tick is taken to be a share of the performance (the thesis' "percentage of the
    throughput"), estimated from ticks of the same visit; what differs between visits to the same setting
    beyond that (traffic of others, caches) is estimated with the model.

    Attributes:
        knobs: the knobs of the settings.
        designed: places of the first design that were had, the first being where it begins.
        places: the settings that were visited.
        hints: settings worth a visit before the design, the next one last.
        reach: the share of a range that the model takes for its unit of length. The prior of the lengths,
            in these units, is that of `auto`, which spends few trials on large spaces; the share of its range
            over which a knob of a storage system matters (windows from 1 to 8 of 256) may be far less.
            Where ticks are noisy it is twice as long: what looks like a narrow peak is noise there.
        compresses: whether losses are compressed and lengths taken to be short where knobs are few and
            ticks not noisy.
    """

    knobs: Sequence[Axis]
    designed: int = 1
    places: dict[Setting, VisitedSetting] = field(default_factory=dict["Setting", VisitedSetting])
    hints: list[Setting] = field(default_factory=list["Setting"])
    reach: float = REACH
    compresses: bool = True
    _visits: int = 0
    _hyper: KernelHyperparameters | None = None
    _refit_at: float = 0.0
    _fitted: SurfacePosterior | None = None
    _fitted_before: SurfacePosterior | None = None

    @classmethod
    def restored(cls, knobs: Sequence[Axis], designed: int, places: dict[Setting, VisitedSetting]) -> Surface:
        """A surface with stored visits."""
        found = cls(knobs, designed, places)
        found._visits = max((one.last for one in places.values()), default=0)
        return found

    @property
    def ticks(self) -> int:
        """The ticks measured in all visits."""
        return sum(one.ticks for one in self.places.values())

    @property
    def visits(self) -> int:
        """The number of visits."""
        return self._visits

    def add(self, setting: Setting, values: NDArray[np.float64]) -> None:
        """Add a visit's ticks, those after it had settled."""
        place = self.places.get(setting)
        if place is None:
            place = self.places[setting] = VisitedSetting(units(self.knobs, setting))
        place.add(values)
        self._visits += 1
        place.last = self._visits
        self._fitted = None
        if len(self.places) > _SETTINGS_MAX:
            best = max(self.places, key=lambda one: self.places[one].mean)
            oldest = min((one for one in self.places if one != best), key=lambda one: self.places[one].last)
            del self.places[oldest]

    def forget(self, setting: Setting) -> None:
        """Drop what was measured at a setting."""
        if self.places.pop(setting, None) is not None:
            self._fitted = None

    def best(self) -> Setting | None:
        """The setting visited whose performance, by the model, is highest; None before any visit."""
        if not self.places:
            return None
        known = list(self.places)
        mean, _ = self.fitted().predict(np.array([self.places[one].columns for one in known]))
        return known[int(np.argmax(mean))]

    def tick_sd(self) -> float:
        """Standard deviation of a tick, as a share of the performance."""
        top = self._top()
        squares = freedom = 0.0
        for place in self.places.values():
            spread = max(abs(place.mean), _FLOOR * top)
            squares += place.within / (spread * spread) if spread > 0 else 0.0
            freedom += place.ticks - place.visits
        # As if a few ticks of a moderate noise had been seen before.
        return float(np.sqrt((squares + 2 * _TICK_SD_FIRST**2) / (freedom + 2)))

    def fitted(self) -> SurfacePosterior:
        """The posterior, given at least one visit."""
        if self._fitted is None:
            self._fitted = self._fit()
        return self._fitted

    def _top(self) -> float:
        return max((abs(one.mean) for one in self.places.values()), default=0.0) or 1.0

    def _fit(self) -> SurfacePosterior:
        places = list(self.places.values())
        means = np.array([one.mean for one in places])
        ticks = np.array([one.ticks for one in places], float)
        visits = np.array([one.visits for one in places], float)
        between = np.array([one.between for one in places])
        top = self._top()
        noise = self.tick_sd()
        if self._fitted_before is not None:
            expected = self._fitted_before.expected(np.array([one.columns for one in places]))
        else:
            expected = means
        variance = (noise * np.maximum(np.abs(expected), _FLOOR * top)) ** 2 / ticks
        reach = self.reach * (_NOISY_REACH if noise >= NOISY else 1)
        if self._fitted_before is not None and reach != self._fitted_before.reach:
            self._hyper = None  # its lengths are in other units
        noisy = min((noise / NOISY) ** 2, 1.0) if self.compresses and len(self.knobs) <= _FEW else 1.0
        loss_scale = LossScale(float(expected.max()), top, min(_MOST / max(1 - noisy, 1e-9), _STRAIGHT))
        slope = np.maximum(loss_scale.slope(expected), _SLOPE_MIN) ** 2
        means, variance, between = loss_scale.compressed(means), variance * slope, between * slope
        centre = float(np.average(means, weights=1 / (variance + means.var() + 1e-12 * top * top)))
        least = (_SCALE_MIN + (_SCALE_MIN_NOISY - _SCALE_MIN) * noisy) * top
        scale = max(float(np.sqrt(max(0.0, means.var() - np.median(variance)))), least)
        observations = ModelObservations(
            np.array([one.columns for one in places]) / reach,
            np.arange(len(self.knobs)),
            (centre - means) / scale,
            variance / scale**2,
            visits,
            between / scale**2,
        )
        if self._visits >= self._refit_at or self._hyper is None:
            process = self._most_probable(observations, short=noisy < 1)
            self._hyper = process.hyper
            self._refit_at = max(self._visits + 2, self._visits * _GROWTH)
        else:
            process = GaussianProcess.condition(observations, self._hyper)
        self._fitted_before = SurfacePosterior(process, centre, scale, reach, loss_scale)
        return self._fitted_before

    def _most_probable(self, observations: ModelObservations, *, short: bool) -> GaussianProcess:
        posterior = HyperparameterPosterior.of(observations, rough=False, lengths=SHORT if short else WIDE)
        starts = KernelHyperparameters.starts(observations.parameters)
        if self._hyper is not None:
            middle = posterior.middle if short else KernelHyperparameters.prior(observations.parameters)
            starts = (self._hyper, middle)
        return most_probable(posterior, starts, _ITERATIONS_MAX)
