"""Search: propose configurations, learn what became of them. One file an algorithm, one interface."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ascar.extension import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.optimizers.annealing import SimulatedAnnealing
    from ascar.optimizers.auto import Auto
    from ascar.optimizers.dqn import DeepQNetwork
    from ascar.optimizers.genetic import GeneticAlgorithm
    from ascar.optimizers.gp import GaussianSearch
    from ascar.optimizers.random import RandomSearch
    from ascar.optimizers.trees import TreesSearch
    from ascar.results.trial import TrialState
    from ascar.space import Configuration, Space

__all__ = [
    "Auto",
    "DeepQNetwork",
    "Evaluation",
    "GaussianSearch",
    "GeneticAlgorithm",
    "Optimizer",
    "RandomSearch",
    "SimulatedAnnealing",
    "TreesSearch",
    "open_optimizer",
]

# Loaded when first asked for: each brings libraries of its own.
_HOMES = {
    "Auto": "auto",
    "DeepQNetwork": "dqn",
    "GaussianSearch": "gp",
    "GeneticAlgorithm": "genetic",
    "RandomSearch": "random",
    "SimulatedAnnealing": "annealing",
    "TreesSearch": "trees",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an optimizer learns of one trial.

    Attributes:
        configuration: the configuration of the trial.
        state: complete, pruned, failed, interrupted or quarantined.
        loss: lower is better: the score with the objective's sign turned; None where nothing was measured.
        standard_error: the standard error of the loss; None where unknown.
        seconds: the seconds that the trial took.
        losses: the loss of each objective in a study with several; `loss` is that of their compromise.
        change_s: the part of the seconds that went on putting the configuration in force: the change from the
            previous one, the fill, the settling; None where it is not known apart.
    """

    configuration: Configuration
    state: TrialState
    loss: float | None
    standard_error: float | None = None
    seconds: float = 0.0
    losses: tuple[float, ...] = ()
    change_s: float | None = None


@runtime_checkable
class Optimizer(Protocol):
    """Ask/tell. Everything is minimised; a study's direction is turned by the loop.

    Several asks may be outstanding; tells may come in any order, and for configurations never asked for
    (a history, a known good setting). An optimizer is rebuilt after a crash by telling it the history again.
    """

    def ask(self) -> Configuration:
        """The next configuration to try.

        Raises:
            Exhausted: nothing is left to propose.
        """
        ...

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        ...


def open_optimizer(
    options: Mapping[str, Any],
    space: Space,
    seed: int,
    start: tuple[Configuration, ...] = (),
    where: str = "optimizer.kind",
) -> Optimizer:
    """The optimizer that a study's `[optimizer]` table asks for.

    It sees parameters that only change together as one; see `ascar.optimizers.grouped`.

    Args:
        options: the table; "kind" says which, the other keys are that kind's own.
        space: the space to search.
        seed: the seed of the random choices.
        start: configurations to propose first (defaults, known good ones).
        where: the place of the kind in messages.

    Raises:
        StudyError: unknown kind, or a key of the table is wrong.
    """
    from ascar.optimizers.grouped import grouped

    kind = str(options.get("kind", "auto"))
    rest = {key: value for key, value in options.items() if key != "kind"}
    make = load("ascar.optimizers", kind, where)

    def opened(space: Space, start: tuple[Configuration, ...]) -> Optimizer:
        return make(space, seed=seed, start=start, options=rest)

    return grouped(opened, space, start)
