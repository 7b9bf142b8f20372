"""What a search would put in force if it ended now, and what it honestly expects of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ascar.optimizers import Evaluation, Optimizer
    from ascar.space import Configuration


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A configuration and its expected loss.

    Attributes:
        configuration: measured, never failed.
        loss: the expected loss.
        standard_error: the standard error of that expectation; None where the optimizer has no model of its
            noise.
    """

    configuration: Configuration
    loss: float
    standard_error: float | None = None


@runtime_checkable
class Recommends(Protocol):
    """An optimizer that recommends by its own posterior."""

    def recommend(self) -> Recommendation | None:
        """The best by expectation; None before any success."""
        ...


def recommend(optimizer: Optimizer, evaluations: Iterable[Evaluation]) -> Recommendation | None:
    """What an optimizer recommends after these evaluations.

    One without a posterior recommends the lowest mean loss observed, as every tool does: lucky, where losses
    are noisy.
    """
    if isinstance(optimizer, Recommends):
        return optimizer.recommend()
    losses: dict[Configuration, list[float]] = {}
    failed: set[Configuration] = set()
    for evaluation in evaluations:
        if evaluation.state == "complete" and evaluation.loss is not None:
            losses.setdefault(evaluation.configuration, []).append(evaluation.loss)
        elif evaluation.state in ("failed", "quarantined"):
            failed.add(evaluation.configuration)
    means = {one: sum(values) / len(values) for one, values in losses.items() if one not in failed}
    if not means:
        return None
    best = min(means, key=lambda one: means[one])
    return Recommendation(best, means[best])
