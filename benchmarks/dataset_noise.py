"""What the project's own dataset says of noise (Cao, chapter 6): by file system, over time, by disturbance.

python -m benchmarks.dataset_noise
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar.analysis.variation import relative_range, relative_standard_deviation, throughput_ranges
from ascar.datasets import dataset_file

from .harness import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

LOADS = ("fileserver", "mailserver")
SYSTEMS = ("ext2", "ext3", "ext4", "xfs", "btrfs")
COUNTS = (2, 3, 10)  # trials of a configuration: ranges compare between sets of equally many
# Cao 6.1: over 18% of configurations had a relative standard deviation above 5% and a range above 9%.
RSD_LARGE, RANGE_LARGE = 0.05, 0.09
WINDOWS_S = (0.25, 0.5, 1.0, 2.5, 5.0)
READING_S = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A configuration and its complete trials, in the order in which they were made.

    Attributes:
        values: parameter values, None where one does not apply.
        operations: float64 (trials,), in 5 s.
        rates: unit readings of the throughput, one array a trial.
        parts: which of the two volumes measured it.
        cpu_s: float64 (trials,), busy seconds of all processors during the load.
    """

    values: Mapping[str, object]
    operations: NDArray[np.float64]
    rates: tuple[NDArray[np.float64], ...]
    parts: NDArray[np.int64]
    cpu_s: NDArray[np.float64]

    @property
    def fs(self) -> str:
        """Its file system."""
        return str(self.values["fs"])

    def first(self, count: int) -> NDArray[np.float64]:
        """Operations of the first so many trials."""
        return self.operations[:count]


def read(path: Path) -> list[Measured]:
    """The configurations of a dataset."""
    frame = pl.read_parquet(path).with_columns(pl.col("trial.run").is_not_null().cum_sum().alias("part"))
    run = json.loads(frame["trial.run"].drop_nulls()[0])
    names = [parameter["name"] for parameter in run["space"]["parameters"]]
    complete = frame.filter(pl.col("trial.state") == "complete").sort("trial.started_at")
    found: list[Measured] = []
    for _, rows in complete.group_by(names, maintain_order=True):
        records = [json.loads(text) for text in rows["trial.record"]]
        rates = tuple(np.array(one["series"]["throughput_ops_per_s"]["values"], float) for one in records)
        found.append(
            Measured(
                rows.select(names).row(0, named=True),
                rows["operations"].to_numpy(),
                rates,
                rows["part"].to_numpy().astype(np.int64),
                rows["cpu_busy_s"].to_numpy(),
            )
        )
    return found


def noise(measured: Sequence[Measured], count: int) -> list[list[str]]:
    """A row a file system: how the same configuration differs from run to run."""
    rows: list[list[str]] = []
    for fs in (*SYSTEMS, "all"):
        mine = [one for one in measured if fs in (one.fs, "all") and len(one.operations) >= count]
        if not mine:
            continue
        deviations = np.array([relative_standard_deviation(one.first(count)).value for one in mine])
        ranges = np.array([relative_range(one.first(count)) for one in mine])
        large = np.mean((deviations > RSD_LARGE) & (ranges > RANGE_LARGE))
        means = [float(np.mean(one.operations)) / WINDOWS_S[-1] for one in mine]
        rows.append(
            [
                fs,
                str(len(mine)),
                f"{min(means):,.0f} to {max(means):,.0f}",
                *(f"{np.quantile(deviations, q):.1%}" for q in (0.5, 0.9, 1.0)),
                *(f"{np.quantile(ranges, q):.1%}" for q in (0.5, 0.9, 1.0)),
                f"{large:.0%}",
            ]
        )
    return rows


def over_time(measured: Sequence[Measured], count: int) -> list[list[str]]:
    """A row a file system: the median range over runs of windows, by their length (Cao, Fig. 6.8)."""
    rows: list[list[str]] = []
    for fs in SYSTEMS:
        mine = [one for one in measured if one.fs == fs and len(one.operations) >= count]
        cells: list[str] = []
        for window_s in WINDOWS_S:
            ranges: list[float] = []
            for one in mine:
                rates = [rate for rate in one.rates[:count] if len(rate) * READING_S >= WINDOWS_S[-1]]
                length = round(window_s / READING_S)
                stacked = np.array([rate[: round(WINDOWS_S[-1] / READING_S)] for rate in rates])
                if len(rates) < 2 or stacked.reshape(len(rates), -1, length).mean((0, 2)).min() <= 0:
                    continue  # a window in which nothing was done has no relative range
                ranges.append(float(np.median(throughput_ranges(list(stacked), length))))
            cells.append(f"{np.median(ranges):.0%} ({len(ranges)})" if ranges else "")
        rows.append([fs, *cells])
    return rows


