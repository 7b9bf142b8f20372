"""What stopping at the first narrow interval costs in coverage, and what it saves against fixed lengths.

    sudo .venv/bin/python -m benchmarks.pilot_stopping --budget 10min

1. Synthetic sessions of the preset "normal" (total width 10% of the mean), in rounds of 50 unit readings
with 30% noise: how often the interval at which the session stopped covers the truth. Beside it: the
analysis alone, looked at after every round, and the t interval of readings taken as independent, stopped at
in the same way; both from the same 50 readings on.

2. The readings that sessions took over those of a fixed length. The fixed length is the one that a careful
person who knows the kind of load takes to be sure: the shortest at which 95% of recordings have an interval
of the default analysis that is narrow enough. "Any load" is the longest of those: for who does not know
which kind it is.

3. The rule of hyperfine, 10 runs at least and 3 seconds at least, has no target. How often the t interval
of its 10 runs would have been narrow enough.

4. Speed by regression (WPS), stopped at the first narrow interval on 20 rounds or more.

5. The same on fio runs on a loop device (ext4 on an image file; root): seconds of sessions with rounds of
one second and unit readings of 20 ms, over the fixed length taken from recordings of 10 s, and hyperfine's
rule on fio with a fixed amount of work. Skipped without root or fio.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
import zlib
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import (
    Benchmark,
    Found,
    Piece,
    batches,
    called,
    digits,
    mean,
    number,
    percent,
    ratio,
    table,
)
from benchmarks.pilot_coverage import MACHINES
from benchmarks.synthetic import LEVEL, autoregressive

from ascar import _core
from ascar.pilot import PRESETS, Goal, Indicator, Limits, MeasurementPlan, Round, WorkAmounts, run_session
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray

GOAL = PRESETS["normal"]
NOISE = 0.3
ROUND, ROUNDS_MAX = 50, 400
SESSIONS, BATCH = 2000, 50
CALIBRATION = 200
CERTAIN = 0.95
RUNS = 10


def warming(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Independent readings; the first eighth or so of each round is a cold start."""
    values = 1 + NOISE * rng.standard_normal(n)
    at = np.arange(n) % ROUND
    return LEVEL * values * np.where(at < 6, 0.3 + 0.1 * at, 1.0)


KINDS: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "independent": lambda rng, n: LEVEL * (1 + NOISE * rng.standard_normal(n)),
    "AR(1) 0.6": lambda rng, n: LEVEL * (1 + NOISE * autoregressive(rng, n, 0.6)),
    "AR(1) 0.9": lambda rng, n: LEVEL * (1 + NOISE * autoregressive(rng, n, 0.9)),
    "log-normal 0.5": lambda rng, n: LEVEL * rng.lognormal(-0.125, 0.5, n),
    "cold start each round": warming,
}


def generator(kind: str, session: int) -> np.random.Generator:
    """The random numbers of one session."""
    return np.random.default_rng([zlib.crc32(f"stopping {kind}".encode()), session])


def narrow(low: float | None, high: float | None) -> bool:
    """Whether an interval's total width is at most that of the goal."""
    return low is not None and high is not None and high - low <= GOAL.interval_width * (high + low) / 2


