"""Auto against its peers: mean regrets, their ratio to the best peer's, reported over true.

    build/peers/bin/ascar lab optimizers --benchmark benchmarks/optimizers.toml --tables DIR --out results \
        --optimizers auto,optuna-tpe,optuna-tpe-univariate,optuna-gp,smac --budget '1 h'
    python -m benchmarks.optimizers --tables DIR --results results --peers optuna-tpe,optuna-tpe-univariate

Reads the raw results that the laboratory kept; those of a contender on a problem under several keys are of
different versions of its code, of which the latest written is taken. `--summary FILE.parquet` keeps one row a
contender, problem and checkpoint.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ascar.lab import Benchmark
from ascar.lab.simulation import built

from .harness import digits, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.lab.problem import SearchProblem

PEERS = ("optuna-tpe", "optuna-tpe-univariate", "optuna-tpe-group", "optuna-gp", "smac")
RESAMPLES = 2_000
# Worse by no more than this share of the peer's regret, or this share of the range, counts as not worse.
REGRET_SHARE, RANGE_SHARE = 0.05, 0.005


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A contender on a problem at one checkpoint.

    Attributes:
        regret: float64 (runs,), normalised: 0 is the best, 1 the median.
        ratio: float64 (runs,), reported over true value.
        promise: float64 (runs,), the same where more is better, its inverse where less is: above 1, what is
            reported is too good.
        ask_tell_ms: mean over runs.
    """

    regret: NDArray[np.float64]
    ratio: NDArray[np.float64]
    promise: NDArray[np.float64]
    ask_tell_ms: float

    @property
    def mean(self) -> float:
        """Of the regret."""
        return float(self.regret.mean())

    @property
    def half(self) -> float:
        """Half the width of the 95% interval of the mean regret (normal)."""
        return (
            1.96 * float(self.regret.std(ddof=1)) / len(self.regret) ** 0.5
            if len(self.regret) > 1
            else np.nan
        )


Outcomes = dict[str, dict[str, dict[int, Outcome]]]  # by problem, contender, checkpoint


