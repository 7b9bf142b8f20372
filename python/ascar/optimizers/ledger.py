"""What a search knows: configurations told of, configurations out for evaluation, and what must not be tried.

Every optimizer here keeps one. A proposal depends on the ledger and the seed alone, never on how often the
process was started: a search rebuilt from its history goes on as the uninterrupted one would have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ascar.errors import Exhausted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ascar.optimizers import Evaluation
    from ascar.space import Configuration, Space

# Random draws before a space is walked through for what is left of it, and the largest one that is.
_DRAWS_MAX = 64
_ENUMERATE_MAX = 200_000
# In a space too large to walk through, so many draws that are all known mean that hardly anything is left.
_DRAWS_LAST = 10_000


@dataclass(slots=True)
class ConfigurationRecord:
    """All that was told of one configuration.

    Attributes:
        losses: the losses of its complete evaluations, in the order told.
        standard_errors: the standard error of each loss; None where unknown.
        bounds: losses of pruned evaluations, of the readings until then: worse than the best at that time.
        failures: failed evaluations, also those that broke a constraint on results.
        quarantined: whether the configuration must not be tried again.
    """

    losses: list[float] = field(default_factory=list[float])
    standard_errors: list[float | None] = field(default_factory=list["float | None"])
    bounds: list[float] = field(default_factory=list[float])
    failures: int = 0
    quarantined: bool = False

    @property
    def seen(self) -> bool:
        """Whether anything was learned: an interrupted evaluation alone teaches nothing."""
        return bool(self.losses or self.bounds or self.failures or self.quarantined)

    @property
    def usable(self) -> bool:
        """Whether it may be built upon: it was measured, and did not fail since."""
        return bool(self.losses) and not self.failures and not self.quarantined

    @property
    def loss(self) -> float | None:
        """Mean of the complete evaluations; None without any."""
        if len(self.losses) == 1:
            return self.losses[0]
        return sum(self.losses) / len(self.losses) if self.losses else None

    @property
    def estimate(self) -> float | None:
        """What to take its loss for: the mean of the complete evaluations, else the least it was pruned at.

        None where neither is known, or where it failed. An evaluation is pruned for being worse than the
        best, so an estimate of this kind never is the best.
        """
        if self.failures or self.quarantined:
            return None
        return self.loss if self.losses else min(self.bounds, default=None)


@dataclass(slots=True)
class Ledger:
    """The state of a search.

    Attributes:
        space: the space to search.
        seed: the seed of every random choice.
        start: configurations to propose first.
        records: everything told, by configuration, in the order first told.
        pending: asked for and not yet told, with how often.
        told: evaluations told so far, all states.
        history: every evaluation, in the order told.
    """

    space: Space
    seed: int
    start: tuple[Configuration, ...] = ()
    records: dict[Configuration, ConfigurationRecord] = field(
        default_factory=dict["Configuration", ConfigurationRecord]
    )
    pending: dict[Configuration, int] = field(default_factory=dict["Configuration", int])
    history: list[Evaluation] = field(default_factory=list["Evaluation"])

    def __post_init__(self) -> None:
        """Refuse start configurations that are not valid here.

        Raises:
            SpaceError: one of them is not.
        """
        self.start = tuple(self.space.validate(one) for one in self.start)

    def tell(self, evaluation: Evaluation) -> ConfigurationRecord:
        """Take in what became of a configuration, asked for or not; returns its record.

        A loss that is not a finite number is a failure: nothing can be built upon it.
        """
        configuration = evaluation.configuration
        self.history.append(evaluation)
        out = self.pending.get(configuration, 0)
        if out > 1:
            self.pending[configuration] = out - 1
        elif out:
            del self.pending[configuration]
        record = self.records.setdefault(configuration, ConfigurationRecord())
        loss = evaluation.loss if evaluation.loss is not None and np.isfinite(evaluation.loss) else None
        match evaluation.state.value:
            case "complete" if loss is not None:
                record.losses.append(loss)
                record.standard_errors.append(evaluation.standard_error)
            case "pruned" if loss is not None:
                record.bounds.append(loss)
            case "quarantined":
                record.quarantined = True
            case "interrupted" | "running":
                pass
            case _:
                record.failures += 1
        return record

    def take(self, configuration: Configuration) -> Configuration:
        """Note that a configuration is out for evaluation, and return it."""
        self.pending[configuration] = self.pending.get(configuration, 0) + 1
        return configuration

    def fresh(self, configuration: Configuration) -> bool:
        """Whether a configuration is neither known, nor out, nor forbidden."""
        record = self.records.get(configuration)
        return configuration not in self.pending and (record is None or not record.seen)

    @property
    def seen(self) -> int:
        """How many configurations something is known of."""
        return sum(record.seen for record in self.records.values())

    @property
    def step(self) -> int:
        """How many proposals were made or told: the counter that random choices are keyed by."""
        return len(self.history) + sum(self.pending.values())

    def rng(self, *keys: int) -> np.random.Generator:
        """A generator for one decision, from the seed and what the decision is about."""
        return np.random.default_rng([self.seed, *keys])

    def started(self) -> Configuration | None:
        """The next of the start configurations that is fresh and valid; None when all are done."""
        return next((one for one in self.start if self.fresh(one)), None)

    def usable(self) -> Iterator[tuple[Configuration, ConfigurationRecord]]:
        """Configurations that were measured and may be built upon."""
        return ((configuration, record) for configuration, record in self.records.items() if record.usable)

    def best(self) -> tuple[Configuration, ConfigurationRecord] | None:
        """The usable configuration with the lowest mean loss; the first told among equals."""
        return min(self.usable(), key=lambda pair: pair[1].loss or 0.0, default=None)

    def worst(self) -> float | None:
        """The highest mean loss of usable configurations; None without any."""
        return max((record.loss or 0.0 for _, record in self.usable()), default=None)

    def spread(self) -> float:
        """Standard deviation of the losses of usable configurations; 0 where it cannot be told."""
        records = self.records.values()
        losses = np.array([record.loss for record in records if record.usable], np.float64)
        with np.errstate(over="ignore"):
            spread = float(losses.std()) if len(losses) else 0.0
        return spread if math.isfinite(spread) else 0.0

    def first_fresh(self, candidates: Iterable[Configuration]) -> Configuration | None:
        """The first candidate that is fresh."""
        return next((candidate for candidate in candidates if self.fresh(candidate)), None)

    def draw(self, rng: np.random.Generator) -> Configuration:
        """A fresh configuration, uniform over those that are left as far as that can be had.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        for _ in range(_DRAWS_MAX):
            found = self.first_fresh(self.space.sample(rng, 1))
            if found is not None:
                return found
        return self._remaining(rng)

    def _remaining(self, rng: np.random.Generator) -> Configuration:
        """A fresh configuration by walking through the space; where it is too large for that, by luck."""
        count = self.space.count()
        if count is not None and count <= _ENUMERATE_MAX:
            left = [configuration for configuration in self.space.enumerate() if self.fresh(configuration)]
            if left:
                return left[int(rng.integers(len(left)))]
            raise Exhausted(f"all {count} valid configurations are known")
        for _ in range(_DRAWS_LAST):
            found = self.first_fresh(self.space.sample(rng, 1))
            if found is not None:
                return found
        raise Exhausted(f"{_DRAWS_LAST} draws in a row gave only configurations that are known")