def pilot(values: NDArray[np.float64]) -> tuple[int, float | None, float | None]:
    """A session on these readings: how many it took, and the interval that it stopped at."""
    rounds = iter(np.split(values, len(values) // ROUND))

    def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
        return Round(1.0, None, {}, {"value": next(rounds).tolist()})

    plan = MeasurementPlan([Indicator("value")], GOAL, None, Limits(1e9, ROUNDS_MAX))
    session = run_session(run, plan)
    found = session.findings[0].measurement
    assert found is not None
    return ROUND * len(session.rounds), found.ci_low, found.ci_high


def alone(values: NDArray[np.float64]) -> tuple[int, float | None, float | None]:
    """The analysis alone, looked at after every round."""
    for n in range(ROUND, len(values) + 1, ROUND):
        found = _core.analyze(values[:n])
        if narrow(found.ci_low, found.ci_high):
            return n, found.ci_low, found.ci_high
    return len(values), None, None


def naive(values: NDArray[np.float64]) -> tuple[int, float | None, float | None]:
    """The t interval, looked at after every round."""
    for n in range(ROUND, len(values) + 1, ROUND):
        _, low, high = _core.mean_interval(values[:n])
        if narrow(low, high):
            return n, low, high
    return len(values), None, None


RULES = {"session": pilot, "analysis alone": alone, "t interval": naive}


def stopped(kind: str, first: int) -> dict[str, Any]:
    """Readings taken and intervals that cover, by rule."""
    found: dict[str, Any] = {rule: {"readings": [], "given": 0, "covered": 0} for rule in RULES}
    ten = 0
    for index in range(first, first + BATCH):
        values = KINDS[kind](generator(kind, index), ROUND * ROUNDS_MAX)
        for rule, stop in RULES.items():
            readings, low, high = stop(values)
            found[rule]["readings"].append(readings)
            if low is not None and high is not None:
                found[rule]["given"] += 1
                found[rule]["covered"] += low <= LEVEL <= high
        ten += narrow(*_core.mean_interval(values[:RUNS])[1:])
    return {**found, "ten": ten}


def fixed(kind: str) -> dict[str, Any]:
    """The length at which 95% of recordings have a narrow enough interval."""
    longest = ROUND * ROUNDS_MAX
    made = [KINDS[kind](generator(f"fixed {kind}", index), longest) for index in range(CALIBRATION)]
    n = float(ROUND)
    while n < longest:
        found = [_core.analyze(values[: int(n)]) for values in made]
        if sum(narrow(one.ci_low, one.ci_high) for one in found) >= CERTAIN * CALIBRATION:
            break
        n *= 1.05
    return {"readings": int(n)}


def speeds(kind: str, first: int) -> dict[str, Any]:
    """Sessions that stop at the first narrow interval of the speed."""
    given = covered = 0
    rounds: list[int] = []
    for index in range(first, first + BATCH):
        machine = MACHINES[kind](generator(kind, index))
        machine.rounds = 400
        run, true = machine.runner()
        plan = MeasurementPlan((), Goal(GOAL.interval_width, 1), WorkAmounts(10, 1e6), Limits(rounds_max=300))
        session = run_session(run, plan)
        rounds.append(len(session.rounds))
        found = session.speed
        if session.reached and found is not None and found.ci_low is not None and found.ci_high is not None:
            given += 1
            covered += found.ci_low <= true <= found.ci_high
    return {"given": given, "covered": covered, "rounds": rounds}


JOBS = {
    "random read 4 KiB": ("--rw=randread", "--bs=4k", "--direct=1"),
    "random write 4 KiB": ("--rw=randwrite", "--bs=4k", "--direct=1"),
    "sequential write 1 MiB, fsync each 8": ("--rw=write", "--bs=1m", "--fsync=8"),
}
WINDOW_S, RECORD_S, RECORDS, REPEATS = 0.02, 10, 2, 3
SIZE_MB = 256
FIO_WORK = {
    "random read 4 KiB": "16m",
    "random write 4 KiB": "16m",
    "sequential write 1 MiB, fsync each 8": "128m",
}


@contextmanager
def loop_device() -> Generator[Path]:
    """A mounted ext4 on an image file, with a file that is there in full."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        image, place = Path(directory) / "image", Path(directory) / "mount"
        place.mkdir()
        called("fallocate", "-l", "1G", image)
        called("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0", image)
        called("mount", "-o", "loop", image, place)
        try:
            file = place / "file"
            called("dd", "if=/dev/urandom", f"of={file}", "bs=1M", f"count={SIZE_MB}", "conv=fsync")
            yield place
        finally:
            called("umount", place)


def fio(place: Path, job: str, *extra: str) -> NDArray[np.float64]:
    """Bandwidth of each window, KiB/s, where fio is told to write a log."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log"
        words = [
            "fio",
            "--name=job",
            f"--filename={place / 'file'}",
            f"--size={SIZE_MB}m",
            *JOBS[job],
            *extra,
        ]
        window_ms = round(1000 * WINDOW_S)
        called(*words, f"--write_bw_log={log}", f"--log_avg_msec={window_ms}", f"--output={log}.txt")
        lines = Path(f"{log}_bw.1.log").read_text().splitlines()
    return np.array([float(line.split(",")[1]) for line in lines])


def needed(values: NDArray[np.float64]) -> float:
    """Seconds of a recording until its interval is narrow and stays so for the next length."""
    n = float(ROUND)
    while n < len(values):
        found = _core.analyze(np.ascontiguousarray(values[: int(n)]))
        if narrow(found.ci_low, found.ci_high):
            return WINDOW_S * n
        n *= 1.05
    return math.inf


def real(job: str) -> dict[str, Any]:
    """Sessions, recordings, hyperfine's rule on one job."""
    with loop_device() as place:
        timed = ("--time_based", "--ramp_time=0")
        start_s = time.monotonic()
        fio(place, job, *timed, "--runtime=1")
        starting_s = time.monotonic() - start_s - 1
        recorded = [fio(place, job, *timed, f"--runtime={RECORD_S}") for _ in range(RECORDS)]
        second = round(1 / WINDOW_S)
        lengths = [
            needed(values[start:]) for values in recorded for start in range(0, len(values) // 2, second)
        ]
        sessions: list[float] = []
        reached = 0

        def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
            before_s = time.monotonic()
            values = fio(place, job, *timed, "--runtime=1")
            return Round(time.monotonic() - before_s, None, {}, {"value": values.tolist()})

        for _ in range(REPEATS):
            session = run_session(run, MeasurementPlan([Indicator("value")], GOAL, None, Limits(30.0)))
            sessions.append(session.seconds)
            reached += session.reached
        durations: list[float] = []
        begun_s = time.monotonic()
        while len(durations) < RUNS or time.monotonic() - begun_s < 3:
            before_s = time.monotonic()
            fio(place, job, f"--io_size={FIO_WORK[job]}")
            durations.append(time.monotonic() - before_s)
        center, low, high = mean(durations)
        return {
            "sessions": sessions,
            "reached": reached,
            "starting_s": starting_s,
            "needed": [min(length, RECORD_S) for length in lengths],
            "longer": sum(math.isinf(length) for length in lengths),
            "hyperfine_s": sum(durations),
            "hyperfine_width": (high - low) / center,
        }


def pieces() -> list[Piece]:
    """Real runs first; of the rest batches in turn."""
    found: list[Piece] = []
    if os.geteuid() != 0 or shutil.which("fio") is None:
        print("fio on a loop device is left out: it needs root and fio")
    else:
        found += [Piece(f"fio {job}", partial(real, job)) for job in JOBS]
    found += [Piece(f"fixed {kind}", partial(fixed, kind)) for kind in KINDS]
    for first in range(0, SESSIONS, BATCH):
        found += [Piece(f"{kind} {first}", partial(stopped, kind, first)) for kind in KINDS]
        found += [Piece(f"speed, {kind} {first}", partial(speeds, kind, first)) for kind in MACHINES]
    return found


def taken(done: list[dict[str, Any]], rule: str) -> list[float]:
    """Readings of every session."""
    return [float(count) for part in done for count in part[rule]["readings"]]


def show_coverage(found: Found) -> None:
    """The first table."""
    rows: list[list[str]] = []
    for kind in KINDS:
        done = batches(found, kind)
        cells = [
            percent(
                share(sum(part[rule]["covered"] for part in done), sum(part[rule]["given"] for part in done))
            )
            for rule in RULES
        ]
        rows.append([kind, f"{BATCH * len(done):,}", *cells])
    table(["stopped at 10%: readings", "sessions", *RULES], rows)


def show_lengths(found: Found) -> None:
    """The second table."""
    lengths = {kind: found[f"fixed {kind}"]["readings"] for kind in KINDS if f"fixed {kind}" in found}
    longest = max(lengths.values(), default=1)
    rows: list[list[str]] = []
    for kind, length in lengths.items():
        done = batches(found, kind)
        if done:
            readings = taken(done, "session")
            own, other = ([float(size)] * len(readings) for size in (length, longest))
            ten = share(sum(part["ten"] for part in done), BATCH * len(done))
            cells = [number(ratio(readings, own)), number(ratio(readings, other)), percent(ten)]
            rows.append([kind, number(mean(readings)), f"{length:,}", *cells])
    heads = [
        "readings",
        "of a session",
        "fixed",
        "session/fixed",
        "session/fixed for any load",
        "10 runs reach 10%",
    ]
    table(heads, rows)


def show_speeds(found: Found) -> None:
    """The third table."""
    rows: list[list[str]] = []
    for kind in MACHINES:
        done = batches(found, f"speed, {kind}")
        given = sum(part["given"] for part in done)
        covered = percent(share(sum(part["covered"] for part in done), given))
        rounds = [float(count) for part in done for count in part["rounds"]]
        if done:
            rows.append([kind, f"{len(rounds):,}", f"{given:,}", covered, number(mean(rounds))])
    table(["speed, stopped at 10%", "sessions", "reached", "coverage", "rounds"], rows)


def show_fio(found: Found) -> None:
    """The fourth table."""
    rows: list[list[str]] = []
    for job in JOBS:
        done = found.get(f"fio {job}")
        if done is None:
            continue
        length_s = done["starting_s"] + float(np.quantile(done["needed"], CERTAIN, method="higher"))
        bound = "at least " if done["longer"] else ""
        times = number(ratio(done["sessions"], [length_s] * len(done["sessions"])))
        width = f"{digits(done['hyperfine_s'])} s, {done['hyperfine_width']:.1%}"
        reached = f"{done['reached']} of {len(done['sessions'])}"
        rows.append([job, number(mean(done["sessions"])), reached, f"{bound}{length_s:.3g}", times, width])
    heads = ["fio", "session, s", "reached", "fixed, s", "session/fixed", "hyperfine's rule: time, width"]
    table(heads, rows)


def main() -> None:
    """Run and print the tables."""
    assert __doc__
    found = Benchmark.from_arguments(__doc__, "10min").run(pieces())
    for show in (show_coverage, show_lengths, show_speeds, show_fio):
        show(found)


if __name__ == "__main__":
    main()
