"""SHARP's rules, offline optimizers, CAPES, the best static setting and the default in one table.

    python -m benchmarks.capes_cluster_rivals --budget 20min

Everyone who searches has 3,600 virtual seconds of each workload of Li et al., section 4.3, and seeds of its
own: the offline optimizers 60 runs of a minute over window and gap, SHARP's search 60 runs of a minute, CAPES
an hour at work. The rule sets that come with ascar were made for similar workloads; the best static setting
has a grid of 84 settings, twice two minutes each. What each ends with (CAPES: the best setting known) is
measured for ten minutes on eight fresh seeds; beside that what CAPES's own hour brought, learning included.
Everybody searches three times; the gains of a search are means over the seeds.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import msgspec

from ascar.capes.environments.cluster_parameters import CLUSTER_KNOBS
from ascar.errors import Exhausted
from ascar.optimizers import Evaluation, open_optimizer
from ascar.optimizers.recommendation import recommend
from ascar.results.trial import TrialState
from ascar.sharp import About, Journal, Judge, SearchLimits, SearchPlan, SimulatedBench, objective_of, search
from ascar.sharp.rulesets import ruleset
from ascar.simulation import with_control, with_rule_text, with_settings
from ascar.simulation.batch import run_many
from ascar.space import ChangeCost, Space, integer

from . import capes_cluster_runs as runs
from .harness import Benchmark, Piece, mean, present, signed, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.simulation import Scenario

SECONDS, RUN_S, SEARCHES = 3_600, 60, 3
TRIALS = SECONDS // RUN_S
MEASURED_S, SEEDS = 600, 8
OPTIMIZERS = ("auto", "gp", "genetic", "random")
RULES = {
    "9-1": "random-read",
    "4-1": "random-read",
    "1-1": "random-write",
    "1-4": "random-write",
    "1-9": "random-write",
    "fileserver": "fileserver",
    "sequential-write": "sequential-write",
}
"""The rule set that comes with ascar for the most alike workload; there is none for random reading."""


def main() -> None:
    """Run what has no result yet, and print a table."""
    benchmark = runs.benchmark_of(__doc__ or "", "20min")
    found = benchmark.run(list(_pieces(benchmark)))
    print(f"\nGain over the default, {MEASURED_S} s on {SEEDS} fresh seeds\n")
    whos = ("static", "shipped", "sharp", *OPTIMIZERS, "capes", "online")
    rows: list[list[str]] = []
    for name in runs.WORKLOADS:
        default = found.get(f"{name}/default/0")
        if default is None:
            continue
        row = [name]
        for who in whos:
            own = present(found, (f"{name}/{who}/{number}" for number in range(SEARCHES)))
            row.append(_cell(own, default["mb_per_s"]) if own else "-")
        rows.append(row)
    table(
        ("workload", "best static", "rules of ascar", "SHARP's search", *OPTIMIZERS, "CAPES", "its hour"),
        rows,
    )


def _cell(own: list[dict[str, Any]], default: list[float]) -> str:
    """Over seeds where there is one search, else over searches."""
    if "gain" in own[0]:
        return signed(mean([one["gain"] for one in own]))
    if len(own) == 1:
        pairs = zip(own[0]["mb_per_s"], default, strict=True)
        return signed(mean([one / other - 1 for one, other in pairs]))
    means: list[float] = [sum(one["mb_per_s"]) / len(one["mb_per_s"]) for one in own]
    return signed(mean([one * len(default) / sum(default) - 1 for one in means]))


def _pieces(benchmark: Benchmark) -> Iterator[Piece]:
    for name in runs.WORKLOADS:
        yield Piece(f"grid/{name}", lambda name=name: runs.grid(name))
        yield Piece(f"{name}/default/0", lambda name=name: _measured(runs.scenario_of(name)))
        yield Piece(f"{name}/static/0", lambda name=name: _static(benchmark, name))
        yield Piece(f"{name}/shipped/0", lambda name=name: _shipped(name))
    for number in range(SEARCHES):
        for name in runs.WORKLOADS:
            yield Piece(f"{name}/capes/{number}", lambda name=name, number=number: _capes(name, number))
            yield Piece(f"{name}/online/{number}", lambda name=name, number=number: _online(name, number))
            yield Piece(f"{name}/sharp/{number}", lambda name=name, number=number: _sharp(name, number))
            for kind in OPTIMIZERS:
                yield Piece(
                    f"{name}/{kind}/{number}",
                    lambda name=name, kind=kind, number=number: _offline(name, kind, number),
                )


def _measured(scenario: Scenario) -> dict[str, Any]:
    long = with_settings(scenario, [f"duration_s={MEASURED_S}"])
    seeded = [msgspec.structs.replace(long, seed=runs.FRESH + 5_000 + seed) for seed in range(SEEDS)]
    return {"mb_per_s": [one.throughput_mb_per_s for one in run_many(seeded, threads=1)]}


def _static(benchmark: Benchmark, name: str) -> dict[str, Any]:
    window, tau_us = runs.best_static(benchmark, [name])
    return _measured(with_control(runs.scenario_of(name), window=window, tau_us=tau_us))


def _shipped(name: str) -> dict[str, Any]:
    if RULES[name] == "random-read":
        raise RuntimeError("no rules for random reading were found to be better than none")
    return _measured(with_rule_text(runs.scenario_of(name), ruleset(RULES[name]).text()))


def _trial(name: str, number: int) -> Scenario:
    return with_settings(
        runs.scenario_of(name), [f"duration_s={RUN_S}", f"seed={runs.FRESH + 100_000 * (1 + number)}"]
    )


def _offline(name: str, kind: str, number: int) -> dict[str, Any]:
    space = Space(
        tuple(
            integer(
                knob.name,
                (int(knob.low), int(knob.high)),
                default=int(knob.initial),
                cost=ChangeCost.DYN_KERNEL,
                step=int(knob.step),
                log=knob.low > 0,
            )
            for knob in CLUSTER_KNOBS
        )
    )
    optimizer = open_optimizer({"kind": kind}, space, number, (space.default(),))
    trial = _trial(name, number)
    told: list[Evaluation] = []
    for at in range(TRIALS):
        try:
            one = optimizer.ask()
        except Exhausted:  # nothing promises anything any more
            break
        scenario = with_control(trial, window=float(one["window"]), tau_us=float(one["tau_us"]))
        (outcome,) = run_many([msgspec.structs.replace(scenario, seed=trial.seed + at)], threads=1)
        told.append(Evaluation(one, TrialState.COMPLETE, -outcome.throughput_mb_per_s, None, RUN_S))
        optimizer.tell(told[-1])
    best = recommend(optimizer, told)
    assert best is not None, "every trial was complete"
    window, tau_us = float(best.configuration["window"]), float(best.configuration["tau_us"])
    measured = _measured(with_control(runs.scenario_of(name), window=window, tau_us=tau_us))
    return {"setting": [window, tau_us], **measured}


def _sharp(name: str, number: int) -> dict[str, Any]:
    objective, plan = objective_of("maximize throughput_mb_per_s"), SearchPlan()
    bench = SimulatedBench(_trial(name, number), objective, 1)
    with (
        tempfile.TemporaryDirectory() as folder,
        Journal(Path(folder) / "journal", About.of(bench, objective, plan)) as journal,
    ):
        found = search(Judge(bench, objective, journal, SearchLimits(TRIALS)), plan)
    assert found.best is not None, "at least the first rule set was run"
    text = found.best.rules.text()
    return {"rules": text, **_measured(with_rule_text(runs.scenario_of(name), text))}


def _capes(name: str, number: int) -> dict[str, Any]:
    system = runs.system_of(name, runs.FRESH + 200_000 + number)
    learner = runs.learner(system, number)
    runs.followed(system, learner, SECONDS)
    best = learner.surface.best()
    assert best is not None, "something was visited"
    measured = _measured(with_control(runs.scenario_of(name), window=best[0], tau_us=best[1]))
    return {"setting": list(best), **measured}


def _online(name: str, number: int) -> dict[str, Any]:
    """The hour itself, learning included, beside an hour of the default on the same seed."""
    seed = runs.FRESH + 200_000 + number
    system = runs.system_of(name, seed)
    learnt = runs.followed(system, runs.learner(system, number), SECONDS)
    default = runs.followed(runs.system_of(name, seed), runs.DEFAULT, SECONDS)
    return {"gain": float(learnt.mb_per_s.mean() / default.mb_per_s.mean()) - 1}


if __name__ == "__main__":
    main()
