"""Li's Table 4.1 and Fig. 4.5 again: time to a 10% interval by four methods, and the durations they predict.

    python -m benchmarks.pilot_wps --budget 5min

A real file is written from its beginning in units of 4 MB, in two ways: through the page cache with an
fsync at the end, and past it (O_DIRECT). Four methods measure the speed until the interval's total width
is 10% of the mean: unit readings (the speed of each unit) with all readings taken as stable, the same
charged for the round's fsync as trials of a study are (`ascar.charging`), unit readings with change points
(a session of the preset "normal", rounds of 128 MB), and work per second (WPS) on rounds of 16 MB to 1 GB
that tell nothing but how long they took. A method that is not done after 25 s (WPS: 45 s) is stopped there.

The second table holds the durations of writing more, measured, and predicted from the middle of each
method's interval: work over speed from unit readings, eq. 4.4 (with alpha) from WPS. The thesis finds unit
readings with change points first to reach the interval and WPS slowest; and where a cache or an fsync makes
units look fast, unit readings predict too short durations.
"""

from __future__ import annotations

import mmap
import os
import statistics
import tempfile
import time
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Benchmark, Found, Piece, digits, mean, number, present, ratio, table

from ascar.charging import Charge
from ascar.pilot import (
    PRESETS,
    Indicator,
    Kind,
    Limits,
    MeasurementPlan,
    Round,
    WorkAmounts,
    analyze,
    run_session,
)

if TYPE_CHECKING:
    from ascar.pilot import Session

GOAL = PRESETS["normal"]
UNIT_MB, ROUND_MB = 4, 128
MOST_MB = 1024
LIMIT_S, ROUNDS_LIMIT_S = 25.0, 45.0
REPEATS, RUNS = 3, 5
AMOUNTS_MB = (128, 256, 512, 1024, 2048)
WAYS = ("page cache, fsync at the end", "O_DIRECT")
LOOK_GROWTH = 1.1
PLACE = Path("/var/tmp") if Path("/var/tmp").is_dir() else Path(tempfile.gettempdir())


@cache
def buffer() -> mmap.mmap:
    """A unit of random bytes, page-aligned as O_DIRECT wants it."""
    unit = mmap.mmap(-1, UNIT_MB << 20)
    unit.write(os.urandom(UNIT_MB << 20))
    return unit


def write(way: str, amount_mb: float) -> tuple[float, list[float], float]:
    """Write a new file: seconds of all of it, the speed of each unit in MB/s, seconds of the fsync."""
    direct = way == "O_DIRECT"
    flags = os.O_WRONLY | os.O_CREAT | (os.O_DIRECT if direct else 0)
    unit = buffer()
    with tempfile.TemporaryDirectory(dir=PLACE) as directory:
        speeds: list[float] = []
        start_s = time.perf_counter()
        file = os.open(Path(directory) / "file", flags, 0o600)
        try:
            before_s = time.perf_counter()
            for _ in range(max(1, round(amount_mb / UNIT_MB))):
                written = os.write(file, unit)
                assert written == UNIT_MB << 20, "the disk is full"
                now_s = time.perf_counter()
                speeds.append(UNIT_MB / (now_s - before_s))
                before_s = now_s
            os.fsync(file)
            fsync_s = time.perf_counter() - before_s
        finally:
            os.close(file)
        return time.perf_counter() - start_s, speeds, fsync_s


def all_stable(way: str, *, charge: bool = False) -> dict[str, Any]:
    """Unit readings, none of them removed; charged: over the time of the round's fsync too."""
    seconds_per_mb: list[float] = []
    spent_s, looked_at = 0.0, 0
    begun_s = time.monotonic()
    while True:
        taken_s, speeds, fsync_s = write(way, ROUND_MB)
        spent_s += taken_s
        load_s = sum(UNIT_MB / speed for speed in speeds)
        left = Charge(load_s, {"dirty_bytes": ROUND_MB * 2.0**20}, drain_s=fsync_s if charge else 0.0)
        seconds_per_mb += [1 / speed / left.factor for speed in speeds]
        over = time.monotonic() - begun_s >= LIMIT_S
        if len(seconds_per_mb) < LOOK_GROWTH * looked_at and not over:
            continue
        looked_at = len(seconds_per_mb)
        found = analyze(seconds_per_mb, whole=True)
        width = found.ci_width_relative
        reached = width is not None and width <= GOAL.interval_width and found.n >= GOAL.readings_min
        if reached or over:
            return {
                "seconds": spent_s,
                "reached": reached,
                "speed": 1 / found.mean,
                "alpha_s": 0.0,
                "width": width,
                "merged": found.subsession_size,
                "samples": found.n,
            }


