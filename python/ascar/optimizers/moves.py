"""The actions of an agent that walks through a space: each changes one parameter (Cao 2.3, 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ascar.optimizers.genes import Genes
from ascar.optimizers.guided.codes import Codes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.optimizers.guided.codes import Gene
    from ascar.space import Configuration, Space, Value

# A parameter of at most so many values can be set to any of them; one of more moves up and down.
_SET_MAX = 8
_SHARES = (0.05, 0.3)  # of the scale, of such moves


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """All actions of one space.

    Attributes:
        codes: the coding that actions are expressed in.
        genes: the genes that carry out the actions.
        gene: int (actions,), the parameter that each one changes.
        value: float64 (actions,), the code it is set to; NaN where it moves by `shift`.
        shift: float64 (actions,), by how much the code moves.
        top: float64 (actions,), the highest code of that parameter.
    """

    codes: Codes
    genes: Genes
    gene: NDArray[np.intp]
    value: NDArray[np.float64]
    shift: NDArray[np.float64]
    top: NDArray[np.float64]

    @classmethod
    def of(cls, space: Space) -> Moves:
        """The actions of a space."""
        codes = Codes.of(space)
        found = [(index, *move) for index, gene in enumerate(codes.genes) for move in _moves(gene)]
        table = np.array(found, np.float64).reshape(len(found), 3)
        tops = np.array([gene.size - 1 if gene.size else 1 for gene in codes.genes], np.float64)
        gene = table[:, 0].astype(np.intp)
        return cls(codes, Genes.of(space), gene, table[:, 1], table[:, 2], tops[gene])

    def __len__(self) -> int:
        return len(self.gene)

    def allowed(self, configuration: Configuration) -> NDArray[np.bool_]:
        """(actions,): which ones would change something."""
        present = self.codes.rows([configuration])[0][self.gene]
        after = self._after(present)
        with np.errstate(invalid="ignore"):
            return np.isfinite(present) & np.isfinite(after) & (after != present)

    def taken(self, configuration: Configuration, action: int, rng: np.random.Generator) -> Configuration:
        """Where an action leads: a valid configuration, as near as constraints allow.

        Args:
            configuration: the configuration in which the action is taken; the action must be allowed there.
            action: the action's index.
            rng: the random generator for the values of parameters that the action makes active.
        """
        gene = self.codes.genes[int(self.gene[action])]
        code = self.codes.rows([configuration])[0][self.gene]
        value = gene.value(float(self._after(code)[action]))
        assert value is not None, "an allowed action sets a value"

        def other(*_: object) -> Value:
            return value

        return self.genes.mutate(configuration, gene.name, rng, other)

    def _after(self, present: NDArray[np.float64]) -> NDArray[np.float64]:
        """(actions,): the code after each action; NaN where it cannot be taken."""
        moved = np.clip(present + self.shift, 0, self.top)
        moves = np.where(present >= 0, moved, np.nan)  # a special value has no neighbours
        return np.where(np.isnan(self.value), moves, self.value)


def _moves(gene: Gene) -> list[tuple[float, float]]:
    """Value and shift of the actions of one parameter."""
    sets = [-1.0 - index for index in range(len(gene.special))]
    if gene.size and (gene.size <= _SET_MAX or not gene.ordered):
        return [(code, 0.0) for code in (*range(gene.size), *sets)]
    shifts: set[float] = set()
    for share in _SHARES:
        step = max(1.0, round(share * gene.size)) if gene.size else share
        shifts |= {step, -step}
    # From a special value the way back leads to the middle.
    back = [(float(gene.size // 2) if gene.size else 0.5, 0.0)] if sets else []
    return [(float("nan"), shift) for shift in sorted(shifts)] + back + [(code, 0.0) for code in sets]