def main() -> None:
    """Read results, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmark", type=Path, default=Path(__file__).parent / "optimizers.toml")
    parser.add_argument("--tables", type=Path, help="directory of the benchmark's tables; default: beside it")
    parser.add_argument("--results", type=Path, required=True, help="what `ascar lab optimizers --out` wrote")
    parser.add_argument("--of", default="auto", help="the contender that is compared with the peers")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--seeds", type=int, help="of each contender only so many, the first")
    parser.add_argument("--summary", type=Path, help="write one row a contender, problem and checkpoint")
    given = parser.parse_args()
    benchmark = Benchmark.read(given.benchmark, given.tables or given.benchmark.parent)
    problems = {one.name: built(one) for one in benchmark.problems}
    outcomes = read(problems, given.results, benchmark.checkpoints, given.seeds)
    if given.summary is not None:
        summary(outcomes).write_parquet(given.summary)
    peers = [one for one in given.peers.split(",") if any(one in found for found in outcomes.values())]
    for at in benchmark.checkpoints:
        print(f"After {at} evaluations: mean regret, half its 95% interval, runs\n")
        regrets(outcomes, [given.of, *peers], at)
        verdict(problems, outcomes, (given.of, peers), at)


def read(
    problems: Mapping[str, SearchProblem], directory: Path, checkpoints: Sequence[int], seeds: int | None
) -> Outcomes:
    """All results of a directory that are of these problems."""
    files: dict[tuple[str, str], Path] = {}
    for path in sorted(directory.glob("*.parquet"), key=lambda one: one.stat().st_mtime):
        problem, _, rest = path.stem.partition("--")
        if problem in problems:
            files[problem, rest.rpartition("--")[0]] = path
    outcomes: Outcomes = {name: {} for name in problems}
    for (name, contender), path in files.items():
        frame = pl.read_parquet(path)
        if seeds is not None:
            frame = frame.filter(pl.col("seed").rank("dense") <= seeds)
        outcomes[name][contender] = {at: _outcome(frame, problems[name], at) for at in checkpoints}
    return outcomes


def _outcome(frame: pl.DataFrame, problem: SearchProblem, at: int) -> Outcome:
    """A run that ended early is judged on its last recommendation."""
    until = frame.filter(pl.col("evaluation") <= at)
    last = until.drop_nulls("recommended_truth").group_by("seed", maintain_order=True).last()
    truth, reported = last["recommended_truth"].to_numpy(), last["recommended_reported"].to_numpy()
    regret = (truth - problem.best) / (problem.median - problem.best)
    spent_s = until.group_by("seed").agg(pl.col("ask_tell_s").mean())["ask_tell_s"].mean()
    assert isinstance(spent_s, float), "there is a run"
    ratio = reported / truth
    promise = ratio if problem.sign < 0 else 1 / ratio
    return Outcome(np.where(np.isfinite(regret), regret, 1.0), ratio, promise, 1e3 * spent_s)


def regrets(outcomes: Outcomes, contenders: Sequence[str], at: int) -> None:
    """One row a problem, one column a contender; then the mean over the problems that all have runs on."""
    rows: list[list[str]] = []
    for name, found in outcomes.items():
        cells = [_cell(found[one][at]) if one in found else "-" for one in contenders]
        rows.append([name, *cells])
    shared = [found for found in outcomes.values() if all(one in found for one in contenders)]
    if shared:
        means = [_together([found[one][at] for found in shared]) for one in contenders]
        rows.append([f"mean of {len(shared)}", *means])
        ratio = [[float(np.nanmean(found[one][at].ratio)) for found in shared] for one in contenders]
        rows.append(["reported/true", *(f"{np.mean(one):.3f}" for one in ratio)])
        promise = [[float(np.nanmean(found[one][at].promise)) for found in shared] for one in contenders]
        rows.append(["too good (1: true)", *(f"{np.mean(one):.3f}" for one in promise)])
        spent = [np.mean([found[one][at].ask_tell_ms for found in shared]) for one in contenders]
        rows.append(["ask + tell (ms)", *(digits(float(one)) for one in spent)])
    table(["problem", *contenders], rows)


def verdict(
    problems: Mapping[str, SearchProblem], outcomes: Outcomes, contenders: tuple[str, Sequence[str]], at: int
) -> None:
    """Against the best peer of each problem, and against the peer that is best on average."""
    of, peers = contenders
    rng = np.random.default_rng(1)
    rows: list[list[str]] = []
    shared = [name for name, found in outcomes.items() if of in found and any(one in found for one in peers)]
    for name in shared:
        found = outcomes[name]
        best = min((one for one in peers if one in found), key=lambda one: found[one][at].mean)
        ratio = _ratio([(found[of][at], found[best][at])], rng)
        rows.append([name, best, ratio, _allowed(problems[name], found[of][at], found[best][at])])
    complete = [name for name in shared if all(one in outcomes[name] for one in peers)]
    if complete:
        best = min(peers, key=lambda one: sum(outcomes[name][one][at].mean for name in complete))
        pairs = [(outcomes[name][of][at], outcomes[name][best][at]) for name in complete]
        rows.append([f"mean of {len(complete)}", best, _ratio(pairs, rng), ""])
    table(["problem", "best peer", f"regret of {of} over the peer's", "not worse"], rows)


def _allowed(problem: SearchProblem, own: Outcome, peer: Outcome) -> str:
    losses = getattr(problem, "losses", None)
    known = np.array([problem.median, problem.best]) if losses is None else np.asarray(losses())
    spread = float(np.nanmax(known) - problem.best) / (problem.median - problem.best)
    excess = own.mean - peer.mean
    if excess <= max(REGRET_SHARE * peer.mean, RANGE_SHARE * spread):
        return "yes"
    return f"no: by {excess:.3f}"


def _ratio(pairs: Sequence[tuple[Outcome, Outcome]], rng: np.random.Generator) -> str:
    """Ratio of mean regrets over problems, with its 95% interval: bootstrap over runs."""
    above, below = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for own, peer in pairs:
        above += _resampled(own.regret, rng)
        below += _resampled(peer.regret, rng)
    low, high = np.quantile(above / np.maximum(below, 1e-12), [0.025, 0.975])
    ratio = sum(own.mean for own, _ in pairs) / max(sum(peer.mean for _, peer in pairs), 1e-12)
    return f"{ratio:.2f} ({low:.2f} to {high:.2f})"


def _resampled(regret: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    places = rng.integers(len(regret), size=(RESAMPLES, len(regret)))
    return regret[places].mean(1)


def _cell(one: Outcome) -> str:
    return f"{one.mean:.3f} ±{one.half:.3f} ({len(one.regret)})"


def _together(outcomes: Sequence[Outcome]) -> str:
    half = np.sqrt(sum(one.half**2 for one in outcomes)) / len(outcomes)
    return f"{np.mean([one.mean for one in outcomes]):.3f} ±{half:.3f}"


def summary(outcomes: Outcomes) -> pl.DataFrame:
    """One row a contender, problem and checkpoint."""
    return pl.DataFrame(
        [
            {
                "problem": problem,
                "contender": contender,
                "evaluations": at,
                "runs": len(one.regret),
                "regret_mean": one.mean,
                "regret_sd": float(one.regret.std(ddof=1)) if len(one.regret) > 1 else None,
                "reported_over_true": float(np.nanmean(one.ratio)),
                "ask_tell_ms": one.ask_tell_ms,
            }
            for problem, found in outcomes.items()
            for contender, by_checkpoint in found.items()
            for at, one in by_checkpoint.items()
        ]
    )


if __name__ == "__main__":
    main()
