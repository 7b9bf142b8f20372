"""When searches end, and what was left to gain then: `[stop] remaining_gain` beside a window without a gain.

    python -m benchmarks.optimizer_stopping --tables DIR --runs 10 --budget 30min

Recorded tables with their noise are searched with `auto`. A stop at `remaining_gain = { below, confidence }`
claims that the recommendation is within `below` of the best; the truth is known here. The share of stops
whose claim holds should be about `confidence` or more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

# One thread: the matrices are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from ascar.errors import Exhausted
from ascar.lab.benchmark import Benchmark
from ascar.lab.simulation import built, worker_pool
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.recommendation import recommend
from ascar.optimizers.remaining import RemainingGains
from ascar.optimizers.stopping import AnyOf, RemainingGain, TrialLimit, WindowWithoutGain, progress_of
from ascar.results.trial import TrialState

from . import harness
from .harness import Piece, table

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from ascar.lab.problem import Specification

EVALUATIONS = 120
EVERY = 3  # evaluations between two looks: each takes some 0.2 s


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and what its stop claims.

    Attributes:
        name: for the table.
        below: relative gain that is claimed to be left at most.
        criterion: the rule.
    """

    name: str
    below: float
    criterion: RemainingGain | WindowWithoutGain


RULES = (
    Rule("remaining_gain 10%, 0.9", 0.10, RemainingGain(0.10, 0.9)),
    Rule("remaining_gain 5%, 0.9", 0.05, RemainingGain(0.05, 0.9)),
    Rule("window of 15", 0.10, WindowWithoutGain(15)),
    Rule("window of 25", 0.10, WindowWithoutGain(25)),
)


def main() -> None:
    """Search, and print a table."""
    parser = harness.Benchmark.parser(__doc__ or "", "30min")
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--benchmark", type=Path, default=Path(__file__).parent / "optimizers.toml")
    parser.add_argument("--names", default="kyber-read,varsys,mysql,hsqldb,redis,lrzip")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    known = {one.name: one for one in Benchmark.read(given.benchmark, given.tables).problems}
    wanted = [name for name in given.names.split(",") if name in known]
    code = harness.sources("ascar.optimizers", "ascar.lab.simulation", within=("ascar",))
    with worker_pool(given.workers) as pool:
        found = harness.Benchmark.of(given).run(
            Piece(f"{name}, {given.runs} runs", partial(_searches, pool, known[name], given.runs), code)
            for name in wanted
        )
    rows = [
        [key.partition(",")[0], rule.name, *_summary([run[index] for run in one["stops"]], rule.below)]
        for key, one in found.items()
        for index, rule in enumerate(RULES)
    ]
    heads = ["table", "rule", "stopped", "evaluations (median)", "true gain left (mean)", "claim held"]
    table(heads, rows)


def _searches(pool: Executor, specification: Specification, runs: int) -> dict[str, Any]:
    """All of a table, on all cores."""
    return {"stops": list(pool.map(_run, [(specification, seed) for seed in range(1, runs + 1)]))}


def _summary(stops: list[tuple[int, float] | None], below: float) -> list[str]:
    ended = [one for one in stops if one is not None]
    if not ended:
        return [f"0 of {len(stops)}", "-", "-", "-"]
    left = np.array([gain for _, gain in ended])
    held = int((left <= below).sum())
    return [
        f"{len(ended)} of {len(stops)}",
        f"{np.median([at for at, _ in ended]):.0f}",
        f"{left.mean():.1%}",
        f"{held} of {len(ended)} (at most {below:.0%})",
    ]


def _run(task: tuple[Specification, int]) -> list[tuple[int, float] | None]:
    """Evaluations until each rule's stop, and the relative gain then truly left; None: no stop."""
    specification, seed = task
    problem, rng = built(specification), np.random.default_rng([seed, 0x570B])
    optimizer = open_optimizer({"kind": "auto"}, problem.space, seed)
    remaining = RemainingGains(problem.space, seed)
    history: list[Evaluation] = []
    stops: list[tuple[int, float] | None] = [None] * len(RULES)
    ends = AnyOf((TrialLimit(EVALUATIONS),))
    while not ends(progress_of(history, 0.0)) and None in stops:
        try:
            asked = optimizer.ask()
        except Exhausted:
            break
        loss, _ = problem.draw(asked, rng)
        state = TrialState.COMPLETE if np.isfinite(loss) else TrialState.FAILED
        evaluation = Evaluation(asked, state, loss if np.isfinite(loss) else None)
        history.append(evaluation)
        optimizer.tell(evaluation)
        remaining.tell(evaluation)
        progress = progress_of(history, 0.0)
        for index, rule in enumerate(RULES):
            if stops[index] is not None:
                continue
            if isinstance(rule.criterion, RemainingGain):
                share = remaining.share_below(rule.below) if len(history) % EVERY == 0 else None
                met = share is not None and share >= rule.criterion.confidence
            else:
                met = rule.criterion(progress) is not None
            recommended = recommend(optimizer, history) if met else None
            if recommended is not None:
                truth = problem.truth(recommended.configuration)
                stops[index] = len(history), (truth - problem.best) / abs(truth)
    return stops


if __name__ == "__main__":
    main()
