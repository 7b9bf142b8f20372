"""How few measurements find the parameters that matter, and how fast (Cao 7.5.3, Fig. 7.4).

    .venv/bin/python -m benchmarks.spectra --budget 5min
    .venv/bin/python -m benchmarks.spectra --tables DIR

1. Of recorded tables with at least six parameters: in what share of 1,000 draws of N configurations, chosen
evenly over every parameter's values, the first, the first two and the first three parameters of the whole
table are found, in their order. A table counts where the order of its first two is stable: it is the same in
at least 95% of the bootstrap resamples of the whole table. Of repeated configurations the mean is taken.

2. How often the interval of the most important parameter's importance holds the truth, on a synthetic system.

3. Seconds for 500,000 rows of 12 parameters, with all intervals.

DIR holds the recorded tables that do not come with ascar; without them only the project's own are used.
"""

from __future__ import annotations

import hashlib
import time
import zlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from benchmarks.harness import Benchmark, Piece, number, percent, sources, table

from ascar.analysis.importance_source import table_source
from ascar.analysis.spectra import TableRoles, importance, observations_of, sampled_rows
from ascar.analysis.table_columns import ColumnOptions
from ascar.datasets import dataset_file
from ascar.importance import Factor, Observations, SelectionOptions, select
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (8, 16, 32, 64, 128, 256)
DRAWS = 1000
STABLE = 0.95
TABLES = (
    ("hsqldb", "hsqldb.csv", "Performance-"),
    ("lrzip", "lrzip.csv", "$<time"),
    ("redis", "redis.csv", "PERF-"),
    ("fileserver", "dataset:storage-v5-fileserver", "operations"),
    ("fileserver p99", "dataset:storage-v5-fileserver", "latency_ms_p99"),
    ("mailserver", "dataset:storage-v5-mailserver", "operations"),
    ("mailserver p99", "dataset:storage-v5-mailserver", "latency_ms_p99"),
)
HELD, COVERAGE_ROWS = 400, (32, 64, 256, 1024)


def observed(file: str, objective: str, directory: Path) -> Observations:
    """A table's distinct configurations.

    Raises:
        RuntimeError: the table is not here.
    """
    path = Path(file) if file.startswith("dataset:") else directory / file
    if not file.startswith("dataset:") and not path.is_file():
        raise RuntimeError(f"{path} is not here")
    source = table_source(path, ColumnOptions(objective))
    names = source.sheet.parameters
    means = source.frame.group_by(names, maintain_order=True).agg(pl.col(objective).mean())
    return observations_of(means, objective, TableRoles(names))


def whole(file: str, objective: str, directory: Path) -> dict[str, Any]:
    """What all of a table says."""
    observations = observed(file, objective, directory)
    found = select(
        observations, SelectionOptions(count_max=2, evidence=False, resamples=1000), np.random.default_rng(1)
    )
    third = select(
        observations, SelectionOptions(count_max=3, evidence=False, resamples=0), np.random.default_rng(1)
    )
    return {
        "rows": found.rows,
        "parameters": len(observations.factors),
        "stability": found.stability,
        "first": [[one.parameter, *one.same_as] for one in third.ranking[:3]],
        "shares": [one.importance / found.variance for one in third.ranking[:3]],
    }


def draws(name: str, file: str, objective: str, size: int, directory: Path) -> dict[str, Any]:
    """How many draws of so many rows find the first parameters."""
    observations = observed(file, objective, directory)
    if size > len(observations.values):
        raise RuntimeError(f"the table has {len(observations.values)} configurations")
    rules = SelectionOptions(rsd_max=0.0, count_max=3, evidence=False, resamples=0)
    truth = [
        {one.parameter, *one.same_as}
        for one in select(observations, rules, np.random.default_rng(0)).ranking[:3]
    ]
    hits = np.zeros(3, int)
    either = 0
    for draw in range(DRAWS):
        rng = np.random.default_rng([zlib.crc32(name.encode()), size, draw])
        part = observations.rows(sampled_rows(observations, size, rng))
        ranked = [one.parameter for one in select(part, rules, rng).ranking[:3]]
        right = [place < len(ranked) and ranked[place] in one for place, one in enumerate(truth)]
        hits += np.cumprod(right + [False] * (3 - len(right))).astype(int)
        either += (
            len(ranked) > 1
            and set(ranked[:2]) <= truth[0] | truth[1]
            and not ({*ranked[:2]} <= truth[0] or {*ranked[:2]} <= truth[1])
        )
    return {"hits": hits.tolist(), "either": int(either), "draws": DRAWS}


