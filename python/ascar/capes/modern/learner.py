"""The modern learner: a model of performance over settings with its uncertainty, and a step where it pays.

CAPES's deep Q-learning learns from transitions which step raises throughput. What it has to find out, on the
systems of its paper, is a surface: performance as a function of where the knobs stand. This learner models
that surface directly (`ascar.capes.modern.surface`), moves by Thompson sampling (draw a surface that may be
the true one, go where that is highest; Thompson 1933, Russo and others 2018), and waits after each change
until it shows (`ascar.capes.modern.settling`). An action sets levels, it does not step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ascar.capes.axes import initial, units
from ascar.capes.modern.axis_levels import AxisLevels
from ascar.capes.modern.loss_budget import LossBudget
from ascar.capes.modern.modern_options import ModernOptions
from ascar.capes.modern.settling import SettlingDelay
from ascar.capes.modern.surface import NOISY
from ascar.capes.modern.visit import Visit, VisitEnding, VisitPurpose
from ascar.capes.modern.visit_value import CandidateSettings, ChoiceCriteria, paying
from ascar.capes.modern.workload_models import WorkloadModels
from ascar.library import IndicatorSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting
    from ascar.capes.modern.surface import Surface, SurfacePosterior
    from ascar.capes.policy import TickObservation
    from ascar.surrogate.process import JointPrediction

_LONG_VISITS, _THOMPSON_MAX = 3, 0.5
_SHIFT_TICKS, _COSTLY_TICKS = 3, 2


class Modern:
    """See the module.

    Args:
        knobs: the knobs that it sets, starting from their initial values.
        rng: the source of all random choices.
        options: the options that a user set.

    Attributes:
        visit_error: the standard error of a visit's mean that is aimed at, as a share.
        long_every: one in this many visits waits for the longest delay, so that a longer delay is noticed.
        initial_sds: the initial setting is left for good only for a setting that is better by
            `ModernOptions.worth` and so many standard deviations.
        horizon_ticks: a visit must pay within so many ticks: at first, when the learner looks ahead as far as
            it can look back, and at most.
        thompson_noise: noise of a tick, as a share, at which Thompson sampling alone would decide; below that
            it decides less often, and nowhere more often than every other time.
        thompson_ticks: the number of ticks of a workload after which drawn surfaces approach the mean.
        knobs: see above.
        options: see above.
        candidates: the settings that it chooses from.
        workloads: the models of the workloads.
        settling: the estimate of the delay until a change has its effect.
        budget: the budget of exploration losses.
        refused: settings that were not put in force, as shares of the ranges.
        visit: the one under way.
        frozen: whether it stays at the best setting known.
        moves: changes that it chose.
    """

    visit_error: ClassVar[float] = 0.1
    long_every: ClassVar[int] = 6
    initial_sds: ClassVar[float] = 1.0
    horizon_ticks: ClassVar[tuple[int, int]] = (300, 1_200)
    thompson_noise: ClassVar[float] = 0.3
    thompson_ticks: ClassVar[int] = 600

    def __init__(
        self, knobs: Sequence[Axis], rng: np.random.Generator, options: ModernOptions | None = None
    ) -> None:
        self.knobs, self.options = tuple(knobs), options or ModernOptions()
        self._rng = rng
        self.candidates = AxisLevels(self.knobs, rng)
        self.workloads = WorkloadModels(self.knobs)
        self.settling = SettlingDelay(self.options.settle_ticks_max)
        self.budget = LossBudget(self.options.budget)
        self._initial = initial(self.knobs)
        self.refused: dict[Setting, NDArray[np.float64]] = {}
        self.visit = Visit(self._initial, 0, self.options.first_ticks)
        self.frozen = False
        self.moves = 0

    def decide(self, seen: TickObservation) -> Setting:
        """Take in a tick; return the setting that is in force from now on."""
        if self.frozen:
            return self._best()
        if seen.setting != self.visit.setting:  # refused, or changed by somebody else
            self.refused[self.visit.setting] = units(self.knobs, self.visit.setting)
            self._enter(seen.setting)
        self.visit.add(seen)
        ending = self._ending()
        if ending is not None:
            self._leave(ending)
        return self.visit.setting

    def announce(self, workload: str) -> None:
        """Another workload has begun; what was learnt of it before, under this name, is taken up again."""
        self.workloads.announce(workload)
        resting = self.visit.purpose is VisitPurpose.REST
        purpose = VisitPurpose.REST if resting else VisitPurpose.MEASURE
        self._enter(self.visit.setting, left=None, purpose=purpose, wanted_ticks=self.options.visit_ticks_min)

    def freeze(self) -> None:
        """Stop learning and exploring: the best setting known of the workload stays in force."""
        self.frozen = True

    def stay(self, setting: Setting) -> None:
        """The chosen setting is not put in force, through no fault of its own: a visit begins here."""
        self._enter(setting, left=None)

    def recall(self, setting: Setting, values: NDArray[np.float64], indicators: NDArray[np.float64]) -> None:
        """Learn from a visit of the past.

        Args:
            setting: the setting that was in force.
            values: (ticks,), measured after it had settled; NaN where nothing was.
            indicators: (ticks, indicators), means over the nodes meanwhile.
        """
        settled = values[np.isfinite(values)]
        if len(settled) and not self.workloads.outlier(setting, settled, IndicatorSummary.of(indicators)):
            self.surface.add(setting, settled)

    @property
    def surface(self) -> Surface:
        """The surface of the workload that runs."""
        return self.workloads.surface

    def _ending(self) -> VisitEnding | None:
        """Why the visit ends now; None where it goes on."""
        visit = self.visit
        if visit.complete:
            return VisitEnding.COMPLETE
        if visit.setting != self._initial and self._loses_too_much():
            return VisitEnding.COSTLY
        if visit.purpose is VisitPurpose.IDENTIFY or not visit.stays:
            return None
        if len(visit.values) < visit.wait_ticks + _SHIFT_TICKS:
            return None
        latest = IndicatorSummary.of(np.array(visit.indicators[-_SHIFT_TICKS:]))
        return VisitEnding.SHIFTED if self.workloads.deviates(visit.setting, latest) else None

    def _loses_too_much(self) -> bool:
        visit, values = self.visit, np.array(self.visit.values)
        # What comes before it has settled may be of the setting left: no reason where that was bad.
        early = self._trusts_ticks() and visit.first and self.budget.fair(visit.left)
        since = values if early else values[self.settling.ticks :]
        tail = self.settling.ticks if early else 0
        return self.budget.exceeded(since[np.isfinite(since)], self.surface.tick_sd(), tail)

    def _leave(self, ending: VisitEnding) -> None:
        """The visit is over: learn from it, and choose the next one."""
        visit, values = self.visit, np.array(self.visit.values)
        give_up = ending is VisitEnding.COSTLY and visit.first and self._trusts_ticks()
        wait = visit.wait_ticks
        if len(values) <= wait:  # it ended before its time
            wait = max(self.settling.ticks, len(values) - _SHIFT_TICKS)
            if give_up:
                wait = max(0, min(wait, len(values) - _COSTLY_TICKS))
        finite = np.isfinite(values)
        settled = values[wait:][finite[wait:]]
        indicators = IndicatorSummary.of(np.array(visit.indicators[wait:]))
        if not len(settled):
            visit.restart(wait_ticks=visit.wait_ticks)
            return
        if not self._identified(settled, indicators):
            return
        self.surface.add(visit.setting, settled)
        here = float(self.surface.fitted().expected(units(self.knobs, visit.setting)[None])[0])
        tick_sd = self.surface.tick_sd()
        if visit.left is not None:
            self.settling.learn(values, visit.left, here, tick_sd * max(abs(here), abs(visit.left)))
        self.budget.spent(values[finite], tick_sd, self.settling.ticks)
        following, purpose = (self._best(), VisitPurpose.MEASURE) if give_up else self._choose()
        if following != visit.setting:
            self.moves += 1
            self._enter(following, left=here, purpose=purpose)
        else:
            visit.left, visit.purpose = None, purpose
            visit.restart()
            visit.stays += 1
        longest = self.options.stay_ticks_max
        wanted = self._visit_ticks() << min(self.visit.stays, 8)
        self.visit.wanted_ticks = longest if purpose is VisitPurpose.REST else min(wanted, longest)

    def _identified(self, settled: NDArray[np.float64], indicators: IndicatorSummary) -> bool:
        """Whether the workload of the visit is known; otherwise the next visit identifies it."""
        visit = self.visit
        if visit.purpose is VisitPurpose.IDENTIFY:
            self.workloads.identify(visit.setting, settled, indicators)
            return True
        verdict = self.workloads.judge(visit.setting, settled, indicators)
        if verdict == "expected":
            return True
        visit.left = None
        if verdict == "outlier":
            visit.wanted_ticks = self.options.visit_ticks_max
            visit.restart()
            return False
        if visit.setting == self._initial:
            self.workloads.identify(visit.setting, settled, indicators)
            return True
        self.moves += 1
        ticks = self.options.visit_ticks_max
        self._enter(self._initial, purpose=VisitPurpose.IDENTIFY, wanted_ticks=ticks)
        return False

    def _enter(self, setting: Setting, **changes: Any) -> None:
        """Begin a visit; what `changes` does not name is as in the visit before."""
        long = self.moves <= _LONG_VISITS or self.moves % self.long_every == 0
        self.visit = replace(
            self.visit,
            setting=setting,
            wait_ticks=self.options.settle_ticks_max if long else self.settling.ticks,
            first=setting not in self.surface.places,
            stays=0,
            values=[],
            indicators=[],
            **changes,
        )

    def _trusts_ticks(self) -> bool:
        """Whether single ticks tell enough to act upon."""
        return self.surface.tick_sd() < NOISY

    def _visit_ticks(self) -> int:
        wanted = (self.surface.tick_sd() / self.visit_error) ** 2
        return int(np.clip(round(wanted), self.options.visit_ticks_min, self.options.visit_ticks_max))

    def _best(self) -> Setting:
        return self.surface.best() or self._initial

    def _choose(self) -> tuple[Setting, VisitPurpose]:
        """The next setting, among what the budget allows: of the design first, then what promises most."""
        surface, fitted = self.surface, self.surface.fitted()
        known = list(surface.places)
        visited = np.array([surface.places[one].columns for one in known])
        top = visited[int(np.argmax(fitted.predict(visited)[0]))]
        around = self.candidates.around(top, fine=self._trusts_ticks())
        hints = [one for one in surface.hints if one not in surface.places]
        planned: NDArray[np.float64] | None = None
        if not hints and surface.designed < self.candidates.designed:
            planned = self.candidates.design_point(surface.designed)
            around = np.concatenate([self.candidates.indices(planned)[None], around])
        settings = [self.visit.setting, self._initial, *known, *hints]
        named = np.array([units(self.knobs, one) for one in settings])
        columns = np.concatenate([named, self.candidates.columns(around)])
        joint = fitted.joint(columns)
        mean, sd = fitted.of(joint)
        plain = fitted.loss_scale.plain(mean)
        ticks = self._visit_ticks() + (self.visit.wait_ticks or self.settling.ticks)
        allowed = self.budget.allowed(plain, float(plain[1]), ticks, surface.tick_sd())
        recovered = not self._trusts_ticks() or self.budget.recovered()
        allowed[2 + len(known) :] &= recovered
        allowed &= ~self._likely_refused(columns, visited)
        allowed[2 + int(np.argmax(plain[2 : 2 + len(known)]))] = True  # the best one known is always allowed
        if not recovered and (hints or planned is not None):
            return self._best(), VisitPurpose.MEASURE
        if hints:
            surface.hints.remove(hints[-1])
            return hints[-1] if allowed[len(settings) - 1] else self.visit.setting, VisitPurpose.MEASURE
        purpose = VisitPurpose.MEASURE
        if planned is not None:
            surface.designed += 1
            nearness = -_nearest(columns, planned[None])
            nearness[: len(settings)] = -np.inf  # somewhere new
            best = int(np.argmax(np.where(allowed, nearness, -np.inf)))
        else:
            prospects = CandidateSettings(mean, sd, plain, allowed, len(settings))
            best, purpose = self._promising(fitted, joint, prospects)
        if best < len(settings):
            return settings[best], purpose
        return self.candidates.setting(around[best - len(settings)]), purpose

    def _promising(
        self, fitted: SurfacePosterior, joint: JointPrediction, prospects: CandidateSettings
    ) -> tuple[int, VisitPurpose]:
        """Which setting promises enough more than to stay (0); by the horizon, or by a drawn surface."""
        if self._rng.random() < self._thompson_share():
            mean, allowed = prospects.mean, prospects.allowed
            spread = min(1.0, self.thompson_ticks / max(self.surface.ticks, 1)) ** 0.5
            drawn = mean + spread * (fitted.sample(joint, self._rng) - mean)
            best = int(np.argmax(np.where(allowed, drawn, -np.inf)))
            stays = allowed[0] and drawn[best] - drawn[0] <= self.options.worth * abs(drawn[0])
            return 0 if stays else best, VisitPurpose.MEASURE
        criteria = self._criteria(fitted)
        chosen = paying(prospects, criteria)
        return chosen, VisitPurpose.REST if criteria.rest and chosen == 1 else VisitPurpose.MEASURE

    def _thompson_share(self) -> float:
        """How often a drawn surface decides."""
        return min(_THOMPSON_MAX, (self.surface.tick_sd() / self.thompson_noise) ** 2)

    def _criteria(self, fitted: SurfacePosterior) -> ChoiceCriteria:
        """The criteria by which visits pay, by what is known.

        Once as many ticks were measured as the shortest horizon has, and nothing better was found, each visit
        elsewhere is followed by a long one to the initial setting.
        """
        ticks, noise = self.surface.ticks, self.surface.tick_sd()
        telling = noise < NOISY  # else to be surely better than the initial setting takes too long
        rested = self.visit.purpose is VisitPurpose.REST and self.visit.setting == self._initial
        return ChoiceCriteria(
            self._visit_ticks(),
            self.settling.ticks,
            int(np.clip(ticks, *self.horizon_ticks)),
            noise,
            fitted.visit_sd,
            self.options.worth,
            self.initial_sds if telling else 0.0,
            rest=telling and ticks >= self.horizon_ticks[0] and not rested,
        )

    def _likely_refused(
        self, columns: NDArray[np.float64], visited: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which settings are nearer to one that the action checker refused than to any that it let pass."""
        if not self.refused:
            return np.zeros(len(columns), bool)
        refused = np.array(list(self.refused.values()))
        return _nearest(columns, refused) < _nearest(columns, visited)


def _nearest(columns: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,): squared distance of each place to the nearest of some others."""
    return ((columns[:, None] - others[None]) ** 2).sum(2).min(1)
