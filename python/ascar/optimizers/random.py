"""Random search without replacement (Cao 5.2): strong where few parameters matter, and everyone's yardstick.

Why it is strong: Bergstra and Bengio, "Random Search for Hyper-Parameter Optimization", JMLR 13 (2012), 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascar.optimizers.ledger import Ledger
from ascar.optimizers.options import OptimizerTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.optimizers import Evaluation
    from ascar.space import Configuration, Space


class RandomOptions(OptimizerTable, frozen=True, forbid_unknown_fields=True):
    """`[optimizer]` with kind = "random": there is nothing to set."""


class RandomSearch:
    """Each proposal is uniform over the valid configurations that are left, after the start configurations.

    Args:
        space: the space to search.
        seed: the seed of the random choices.
        start: configurations to propose first.
        options: the study's `[optimizer]` table without its kind.

    Raises:
        StudyError: an option is unknown.
        SpaceError: a start configuration is not valid.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int = 0,
        start: tuple[Configuration, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        RandomOptions.read(options)
        self.ledger = Ledger(space, seed, start)

    def ask(self) -> Configuration:
        """The next configuration.

        Raises:
            Exhausted: every valid configuration is known or out.
        """
        ledger = self.ledger
        return ledger.take(ledger.started() or ledger.draw(ledger.rng(ledger.step)))

    def tell(self, evaluation: Evaluation) -> None:
        """What became of a configuration."""
        self.ledger.tell(evaluation)
