"""Collects the parts of the project's own dataset, as sweeps left them, into the files that ascar ships.

    python -m benchmarks.dataset_collect storage-v5-mailserver part-1.sqlite part-2.sqlite

Every trial is kept, with the unit readings of the throughput; the other series are left out, and numbers have
six significant digits, so that the files stay small. docs/dataset.md says how the sweeps were made.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ascar.datasets import dataset_file
from ascar.history import History
from ascar.history.exchange import read_runs, write_runs
from ascar.history.record import run_record
from ascar.results.measurement import Series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.results.trial import Trial

SERIES = "throughput_ops_per_s"
DIGITS = 6
LEVEL = 19  # of compression: slow to write, as fast to read


def collect(name: str, histories: Sequence[Path], out: Path) -> int:
    """Write the dataset of that name from the sweeps in the histories; returns the number of trials."""
    runs: list[tuple[dict[str, Any], list[Trial]]] = []
    for file in histories:
        with History(file) as history, tempfile.TemporaryDirectory() as directory:
            ids = [run.id for run in history.runs() if run.name == f"{name}-sweep"]
            if not ids:
                raise SystemExit(f"{file}: holds no sweep of {name}")
            export = Path(directory) / "runs.json"
            history.export(sorted(ids), export)
            for table in read_runs(export):
                _, _, trials = run_record(table, str(file))
                record = {key: value for key, value in table.items() if key != "trials"}
                runs.append((record, [shortened(trial) for trial in trials]))
    write_runs(out, runs, readings=True)
    pl.read_parquet(out).write_parquet(out, compression="zstd", compression_level=LEVEL)
    return sum(len(trials) for _, trials in runs)


def shortened(trial: Trial) -> Trial:
    """A trial as it is shipped."""
    series = trial.series.get(SERIES)
    kept = {} if series is None else {SERIES: Series.of(rounded(series.seconds), rounded(series.values))}
    metrics = {name: digits(value) for name, value in trial.metrics.items()}
    stage_s = {name: digits(value) for name, value in trial.stage_s.items()}
    change = trial.change and replace(
        trial.change, step_s={name: digits(value) for name, value in trial.change.step_s.items()}
    )
    return replace(trial, series=kept, metrics=metrics, stage_s=stage_s, change=change)


def digits(value: float) -> float:
    """A number with six significant digits."""
    return float(f"{value:.{DIGITS}g}")


def rounded(values: Any) -> list[float]:
    """Several of them."""
    return [digits(float(value)) for value in values]


def main() -> None:
    """Collect, and say how much there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name", help="of the dataset and of its study")
    parser.add_argument("histories", nargs="+", type=Path, help="where the sweeps are, part by part")
    parser.add_argument("--out", type=Path, help="a Parquet file; default: the one that ascar ships")
    asked = parser.parse_args()
    out = asked.out or dataset_file(asked.name)
    trials = collect(asked.name, asked.histories, out)
    print(f"{out}: {trials} trials, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
