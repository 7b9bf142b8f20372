"""Budgets of `ascar tune`: time that studies take beyond theirs, and the share that undecided ones use.

    python -m benchmarks.budgets --budget 45min        (root, for `localfs`)

Thirty studies of 60 to 600 s on three systems, each a process of its own: a `simulated` one in virtual time,
SQLite, and a file system on an image file. A third of them asks for a margin that is hard to show. Time used
is that of the process from its start to its exit, or the virtual clock's. What is allowed is 5% more than the
budget, and one load of the least length.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Benchmark, Piece, build, crate_sources, mean, percent, present, table

import ascar

OVER_MAX, USED_MIN = 0.05, 0.9
_UNDECIDED = 3

STUDY = """
[study]
name = "budget"
objective = "maximize throughput_ops_per_s"
budget = "{budget_s} s"
seed = {seed}
[measurement]
preset = "quick"
load_min = "{load_s} s"
load_max = "{load_max_s} s"
[verify]
margin = {margin}
"""
SIMULATED = """
[target]
kind = "simulated"
metrics = {{ throughput_ops_per_s = "1000 - 0.1 * abs(depth - 32) + if(compress, 5, 0)" }}
noise_relative_sd = 0.1
run_relative_sd = 0.05
change_s = [0.2, 0.5, 1, 2]
seed = {seed}
[space.parameters.depth]
kind = "integer"
low = 1
high = 64
default = 32
cost = "dyn-kernel"
[space.parameters.compress]
kind = "boolean"
default = false
cost = "remount"
"""
SQLITE = """
[target]
kind = "sqlite"
[workload]
kind = "sqlite-transactions"
rows = 20000
"""
LOCALFS = """
[target]
kind = "localfs"
memory = "256 MiB"
size = "1 GiB"
[space]
preset = "storage-v5"
allow_cost = ["dyn-kernel", "remount", "umount-mount", "reformat-restore"]
[workload]
kind = "fio"
preset = "small-files-fsync"
"""
SYSTEMS = {"simulated": SIMULATED, "sqlite": SQLITE, "localfs": LOCALFS}


@dataclass(frozen=True, slots=True)
class Budgeted:
    """A study.

    Attributes:
        system: its kind.
        budget_s: its budget.
        seed: its seed.
        margin: the margin of its verdict.
        load_s: the least length of a load.
    """

    system: str
    budget_s: int
    seed: int
    margin: float
    load_s: int = 2

    @property
    def key(self) -> str:
        """Names the piece."""
        return f"{self.system}, {self.budget_s} s, margin {self.margin:g}, {self.seed}"

    def run(self) -> dict[str, Any]:
        """Tune; what it took, and what it came to.

        Raises:
            RuntimeError: it failed.
        """
        text = STUDY.format(
            **{name: getattr(self, name) for name in ("budget_s", "seed", "margin", "load_s")},
            load_max_s=2 * self.load_s,
        )
        text += SYSTEMS[self.system].format(seed=self.seed)
        with tempfile.TemporaryDirectory(prefix="ascar-budgets-") as folder:
            study = Path(folder) / "study.toml"
            study.write_text(text)
            environment = {
                **{key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"},
                "ASCAR_HISTORY": f"{folder}/history.sqlite",
                "ASCAR_LIBRARY": f"{folder}/library",
            }
            start_s = time.monotonic()
            done = subprocess.run(
                [sys.executable, "-m", "ascar", "tune", str(study), "--json", "--quiet"],
                capture_output=True,
                text=True,
                check=False,
                env=environment,
            )
            wall_s = time.monotonic() - start_s
        if done.returncode not in (0, _UNDECIDED):
            raise RuntimeError(done.stderr.strip()[-300:])
        outcome = json.loads(done.stdout)
        run_s = sum(outcome["stage_s"].values())
        return {
            "used_s": run_s if self.system == "simulated" else wall_s,
            "run_s": run_s,
            "stage_s": outcome["stage_s"],
            "kind": outcome["verdict"]["kind"],
            "pairs": outcome["verdict"]["runs_per_side"],
            "stopped": outcome["stopped"],
            "trials": sum(outcome["counts"].values()),
        }


def studies() -> list[Budgeted]:
    """Thirty: the simulated ones cost nothing, so that those are the long ones."""
    found = [
        Budgeted("simulated", budget_s, seed, margin)
        for seed, budget_s in enumerate((60, 120, 300, 450, 600), 1)
        for margin in (0.03, 0.005)
    ]
    for seed in range(1, 6):
        found += [Budgeted("sqlite", 60, seed, 0.03), Budgeted("sqlite", 60 + 15 * seed, seed, 0.005)]
        found += [Budgeted("localfs", 60, seed, 0.03, 3), Budgeted("localfs", 60 + 15 * seed, seed, 0.005, 3)]
    return found


def main() -> None:
    """Tune, and show the table."""
    given = Benchmark.parser(__doc__ or "", "45min").parse_args()
    package = Path(str(ascar.__file__)).parent
    names = ("campaign", "search", "verification", "evaluation", "loops/offline")
    files = [package / f"{name}.py" for name in names]
    benchmark = Benchmark.of(given, build(*crate_sources("python"), *files))
    wanted = studies()
    found = benchmark.run(Piece(one.key, one.run) for one in wanted)
    rows: list[list[str]] = []
    for system in SYSTEMS:
        chosen = [one for one in wanted if one.system == system and one.key in found]
        results = present(found, (one.key for one in chosen))
        if not results:
            continue
        used = [one["used_s"] / study.budget_s for one, study in zip(results, chosen, strict=True)]
        allowed = [1 + OVER_MAX + one.load_s / one.budget_s for one in chosen]
        open_ones = [share for share, one in zip(used, results, strict=True) if one["kind"] == "undecided"]
        rows.append(
            [
                system,
                str(len(results)),
                percent(mean(used)),
                f"{max(used):.1%}",
                str(sum(share > 1 + OVER_MAX for share in used)),
                str(sum(share > most for share, most in zip(used, allowed, strict=True))),
                str(len(open_ones)),
                f"{min(open_ones):.1%}" if open_ones else "-",
                str(sum(share < USED_MIN for share in open_ones)),
            ]
        )
    heads = ("system", "studies", "used", "most used", "over 105%", "and a load", "undecided", "least used")
    table([*heads, "below 90%"], rows)


if __name__ == "__main__":
    main()
