"""Spectra: which parameters matter, by how much of the variance each of them explains (Cao, chapter 7).

The importance of a parameter is the reduction in variance when rows are split by its values (eq. 7.2); given
parameters that were chosen before, it is the greatest such reduction inside any combination of their values
(7.3, 7.4). Parameters are chosen greedily until the rows of every combination are alike (Algorithm 1), by
their relative standard deviation as eq. 6.2 has it. Eq. 7.5 as printed divides by N twice, once inside Var
and once more as N - 1: it falls with the number of rows, and would stop at once on any large table.

A parameter that applies to some rows only splits those; the others stay one part. So what says whether it
applies (the file system, say) gets no share of its importance, nor it of theirs.
"""

from ascar.importance.measures import (
    conditional_importance,
    correlation,
    importance,
    interaction,
    relative_deviation,
)
from ascar.importance.observations import Factor, Observations
from ascar.importance.selection import FOR_PEOPLE, Selection, SelectionOptions, select

__all__ = [
    "FOR_PEOPLE",
    "Factor",
    "Observations",
    "Selection",
    "SelectionOptions",
    "conditional_importance",
    "correlation",
    "importance",
    "interaction",
    "relative_deviation",
    "select",
]
