"""How often watching for days raises a false alarm, and how soon it finds a shift.

    python -m benchmarks.pilot_watch --budget 10min

Ten days of a reading every 10 s, with a daily wave of 10% and a nightly dip, are watched in batches of 15
minutes. The first table has the share of ten-day watches with a false alarm, of a plan for one in 30 days:
a third is allowed. The last three rows are beyond what the method promises. The second table has shifts at
the fifth day, of a plan for one false alarm in 365 days: the share found by the tenth, the delay, and how
often the intervals of the beginning and of the size hold the truth.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, percent, table
from benchmarks.synthetic import autoregressive

from ascar.pilot import Batch, ShiftDetector, WatchPlan
from ascar.significance import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Values = NDArray[np.float64]

DAY_S, DAYS, A_DAY, A_BATCH = 86_400.0, 10, 8_640, 90
WATCHES, PIECE = 400, 20
BEGAN = 5.0
DAY = np.arange(DAYS * A_DAY) / A_DAY
WAVE = 1 + 0.1 * np.sin(2 * np.pi * DAY) - 0.2 * (np.mod(DAY, 1) < 1 / 24)


def ar1(rho: float) -> Callable[[np.random.Generator], Values]:
    """Noise of 5%."""
    return lambda rng: WAVE * (1 + 0.05 * autoregressive(rng, len(DAY), rho))


def days_differ(rng: np.random.Generator) -> Values:
    """Levels of days that scatter as much as batches do."""
    return WAVE * (
        1 + 0.05 * rng.standard_normal(len(DAY)) + 0.005 * np.repeat(rng.standard_normal(DAYS), A_DAY)
    )


def backups(rng: np.random.Generator) -> Values:
    """An event of 50 minutes, on every other day by chance."""
    event = (np.mod(DAY, 1) > 0.34) & (np.mod(DAY, 1) < 0.375) & np.repeat(rng.random(DAYS) < 0.5, A_DAY)
    return WAVE * (1 + 0.05 * rng.standard_normal(len(DAY)) - 0.7 * event)


STEADY: dict[str, Callable[[np.random.Generator], Values]] = {
    "independent": ar1(0.0),
    "AR(1) 0.6": ar1(0.6),
    "AR(1) 0.9": ar1(0.9),
    "AR(1) 0.98": ar1(0.98),
    "log-normal 0.5": lambda rng: WAVE * rng.lognormal(0, 0.5, len(DAY)),
    "AR(1) 0.995, longer than a batch": ar1(0.995),
    "days that differ": days_differ,
    "backups on some days": backups,
}
SHIFTS: dict[str, NDArray[np.floating[Any]]] = {
    "3% over 3 days": 0.03 * np.clip((DAY - BEGAN) / 3, 0, 1),
    "2% at once": 0.02 * (DAY >= BEGAN),
    "30% at once": 0.3 * (DAY >= BEGAN),
}
NOISE = {"AR(1) 0.6": 0.6, "AR(1) 0.9": 0.9, "AR(1) 0.98": 0.98}


def watched(readings: Values, false_alarm_days: float) -> ShiftDetector:
    """All readings watched."""
    watcher = ShiftDetector(WatchPlan(false_alarm_s=false_alarm_days * DAY_S))
    for index, value in enumerate(readings.reshape(-1, A_BATCH).mean(axis=1)):
        watcher.add(Batch(index, float(value)))
    return watcher


def false(name: str, first: int) -> dict[str, Any]:
    """Watches of readings that do not shift."""
    alarms = 0
    for watch in range(first, first + PIECE):
        rng = np.random.default_rng([zlib.crc32(name.encode()), watch])
        alarms += bool(watched(STEADY[name](rng), 30).shifts)
    return {"watches": PIECE, "alarms": alarms}


def true(shift: str, noise: str, first: int) -> dict[str, Any]:
    """Watches of readings that shift."""
    found: list[dict[str, Any]] = []
    for watch in range(first, first + PIECE):
        rng = np.random.default_rng([zlib.crc32(noise.encode()), watch, 1])
        # The wave would scale the shift, and its size be another at every time of the day.
        readings = ar1(NOISE[noise])(rng) - SHIFTS[shift]
        late = [one for one in watched(readings, 365).shifts if one.found_s >= BEGAN * DAY_S]
        if not late:
            continue
        one = late[0]
        size = -SHIFTS[shift][min(int(one.found_s / 10), len(DAY)) - 1]
        low_s = one.began_low_s or 0.0
        found.append(
            {
                "delay_h": one.found_s / 3600 - BEGAN * 24,
                "began": bool(low_s - 900 <= BEGAN * DAY_S <= one.began_high_s + 900),
                "sized": bool(one.size_low <= size <= one.size_high),
            }
        )
    return {"watches": PIECE, "found": found}


def main() -> None:
    """Simulate, and show the tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "10min")
    steady = {f"false, {name}, {at}": (name, at) for at in range(0, WATCHES, PIECE) for name in STEADY}
    shifts = {
        f"true, {shift}, {noise}, {at}": (shift, noise, at)
        for at in range(0, WATCHES // 2, PIECE)
        for shift in SHIFTS
        for noise in NOISE
    }
    results = benchmark.run(
        [
            *(Piece(key, lambda what=what: true(*what)) for key, what in shifts.items()),
            *(Piece(key, lambda what=what: false(*what)) for key, what in steady.items()),
        ]
    )
    print("Ten-day watches with a false alarm; at most 33.3% is stated\n")
    rows: list[list[str]] = []
    for name in STEADY:
        pieces = [results[key] for key, what in steady.items() if what[0] == name and key in results]
        watches = sum(one["watches"] for one in pieces)
        rows.append([name, percent(share(sum(one["alarms"] for one in pieces), watches)), str(watches)])
    table(["readings", "false alarms", "watches"], rows)
    print("Shifts at the fifth day\n")
    rows = []
    for shift in SHIFTS:
        for noise in NOISE:
            pieces = [
                results[key] for key, what in shifts.items() if what[:2] == (shift, noise) and key in results
            ]
            found = [one for piece in pieces for one in piece["found"]]
            watches = sum(piece["watches"] for piece in pieces)
            rows.append(
                [
                    shift,
                    noise,
                    percent(share(len(found), watches)),
                    f"{np.median([one['delay_h'] for one in found]):.1f} h" if found else "-",
                    percent(share(sum(one["began"] for one in found), len(found))),
                    percent(share(sum(one["sized"] for one in found), len(found))),
                ]
            )
    table(["shift", "noise", "found", "median delay", "beginning covered", "size covered"], rows)


if __name__ == "__main__":
    main()
