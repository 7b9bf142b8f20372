"""Rules trained over a family of scenarios, on scenarios of it that no search has seen.

    python -m benchmarks.sharp_family --budget 60min

The family (`benchmarks/sharp_scenarios.py`) has steady scenarios, and such in which clients come and go,
loads change in phases, two tenants share the servers, or a server slows down. Rules are searched on 12 of
them, as Remy does, for the mean of the throughput as a share of that without rules, in which a loss counts
four times what a gain does; no group may get less than half. Every other controller, and a static window and
gap, is tuned on the same 12 for the same. Then all of them run on 50 others, 4 seeds each, beside
the oracle: the best static window and gap of each of the 50, which no method can have that does not know the
scenario.

The table: mean gain over the default with its 95% interval over scenarios, the worst decile, the share of the
oracle's gain, the same of the steady scenarios alone, and the least share of a group.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small

import msgspec
import numpy as np

from ascar.rules import INDICATORS
from ascar.sharp import SearchPlan, objective_of
from ascar.sharp.metric_bounds import bounds_of
from ascar.sharp.tuned_controllers import STATIC, TUNABLE, tune_controller, under_settings
from ascar.simulation import run_many, seeded, with_control, with_rule_text
from ascar.simulation.groups import rates_of, shares_of

from . import sharp_rows as rows
from .harness import Benchmark, Piece, mean, signed, table
from .sharp_scenarios import HELD_OUT, TRAINING, Member

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.simulation import Scenario

SHARE = objective_of("maximize throughput_share - 3 * throughput_loss")
"""The mean over scenarios, in which a loss counts four times what a gain does."""
BOUNDS = bounds_of(["group_share_min >= 0.5"])
RUNS, TUNING_RUNS = 60_000, 5_000
"""Simulated runs that the search for rules may take, and the tuning of each controller."""
SEEDS = 4
WINDOWS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0, 64.0)
TAUS_US = (0.0, 5_000.0, 10_000.0, 20_000.0, 40_000.0, 70_000.0)
DEFAULT, ORACLE = "default", "oracle"
PLANS = {"rules": SearchPlan(along=INDICATORS, patience=12), "rules of the thesis' indicators": SearchPlan()}
"""What rules are split along: all indicators, or those of the thesis."""


def main() -> None:
    """Train, run, print."""
    benchmark = Benchmark.from_arguments(str(__doc__), "60min")
    benchmark.build = rows.behaviour()
    trained = benchmark.run(
        [
            *(Piece(name, lambda name=name: _searched(PLANS[name])) for name in PLANS),
            *(Piece(f"tuned {name}", lambda name=name: _tuned(name)) for name in (STATIC, *TUNABLE)),
        ]
    )
    methods = {DEFAULT: lambda scenario: scenario} | _methods(trained)
    found = benchmark.run(
        [
            *(
                Piece(
                    f"{name} {member.name}",
                    lambda m=member, u=under: _run(m, u),
                    _build(benchmark, name, trained),
                )
                for member in HELD_OUT
                for name, under in methods.items()
            ),
            *(Piece(f"{ORACLE} {member.name}", lambda m=member: _oracle(m)) for member in HELD_OUT),
        ]
    )
    _print(found, [*methods, ORACLE])


def _searched(plan: SearchPlan) -> dict[str, Any]:
    """Rules over the training scenarios."""
    scenarios = [one.scenario for one in TRAINING]
    rules, runs, stopped = rows.bound(scenarios, SHARE, RUNS // len(scenarios), plan, BOUNDS)
    return {"rules": rules, "runs": runs, "stopped": stopped}


def _tuned(name: str) -> dict[str, Any]:
    scenarios = [one.scenario for one in TRAINING]
    found = tune_controller(scenarios, name, SHARE, TUNING_RUNS, bounds=BOUNDS)
    return {"settings": dict(found.settings), "runs": found.runs}


def _methods(trained: dict[str, Any]) -> dict[str, Callable[[Scenario], Scenario]]:
    """How each method controls a scenario that it does not know."""
    methods: dict[str, Callable[[Scenario], Scenario]] = {}
    for name in (name for name in PLANS if name in trained):
        text = trained[name]["rules"]
        methods[name] = lambda scenario, text=text: with_rule_text(scenario, text)
    for name in (STATIC, *TUNABLE):
        if f"tuned {name}" in trained:
            settings = trained[f"tuned {name}"]["settings"]
            methods[name] = lambda one, name=name, settings=settings: under_settings(one, name, settings)
    return methods


def _build(benchmark: Benchmark, name: str, trained: dict[str, Any]) -> str:
    """Results of other settings are not used."""
    known = trained.get(name if name in PLANS else f"tuned {name}")
    if known is None:
        return benchmark.build
    return f"{benchmark.build} {hashlib.sha256(str(known).encode()).hexdigest()[:8]}"


def _run(member: Member, under: Callable[[Scenario], Scenario]) -> dict[str, Any]:
    fresh = seeded(msgspec.structs.replace(member.scenario, seed=rows.FRESH), SEEDS)
    without, outcomes = run_many(fresh), run_many([under(one) for one in fresh])
    shares = [shares_of(rates_of(own), rates_of(other)) for own, other in zip(outcomes, without, strict=True)]
    return {name: [one[name] for one in shares] for name in ("throughput_share", "group_share_min")}


def _oracle(member: Member) -> dict[str, Any]:
    """The best static window and gap by the seeds of a search, on fresh ones."""
    places = [(window, tau_us) for window in WINDOWS for tau_us in TAUS_US]
    tried = [with_control(member.scenario, window=window, tau_us=tau_us) for window, tau_us in places]
    outcomes = run_many([member.scenario, *tried])
    reference = rates_of(outcomes[0])
    shares = [shares_of(rates_of(one), reference) for one in outcomes[1:]]
    allowed = [one["throughput_share"] if one["group_share_min"] >= 0.9 else 0.0 for one in shares]
    window, tau_us = places[int(np.argmax(allowed))]
    return _run(member, lambda one: with_control(one, window=window, tau_us=tau_us)) | {
        "window": window,
        "tau_us": tau_us,
    }


def _print(found: dict[str, Any], methods: list[str]) -> None:
    members = [one for one in HELD_OUT if all(f"{name} {one.name}" in found for name in methods)]
    lines: list[list[str]] = []
    best = _gains(found, ORACLE, members)
    for name in methods:
        own = _gains(found, name, members)
        steady = [gain for gain, member in zip(own, members, strict=True) if member.steady]
        least = [np.mean(found[f"{name} {one.name}"]["group_share_min"]) for one in members]
        lines.append(
            [
                name,
                signed(mean(own)),
                f"{np.quantile(own, 0.1):+.1%}" if own else "",
                f"{np.mean(own) / np.mean(best):.0%}" if best else "",
                signed(mean(steady)) if len(steady) > 1 else "",
                f"{min(least):.2f}" if least else "",
            ]
        )
    print(f"{len(members)} scenarios that no search has seen, {SEEDS} seeds each\n")
    heads = [
        "method",
        "mean gain",
        "worst decile",
        "of the oracle's",
        "steady ones alone",
        "least share of a group",
    ]
    table(heads, lines)


def _gains(found: dict[str, Any], name: str, members: list[Member]) -> list[float]:
    return [float(np.mean(found[f"{name} {one.name}"]["throughput_share"])) - 1 for one in members]


if __name__ == "__main__":
    main()
