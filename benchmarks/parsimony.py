"""As little as is needed: how few parameters a recommendation changes, and what share of its gain that keeps.

    python -m benchmarks.parsimony --budget 10min

Whole studies in virtual time, with a random search of 60 trials. After the search and its last comparison,
`ascar tune` leaves out of the best configuration the parameters that do not earn their place (see
docs/algorithms/parsimony.md). The true score of a configuration is the formula's value, or the mean of its
rows in the table, so that the share of the gain that is kept is known and not estimated. A study in which
nothing could be left out counts with all its parameters.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, batches, mean, number, percent, share_of, table

from ascar.expression import parse
from ascar.history import History
from ascar.loops.offline import tune
from ascar.significance import share
from ascar.space import Configuration
from ascar.study import Study
from ascar.systems import open_target
from ascar.systems.table import RecordedTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.results.outcome import Outcome
    from ascar.systems.recording import MeasurementTable

SEEDS = 10
BUDGET = "90 min"
TRIALS = 60
RUN_SD = 0.03


@dataclass(frozen=True, slots=True)
class Formula:
    """A made-up system of integers from 0 to 4, of which the formula names few.

    Attributes:
        text: the true score.
        parameters: the number of parameters.
        run_sd: the scatter of runs over the score.
    """

    text: str
    parameters: int
    run_sd: float = RUN_SD

    def tables(self, seed: int) -> dict[str, Any]:
        """The tables [target] and [space] of its study."""
        levels = {"kind": "integer", "low": 0, "high": 4, "default": 0, "cost": "dyn-kernel"}
        return {
            "target": {
                "kind": "simulated",
                "metrics": {"score": self.text},
                "noise_relative_sd": 0.05,
                "run_relative_sd": self.run_sd,
                "seed": seed,
            },
            "space": {"parameters": {f"p{index:02}": levels for index in range(self.parameters)}},
        }

    def truth(self, configuration: Mapping[str, Any]) -> float:
        """The true score."""
        return parse(self.text).number(configuration)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The project's own measurements of file systems; what was not measured is the nearest that was.

    Attributes:
        name: the name of the dataset.
    """

    name: str

    def tables(self, seed: int) -> dict[str, Any]:
        """The table [target] of its study."""
        target = {
            "kind": "table",
            "file": f"dataset:{self.name}",
            "parameters": list(COLUMNS),
            "metrics": ["throughput_ops_per_s"],
            "seed": seed,
        }
        return {"target": target}

    def truth(self, configuration: Mapping[str, Any]) -> float:
        """The mean of the rows."""
        recording = _recording(self.name)
        index = recording.nearest(Configuration(configuration))
        rows = slice(int(recording.starts[index]), int(recording.starts[index + 1]))
        return float(np.nanmean(recording.values["throughput_ops_per_s"][rows]))


@cache
def _recording(name: str) -> MeasurementTable:
    target = open_target(Dataset(name).tables(0)["target"])
    assert isinstance(target, RecordedTable)
    return target.recording


COLUMNS = (
    *("fs", "block_size_bytes", "ext_inode_size_bytes", "atime", "block_scheduler", "block_nr_requests"),
    *("block_read_ahead_kb", "ext_journal_size_mib", "ext_journal_mode", "ext_commit_interval_s"),
    *("write_barrier", "ext4_flex_group_size", "ext4_inode_readahead_blks", "ext4_delayed_allocation"),
    *("xfs_inode_size_bytes", "xfs_allocation_groups", "xfs_sector_size_bytes", "xfs_log_buffers"),
    *("xfs_log_buffer_size_kib", "xfs_allocation_size_kib", "btrfs_node_size_bytes"),
    *("btrfs_metadata_profile", "btrfs_data_mode", "btrfs_compression", "btrfs_commit_interval_s"),
    "btrfs_max_inline_bytes",
)

PROBLEMS: dict[str, Formula | Dataset] = {
    "one of 20 matters": Formula("1000 * (1 + 0.1 * p07)", 20),
    "two help together, and hurt alone": Formula(
        "1000 * (1 + if(p03 >= 2 and p08 >= 2, 0.4, if(p03 >= 2 or p08 >= 2, -0.1, 0)))", 12
    ),
    "one hurts unless another is set": Formula(
        "1000 * (1 + 0.05 * p02) * (1 + if(p04 >= 2, if(p09 >= 2, 0.3, -0.2), 0))", 15
    ),
    "graded: 40%, 20%, 10%, 5%, then 1%": Formula(
        "1000 * (1 + 0.1 * p00 + 0.05 * p01 + 0.025 * p02 + 0.0125 * p03 + 0.0025 * p04 + 0.0025 * p05)", 18
    ),
    "file systems, fileserver": Dataset("storage-v5-fileserver"),
    "file systems, mailserver": Dataset("storage-v5-mailserver"),
}


