"""How fast change points are found, and how that compares with ruptures at equal quality.

    python -m benchmarks.pilot_speed --budget 5min

1. Whole series of 10^4 to 10^7 readings of several shapes: seconds, and the exponent of their growth. An
algorithm of n log n steps has an exponent of 1.09 in that range.

2. One reading more at 10^5 readings: microseconds of the push alone, and of the push followed by the
question where the changes are. The mean counts all that pushes do, rare long ones too; the 99th percentile
is of single calls.

3. A labelled set: sessions with steps, with steps in correlated, skewed or spiky noise, and levels that
change every 100 to 600 readings. Quality is F1 of the change points within 20 readings. The peer is
ruptures, KernelCPD with a linear kernel (its Pelt with the l2 cost is the same problem and was slower at
every length). Its penalty is c sigma^2 ln n with sigma from the differences of neighbours, and for each
kind of series the c with the best F1 is taken: tuned with the labels, in its favour. Times are the least of
our three runs and its two, ratios of pairs on the same series.

4. Growth of both with the length, for three lengths of segments.

ruptures is run by `uv run --with ruptures` in an environment of its own, with 6 GB of memory at most.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import tempfile
import time
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Found, Piece, mean, number, ratio, table
from benchmarks.synthetic import LEVEL, Synthetic, autoregressive, steps
from scipy.special import stdtrit

from ascar import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

RUPTURES = "ruptures==1.1.10"
PEER = Path(__file__).parent / "peers" / "ruptures_peer.py"
PEER_LIMIT_S = 240
LENGTHS = (10_000, 31_623, 100_000, 316_228, 1_000_000, 10_000_000)
SHOWN = (10_000, 100_000, 1_000_000, 10_000_000)
REPEATS = 3
LEAST = 30
TOLERANCE = 20
SERIES = 60
PRICES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)


def random_of(*key: str | int) -> np.random.Generator:
    """Random numbers, the same for the same key."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def levels(rng: np.random.Generator, n: int, segment: int) -> NDArray[np.float64]:
    """Levels of one length, three standard deviations apart in the mean square."""
    heights = np.repeat(rng.normal(0, 3, n // segment + 1), segment)[:n]
    return heights + rng.standard_normal(n)


SHAPES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "independent": lambda rng, n: rng.standard_normal(n),
    "AR(1) 0.9": lambda rng, n: autoregressive(rng, n, 0.9),
    "log-normal 1": lambda rng, n: rng.lognormal(0, 1, n),
    "one step": lambda rng, n: rng.standard_normal(n) + 3 * (np.arange(n) > n // 3),
    "a change every 1,000": lambda rng, n: levels(rng, n, 1000),
    "a change every 200": lambda rng, n: levels(rng, n, 200),
    "random walk": lambda rng, n: np.cumsum(rng.standard_normal(n)),
}


def timed(work: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """Seconds of each repetition."""
    taken: list[float] = []
    for _ in range(repeats):
        start_s = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start_s)
    return taken


def growth(shape: str, n: int) -> dict[str, Any]:
    """Seconds for a whole series."""
    values = SHAPES[shape](random_of(shape, n), n)
    found = _core.change_points(values, min_segment=LEAST)
    return {"seconds": timed(lambda: _core.change_points(values, min_segment=LEAST)), "changes": len(found)}


def one_more(shape: str, n: int = 100_000, pushes: int = 20_000, asked: int = 2_000) -> dict[str, Any]:
    """Microseconds of a push, and of a push and a question, at n readings."""
    values = SHAPES[shape](random_of(shape, n), n + pushes + asked)
    detector = _core.ChangePointDetector(min_segment=LEAST)
    detector.extend(values[:n])
    detector.change_points()
    alone = each_us(detector.push, values[n : n + pushes].tolist())

    def both(value: float) -> None:
        detector.push(value)
        detector.change_points()

    return {"push": alone, "ask": each_us(both, values[n + pushes :].tolist())}


def each_us(call: Callable[[float], None], values: list[float]) -> dict[str, Any]:
    """Means of ten parts of the calls and the 99th percentile of single ones, microseconds."""
    single = np.empty(len(values))
    for index, value in enumerate(values):
        start_s = time.perf_counter()
        call(value)
        single[index] = time.perf_counter() - start_s
    parts = single.reshape(10, -1).mean(axis=1) * 1e6
    return {"means": parts.tolist(), "p99": float(np.percentile(single, 99)) * 1e6}


def many_levels(rng: np.random.Generator) -> Synthetic:
    """Levels of 100 to 600 readings, neighbours one and a half to five standard deviations apart."""
    sizes = rng.integers(100, 601, int(rng.integers(4, 10)))
    jumps = rng.uniform(1.5, 5, len(sizes)) * rng.choice((-1, 1), len(sizes))
    heights = np.repeat(np.cumsum(jumps), sizes)
    ends = tuple(int(end) for end in np.cumsum(sizes)[:-1])
    return Synthetic(LEVEL + 10 * (heights + rng.standard_normal(len(heights))), math.nan, 0, changes=ends)


def skewed_steps(rng: np.random.Generator) -> Synthetic:
    """Steps of a session whose readings are log-normal."""
    made = steps(rng, 0.0)
    noise = rng.lognormal(0, 0.5, len(made.values))
    return Synthetic(made.values + 20 * (noise - noise.mean()), made.mean, 0, changes=made.changes)


def spiky_steps(rng: np.random.Generator) -> Synthetic:
    """Steps of a session in which one reading in fifty is far off."""
    made = steps(rng, 0.0)
    far = 150 * (rng.random(len(made.values)) < 0.02)
    return Synthetic(made.values + far, made.mean, 0, changes=made.changes)


LABELLED: dict[str, Callable[[np.random.Generator], Synthetic]] = {
    "steps": lambda rng: steps(rng, 0.0),
    "steps, AR(1) 0.3": lambda rng: steps(rng, 0.3),
    "steps, AR(1) 0.6": lambda rng: steps(rng, 0.6),
    "steps, log-normal": skewed_steps,
    "steps, spikes": spiky_steps,
    "many levels": many_levels,
}


Counts = tuple[int, int, int]


def f1(found: list[int], true: tuple[int, ...]) -> Counts:
    """Hits, changes found, changes there are: each true one is hit at most once, within the tolerance."""
    left = sorted(found)
    hits = 0
    for at in true:
        near = [other for other in left if abs(other - at) <= TOLERANCE]
        if near:
            left.remove(min(near, key=lambda other: abs(other - at)))
            hits += 1
    return hits, len(found), len(true)


def score(counts: list[Counts]) -> float:
    """F1 over all series of a kind."""
    hits, found, true = (sum(column) for column in zip(*counts, strict=True))
    return 2 * hits / max(found + true, 1)


def sigma(values: NDArray[np.float64]) -> float:
    """Standard deviation from the differences of neighbours, robust to jumps and spikes."""
    return 1.4826 * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Task:
    """A series for the peer.

    Attributes:
        values: the series.
        prices: c of the penalty c sigma^2 ln n.
        method: of ruptures.
        repeats: runs of each, of which the fastest counts.
    """

    values: NDArray[np.float64]
    prices: tuple[float, ...]
    method: str = "KernelCPD"
    repeats: int = 1


def find_uv() -> str | None:
    """The uv program: on the path, or the private one of the set-up."""
    private = Path(__file__).parents[1] / ".uv" / "bin" / "uv"
    return shutil.which("uv") or (str(private) if private.exists() else None)


def peer(tasks: list[Task], limit_s: float = PEER_LIMIT_S) -> list[list[dict[str, Any]]]:
    """What ruptures finds: for each task one entry a price; fewer tasks where its time was over.

    Raises:
        RuntimeError: it cannot be run here.
    """
    uv = find_uv()
    if uv is None:
        raise RuntimeError("uv is not there: `make setup` installs it, or see docs.astral.sh/uv")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        listed: list[dict[str, Any]] = []
        for index, task in enumerate(tasks):
            np.save(place / f"{index}.npy", task.values)
            unit = sigma(task.values) ** 2 * math.log(len(task.values))
            listed.append(
                {
                    "file": f"{index}.npy",
                    "penalties": [price * unit for price in task.prices],
                    "method": task.method,
                    "repeats": task.repeats,
                    "least": LEAST,
                }
            )
        (place / "tasks.json").write_text(json.dumps(listed))
        words = [uv, "run", "--quiet", "--no-project", "--with", RUPTURES, "python", str(PEER), directory]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=limit_s, env=environment
            )
        except subprocess.TimeoutExpired as cut:
            printed = cut.stdout.decode() if isinstance(cut.stdout, bytes) else cut.stdout or ""
            return [json.loads(line)["found"] for line in printed.splitlines() if line.endswith("}")]
        if done.returncode != 0:
            raise RuntimeError(f"ruptures failed: {done.stderr.strip()[-400:]}")
        return [json.loads(line)["found"] for line in done.stdout.splitlines()]


def quality(kind: str) -> dict[str, Any]:
    """F1 and seconds of both on one kind of labelled series."""
    made = [LABELLED[kind](random_of(kind, index)) for index in range(SERIES)]
    theirs = peer([Task(series.values, PRICES, repeats=2) for series in made])
    made = made[: len(theirs)]
    taken: list[float] = []
    counts: list[Counts] = []
    for series in made:
        taken.append(min(timed(partial(_core.change_points, series.values, min_segment=LEAST))))
        counts.append(f1(_core.change_points(series.values, min_segment=LEAST), series.changes))
    pairs = list(zip(theirs, made, strict=True))
    scored = [
        [f1(found[index]["changes"], series.changes) for found, series in pairs]
        for index in range(len(PRICES))
    ]
    best = int(np.argmax([score(each) for each in scored]))
    return {
        "counts": counts,
        "peer_counts": scored[best],
        "price": PRICES[best],
        "seconds": taken,
        "peer_seconds": [found[best]["seconds"] for found in theirs],
    }


def advantage(ours: list[Counts], theirs: list[Counts]) -> tuple[float, float, float]:
    """Our F1 less theirs, with the 95% bootstrap interval over series."""
    draws = np.random.default_rng(0).integers(0, len(ours), (2000, len(ours)))
    sums = [np.array(counts, np.float64)[draws].sum(axis=1) for counts in (ours, theirs)]
    scores = [2 * each[:, 0] / (each[:, 1] + each[:, 2]) for each in sums]
    low, high = np.quantile(scores[0] - scores[1], (0.025, 0.975))
    return score(ours) - score(theirs), float(low), float(high)


def both(n: int, segment: int) -> dict[str, Any]:
    """Seconds of both on series of levels, a few each."""
    made = [levels(random_of(n, segment, index), n, segment) for index in range(3)]
    fast = n * min(segment, n) <= 10**8
    theirs = peer([Task(values, (3.0,), repeats=REPEATS if fast else 1) for values in made], 120)
    ours = [
        min(timed(lambda values=values: _core.change_points(values, min_segment=LEAST))) for values in made
    ]
    return {"seconds": ours[: len(theirs)], "peer_seconds": [found[0]["seconds"] for found in theirs]}


def pelt(n: int) -> dict[str, Any]:
    """Seconds of ruptures' two solvers of the same problem on a series of 500-reading levels."""
    values = levels(random_of(n, "pelt"), n, 500)
    found = peer([Task(values, (3.0,)), Task(values, (3.0,), "Pelt")])
    return {"KernelCPD": found[0][0]["seconds"], "Pelt": found[1][0]["seconds"]}


GROWTH_PAIRS = [(n, segment) for n in (1000, 10_000, 100_000) for segment in (100, 500, n)][:-1]


def pieces() -> list[Piece]:
    """All measurements."""
    found = [Piece(f"growth, {shape}, {n}", partial(growth, shape, n)) for n in LENGTHS for shape in SHAPES]
    found += [Piece(f"push, {shape}", partial(one_more, shape)) for shape in SHAPES]
    if find_uv() is None:
        print("ruptures is left out: uv is not there; `make setup` installs it")
        return found
    found += [Piece(f"quality, {kind}", partial(quality, kind)) for kind in LABELLED]
    found += [Piece(f"both, {n}, {segment}", partial(both, n, segment)) for n, segment in GROWTH_PAIRS]
    found += [Piece(f"pelt, {n}", partial(pelt, n)) for n in (1000, 3000)]
    return found


def exponent(found: dict[str, dict[str, Any]], shape: str) -> tuple[float, float, float]:
    """Slope of log seconds on log readings with its 95% interval."""
    points = [
        (math.log(n), math.log(min(found[key]["seconds"])))
        for n in LENGTHS
        if (key := f"growth, {shape}, {n}") in found
    ]
    if len(points) < 3:
        return math.nan, math.nan, math.nan
    x, y = (np.array(column, np.float64) for column in zip(*points, strict=True))
    free = x - x.mean()
    slope = float(free @ y / (free @ free))
    residuals = y - y.mean() - slope * free
    dof = len(points) - 2
    half = float(stdtrit(dof, 0.975)) * math.sqrt(float(residuals @ residuals) / dof / float(free @ free))
    return slope, slope - half, slope + half


def show_growth(found: Found) -> None:
    """The first table."""
    rows = [
        [
            shape,
            *(f"{1e3 * median(found[f'growth, {shape}, {n}']['seconds']):.3g}" for n in SHOWN),
            f"{found[f'growth, {shape}, {LENGTHS[-1]}']['changes']:,}",
            number(exponent(found, shape)),
        ]
        for shape in SHAPES
        if f"growth, {shape}, {LENGTHS[-1]}" in found
    ]
    heads = ["series", *(f"{n:,} readings, ms" for n in SHOWN), "changes at the longest", "exponent"]
    table(heads, rows)


def show_pushes(found: Found) -> None:
    """The second table."""
    rows: list[list[str]] = []
    for shape in SHAPES:
        done = found.get(f"push, {shape}")
        if done is not None:
            cells = [
                (number(mean(done[what]["means"])), f"{done[what]['p99']:.3g}") for what in ("push", "ask")
            ]
            rows.append([shape, *cells[0], *cells[1]])
    table(["series", "push, us", "99th percentile", "push and ask, us", "99th percentile"], rows)


def show_quality(found: Found) -> None:
    """The third table."""
    kinds = {kind: found[f"quality, {kind}"] for kind in LABELLED if f"quality, {kind}" in found}
    if len(kinds) > 1:
        together: dict[str, Any] = {"price": math.nan}
        for what in ("counts", "peer_counts", "seconds", "peer_seconds"):
            together[what] = [one for done in kinds.values() for one in done[what]]
        kinds["all"] = together
    rows: list[list[str]] = []
    for kind, done in kinds.items():
        ours, theirs = done["counts"], done["peer_counts"]
        difference = "{:+.3f} ({:+.3f} to {:+.3f})".format(*advantage(ours, theirs))
        price = "-" if math.isnan(done["price"]) else f"{done['price']:g}"
        times = number(ratio(done["peer_seconds"], done["seconds"]))
        rows.append([kind, f"{score(ours):.3f}", f"{score(theirs):.3f}", difference, price, times])
    table(["labelled series", "F1", "F1 of ruptures", "difference", "its c", "times faster"], rows)


def show_both(found: Found) -> None:
    """The fourth table."""
    rows: list[list[str]] = []
    for n, segment in GROWTH_PAIRS:
        done = found.get(f"both, {n}, {segment}")
        if done and done["peer_seconds"]:
            means = (f"{1e3 * fmean(done[what]):.3g}" for what in ("seconds", "peer_seconds"))
            times = number(ratio(done["peer_seconds"], done["seconds"]))
            rows.append([f"{n:,}", f"{segment:,}", *means, times])
    table(["readings", "a segment", "ms", "ms of ruptures (KernelCPD)", "times faster"], rows)
    for key, done in found.items():
        if key.startswith("pelt"):
            print(f"{key}: KernelCPD {done['KernelCPD']:.3g} s, Pelt with jump 5 {done['Pelt']:.3g} s")


def main() -> None:
    """Run and print the tables."""
    assert __doc__
    found = Benchmark.from_arguments(__doc__, "5min").run(pieces())
    for show in (show_growth, show_pushes, show_quality, show_both):
        show(found)


if __name__ == "__main__":
    main()