def with_changes(way: str) -> dict[str, Any]:
    """A session on unit readings."""

    def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
        taken_s, speeds, _ = write(way, ROUND_MB)
        return Round(taken_s, None, {}, {"speed_mb_per_s": speeds})

    plan = MeasurementPlan([Indicator("speed_mb_per_s", Kind.RATIO, GOAL)], GOAL, None, Limits(LIMIT_S))
    session = run_session(run, plan)
    found = session.findings[0].measurement
    assert found is not None
    return {
        "seconds": writing_s(session),
        "reached": session.reached,
        "speed": found.mean,
        "alpha_s": 0.0,
        "width": found.ci_width_relative,
        "merged": found.subsession_size,
        "samples": found.n,
    }


def regression(way: str) -> dict[str, Any]:
    """A session on durations alone."""

    def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
        assert work_amount is not None
        amount_mb = UNIT_MB * max(1, round(work_amount / UNIT_MB))
        return Round(write(way, amount_mb)[0], amount_mb)

    # A round is short at a tenth of a second here: it is many units.
    work = WorkAmounts(16, MOST_MB, short_round_s=0.1, longest_round_s=10, first_result_s=10, first_rounds=20)
    session = run_session(run, MeasurementPlan((), GOAL, work, Limits(ROUNDS_LIMIT_S)))
    speed = session.speed
    return {
        "seconds": writing_s(session),
        "reached": session.reached,
        "speed": None if speed is None else speed.work_per_s,
        "alpha_s": 0.0 if speed is None else speed.alpha_s,
        "width": None if speed is None else speed.ci_width_relative,
        "merged": 1,
        "samples": len(session.rounds),
    }


def writing_s(session: Session) -> float:
    """What rounds took, without making and removing the directory."""
    return sum(done.seconds for done in session.rounds)


METHODS = {
    "unit readings, all": all_stable,
    "unit readings, charged": partial(all_stable, charge=True),
    "unit readings, change points": with_changes,
    "work per second": regression,
}


def actual(way: str, amount_mb: int) -> dict[str, Any]:
    """How long writing so much takes."""
    return {"seconds": [write(way, amount_mb)[0] for _ in range(RUNS)]}


def pieces() -> list[Piece]:
    """Repetitions in turn, so that what the disk does meanwhile hits all methods alike."""
    found: list[Piece] = []
    for repeat in range(REPEATS):
        for way in WAYS:
            found += [Piece(f"{way}, {name} {repeat}", partial(run, way)) for name, run in METHODS.items()]
    found += [
        Piece(f"{way}, {amount} MB", partial(actual, way, amount)) for amount in AMOUNTS_MB for way in WAYS
    ]
    return found


def repeats(found: Found, way: str, method: str) -> list[dict[str, Any]]:
    """What one method found."""
    return present(found, (f"{way}, {method} {repeat}" for repeat in range(REPEATS)))


def show_times(found: Found) -> None:
    """Table 4.1."""
    rows: list[list[str]] = []
    for way in WAYS:
        for method in METHODS:
            done = repeats(found, way, method)
            if not done:
                continue
            speeds = [one["speed"] for one in done if one["speed"] is not None]
            rows.append(
                [
                    way,
                    method,
                    number(mean([one["seconds"] for one in done])),
                    f"{sum(one['reached'] for one in done)} of {len(done)}",
                    number(mean(speeds)) if speeds else "-",
                    digits(statistics.median(one["samples"] for one in done)),
                    digits(statistics.median(one["merged"] for one in done)),
                ]
            )
    heads = ["writing", "method", "to 10%, s", "reached", "MB/s", "samples", "readings merged"]
    table(heads, rows)


def show_predictions(found: Found) -> None:
    """Fig. 4.5."""
    rows: list[list[str]] = []
    for way in WAYS:
        for amount in AMOUNTS_MB:
            done = found.get(f"{way}, {amount} MB")
            if done is None:
                continue
            row = [way, f"{amount:,}", number(mean(done["seconds"]))]
            for method in METHODS:
                told = [one for one in repeats(found, way, method) if one["speed"] is not None]
                predicted = [max(one["alpha_s"] + amount / one["speed"], 1e-9) for one in told]
                center = [statistics.mean(done["seconds"])] * len(predicted)
                row.append(number(ratio(predicted, center)) if predicted else "-")
            rows.append(row)
    heads = ["writing", "MB", "actual, s", *(f"predicted/actual, {method}" for method in METHODS)]
    table(heads, rows)


def main() -> None:
    """Run and print both tables."""
    assert __doc__
    found = Benchmark.from_arguments(__doc__, "5min").run(pieces())
    show_times(found)
    show_predictions(found)


if __name__ == "__main__":
    main()