def study(problem: str, seed: int, margin: float | None) -> Study:
    """A study of a problem."""
    metric = "score" if isinstance(PROBLEMS[problem], Formula) else "throughput_ops_per_s"
    recommend = {"margin": 0.03 if margin is None else margin}
    return Study.of(
        {
            **PROBLEMS[problem].tables(seed),
            "study": {"name": "parsimony", "objective": f"maximize {metric}", "budget": BUDGET, "seed": seed},
            "optimizer": {"kind": "random"},
            "stop": {"trials": TRIALS},
            "recommend": recommend,
        }
    )


def piece(problem: str, margin: float | None, seed: int) -> dict[str, Any]:
    """One study: parameters named before and after, the true scores, what it cost."""
    wanted = study(problem, seed, margin)
    with tempfile.TemporaryDirectory() as folder, History(Path(folder) / "history.sqlite") as history:
        outcome = tune(wanted, history)
        space = history.run(outcome.run_id).space
    return {"kind": outcome.verdict.kind, **_found(problem, outcome, space.default(), wanted.budget_s)}


def _found(problem: str, outcome: Outcome, default: Mapping[str, Any], budget_s: float) -> dict[str, Any]:
    """What a study came to; empty where no gain was proven, so that nothing could be left out."""
    found = outcome.parsimony
    if found is None:
        return {}
    truth = PROBLEMS[problem].truth
    steps = sum(step.pairs for step in found.steps)
    kept = len(found.kept) if found.recommended else len(found.kept) + len(found.left_out)
    return {
        "margin": found.margin,
        "changed": len(found.kept) + len(found.left_out),
        "kept": kept,
        "names": list(found.kept),
        "recommended": found.recommended,
        "best_gain": truth(found.best) - truth(default),
        "kept_gain": truth(outcome.recommended) - truth(default),
        "loss": 1 - truth(outcome.recommended) / truth(found.best),
        "steps": len(found.steps),
        "pairs": found.pairs,
        "pairs_with_best": steps,
        "share_of_budget": found.seconds / budget_s,
        "share_of_study": found.seconds / sum(outcome.stage_s.values()),
    }


MARGINS: dict[str, float | None] = {"margin 3%": None, "margin 1%": 0.01}


def main() -> None:
    """Carry out the studies, and show the table."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "10min")
    wanted = {
        f"{problem}, {margin}, {seed}": (problem, MARGINS[margin], seed)
        for margin in MARGINS
        for seed in range(SEEDS)
        for problem in PROBLEMS
    }
    found = benchmark.run(Piece(key, lambda what=what: piece(*what)) for key, what in wanted.items())
    for margin in MARGINS:
        print(f"{margin} of the score\n")
        heads = ["problem", "studies reduced", "changed", "kept", "kept of changed", "share of the gain"]
        heads += ["loss beyond the margin", "comparisons", "pairs", "of the budget"]
        table(heads, [_row(problem, batches(found, f"{problem}, {margin}")) for problem in PROBLEMS])


def _row(problem: str, every: list[dict[str, Any]]) -> list[str]:
    """Of one problem."""
    tried = [one for one in every if "kept" in one]
    if not tried:
        return [problem, f"0 of {len(every)}", *["-"] * 8]

    def values(name: str) -> list[float]:
        return [float(one[name]) for one in tried]

    beyond = sum(one["loss"] > 0.03 for one in tried)
    return [
        problem,
        f"{sum(one['recommended'] for one in tried)} of {len(every)}",
        number(mean(values("changed"))),
        number(mean(values("kept"))),
        percent(share_of(values("kept"), values("changed")), 0),
        percent(share_of(values("kept_gain"), values("best_gain"))),
        percent(share(beyond, len(tried))),
        number(mean(values("steps"))),
        number(mean(values("pairs"))),
        percent(mean(values("share_of_budget")), 0),
    ]


if __name__ == "__main__":
    main()
