"""Which rules a new workload gets: those of which the most gain is to be expected, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.library import learned, nearest
from ascar.sharp.matching.prediction import Predicted, Predictor

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.library import Library, Neighbour
    from ascar.rules import RuleSet

CAUTION = 0.0
"""Standard deviations below the expectation at which a gain must still be positive."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Rules for a workload.

    Attributes:
        rules: id.
        rule_set: the rules.
        gain: the expected gain.
        low: the lower bound of the expected gain.
        made_for: the workload that they were made for.
        nearest: the workload of the library that is most alike.
        distance: the distance to that workload.
    """

    rules: str
    rule_set: RuleSet
    gain: float
    low: float
    made_for: str
    nearest: str
    distance: float


@dataclass(frozen=True, slots=True)
class FoundRules:
    """Rules that were in force before, of which nothing is expected.

    Attributes:
        rules: id.
        rule_set: the rules.
    """

    rules: str
    rule_set: RuleSet


class Chooser:
    """Finds rules for workloads.

    Args:
        library: the library to search.
        objective: the objective in full.
        caution: standard deviations; see `CAUTION`.
        without: workloads that are treated as if they were not in the library.

    Raises:
        InputError: the library is too small to predict anything, or the caution is below zero.
    """

    def __init__(
        self,
        library: Library,
        objective: str,
        caution: float = CAUTION,
        without: Collection[str] = (),
    ) -> None:
        if not caution >= 0:
            raise InputError(f"caution = {caution}: must be 0 or more")
        self._library = library
        self._caution = caution
        self.objective = objective
        self.predictor = Predictor(library, objective, without)
        self.similarity = learned(library, objective, self.predictor.names)

    def distance(self, a: Mapping[str, float], b: Mapping[str, float]) -> float:
        """Between the features of two workloads: 0 alike, 1 nothing in common."""
        return self.similarity.distance(a, b)

    def nearest(self, features: Mapping[str, float], count: int | None = None) -> list[Neighbour[str]]:
        """Workloads of the library that rules were tried on, the nearest first."""
        known = {name: self._library.workloads[name].values for name in self.predictor.workloads}
        return nearest(features, known, self.similarity.distance)[:count]

    def predicted(self, features: Mapping[str, float]) -> list[Predicted]:
        """What every rule set is expected to gain, that of the highest lower bound first."""
        found = self.predictor.predict(features)
        return sorted(found, key=lambda one: (-one.low(self._caution), one.rules))

    def choose(self, features: Mapping[str, float], without: Collection[str] = ()) -> Choice | None:
        """Rules for a workload; None where none is expected to gain anything, the caution included.

        Args:
            features: the features of the workload.
            without: ids of rules that will not do.
        """
        best = next((one for one in self.predicted(features) if one.rules not in without), None)
        if best is None or best.low(self._caution) <= 0:
            return None
        entry = self._library.solutions[best.rules]
        name, distance = self.nearest(features, 1)[0]
        return Choice(
            rules=best.rules,
            rule_set=entry.rule_set,
            gain=best.gain,
            low=best.low(self._caution),
            made_for=entry.workload,
            nearest=name,
            distance=distance,
        )
