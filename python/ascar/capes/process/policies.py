"""The policies of both learners behind one protocol, each seeded: they act, observe, recall, are saved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
import numpy as np

from ascar import typed
from ascar.capes.axes import units
from ascar.capes.modern.learner import Modern
from ascar.capes.modern.stored_models import StoredModels, put_back, taken_from
from ascar.capes.modern.visit import node_means
from ascar.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting
    from ascar.capes.policy import TickObservation
    from ascar.capes.process.learner_file import Plan

_ERROR_WEIGHT = 0.05
_SIGMAS = 1.96
_VISIT_TICKS = 24
_ERRORS_EVERY = 8


class Expectation(NamedTuple):
    """An expected performance; more is better.

    Attributes:
        mean: the mean of the model.
        low: the lower end of the 95% interval.
        high: the upper end of the 95% interval.
    """

    mean: float
    low: float
    high: float


class LearningPolicy(Protocol):
    """A policy that learns, as a learner's process uses it.

    Attributes:
        replays: whether it learns from ticks again and again, and so needs them again after a new start.
    """

    replays: bool

    def decide(self, seen: TickObservation, /) -> Setting:
        """Take in a tick; return the setting that is in force from now on."""
        ...

    def watch(self, seen: TickObservation, /) -> None:
        """Take in a tick after which nothing can be changed."""
        ...

    def withdraw(self, wanted: Setting, now: Setting, *, refused: bool) -> None:
        """A chosen setting is not put in force; `refused`: because a rule or a node does not allow it."""
        ...

    def announce(self, workload: str, /) -> None:
        """Another workload has begun."""
        ...

    def recall(self, seen: TickObservation, /) -> None:
        """Take in a stored tick; they come in order."""
        ...

    def recalled(self) -> None:
        """All stored ticks were recalled."""
        ...

    def expected(self, setting: Setting, /) -> Expectation | None:
        """The performance that its model expects at a setting; None where it has no model."""
        ...

    @property
    def epsilon(self) -> float | None:
        """The share of random actions; None where it takes none."""
        ...

    @property
    def prediction_error(self) -> float | None:
        """The prediction error of docs/capes-protocol.md; None before the first one."""
        ...

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What it has learnt, as a header and arrays, without the ticks."""
        ...

    def read(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `written` returned.

        Raises:
            InputError: it is of another learner, or damaged.
        """
        ...


def policy_of(plan: Plan, knobs: Sequence[Axis], width: int, seed: Sequence[int]) -> LearningPolicy:
    """The policy that a learner's file asks for.

    Args:
        plan: the file.
        knobs: the knobs that the policy sets.
        width: indicators of all nodes together.
        seed: the seed of all random choices.

    Raises:
        EnvironmentLacks: the classic learner's libraries are not installed.
    """
    rng = np.random.default_rng(list(seed))
    if plan.file.algorithm == "classic":
        from ascar.capes.process.classic_policy import ClassicPolicy

        return ClassicPolicy(knobs, width, plan.hyper, rng)
    return ModernPolicy(Modern(knobs, rng, plan.options))


class ModernPolicy:
    """The modern learner as a `LearningPolicy`.

    Args:
        modern: the learner.
    """

    replays = False

    def __init__(self, modern: Modern) -> None:
        self.modern = modern
        self._error = math.nan
        self._setting: Setting | None = None
        self._ticks = 0
        self._begun = False
        self._visit: list[TickObservation] = []
        self._visits = 0
        self._settled = False

    def decide(self, seen: TickObservation) -> Setting:
        """See `LearningPolicy`."""
        if not self._begun:
            self._begun = True
            self.modern.stay(seen.setting)  # where it stands now, not where it did at first
        self._measure(seen)
        return self.modern.decide(seen)

    def watch(self, seen: TickObservation) -> None:
        """See `LearningPolicy`: a visit during which knobs may have moved counts for nothing."""
        self._measure(seen)

    def withdraw(self, wanted: Setting, now: Setting, *, refused: bool) -> None:
        """See `LearningPolicy`."""
        if refused and wanted != now:
            self.modern.refused[wanted] = units(self.modern.knobs, wanted)
        self.modern.stay(now)

    def announce(self, workload: str) -> None:
        """See `LearningPolicy`."""
        self.modern.announce(workload)

    def recall(self, seen: TickObservation) -> None:
        """See `LearningPolicy`: visits are made of ticks of one setting."""
        last = self._visit[-1] if self._visit else None
        if last is not None and (seen.setting != last.setting or seen.tick - last.tick > _VISIT_TICKS):
            self._end_visit()
            self._settled = False
        elif len(self._visit) >= _VISIT_TICKS + (
            0 if self._settled else self.modern.options.settle_ticks_max
        ):
            self._end_visit()
            self._settled = True
        self._visit.append(seen)

    def recalled(self) -> None:
        """See `LearningPolicy`: what is known needs no design."""
        self._end_visit()
        surface = self.modern.surface
        surface.designed = max(surface.designed, len(surface.places))

    def expected(self, setting: Setting) -> Expectation | None:
        """See `LearningPolicy`."""
        surface = self.modern.surface
        if not surface.places:
            return None
        mean, sd = surface.fitted().predict(units(self.modern.knobs, setting)[None])
        return Expectation(float(mean[0]), float(mean[0] - _SIGMAS * sd[0]), float(mean[0] + _SIGMAS * sd[0]))

    @property
    def epsilon(self) -> float | None:
        """See `LearningPolicy`."""
        return None

    @property
    def prediction_error(self) -> float | None:
        """See `LearningPolicy`."""
        return None if math.isnan(self._error) else self._error

    def written(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """See `LearningPolicy`."""
        memory, arrays = taken_from(self.modern)
        return {"memory": msgspec.to_builtins(memory), "error": self.prediction_error}, arrays

    def read(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """See `LearningPolicy`."""
        try:
            memory = typed.convert(header.get("memory"), StoredModels)
            error = typed.convert(header.get("error"), float | None)
        except msgspec.ValidationError as problem:
            raise InputError(f"its header is wrong: {problem}") from problem
        put_back(self.modern, memory, arrays)
        self._error = math.nan if error is None else error

    def _end_visit(self) -> None:
        visit, self._visit = self._visit, []
        most = self.modern.options.settle_ticks_max
        if not self._settled:
            visit = visit[most if len(visit) > 2 * most else self.modern.settling.ticks :]
        if not visit:
            return
        values = np.array([one.performance for one in visit])
        if self._visits % _ERRORS_EVERY == 0 or len(self.modern.surface.places) < _ERRORS_EVERY:
            self._learn_error(
                visit[0].setting, float(np.nanmean(values)) if np.isfinite(values).any() else math.nan
            )
        self._visits += 1
        self.modern.recall(visit[0].setting, values, np.array([node_means(one) for one in visit]))

    def _measure(self, seen: TickObservation) -> None:
        """Update the prediction error by a tick, once its setting has settled."""
        self._ticks = self._ticks + 1 if seen.setting == self._setting else 0
        self._setting = seen.setting
        if self._ticks >= self.modern.settling.ticks:
            self._learn_error(seen.setting, seen.performance)

    def _learn_error(self, setting: Setting, performance: float) -> None:
        found = self.expected(setting)
        if found is None or not found.mean or not math.isfinite(performance):
            return
        error = abs(performance - found.mean) / abs(found.mean)
        before = error if math.isnan(self._error) else self._error
        self._error = before + _ERROR_WEIGHT * (error - before)
