"""A recorded dataset in place of a system: each run of the load draws one of a configuration's rows.

[target]
kind = "table"
file = "sweep.parquet"                     # or CSV, or "dataset:storage-v5-mailserver"
metrics = ["throughput_ops_per_s"]         # or name the parameters: the other numeric columns are metrics
ignore = ["repetition"]
seconds = "evaluation_s"                   # optional: what each evaluation took, spent in virtual time
noise_relative_sd = 0.1                    # optional: Gaussian noise on top
unknown = "snap"                           # what was not measured is the nearest that was; or "refuse"

Names that formulas cannot write are changed: what is not a letter, digit or "_" becomes "_".
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from ascar.errors import StageFailed, StudyError
from ascar.results.measurement import Readings
from ascar.study import convert
from ascar.systems import Starter
from ascar.systems.recording import MeasurementTable
from ascar.systems.recording_columns import TableColumns
from ascar.systems.virtual import CATEGORIES, VirtualSystem, check_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.results.trial import Change
    from ascar.space import Configuration
    from ascar.workspace import LoadTiming, Workspace


class TableOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` with kind = "table"; see the module.

    Attributes:
        file: CSV or Parquet, or `dataset:NAME` (see `ascar.datasets`).
        parameters: columns that were set.
        metrics: columns that were measured.
        ignore: columns that are neither.
        seconds: column that tells what one evaluation took; else an evaluation takes `load_min`.
        noise_relative_sd: standard deviation of added Gaussian noise over the value.
        unknown: the treatment of a configuration that was not measured: "snap" takes the nearest measured one
            (see `MeasurementTable.nearest`); "refuse" makes the trial fail.
        default: the configuration in force, by parameter; else the first row's.
        change_s: seconds that a change takes, by category.
        seed: the seed of the draws.
    """

    file: str
    parameters: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    seconds: str | None = None
    noise_relative_sd: float = 0.0
    unknown: Literal["snap", "refuse"] = "snap"
    default: dict[str, Any] = {}
    change_s: tuple[float, ...] = (0.0,) * CATEGORIES
    seed: int = 0


class RecordedTable(VirtualSystem):
    """A target and its own load.

    Replicates of a configuration are drawn in random order without repetition, and again once all were
    drawn. The draws of a configuration's k-th run are the same in every study.

    Args:
        options: the study's `[target]` table without its kind.

    Raises:
        StudyError: an option is missing, unknown or out of range, or the file is not as said.
    """

    starter = Starter(target={"file": '"dataset.csv"', "metrics": '["throughput_ops_per_s"]'})

    def __init__(self, options: Mapping[str, Any]) -> None:
        chosen = convert(options, TableOptions, "target")
        if not 0 <= chosen.noise_relative_sd <= 10:
            raise StudyError(f"target.noise_relative_sd = {chosen.noise_relative_sd!r}: must be from 0 to 10")
        if not 0 <= chosen.seed < 2**63:
            raise StudyError(f"target.seed = {chosen.seed!r}: must be from 0 to 2**63 - 1")
        columns = TableColumns(chosen.parameters, chosen.metrics, chosen.ignore, chosen.seconds)
        self.recording = MeasurementTable.read(Path(chosen.file), columns)
        space = self.recording.space.with_defaults(chosen.default)
        super().__init__(space, check_seconds("target.change_s", chosen.change_s))
        self._options = chosen
        self._runs: Counter[int] = Counter()

    def describe(self) -> Mapping[str, Any]:
        """The file, how much it holds, and how it is drawn from."""
        held = {
            "target": "table",
            "configurations": len(self.recording),
            "rows": int(self.recording.starts[-1]),
            "complete": self.recording.complete,
        }
        return {**msgspec.to_builtins(self._options), **held}

    def apply(self, configuration: Configuration) -> Change:
        """Put a configuration in force.

        Raises:
            StageFailed: it was not measured, and `unknown` is "refuse".
        """
        if self._options.unknown == "refuse" and self.recording.place(configuration) is None:
            raise StageFailed(
                "change", f"{configuration} was not measured; set target.unknown = 'snap' to take the nearest"
            )
        return super().apply(configuration)

    @property
    def reported(self) -> frozenset[str]:
        """The columns that were measured."""
        return frozenset(self.recording.values)

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """One recorded evaluation.

        Raises:
            StageFailed: the recorded evaluation failed (a metric has no finite number).
        """
        recording, options = self.recording, self._options
        index = recording.nearest(self.current)
        count, run = int(recording.starts[index + 1] - recording.starts[index]), self._runs[index]
        self._runs[index] += 1
        draws = np.random.default_rng([options.seed, index, run // count]).permutation(count)
        row = int(recording.starts[index] + draws[run % count])
        seconds = pace.load_min_s if recording.seconds is None else float(recording.seconds[row])
        if not seconds >= 0:
            raise StageFailed("load", f"the recorded evaluation of {self.current} has no time")
        self.clock.sleep(seconds)
        noise = np.random.default_rng([options.seed, index, run, 1]).normal(size=len(recording.values))
        metrics = {
            name: float(values[row]) * (1 + options.noise_relative_sd * float(deviation))
            for (name, values), deviation in zip(recording.values.items(), noise, strict=True)
        }
        if not all(np.isfinite(value) for value in metrics.values()):
            lacking = next(name for name, value in metrics.items() if not np.isfinite(value))
            raise StageFailed(
                "load", f"the recorded evaluation of {self.current} failed: it has no {lacking}"
            )
        return Readings({}, metrics, seconds, ended="program")
