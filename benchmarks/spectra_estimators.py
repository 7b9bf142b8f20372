"""Whether another estimate of importance finds the parameters that matter with 32 measurements.

    .venv/bin/python -m benchmarks.spectra_estimators --tables DIR --budget 5min

As `benchmarks.spectra`, in what share of the same 1,000 draws the first two parameters of the whole table are
found, in their order, but with other estimates than Cao's (7.2 to 7.4):

- published: the reduction in variance, the greatest over combinations;
- rows: weighted by the combinations' rows (`--across mean`);
- unbiased: less what chance alone reduces, by the pooled variance within values;
- forest, forest of logarithms: the published one, of what extremely randomised trees, grown on the 32, say of
  every configuration of the table (as functional analysis of variance does; Hutter, Hoos and
  Leyton-Brown, 2014).

What is to be found is always what the published estimate says of the whole table.
"""

from __future__ import annotations

import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, percent, table
from benchmarks.spectra import DRAWS, TABLES, observed

from ascar._core import Forest
from ascar.analysis.spectra import sampled_rows
from ascar.importance import Factor, Observations, SelectionOptions, select
from ascar.importance.sums import Parts, Sums, centred
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

SIZE = 32
TREES, TRIES = 100, 0.15
PUBLISHED = SelectionOptions(rsd_max=0.0, count_max=2, evidence=False, resamples=0)
BY_ROWS = SelectionOptions(rsd_max=0.0, count_max=2, evidence=False, resamples=0, across="mean")


def published(whole: Observations, rows: NDArray[np.intp], rng: np.random.Generator) -> list[str]:
    """As Spectra does."""
    return [one.parameter for one in select(whole.rows(rows), PUBLISHED, rng).ranking[:2]]


def by_rows(whole: Observations, rows: NDArray[np.intp], rng: np.random.Generator) -> list[str]:
    """The same, combinations weighted by their rows."""
    return [one.parameter for one in select(whole.rows(rows), BY_ROWS, rng).ranking[:2]]


def unbiased(whole: Observations, rows: NDArray[np.intp], rng: np.random.Generator) -> list[str]:  # noqa: ARG001
    """Each reduction less its expectation without any effect, at the variance within values."""
    part = whole.rows(rows)
    values, parts, left, found = centred(part), Parts.by(part, ()), list(part.factors), list[str]()
    while left and len(found) < 2:
        best = max(left, key=lambda one: _corrected(one, parts, values))
        left.remove(best)
        found.append(best.name)
        parts = parts.split(best)
    return found


def _corrected(factor: Factor, parts: Parts, values: NDArray[np.float64]) -> float:
    sums, held = Sums.of(factor, parts, values, None), factor.codes >= 0
    counts, rows = sums.counts[0], sums.rows[0]
    groups, between = (counts > 0).sum(1), sums.reductions() * rows
    active = np.maximum(counts.sum(1), 1)
    squares = np.bincount(parts.of_row[held], values[held] ** 2, len(rows))
    whole = squares - sums.totals[0].sum(1) ** 2 / active
    within = max(0.0, float((whole - between).sum())) / max(1.0, float((counts.sum(1) - groups).sum()))
    return float((np.maximum(between - np.maximum(groups - 1, 0) * within, 0.0) / rows).max())


def by_forest(
    whole: Observations, rows: NDArray[np.intp], rng: np.random.Generator, *, logarithms: bool = False
) -> list[str]:
    """The published estimate of all configurations, as trees predict them."""
    columns = [one.codes == code for one in whole.factors for code in range(int(one.codes.max()) + 1)]
    features = np.ascontiguousarray(np.array(columns, np.float64).T)
    values = whole.values[rows]
    logarithms = logarithms and bool((values > 0).all())
    forest = Forest.grow(
        np.ascontiguousarray(features[rows]),
        np.log(values) if logarithms else np.ascontiguousarray(values),
        np.ones(len(rows)),
        int(rng.integers(1 << 31)),
        trees=TREES,
        leaf_min=1,
        tries=max(1, int(TRIES * features.shape[1])),
        bootstrap=False,
    )
    predicted = np.asarray(forest.predict(features)[0])
    smooth = Observations(whole.factors, np.exp(predicted) if logarithms else predicted)
    return [one.parameter for one in select(smooth, PUBLISHED, rng).ranking[:2]]


ESTIMATES: dict[str, Callable[[Observations, NDArray[np.intp], np.random.Generator], list[str]]] = {
    "published": published,
    "rows": by_rows,
    "unbiased": unbiased,
    "forest": by_forest,
    "forest of logarithms": partial(by_forest, logarithms=True),
}


def draws(name: str, file: str, objective: str, estimate: str, directory: Path) -> dict[str, Any]:
    """How many draws find the first two."""
    whole = observed(file, objective, directory)
    truth = [
        {one.parameter, *one.same_as}
        for one in select(whole, PUBLISHED, np.random.default_rng(0)).ranking[:2]
    ]
    hits = 0
    for draw in range(DRAWS):
        rng = np.random.default_rng([zlib.crc32(name.encode()), SIZE, draw])
        ranked = ESTIMATES[estimate](whole, sampled_rows(whole, SIZE, rng), rng)
        hits += len(ranked) > 1 and ranked[0] in truth[0] and ranked[1] in truth[1]
    return {"hits": int(hits), "draws": DRAWS}


def pieces(directory: Path) -> Iterator[Piece]:
    """All the work."""
    for name, file, objective in TABLES:
        for estimate in ESTIMATES:
            run = partial(draws, name, file, objective, estimate, directory)
            yield Piece(f"{name}: {estimate}", run)


def main() -> None:
    """Carry out what is left, and show all of it."""
    parser = Benchmark.parser(__doc__ or "", "5min")
    parser.add_argument("--tables", type=Path, default=Path(), help="directory of the recorded tables")
    given = parser.parse_args()
    found = Benchmark.of(given).run(pieces(given.tables))
    rows: list[list[str]] = []
    for name, _, _ in TABLES:
        held = [found.get(f"{name}: {estimate}") for estimate in ESTIMATES]
        if any(held):
            cells = ["-" if one is None else percent(share(one["hits"], one["draws"])) for one in held]
            rows.append([name, *cells])
    table(["table", *ESTIMATES], rows)


if __name__ == "__main__":
    main()