def disturbance(measured: Sequence[Measured]) -> list[list[str]]:
    """What the deviations from a configuration's mean go with."""
    deviations, parts, cpu_s, passes = (list[float]() for _ in range(4))
    for one in measured:
        if len(one.operations) < 2:
            continue
        deviations += list(one.operations / one.operations.mean() - 1)
        parts += list(one.parts.astype(float))
        cpu_s += list(one.cpu_s)
        passes += list(range(len(one.operations)))
    deviation, part, busy, number = (np.array(one) for one in (deviations, parts, cpu_s, passes))
    rows = [
        ["volume 1, mean deviation", f"{deviation[part == 1].mean():+.2%}"],
        ["volume 2, mean deviation", f"{deviation[part == 2].mean():+.2%}"],
        [
            "processors busy, of 2 x 5 s: median, 90%",
            f"{np.median(busy):.1f} s, {np.quantile(busy, 0.9):.1f} s",
        ],
        ["correlation of deviation and busy processors", f"{np.corrcoef(deviation, busy)[0, 1]:+.2f}"],
    ]
    for place in range(int(number.max()) + 1):
        mine = deviation[number == place]
        rows.append([f"replicate {place + 1} ({len(mine)}), mean deviation", f"{mine.mean():+.2%}"])
    return rows


def extremes(measured: Sequence[Measured]) -> list[list[str]]:
    """The best and the worst configuration of each file system, by mean."""
    rows: list[list[str]] = []
    varying = [
        name for name in measured[0].values if len({one.values[name] for one in measured} - {None}) > 1
    ]
    for fs in SYSTEMS:
        mine = sorted((one for one in measured if one.fs == fs), key=lambda one: -one.operations.mean())
        for label, one in (("best", mine[0]), ("worst", mine[-1])) if mine else ():
            said = ", ".join(
                f"{name}={one.values[name]}"
                for name in varying
                if one.values[name] is not None and name not in ("fs", "atime", "block_scheduler")
            )
            rows.append([f"{fs}, {label}", f"{one.operations.mean() / WINDOWS_S[-1]:,.0f}", said])
    return rows


def effects(measured: Sequence[Measured]) -> list[list[str]]:
    """What each value does: the geometric mean of throughputs over that of the pairs with another value."""
    names = [name for name in measured[0].values if len({one.values[name] for one in measured} - {None}) > 1]
    means = {tuple(one.values[name] for name in names): float(one.operations.mean()) for one in measured}
    rows: list[list[str]] = []
    for place, name in enumerate(names):
        if name == "fs":
            continue
        values = sorted({key[place] for key in means} - {None}, key=_rank)
        for fs in SYSTEMS:
            for value in values[1:]:
                pairs = [
                    (means[key], means[base])
                    for key in means
                    if key[0] == fs
                    and key[place] == value
                    and (base := (*key[:place], values[0], *key[place + 1 :])) in means
                    and min(means[key], means[base]) > 0
                ]
                if pairs:
                    ratios = np.log([new / old for new, old in pairs])
                    rows.append(
                        [
                            fs,
                            f"{name} {values[0]} to {value}",
                            str(len(pairs)),
                            f"{np.exp(ratios.mean()):.2f}",
                            f"{np.exp(ratios.min()):.2f} to {np.exp(ratios.max()):.2f}",
                        ]
                    )
    return rows


def _rank(value: object) -> tuple[float, str]:
    """Numbers by size, text by letter."""
    return (float(value), "") if isinstance(value, int | float) else (0.0, str(value))


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--loads", nargs="+", default=LOADS, choices=LOADS)
    asked = parser.parse_args()
    columns = ["file system", "configurations", "operations/s", "RSD: median", "90%", "largest"]
    columns += ["range: median", "90%", "largest", "RSD > 5% and range > 9%"]
    for load in asked.loads:
        measured = read(dataset_file(f"storage-v5-{load}"))
        print(f"\n## {load}\n")
        for count in COUNTS:
            if rows := noise(measured, count):
                print(f"\nFirst {count} trials of each configuration that has so many\n")
                table(columns, rows)
        print("\nRange over the runs, median over windows and configurations, by length of window\n")
        table(["file system", *(f"{s:g} s" for s in WINDOWS_S)], over_time(measured, COUNTS[0]))
        print("\nWhat disturbed it\n")
        table(["", ""], disturbance(measured))
        print("\nExtremes\n")
        table(["", "operations/s", ""], extremes(measured))
        print("\nEffects\n")
        table(["file system", "change", "pairs", "ratio", "from"], effects(measured))


if __name__ == "__main__":
    main()
