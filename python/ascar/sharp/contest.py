"""Rules against other congestion control on one workload, each the same on every client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ascar.errors import InputError
from ascar.pilot.rivals import against_each, check_contest
from ascar.sharp.rulesets import RULESETS, ruleset
from ascar.sharp.trials.bench import FRESH, metrics_of
from ascar.simulation import run_many, seeded, with_rule_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.objective import Objective
    from ascar.results.contest import ContestEntry
    from ascar.rules import RuleSet
    from ascar.simulation import BatchProgress, Scenario

CONTROLLERS: Final = ("aimd", "vegas", "gradient2", "envoy-gradient", "copa", "io-path-tune")
"""Controllers that were published elsewhere; `crates/congestion` has them, with their sources."""
AS_IT_IS: Final = "as it is"
"""The name of the scenario with its own controller."""


def shipped_rules(scenario: str, *, even: bool = False) -> RuleSet | None:
    """The rules that come with ascar for a scenario; None where none were found to be better than without.

    Args:
        scenario: the name of a preset.
        even: choose the rules for the objective tp - stdev instead of the largest throughput.
    """
    name = f"{scenario}-even" if even else scenario
    return ruleset(name) if name in RULESETS else None


def under_controller(scenario: Scenario, controller: str) -> Scenario:
    """The scenario whose clients all use another controller.

    Raises:
        InputError: there is no such controller.
    """
    if controller not in CONTROLLERS:
        raise InputError(f"--controllers = {controller[:80]!r}: must be of {', '.join(CONTROLLERS)}")
    return msgspec.structs.replace(
        scenario, control=msgspec.structs.replace(scenario.control, controller=controller)
    )


def contenders_of(
    scenario: Scenario, rules: RuleSet | None, controllers: Sequence[str] = CONTROLLERS
) -> dict[str, Scenario]:
    """Who takes part, by name: the rules first, where there are any, and the scenario as it is.

    Raises:
        InputError: there is no such controller.
    """
    named = {} if rules is None else {"rules": with_rule_text(scenario, rules.bare().text())}
    rivals = {name: under_controller(scenario, name) for name in controllers}
    return {**named, AS_IT_IS: scenario, **rivals}


def contest(
    contenders: dict[str, Scenario],
    objective: Objective,
    runs: int,
    confidence: float,
    *,
    threads: int | None = None,
    listener: Callable[[BatchProgress], None] | None = None,
) -> tuple[ContestEntry, ...]:
    """Run all contenders on the same seeds, which no search has seen, and compare the first with each.

    Args:
        contenders: scenarios by name.
        objective: scores a run.
        runs: the number of runs of each contender.
        confidence: the confidence of each mean's interval, and of all gains' intervals together.
        threads: runs at a time; None: one a core.
        listener: told now and then how far it has come.

    Raises:
        InputError: there are too few runs or contenders, or a controller cannot run the scenario.
        ExpressionError: the objective names what no run tells.
    """
    check_contest(runs, confidence, len(contenders))
    wanted = [one for scenario in contenders.values() for one in seeded(fresh(scenario), runs)]
    outcomes = run_many(wanted, threads=threads, listener=listener)
    names = objective.formula.names
    scores = [objective.score(metrics_of(outcome, names)) for outcome in outcomes]
    by_name = {name: scores[at * runs : (at + 1) * runs] for at, name in enumerate(contenders)}
    return against_each(by_name, objective.direction, confidence)


def fresh(scenario: Scenario) -> Scenario:
    """The scenario with seeds that no search has seen."""
    return msgspec.structs.replace(scenario, seed=scenario.seed + FRESH)
