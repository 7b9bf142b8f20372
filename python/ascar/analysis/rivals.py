"""Other measures of importance, to compare with: analysis of variance, and a forest's.

The forest needs scikit-learn (the extra `rivals`), which is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ascar import _core
from ascar.extras import importing_extra
from ascar.importance import importance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.importance import Observations

_TREES = 200
_BACKGROUND = 2_000  # rows over which a forest's marginals are averaged


@dataclass(frozen=True, slots=True)
class Variance:
    """One-way analysis of variance of a parameter.

    Attributes:
        f: between over within its values.
        p: chance of such an F without an effect.
    """

    f: float
    p: float


def anova(observations: Observations) -> dict[str, Variance]:
    """One-way analysis of variance of each parameter, over the rows to which it applies.

    F is infinite where its values explain everything, and 0 with p = 1 where rows are too few.
    """
    found: dict[str, Variance] = {}
    for factor in observations.factors:
        held = factor.codes >= 0
        values = observations.values[held] - observations.values.mean()
        counts = np.bincount(factor.codes[held])
        groups, rows = int((counts > 0).sum()), len(values)
        between = importance(observations, factor.name) * len(observations.values)
        within = float(((values - values.mean()) ** 2).sum()) - between if rows else 0.0
        if groups < 2 or rows <= groups:
            found[factor.name] = Variance(0.0, 1.0)
        elif within <= 1e-12 * between:
            found[factor.name] = Variance(float("inf"), 0.0)
        else:
            f = between / (groups - 1) / (max(within, 0.0) / (rows - groups) or 1.0)
            found[factor.name] = Variance(f, _core.f_above(f, groups - 1, rows - groups))
    return found


def fanova(observations: Observations, seed: int = 1) -> dict[str, float]:
    """Share of a forest's variance that each parameter's marginal has, as in functional ANOVA.

    After Hutter, Hoos and Leyton-Brown (ICML 2014), with the marginal averaged over the table's own rows in
    place of all combinations.

    Raises:
        EnvironmentLacks: scikit-learn is not installed.
    """
    rng = np.random.default_rng(seed)
    table = _codes(observations)
    forest = _forest(seed).fit(table, observations.values)
    rows = rng.permutation(len(table))[:_BACKGROUND]
    whole = float(np.var(forest.predict(table[rows])))
    found: dict[str, float] = {}
    for place, factor in enumerate(observations.factors):
        levels, counts = np.unique(table[:, place], return_counts=True)
        marginal = np.empty(len(levels))
        for index, level in enumerate(levels):
            changed = table[rows].copy()
            changed[:, place] = level
            marginal[index] = forest.predict(changed).mean()
        middle = np.average(marginal, weights=counts)
        spread = float(np.average((marginal - middle) ** 2, weights=counts))
        found[factor.name] = spread / whole if whole > 0 else 0.0
    return found


def permutation(observations: Observations, seed: int = 1) -> dict[str, float]:
    """By how much a forest's R squared falls on rows that it has not seen, when a column is shuffled.

    Half of the rows train, the other half tells; Breiman (Machine Learning 45, 2001).

    Raises:
        EnvironmentLacks: scikit-learn is not installed.
    """
    table, values = _codes(observations), observations.values
    order = np.random.default_rng(seed).permutation(len(values))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    forest = _forest(seed).fit(table[train], values[train])
    shuffled = _sklearn("sklearn.inspection").permutation_importance(
        forest, table[test], values[test], n_repeats=10, random_state=seed
    )
    means: list[float] = np.asarray(shuffled.importances_mean, np.float64).tolist()
    return {factor.name: mean for factor, mean in zip(observations.factors, means, strict=True)}


def _codes(observations: Observations) -> NDArray[np.float64]:
    return np.stack([factor.codes for factor in observations.factors], 1).astype(np.float64)


def _forest(seed: int) -> Any:
    ensemble = _sklearn("sklearn.ensemble")
    return ensemble.RandomForestRegressor(_TREES, min_samples_leaf=2, random_state=seed)


def _sklearn(module: str) -> Any:
    with importing_extra("rivals"):
        return importlib.import_module(module)
