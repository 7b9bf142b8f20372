"""Parameters that do not seem to matter keep their best-known values: Spectra inside the loop.

Cao's thesis selects parameters before the search (chapter 7). Here the choice is made anew while the search
goes on, from all that was measured, so that a parameter whose evidence changes is searched again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ascar.importance import Factor, Observations, SelectionOptions, select

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ascar.optimizers.guided.codes import Gene
    from ascar.optimizers.guided.columns import SpaceColumns
    from ascar.optimizers.guided.evidence import ModelEvidence

# What few rows say of many ranges is chance.
_ROWS_PER_RANGE = 8
_RANGES_MAX = 8
# Enough for the upper end of an interval to within a hundredth or two of the variance.
_RESAMPLES = 100


def frozen_parameters(
    evidence: ModelEvidence, columns: SpaceColumns, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which parameters explain hardly anything, as far as the evidence goes.

    Args:
        evidence: the measured configurations.
        columns: the encoding of the space.
        share: a share of the losses' variance. A parameter is frozen where the upper end of the 95% interval
            of its (conditional) importance, eq. 7.2 to 7.4, lies below it.
        rng: the random generator of the resampling.

    Returns:
        bool (genes,), in the order of `columns.names`.
    """
    genes = columns.codes.genes
    frozen = np.zeros(len(genes), np.bool_)
    rows = np.flatnonzero(evidence.measured)
    if len(rows) < 2 * _ROWS_PER_RANGE:
        return frozen
    codes = columns.codes.rows(evidence.configurations[int(row)] for row in rows)
    ranges = min(_RANGES_MAX, max(2, len(rows) // _ROWS_PER_RANGE))
    factors = [
        _factor(name, gene, codes[:, at], ranges)
        for at, (name, gene) in enumerate(zip(columns.names, genes, strict=True))
    ]
    varied = tuple(factor for factor in factors if factor.varies)
    if not varied:
        return frozen
    # Standardised losses have no mean, and so no relative deviation to stop at: evidence alone decides.
    rules = SelectionOptions(rsd_max=0.0, across="mean", resamples=_RESAMPLES)
    selection = select(Observations(varied, evidence.observations.loss[rows]), rules, rng)
    known = {
        one.parameter
        for one in selection.ranking
        if not one.selected and one.ci_high is not None and one.ci_high <= share * selection.variance
    }
    return np.array([name in known for name in columns.names], np.bool_)


def _factor(name: str, gene: Gene, codes: NDArray[np.float64], ranges: int) -> Factor:
    """A parameter's column; numbers of many values are cut into ranges of about equally many rows."""
    present = ~np.isnan(codes)
    places = np.full(len(codes), -1, np.intp)
    known, inverse = np.unique(codes[present], return_inverse=True)
    if gene.ordered and len(known) > ranges:
        quantiles = np.quantile(codes[present], np.arange(1, ranges) / ranges)
        known, inverse = np.unique(np.searchsorted(quantiles, codes[present], "right"), return_inverse=True)
    places[present] = inverse
    return Factor(name, places, tuple(map(str, known.tolist())))
