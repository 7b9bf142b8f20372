"""As little as is needed: how few parameters a recommendation changes, and what share of its gain that keeps.

    python -m benchmarks.parsimony --budget 20min

Whole studies in virtual time, with a random search of 60 trials. After the search and its last comparison,
`ascar tune` leaves out of the best configuration the parameters that do not earn their place (see
docs/algorithms/parsimony.md). The true score of a configuration is the formula's value, or the mean of its
rows in the table, so that the share of the gain that is kept is known and not estimated. A study in which
nothing could be left out counts with all its parameters.

What could be reached is found in the truth as well: of all ways to keep at most a third of the changed
parameters, the one that has most of the gain.

The second table is about the test alone: comparisons whose true loss is the margin, with a look after every
pair, and how many of them are accepted.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import inf, log1p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.harness import Benchmark, Piece, batches, mean, number, percent, share_of, table

from ascar.expression import parse
from ascar.history import History
from ascar.loops.offline import tune
from ascar.pairs import Scatter
from ascar.parsimony.comparison import LossTest
from ascar.significance import share
from ascar.space import Configuration
from ascar.study import Study
from ascar.systems import open_target
from ascar.systems.table import RecordedTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from ascar.results.outcome import Outcome
    from ascar.space import Space
    from ascar.systems.recording import MeasurementTable

SEEDS = 8
BUDGET = "90 min"
TRIALS = 60
RUN_SD = 0.03
MARGIN = 0.03
SHARE_KEPT = 0.97
PAIRS_MAX = 60
TESTS = 2000


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
        return _formula(self.text).number(configuration)


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


_formula = lru_cache(parse)


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
    "one brings just more than the margin": Formula(
        "1000 * (1 + 0.1 * p03) * (1 + if(p07 >= 1, 0.032, 0))", 12
    ),
    "one of 20 matters, runs scatter by 0.5%": Formula("1000 * (1 + 0.1 * p07)", 20, 0.005),
    "graded, runs scatter by 0.5%": Formula(
        "1000 * (1 + 0.1 * p00 + 0.05 * p01 + 0.025 * p02 + 0.0125 * p03 + 0.0025 * p04 + 0.0025 * p05)",
        18,
        0.005,
    ),
    "file systems, fileserver": Dataset("storage-v5-fileserver"),
    "file systems, mailserver": Dataset("storage-v5-mailserver"),
}


def study(problem: str, seed: int) -> Study:
    """A study of a problem."""
    metric = "score" if isinstance(PROBLEMS[problem], Formula) else "throughput_ops_per_s"
    return Study.of(
        {
            **PROBLEMS[problem].tables(seed),
            "study": {"name": "parsimony", "objective": f"maximize {metric}", "budget": BUDGET, "seed": seed},
            "optimizer": {"kind": "random"},
            "stop": {"trials": TRIALS},
            "recommend": {"margin": MARGIN},
        }
    )


def piece(problem: str, seed: int) -> dict[str, Any]:
    """One study: parameters named before and after, the true scores, what it cost."""
    wanted = study(problem, seed)
    with tempfile.TemporaryDirectory() as folder, History(Path(folder) / "history.sqlite") as history:
        outcome = tune(wanted, history)
        space = history.run(outcome.run_id).space
    return {"kind": outcome.verdict.kind, **_found(problem, outcome, space, wanted.budget_s)}


def _found(problem: str, outcome: Outcome, space: Space, budget_s: float) -> dict[str, Any]:
    """What a study came to; empty where no gain was proven, so that nothing could be left out."""
    found = outcome.parsimony
    if found is None:
        return {}
    truth, default = PROBLEMS[problem].truth, space.default()
    names = (*found.kept, *found.left_out)
    best_gain = truth(found.best) - truth(default)
    kept = len(found.kept) if found.recommended else len(names)
    share_kept = (truth(outcome.recommended) - truth(default)) / best_gain
    possible = _possible(space, Configuration(found.best), names, truth)
    return {
        "changed": len(names),
        "kept": kept,
        "names": list(found.kept),
        "recommended": found.recommended,
        "best_gain": best_gain,
        "kept_gain": share_kept * best_gain,
        "reached": share_kept >= SHARE_KEPT and 3 * kept <= len(names),
        "possible": (possible - truth(default)) / best_gain,
        "covered": _covers(found.gain_kept_low, found.gain_kept_high, share_kept),
        "loss": 1 - truth(outcome.recommended) / truth(found.best),
        "steps": len(found.steps),
        "loads": 2 * found.pairs,
        "share_of_budget": found.seconds / budget_s,
    }


def _covers(low: float | None, high: float | None, true: float) -> bool | None:
    return None if low is None or high is None else low <= true <= high


def _possible(
    space: Space, best: Configuration, names: tuple[str, ...], truth: Callable[[Mapping[str, Any]], float]
) -> float:
    """The best true score with at most a third of the changed parameters, among all ways to choose them."""
    default = space.default()
    found = truth(default)
    is_free = not space.constraints and all(space[name].condition is None for name in space.names)
    for count in range(1, len(names) // 3 + 1):
        for kept in combinations(names, count):
            if is_free:
                tried: Mapping[str, Any] = {**default, **{name: best[name] for name in kept}}
            else:
                tried = space.with_default_of(best, [name for name in names if name not in kept])
            if is_free or space.is_valid(tried):
                found = max(found, truth(tried))
    return found


FAMILIES: dict[str, Callable[[np.random.Generator, int], NDArray[np.float64]]] = {
    "normal": lambda rng, count: rng.standard_normal(count),
    "log-normal": lambda rng, count: (rng.lognormal(0, 0.6, count) - 1.1972) / 0.7882,
    "two levels": lambda rng, count: rng.choice([-0.5, 2.0], count, p=[0.8, 0.2]),
}


def accepted(family: str, run_sd: float, ratio: float, seed: int) -> dict[str, Any]:
    """Comparisons whose true loss is the margin: how many are accepted.

    Args:
        family: of the noise.
        run_sd: the scatter of the best's runs, which that of earlier pairs follows too.
        ratio: the scatter of the smaller configuration's runs over it.
        seed: of the draws.
    """
    rng, draw, level = np.random.default_rng(seed), FAMILIES[family], 0.01
    wrong = 0
    for _ in range(TESTS):
        earlier = Scatter.of(list(run_sd * (draw(rng, 30) - draw(rng, 30))))
        test = LossTest(level, MARGIN, earlier)
        noise = run_sd * (ratio * draw(rng, PAIRS_MAX) - draw(rng, PAIRS_MAX))
        seen, low = list(log1p(-MARGIN) + noise), -inf
        for count in range(test.pairs_min(5), PAIRS_MAX + 1):
            _, low, high = test.limits(seen[:count])
            if low > log1p(-MARGIN) or high < log1p(-MARGIN) / 2:
                break
        wrong += low > log1p(-MARGIN)
    return {"wrong": wrong, "tests": TESTS}


TESTED = [(family, run_sd, ratio) for family in FAMILIES for run_sd in (0.005, 0.03) for ratio in (1.0, 2.0)]


def main() -> None:
    """Carry out the studies, and show the tables."""
    benchmark = Benchmark.from_arguments(__doc__ or "", "20min")
    pieces = [
        Piece(f"{problem}, {seed}", lambda what=(problem, seed): piece(*what))
        for seed in range(SEEDS)
        for problem in PROBLEMS
    ]
    pieces += [
        Piece(f"test, {family}, {run_sd}, {ratio}", lambda what=(family, run_sd, ratio): accepted(*what, 1))
        for family, run_sd, ratio in TESTED
    ]
    found = benchmark.run(pieces)
    heads = ["problem", "studies reduced", "changed", "kept", "kept of changed", "share of the gain"]
    heads += ["a third with 97%", "possible", "best possible", "loss beyond the margin", "interval covers"]
    heads += ["comparisons", "loads", "of the budget"]
    table(heads, [_row(problem, batches(found, problem)) for problem in PROBLEMS])
    print("\nComparisons whose true loss is the margin, at a level of 0.5% one-sided\n")
    rows = [
        [family, f"{100 * run_sd:g}%", f"{ratio:g}", percent(share(one["wrong"], one["tests"]), 2)]
        for family, run_sd, ratio in TESTED
        if (one := found.get(f"test, {family}, {run_sd}, {ratio}"))
    ]
    table(["noise", "scatter of a run", "the smaller one's over it", "accepted"], rows)


def _row(problem: str, every: list[dict[str, Any]]) -> list[str]:
    """Of one problem."""
    tried = [one for one in every if "kept" in one]
    if not tried:
        return [problem, f"0 of {len(every)}", *["-"] * 12]

    def values(name: str) -> list[float]:
        return [float(one[name]) for one in tried]

    known = [one for one in tried if one["covered"] is not None]
    beyond = sum(one["loss"] > MARGIN for one in tried)
    return [
        problem,
        f"{sum(one['recommended'] for one in tried)} of {len(every)}",
        number(mean(values("changed"))),
        number(mean(values("kept"))),
        percent(share_of(values("kept"), values("changed")), 0),
        percent(share_of(values("kept_gain"), values("best_gain"))),
        f"{sum(one['reached'] for one in tried)} of {len(tried)}",
        f"{sum(one['possible'] >= SHARE_KEPT for one in tried)} of {len(tried)}",
        percent(mean(values("possible"))),
        percent(share(beyond, len(tried))),
        f"{sum(one['covered'] for one in known)} of {len(known)}",
        number(mean(values("steps"))),
        number(mean(values("loads"))),
        percent(mean(values("share_of_budget")), 0),
    ]


if __name__ == "__main__":
    main()
