"""What each part of the modern learner brings: the whole beside the whole without one part.

    python -m benchmarks.capes_cluster_parts --budget 20min

On the simulated cluster (the workloads of Li et al., section 4.3, six seeds each, 1,200 ticks): gain over the
default from tick 300 on, where something is to be gained and where nothing is, and minutes below 90% of the
default's mean; four workloads by turns of ten
minutes, unannounced (six seeds, 80 minutes). At the harder game (delay 3; noise 10% and 50%; eight runs
each): share of the ticks near the ideal. Differences from the whole are paired by seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import numpy as np

from ascar.capes.axes import Axis
from ascar.capes.environments.cluster import ClusterSystem
from ascar.capes.environments.game import TICKS, Game, drawn
from ascar.capes.modern.learner import Modern
from ascar.capes.modern.modern_options import ModernOptions
from ascar.capes.modern.surface import Surface
from ascar.capes.modern.workload_models import ShiftVerdict, WorkloadModels

from . import capes_cluster_runs as runs
from .harness import Piece, mean, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.capes.modern.surface import SurfacePosterior
    from ascar.capes.modern.visit_value import ChoiceCriteria

CLUSTER_TICKS, CLUSTER_SEEDS, TURNS_SEEDS, GAMES = 1_200, 6, 6, 8
NOISES = (0.1, 0.5)
TURNS, TURN_TICKS, TURNS_TICKS = ("1-9", "9-1", "fileserver", "sequential-write"), 600, 4_800
IDLE = tuple(name for name in runs.WORKLOADS if name not in runs.GAINFUL)
"""Where nothing is to be gained."""
Made = Callable[["Sequence[Axis]", np.random.Generator], Modern]


def _with(**options: float) -> Made:
    """The learner with other options than by default."""
    return lambda knobs, rng: Modern(knobs, rng, ModernOptions(**options))


def _where(change: Callable[[Modern], None]) -> Made:
    """The learner with one of its parts replaced."""

    def make(knobs: Sequence[Axis], rng: np.random.Generator) -> Modern:
        learner = Modern(knobs, rng)
        change(learner)
        return learner

    return make


class _ThompsonAlone(Modern):
    def _thompson_share(self) -> float:
        return 1.0


class _HorizonAlone(Modern):
    def _thompson_share(self) -> float:
        return 0.0


class _WithoutEarlyEnds(Modern):
    def _trusts_ticks(self) -> bool:
        return False


class _WithoutPreference(Modern):
    initial_sds = 0.0


class _WithoutRests(Modern):
    def _criteria(self, fitted: SurfacePosterior) -> ChoiceCriteria:
        return replace(super()._criteria(fitted), rest=False)


class _AlwaysAsBold(Modern):
    thompson_ticks = 1_000_000_000


class _AlwaysWaiting(Modern):
    long_every = 1


class _AnnouncedWorkloads(WorkloadModels):
    def judge(self, *_: object) -> ShiftVerdict:
        return "expected"

    def deviates(self, *_: object) -> bool:
        return False


class _LongLengths(WorkloadModels):
    def _empty(self) -> Surface:
        return Surface(self._knobs, reach=1.0)


class _PlainLosses(WorkloadModels):
    def _empty(self) -> Surface:
        return Surface(self._knobs, compresses=False)


def _without_design(learner: Modern) -> None:
    learner.candidates.designed = 0


def _models(kind: type[WorkloadModels]) -> Made:
    def change(learner: Modern) -> None:
        learner.workloads = kind(learner.knobs)

    return _where(change)


WHOLE = "the whole"
PARTS: dict[str, Made] = {
    WHOLE: Modern,
    "without the horizon (Thompson sampling alone)": _ThompsonAlone,
    "without Thompson sampling (the horizon alone)": _HorizonAlone,
    "without the design": _where(_without_design),
    "without learning to wait (always 12 ticks)": _AlwaysWaiting,
    "without longer and longer stays": _with(stay_ticks_max=10),
    "without short lengths (the prior of auto)": _models(_LongLengths),
    "without the loss budget": _with(budget=1.0),
    "without recognition": _models(_AnnouncedWorkloads),
    "without compressed losses and a prior of short lengths": _models(_PlainLosses),
    "without ends before it has settled": _WithoutEarlyEnds,
    "without preferring the initial setting": _WithoutPreference,
    "without rests at the initial setting": _WithoutRests,
    "without exploring less the more it knows": _AlwaysAsBold,
}


def main() -> None:
    """Run what has no result yet, and print a table."""
    benchmark = runs.benchmark_of(__doc__ or "", "20min")
    found = benchmark.run(list(_pieces()))
    print("\nEach part left out; differences from the whole in percentage points\n")
    rows: list[list[str]] = []
    for part in PARTS:
        gainful, idle = (
            [f"cluster/{{}}/{name}/{seed}" for seed in range(CLUSTER_SEEDS) for name in names]
            for names in (runs.GAINFUL, IDLE)
        )
        lows = [found[key]["low_minutes"] for one in gainful + idle if (key := one.format(part)) in found]
        rows.append(
            [
                part,
                _compared(found, gainful, part, "gain"),
                _compared(found, idle, part, "gain"),
                f"{sum(lows)} of {len(lows) * CLUSTER_TICKS // 60}",
                _compared(found, [f"turns/{{}}/{seed}" for seed in range(TURNS_SEEDS)], part, "gain"),
                *(
                    _compared(found, [f"game/{{}}/{noise:g}/{game}" for game in range(GAMES)], part, "near")
                    for noise in NOISES
                ),
            ]
        )
    heads = ("learner", "cluster: gain from 300 to 1,200", "9-1, 4-1: the same", "low minutes", "turns: gain")
    table((*heads, *(f"game, {noise:.0%}: near" for noise in NOISES)), rows)


def _compared(found: dict[str, dict[str, Any]], keys: list[str], part: str, figure: str) -> str:
    pairs = [(found[key], found[whole]) for one in keys
             if (key := one.format(part)) in found and (whole := one.format(WHOLE)) in found]  # fmt: skip
    if not pairs:
        return "-"
    own = float(np.mean([one[figure] for one, _ in pairs]))
    if part == WHOLE:
        return f"{own:.1%} ({len(pairs)} runs)"
    center, low, high = mean([100 * (one[figure] - whole[figure]) for one, whole in pairs])
    if low == center == high == 0:
        return f"{own:.1%}: no run differs"
    return f"{own:.1%}: {center:+.1f} ({low:+.1f} to {high:+.1f})"


def _pieces() -> Iterator[Piece]:
    for seed in range(CLUSTER_SEEDS):
        for part in PARTS:
            for name in runs.WORKLOADS:
                yield Piece(
                    f"cluster/{part}/{name}/{seed}",
                    lambda part=part, name=name, seed=seed: _cluster(part, name, seed),
                )
    for game in range(GAMES):
        for part in PARTS:
            for noise in NOISES:
                yield Piece(
                    f"game/{part}/{noise:g}/{game}",
                    lambda part=part, noise=noise, game=game: _game(part, noise, game),
                )
    for seed in range(TURNS_SEEDS):
        for part in PARTS:
            yield Piece(f"turns/{part}/{seed}", lambda part=part, seed=seed: _turns(part, seed))


def _cluster(part: str, name: str, seed: int) -> dict[str, Any]:
    own = runs.FRESH + 40_000 + seed
    system = runs.system_of(name, own)
    learnt = runs.followed(system, runs.learner(system, own, PARTS[part]), CLUSTER_TICKS).mb_per_s
    default = runs.followed(runs.system_of(name, own), runs.DEFAULT, CLUSTER_TICKS).mb_per_s
    minutes = learnt.reshape(-1, 60).mean(1)
    return {
        "gain": float(learnt[300:].mean() / default[300:].mean()) - 1,
        "low_minutes": int((minutes < 0.9 * default.mean()).sum()),
    }


def _turns(part: str, seed: int) -> dict[str, Any]:
    own = runs.FRESH + 40_000 + seed
    systems = [ClusterSystem([runs.scenario_of(one) for one in TURNS], own, TURN_TICKS) for _ in range(2)]
    policies = (runs.learner(systems[0], own, PARTS[part]), runs.DEFAULT)
    learnt, default = (
        runs.followed(system, policy, TURNS_TICKS).mb_per_s.mean()
        for system, policy in zip(systems, policies, strict=True)
    )
    return {"gain": float(learnt / default) - 1}


def _game(part: str, noise: float, number: int) -> dict[str, Any]:
    game = Game(drawn("hard", noise, 3, runs.FRESH + number))
    policy = PARTS[part](game.knobs, np.random.default_rng([game.rules.seed, 3]))
    setting = tuple(one.initial for one in game.knobs)
    for _ in range(TICKS):
        setting = policy.decide(game.step(setting))
    return {"near": float(np.mean(game.near))}


if __name__ == "__main__":
    main()