def coverage(rows: int) -> dict[str, Any]:
    """How often the interval holds the importance that endless rows would have."""
    held = 0
    for seed in range(HELD):
        rng = np.random.default_rng([rows, seed])
        codes = [rng.integers(0, levels, rows).astype(np.intp) for levels in (2, 3, 4, 5, 6)]
        values = 100 + 10 * codes[1] + 4 * codes[0] * codes[2] + rng.normal(0, 10, rows)
        names = tuple(Factor(f"p{i}", one, tuple("012345"[: one.max() + 1])) for i, one in enumerate(codes))
        found = select(Observations(names, values), SelectionOptions(count_max=0), rng)
        one = next(one for one in found.ranking if one.parameter == "p1")
        assert one.ci_low is not None
        assert one.ci_high is not None
        held += one.ci_low <= 200 / 3 <= one.ci_high  # the variance of 0, 10 and 20
    return {"held": held, "of": HELD}


def speed() -> dict[str, Any]:
    """Seconds from a frame to a ranking; the least of five."""
    rng = np.random.default_rng(0)
    rows, levels = 500_000, (2, 3, 4, 8, 2, 5, 6, 8, 3, 4)
    columns: dict[str, Any] = {f"p{i}": rng.integers(0, k, rows) for i, k in enumerate(levels)}
    columns |= {"text": rng.choice(["a", "b", "c"], rows), "range": rng.random(rows)}
    columns["y"] = 1000 + 50 * columns["p0"] + 30 * columns["p1"] * columns["p2"] + rng.normal(0, 30, rows)
    frame = pl.DataFrame(columns)
    seconds: list[float] = []
    for _ in range(5):
        begin = time.perf_counter()
        found = importance(frame, "y")
        seconds.append(time.perf_counter() - begin)
    return {"seconds": seconds, "selected": found.selected}


def pieces(directory: Path) -> Iterator[Piece]:
    """All the work."""
    yield Piece("speed", speed)
    for name, file, objective in TABLES:
        yield Piece(f"whole {name}", partial(whole, file, objective, directory))
    for size in (32, 8, 16, 64, 128, 256):
        for name, file, objective in TABLES:
            yield Piece(f"draws {name} {size}", partial(draws, name, file, objective, size, directory))
    for rows in COVERAGE_ROWS:
        yield Piece(f"coverage {rows}", partial(coverage, rows))


def show(results: dict[str, dict[str, Any]]) -> None:
    """Tables of what was found."""
    print("## Tables\n")
    rows: list[list[str]] = []
    for name, _, objective in TABLES:
        if (one := results.get(f"whole {name}")) is not None:
            first = [" = ".join(names) for names in one["first"]]
            ranked = [f"{text} {value:.0%}" for text, value in zip(first, one["shares"], strict=True)]
            stable = f"{one['stability']:.0%}" + (", counts" if one["stability"] >= STABLE else "")
            rows.append([name, objective, str(one["rows"]), str(one["parameters"]), *ranked, stable])
    table(["table", "objective", "rows", "parameters", "first", "second", "third", "stable"], rows)
    for title, read in (
        ("The first two, in either order", lambda one: one["either"]),
        ("The first", lambda one: one["hits"][0]),
        ("The first two in order", lambda one: one["hits"][1]),
        ("The first three in order", lambda one: one["hits"][2]),
    ):
        print(f"## {title}, by configurations measured\n")
        lines: list[list[str]] = []
        for name, _, _ in TABLES:
            found = [results.get(f"draws {name} {size}") for size in SIZES]
            if any(found):
                cells = ["-" if one is None else percent(share(read(one), one["draws"])) for one in found]
                lines.append([name, *cells])
        table(["table", *map(str, SIZES)], lines)
    print("## Coverage of the 95% interval\n")
    known = [(rows, results[f"coverage {rows}"]) for rows in COVERAGE_ROWS if f"coverage {rows}" in results]
    table(["rows", "held"], [[str(rows), percent(share(one["held"], one["of"]))] for rows, one in known])
    if "speed" in results:
        taken = results["speed"]["seconds"]
        print(
            f"500,000 rows x 12 parameters: {number((min(taken), float('nan'), float('nan')))} s (least of 5)"
        )


def _state() -> str:
    """A short name of what the results rest on: how importance is computed, and the project's tables."""
    found = hashlib.sha256(sources("ascar.analysis.spectra", within=("ascar.importance",)).encode())
    for name in sorted({file for _, file, _ in TABLES if file.startswith("dataset:")}):
        found.update(dataset_file(name.removeprefix("dataset:")).read_bytes())
    return found.hexdigest()[:12]


def main() -> None:
    """Carry out what is left, and show all of it."""
    parser = Benchmark.parser(__doc__ or "", "5min")
    parser.add_argument("--tables", type=Path, default=Path(), help="directory of the recorded tables")
    given = parser.parse_args()
    show(Benchmark.of(given, _state()).run(pieces(given.tables)))


if __name__ == "__main__":
    main()
