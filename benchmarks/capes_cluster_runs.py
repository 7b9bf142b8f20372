"""What the benchmarks of CAPES on the simulated cluster share: workloads, runs, the best static setting."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import numpy as np

from ascar.capes.environments.cluster import ClusterSystem
from ascar.capes.environments.open_loop import StaticPolicy
from ascar.capes.modern.learner import Modern
from ascar.simulation import Cluster, Grid, preset, sweep, with_settings

from .harness import RESULTS, Benchmark, sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Axis, Setting
    from ascar.capes.environments.cluster_parameters import ClusterParameters
    from ascar.capes.policy import Policy
    from ascar.simulation import Scenario

WORKLOADS = ("9-1", "4-1", "1-1", "1-4", "1-9", "fileserver", "sequential-write")
GAINFUL = WORKLOADS[2:]
"""Where the best static setting gains at least 5%."""
PUBLISHED = {"1-9": "+45%", "fileserver": "+17%"}
DEFAULT = (8.0, 0.0)
FRESH = 20_000
"""Seeds from here on had no part in any choice of the learner's options."""
_WINDOWS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0, 128.0, 256.0)
_TAUS_US = (0.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0, 40_000.0, 80_000.0)
_GRID_SEED = 1_000
_GRIDS = RESULTS / "capes_cluster_grids.jsonl"


def benchmark_of(document: str, budget: str) -> Benchmark:
    """From the command line; results are of one simulator, by what it does, and one learner, by its text."""
    benchmark = Benchmark.from_arguments(document, budget)
    learner = sources(
        "ascar.capes.modern.learner",
        "ascar.capes.environments.cluster",
        within=("ascar.capes.", "ascar.surrogate."),
    )
    benchmark.build = hashlib.sha256((learner + _simulator()).encode()).hexdigest()[:12]
    return benchmark


def _simulator() -> str:
    """A name of this simulator, by what it does."""
    digest = hashlib.sha256()
    for name in WORKLOADS:
        digest.update(Cluster(scenario_of(name)).step(3).tobytes())
    return digest.hexdigest()[:12]


def scenario_of(name: str) -> Scenario:
    """A workload of Li et al., section 4.3."""
    return preset(f"capes-{name}")


def learner(
    system: ClusterSystem,
    seed: int,
    make: Callable[[Sequence[Axis], np.random.Generator], Modern] = Modern,
) -> Modern:
    """The modern learner, from the default setting on."""
    return make(system.knobs, np.random.default_rng([seed, 7]))


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """How a run went.

    Attributes:
        mb_per_s: (ticks,), throughput.
        policy: that decided.
    """

    mb_per_s: NDArray[np.float64]
    policy: Policy

    def last(self, end: int, ticks: int = 300) -> float:
        """Mean of the last ticks before one."""
        return float(self.mb_per_s[end - ticks : end].mean())


def followed(
    system: ClusterSystem, policy: Policy | Setting, ticks: int, *, announced: bool = False
) -> Course:
    """Let a policy, or one setting, run a system."""
    decides = StaticPolicy(policy) if isinstance(policy, tuple) else policy
    setting, workload = system.start(), ""
    if isinstance(policy, tuple):
        setting = policy
    found = np.empty(ticks)
    for tick in range(ticks):
        if announced and system.workload != workload:
            workload = system.workload
            decides.announce(workload)
        seen = system.step(setting)
        found[tick] = seen.performance
        setting = decides.decide(seen)
    return Course(found, decides)


def grid(name: str, seconds: float = 120, settings: Sequence[str] = ()) -> dict[str, Any]:
    """Every static setting's throughput, two runs each, from the cold on seeds of their own.

    The benchmarks share what was found.

    Args:
        name: of the workload.
        seconds: of a run, virtual.
        settings: of the cluster, where it is not as it is.
    """
    own = {"key": "/".join((name, f"{seconds:g}", *settings)), "build": _simulator()}
    known = [json.loads(one) for one in _GRIDS.read_text().splitlines()] if _GRIDS.exists() else []
    for one in known:
        if own.items() <= one.items():
            return {"points": one["points"]}
    scenario = with_settings(scenario_of(name), [f"duration_s={seconds}", f"seed={_GRID_SEED}", *settings])
    swept = sweep(scenario, Grid(_WINDOWS, _TAUS_US, 2), threads=1)
    points = [[one.window, one.tau_us, one.figures["throughput_mb_per_s"].mean] for one in swept.points]
    with _GRIDS.open("a") as file:
        file.write(json.dumps({**own, "points": points}) + "\n")
    return {"points": points}


def best_static(benchmark: Benchmark, names: Sequence[str]) -> Setting:
    """The static setting whose sum over workloads is largest; their grids (`grid/NAME`) come first."""
    lines = [json.loads(one) for one in benchmark.path.read_text().splitlines()]
    grids = {one["key"]: one for one in lines if one["build"] == benchmark.build}
    total: dict[Setting, float] = {}
    for name in names:
        if f"grid/{name}" not in grids:
            raise RuntimeError(f"the grid of {name} comes first")
        for window, tau_us, throughput in grids[f"grid/{name}"]["points"]:
            total[window, tau_us] = total.get((window, tau_us), 0.0) + throughput
    return max(total, key=lambda one: total[one])


def system_of(name: str, seed: int, handles: ClusterParameters | None = None) -> ClusterSystem:
    """One workload, for ever."""
    return ClusterSystem([scenario_of(name)], seed, handles=handles)
