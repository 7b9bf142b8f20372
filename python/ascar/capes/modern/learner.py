"""The modern learner: a model of performance over settings with its uncertainty, and a step where it pays.

CAPES's deep Q-learning learns from transitions which step raises throughput. What it has to find out, on the
systems of its paper, is a surface: performance as a function of where the knobs stand. This learner models
that surface directly (`ascar.capes.modern.surface`), moves by Thompson sampling (draw a surface that may be
the true one, go where that is highest; Thompson 1933, Russo and others 2018), and waits after each change
until it shows (`ascar.capes.modern.settling`). An action sets levels, it does not step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.capes.knobs import initial, units
from ascar.capes.modern.candidates import KnobLevels
from ascar.capes.modern.choice import CandidateSettings, ChoiceCriteria, paying
from ascar.capes.modern.loss_budget import LossBudget
from ascar.capes.modern.settling import Settling
from ascar.capes.modern.surface import NOISY, REACH
from ascar.capes.modern.workload_models import IndicatorSums, WorkloadModels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.knobs import Knob, Setting
    from ascar.capes.modern.surface import Surface, SurfacePosterior
    from ascar.capes.policy import TickObservation
    from ascar.optimizers.surrogates.gaussian import Look


@dataclass(frozen=True, slots=True)
class ModernOptions:
    """How it learns.

    Attributes:
        settle_ticks_max: the largest delay between a change and what it shows that is looked for.
        visit_ticks_min: measured at a setting, once it has settled, before the next choice.
        visit_ticks_max: the same, where ticks are noisy.
        visit_error: the standard error of a visit's mean that is aimed at, as a share.
        stay_ticks_max: where the choice is to stay, the next one is due later and later, at most so late.
        worth: a change must promise at least this share more.
        home: the initial setting is left for good only for one that is better by `worth` and so many standard
            deviations; 0: for any that seems better.
        first_ticks: at the initial setting, before anything is tried.
        budget: of a minute's performance, the share that may be lost to trying things out.
        caution: what a setting may cost is taken to be so many standard deviations more than expected.
        horizon_ticks: a visit must pay within so many ticks, at most; 0: Thompson sampling alone.
        horizon_ticks_min: the same at first: beyond that it looks ahead as far as it can look back.
        thompson: noise of a tick, as a share, at which Thompson sampling alone would decide; below that it
            decides less often, and nowhere more often than every other time.
        thompson_ticks: from so many ticks of a workload on drawn surfaces keep closer and closer to the mean.
        long_every: of so many visits one waits for the longest delay, lest a longer one is overlooked.
        reach: see `ascar.capes.modern.surface.Surface`.
        design: whether it begins with a design; 0: no.
        recognition: whether workloads that nobody announces are looked for; 0: no.
        sharp: whether losses are bent, and lengths taken to be short where knobs are few; 0: no.
        early: whether a first visit may end before it has settled; 0: no.
        rest: whether, once `horizon_ticks_min` were measured and nothing better was found, each visit
            elsewhere is followed by a long one to the initial setting; 0: no.
    """

    settle_ticks_max: int = 12
    visit_ticks_min: int = 3
    visit_ticks_max: int = 10
    visit_error: float = 0.1
    stay_ticks_max: int = 24
    worth: float = 0.01
    home: float = 1.0
    first_ticks: int = 16
    budget: float = 0.05
    caution: float = 0.0
    horizon_ticks: int = 1_200
    horizon_ticks_min: int = 300
    thompson: float = 0.3
    thompson_ticks: int = 600
    long_every: int = 6
    reach: float = REACH
    design: int = 1
    recognition: int = 1
    sharp: int = 1
    early: int = 1
    rest: int = 1


_LONG_VISITS, _THOMPSON_MAX = 3, 0.5
_GLANCE, _GLIMPSE = 3, 2


class Modern:
    """See the module.

    Args:
        knobs: what it turns; it begins where they stand.
        rng: of everything it draws.
        options: how it learns.

    Attributes:
        knobs: see above.
        options: see above.
        regimes: what is known of each workload.
        settling: how long a change takes to show.
        refused: settings that were not put in force, as shares of the ranges.
        moves: changes that it chose.
    """

    def __init__(
        self, knobs: Sequence[Knob], rng: np.random.Generator, options: ModernOptions | None = None
    ) -> None:
        self.knobs, self.options = tuple(knobs), options or ModernOptions()
        self._rng = rng
        self._candidates = KnobLevels(self.knobs, rng)
        self.regimes = WorkloadModels(
            self.knobs,
            max(self.options.reach, 1e-3),
            looking=bool(self.options.recognition),
            sharp=bool(self.options.sharp),
        )
        self.settling = Settling(self.options.settle_ticks_max)
        self._guard = LossBudget(self.options.budget)
        self._start = self._setting = initial(self.knobs)
        self.refused: dict[Setting, NDArray[np.float64]] = {}
        self._values: list[float] = []
        self._looks: list[NDArray[np.float64]] = []
        self.moves = self._stays = 0
        self._left: float | None = None
        self._wait, self._wanted = 0, self.options.first_ticks
        self._lost = self._frozen = self._first = self._costly = self._resting = self._rested = False

    def decide(self, seen: TickObservation) -> Setting:
        """Where the knobs shall stand from now on."""
        if self._frozen:
            return self._best()
        if seen.setting != self._setting:  # refused, or somebody else's hand
            self.refused[self._setting] = units(self.knobs, self._setting)
            self._enter(seen.setting)
        self._values.append(seen.performance)
        self._looks.append(look_of(seen))
        if len(self._values) >= self._wait + self._wanted or self._alarmed():
            self._leave()
        return self._setting

    def announce(self, workload: str) -> None:
        """Another workload has begun; what was learnt of it before, under this name, is taken up again."""
        self.regimes.announce(workload)
        self._enter(self._setting)
        self._left, self._lost = None, False
        self._wanted = self.options.visit_ticks_min

    def freeze(self) -> None:
        """Learn no more and try nothing: the best setting known of the workload that runs, from now on."""
        self._frozen = True

    def stay(self, setting: Setting) -> None:
        """What was wanted does not come now, by no fault of its own: a visit begins where the knobs stand."""
        self._left = None
        self._enter(setting)

    def recall(self, setting: Setting, values: NDArray[np.float64], looks: NDArray[np.float64]) -> None:
        """Learn from a visit of the past.

        Args:
            setting: that was in force.
            values: (ticks,), measured after it had settled; NaN where nothing was.
            looks: (ticks, indicators), means over the nodes meanwhile.
        """
        settled = values[np.isfinite(values)]
        if len(settled) and not self.regimes.odd(setting, settled, IndicatorSums.of(looks)):
            self.surface.add(setting, settled)

    @property
    def surface(self) -> Surface:
        """Of the workload that runs."""
        return self.regimes.surface

    def _alarmed(self) -> bool:
        """Whether the visit ends before its time: it costs too much, or another workload seems to run."""
        values = np.array(self._values)
        if self._setting != self._start:
            noise = self.surface.tick_sd()
            # What comes before it has settled may be of the setting left: no reason where that was bad.
            early = self._careful() and self._first and self._guard.fair(self._left)
            since = values if early else values[self.settling.ticks :]
            tail = self.settling.ticks if early else 0
            if self._guard.exceeded(since[np.isfinite(since)], noise, tail):
                self._costly = self._first and self._careful()
                return True
        if self._lost or len(values) < self._wait + _GLANCE or not self._stays:
            return False
        return self.regimes.startled(self._setting, IndicatorSums.of(np.array(self._looks[-_GLANCE:])))

    def _leave(self) -> None:
        """The visit is over: learn from it, and choose the next one."""
        values = np.array(self._values)
        wait = self._wait
        if len(values) <= wait:  # it ended before its time
            wait = max(self.settling.ticks, len(values) - _GLANCE)
            if self._costly:
                wait = max(0, min(wait, len(values) - _GLIMPSE))
        costly, self._costly = self._costly, False
        finite = np.isfinite(values)
        settled, looks = values[wait:][finite[wait:]], IndicatorSums.of(np.array(self._looks[wait:]))
        if not len(settled):
            self._clear()
            return
        if not self._understood(settled, looks):
            return
        self.surface.add(self._setting, settled)
        fitted = self.surface.fitted()
        here = float(fitted.expected(units(self.knobs, self._setting)[None])[0])
        tick_sd = self.surface.tick_sd()
        if self._left is not None:
            self.settling.learn(values, self._left, here, tick_sd * max(abs(here), abs(self._left)))
        self._guard.spent(values[finite], tick_sd, self.settling.ticks)
        self._rested, self._resting = self._resting and self._setting == self._start, False
        following = self._best() if costly else self._choose()
        if following != self._setting:
            self._left = here
            self.moves += 1
            self._enter(following)
        else:
            self._left = None
            self._clear()
            self._wait = 0
            self._stays += 1
        longest = self.options.stay_ticks_max
        self._wanted = longest if self._resting else min(self._visit_ticks() << min(self._stays, 8), longest)

    def _understood(self, settled: NDArray[np.float64], looks: IndicatorSums) -> bool:
        """Whether it is known which workload the visit was of; else the next one shall tell."""
        if self._lost:
            self._lost = False
            self.regimes.recognise(self._setting, settled, looks)
            return True
        verdict = self.regimes.judge(self._setting, settled, looks)
        if verdict == "usual":
            return True
        self._left = None
        if verdict == "odd":
            self._wait, self._wanted = 0, self.options.visit_ticks_max
            self._clear()
            return False
        if self._setting == self._start:
            self.regimes.recognise(self._setting, settled, looks)
            return True
        self._lost = True  # all workloads were seen at the initial setting
        self.moves += 1
        self._enter(self._start)
        self._wanted = self.options.visit_ticks_max
        return False

    def _enter(self, setting: Setting) -> None:
        self._setting = setting
        self._clear()
        self._stays = 0
        self._first = setting not in self.surface.places
        long = self.moves <= _LONG_VISITS or self.moves % self.options.long_every == 0
        self._wait = self.options.settle_ticks_max if long else self.settling.ticks

    def _clear(self) -> None:
        self._values.clear()
        self._looks.clear()

    def _careful(self) -> bool:
        """Whether single ticks tell enough to act upon."""
        return bool(self.options.early) and self.surface.tick_sd() < NOISY

    def _visit_ticks(self) -> int:
        options = self.options
        wanted = (self.surface.tick_sd() / options.visit_error) ** 2
        return int(np.clip(round(wanted), options.visit_ticks_min, options.visit_ticks_max))

    def _best(self) -> Setting:
        return self.surface.best() or self._start

    def _choose(self) -> Setting:
        """The next setting, among what the guard allows: of the design first, then what promises most."""
        surface, fitted = self.surface, self.surface.fitted()
        known = list(surface.places)
        visited = np.array([surface.places[one].columns for one in known])
        top = visited[int(np.argmax(fitted.predict(visited)[0]))]
        around = self._candidates.around(top, fine=surface.tick_sd() < NOISY)
        hints = [one for one in surface.hints if one not in surface.places]
        planned: NDArray[np.float64] | None = None
        if self.options.design and not hints and surface.designed < self._candidates.designed:
            planned = self._candidates.design_point(surface.designed)
            around = np.concatenate([self._candidates.indices(planned)[None], around])
        settings = [self._setting, self._start, *known, *hints]
        named = np.array([units(self.knobs, one) for one in settings])
        columns = np.concatenate([named, self._candidates.columns(around)])
        look = fitted.look(columns)
        mean, sd = fitted.of(look)
        plain = fitted.loss_scale.plain(mean)
        low = fitted.loss_scale.plain(mean - self.options.caution * sd)
        ticks = self._visit_ticks() + (self._wait or self.settling.ticks)
        allowed = self._guard.allowed(low, float(plain[1]), ticks, surface.tick_sd())
        recovered = not self._careful() or self._guard.recovered()
        allowed[2 + len(known) :] &= recovered
        allowed &= ~self._likely_refused(columns, visited)
        allowed[2 + int(np.argmax(low[2 : 2 + len(known)]))] = True  # the best one known is always allowed
        if hints:
            if recovered:
                surface.hints.remove(hints[-1])
            if allowed[len(settings) - 1]:
                return hints[-1]
            return self._setting if recovered else self._best()
        if planned is not None:
            if not recovered:
                return self._best()
            drawn = -_nearest(columns, planned[None])
            surface.designed += 1
            drawn[: len(settings)] = -np.inf  # somewhere new
            best = int(np.argmax(np.where(allowed, drawn, -np.inf)))
        else:
            best = self._promising(fitted, look, CandidateSettings(mean, sd, plain, allowed, len(settings)))
        return (
            settings[best] if best < len(settings) else self._candidates.setting(around[best - len(settings)])
        )

    def _promising(self, fitted: SurfacePosterior, look: Look, prospects: CandidateSettings) -> int:
        """Which setting promises enough more than to stay (0); by the horizon, or by a drawn surface."""
        options, noise = self.options, self.surface.tick_sd()
        noisy = min(_THOMPSON_MAX, (noise / max(options.thompson, 1e-9)) ** 2)
        if not options.horizon_ticks or self._rng.random() < noisy:
            mean, allowed = prospects.mean, prospects.allowed
            bold = min(1.0, options.thompson_ticks / max(self.surface.ticks, 1)) ** 0.5
            drawn = mean + bold * (fitted.sample(look, self._rng) - mean)
            best = int(np.argmax(np.where(allowed, drawn, -np.inf)))
            if allowed[0] and drawn[best] - drawn[0] <= options.worth * abs(drawn[0]):
                return 0
            return best
        horizon = int(np.clip(self.surface.ticks, options.horizon_ticks_min, options.horizon_ticks))
        telling = noise < NOISY  # else to be surely better than the initial setting takes too long
        known = telling and self.surface.ticks >= options.horizon_ticks_min
        terms = ChoiceCriteria(
            self._visit_ticks(),
            self.settling.ticks,
            horizon,
            noise,
            fitted.visit_sd,
            options.worth,
            options.home if telling else 0.0,
            rest=bool(options.rest) and known and not self._rested,
        )
        chosen = paying(prospects, terms)
        self._resting = terms.rest and chosen == 1
        return chosen

    def _likely_refused(
        self, columns: NDArray[np.float64], visited: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which settings are nearer to one that the action checker refused than to any that it let pass."""
        if not self.refused:
            return np.zeros(len(columns), bool)
        refused = np.array(list(self.refused.values()))
        return _nearest(columns, refused) < _nearest(columns, visited)


def look_of(seen: TickObservation) -> NDArray[np.float64]:
    """(indicators,): means over the nodes; 0 where no node has a value."""
    known = np.isfinite(seen.indicators)
    total = np.where(known, seen.indicators, 0).sum(0, dtype=np.float64)
    return total / np.maximum(known.sum(0), 1)


def _nearest(columns: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,): squared distance of each place to the nearest of some others."""
    return ((columns[:, None] - others[None]) ** 2).sum(2).min(1)
