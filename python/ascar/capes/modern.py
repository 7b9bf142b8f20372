"""The modern learner: a model of performance over settings with its uncertainty, and a step where it pays.

CAPES's deep Q-learning learns from transitions which step raises throughput. What it has to find out, on the
systems of its paper, is a surface: performance as a function of where the knobs stand. This learner models
that surface directly (`ascar.capes.surface`), moves by Thompson sampling (draw a surface that may be the true
one, go where that is highest; Thompson 1933, Russo and others 2018), and waits after each change until it
shows (`ascar.capes.settling`). An action sets levels, it does not step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.capes.guard import Guard
from ascar.capes.knobs import initial, levels, units
from ascar.capes.regimes import Looks, Regimes
from ascar.capes.settling import Settling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ascar.capes.knobs import Knob, Setting
    from ascar.capes.policy import Seen
    from ascar.capes.surface import Surface

__all__ = ["Modern", "ModernOptions", "look_of"]


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
        first_ticks: at the initial setting, before anything is tried.
        budget: of a minute's performance, the share that may be lost to trying things out.
    """

    settle_ticks_max: int = 12
    visit_ticks_min: int = 3
    visit_ticks_max: int = 10
    visit_error: float = 0.1
    stay_ticks_max: int = 24
    worth: float = 0.01
    first_ticks: int = 16
    budget: float = 0.05


_NEAR, _ANYWHERE, _LINES_MAX, _SPREAD = 48, 64, 3, 0.2
_STEPS = np.array([-16, -8, -4, -2, -1, 1, 2, 4, 8, 16])
_DESIGN, _ASIDE = 3, 0.25
_LONG_VISITS, _LONG_EVERY = 3, 6


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
        self._levels = [levels(one) for one in self.knobs]
        self._shares = [
            np.array([knob.unit(value) for value in values])
            for knob, values in zip(self.knobs, self._levels, strict=True)
        ]
        self.regimes = Regimes(self.knobs)
        self.settling = Settling(self.options.settle_ticks_max)
        self._guard = Guard(self.options.budget)
        self._start = self._setting = initial(self.knobs)
        self._design = (_DESIGN if len(self.knobs) <= _LINES_MAX else 1) + 2 * len(self.knobs)
        self.refused: dict[Setting, NDArray[np.float64]] = {}
        self._values: list[float] = []
        self._looks: list[NDArray[np.float64]] = []
        self.moves = self._stays = 0
        self._left: float | None = None
        self._wait, self._wanted = 0, self.options.first_ticks

    def decide(self, seen: Seen) -> Setting:
        """Where the knobs shall stand from now on."""
        if seen.setting != self._setting:  # refused, or somebody else's hand
            self.refused[self._setting] = units(self.knobs, self._setting)
            self._enter(seen.setting)
        self._values.append(seen.performance)
        self._looks.append(look_of(seen))
        if len(self._values) >= self._wait + self._wanted:
            self._leave()
        return self._setting

    def announce(self, workload: str) -> None:
        """Another workload has begun; what was learnt of it before, under this name, is taken up again."""
        self.regimes.announce(workload)
        self._enter(self._setting)
        self._left = None
        self._wanted = self.options.visit_ticks_min

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
        if len(settled) and not self.regimes.odd(setting, settled, Looks.of(looks)):
            self.surface.add(setting, settled)

    @property
    def surface(self) -> Surface:
        """Of the workload that runs."""
        return self.regimes.surface

    def _leave(self) -> None:
        """The visit is over: learn from it, and choose the next one."""
        values = np.array(self._values)
        settled = values[self._wait :]
        settled = settled[np.isfinite(settled)]
        if not len(settled):
            self._clear()
            return
        if self.regimes.odd(self._setting, settled, Looks.of(np.array(self._looks[self._wait :]))):
            self._left = None
            self._wait, self._wanted = 0, self.options.visit_ticks_max
            self._clear()
            return
        self.surface.add(self._setting, settled)
        fitted = self.surface.fitted()
        here = float(fitted.predict(units(self.knobs, self._setting)[None])[0][0])
        if self._left is not None:
            sd = self.surface.tick_sd() * max(abs(here), abs(self._left))
            self.settling.learn(values, self._left, here, sd)
        self._guard.spent(here, len(values))
        following = self._choose()
        if following != self._setting:
            self._left = here
            self.moves += 1
            self._enter(following)
        else:
            self._left = None
            self._clear()
            self._wait = 0
            self._stays += 1
        self._wanted = min(self._visit_ticks() << min(self._stays, 8), self.options.stay_ticks_max)

    def _enter(self, setting: Setting) -> None:
        self._setting = setting
        self._clear()
        self._stays = 0
        long = self.moves <= _LONG_VISITS or self.moves % _LONG_EVERY == 0
        self._wait = self.options.settle_ticks_max if long else self.settling.ticks

    def _clear(self) -> None:
        self._values.clear()
        self._looks.clear()

    def _visit_ticks(self) -> int:
        options = self.options
        wanted = (self.surface.tick_sd() / options.visit_error) ** 2
        return int(np.clip(round(wanted), options.visit_ticks_min, options.visit_ticks_max))

    def _choose(self) -> Setting:
        """By Thompson sampling among what the guard allows."""
        fitted = self.surface.fitted()
        known = list(self.surface.places)
        visited = np.array([self.surface.places[one].columns for one in known])
        others = self._others(visited[int(np.argmax(fitted.predict(visited)[0]))])
        ends = np.array([units(self.knobs, self._setting), units(self.knobs, self._start)])
        if self.surface.designed < self._design:
            others = np.concatenate([self._indices(self._design_point(self.surface.designed))[None], others])
        columns = np.concatenate([ends, visited, self._columns(others)])
        look = fitted.look(columns)
        mean, sd = fitted.of(look)
        low = mean - sd
        ticks = self._visit_ticks() + (self._wait or self.settling.ticks)
        allowed = self._guard.allowed(low, float(mean[1]), ticks)
        allowed &= ~self._likely_refused(columns, visited)
        allowed[2 + int(np.argmax(low[2 : 2 + len(known)]))] = True  # the best one known is always allowed
        designing = self.surface.designed < self._design
        if designing:
            drawn = -_nearest(columns, self._design_point(self.surface.designed)[None])
            self.surface.designed += 1
            drawn[: 2 + len(known)] = -np.inf  # somewhere new
        else:
            drawn = fitted.sample(look, self._rng)
        best = int(np.argmax(np.where(allowed, drawn, -np.inf)))
        if not designing and allowed[0] and drawn[best] - drawn[0] <= self.options.worth * abs(drawn[0]):
            return self._setting
        if best < 2:
            return (self._setting, self._start)[best]
        if best < 2 + len(known):
            return known[best - 2]
        at = others[best - 2 - len(known)]
        return tuple(float(values[index]) for values, index in zip(self._levels, at, strict=True))

    def _design_point(self, index: int) -> NDArray[np.float64]:
        """Of a design: many knobs one by one, few of them by a sequence that fills the cube evenly.

        The sequence: multiples of a generalised golden ratio (Roberts 2018).
        """
        count = len(self.knobs)
        if count > _LINES_MAX:  # a random place has too many wrong knobs: one at a time, up and down
            place = units(self.knobs, self._start)
            at = (index - 1) % count
            up = (index <= count) == (place[at] <= 0.5)
            place[at] = np.clip(place[at] + (_ASIDE if up else -_ASIDE), 0, 1)
            return place
        ratio = 2.0
        for _ in range(30):
            ratio = (1 + ratio) ** (1 / (count + 1))
        return (0.5 + index / ratio ** np.arange(1, count + 1)) % 1

    def _likely_refused(
        self, columns: NDArray[np.float64], visited: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Which settings are nearer to one that the action checker refused than to any that it let pass."""
        if not self.refused:
            return np.zeros(len(columns), bool)
        refused = np.array(list(self.refused.values()))
        return _nearest(columns, refused) < _nearest(columns, visited)

    def _columns(self, indices: NDArray[np.intp]) -> NDArray[np.float64]:
        """(m, knobs): shares of the ranges, for indices of levels."""
        return np.stack([shares[indices[:, at]] for at, shares in enumerate(self._shares)], axis=1)

    def _indices(self, place: NDArray[np.float64]) -> NDArray[np.intp]:
        """(knobs,): the nearest levels to shares of the ranges."""
        return np.array([np.argmin(np.abs(one - at)) for one, at in zip(self._shares, place, strict=True)])

    def _others(self, best: NDArray[np.float64]) -> NDArray[np.intp]:
        """(m, knobs): indices of levels to choose from: lines through the best, near it, anywhere.

        Args:
            best: shares of the ranges.
        """
        sizes: Any = np.array([len(one) for one in self._levels])
        few = len(sizes) <= _LINES_MAX
        middle: Any = self._indices(best)
        found: list[NDArray[np.intp]] = []
        for at, size in enumerate(sizes):
            steps = np.arange(0, int(size), 2) if few else np.add(middle[at], _STEPS)
            line = np.tile(middle, (len(steps), 1))
            line[:, at] = steps
            found.append(line)
        near = np.tile(middle, (_NEAR, 1))
        spread = _SPREAD * self._rng.random((_NEAR, 1)) * sizes
        moves = np.rint(spread * self._rng.standard_normal(near.shape)).astype(np.intp)
        turned = self._rng.random(near.shape) < (0.5 if few else 2 / len(sizes))
        found += [near + moves * turned, self._rng.integers(sizes, size=(_ANYWHERE, len(sizes)))]
        return np.clip(np.concatenate(found), 0, sizes - 1).astype(np.intp)


def look_of(seen: Seen) -> NDArray[np.float64]:
    """(indicators,): means over the nodes; 0 where no node has a value."""
    known = np.isfinite(seen.indicators)
    total = np.where(known, seen.indicators, 0).sum(0, dtype=np.float64)
    return total / np.maximum(known.sum(0), 1)


def _nearest(columns: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,): squared distance of each place to the nearest of some others."""
    return ((columns[:, None] - others[None]) ** 2).sum(2).min(1)
