"""Rules against other congestion control on one workload, each the same on every client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ascar.errors import InputError, Refused
from ascar.pilot.rivals import against_each, check_contest
from ascar.results.rule_search import ControllerEffects
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.effects import figure_changes, group_changes, standings
from ascar.sharp.metric_bounds import bounds_of
from ascar.sharp.objectives import objective_of
from ascar.sharp.rulesets import RULESETS, ruleset
from ascar.sharp.trials.bench import FRESH, RuleRun, metrics_of
from ascar.sharp.tuned_controllers import STATIC, TUNABLE, tune_controller
from ascar.simulation import BatchProgress, run_many, seeded, with_rule_text
from ascar.simulation.controlled import with_controller
from ascar.simulation.groups import group_names, group_rates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ascar.objective import Objective
    from ascar.results.contest import ContestEntry
    from ascar.rules import RuleSet
    from ascar.sharp.tuned_controllers import TunedController
    from ascar.simulation import Scenario
    from ascar.simulation.controlled import Followers

CONTROLLERS: Final = (
    *("aimd", "cubic", "bbr", "bbr3", "vegas"),
    *("gradient2", "envoy-gradient", "copa", "io-path-tune"),
)
"""Controllers that were published elsewhere; `crates/congestion` has them, with their sources."""
_REHEARSALS = 8
AS_IT_IS: Final = "as it is"
"""The name of the scenario with its own controller."""


class Contested(NamedTuple):
    """What a contest came to.

    Attributes:
        entries: how the first contender stands against each of the others.
        effects: what each contender changes against the scenario as it is.
    """

    entries: tuple[ContestEntry, ...]
    effects: tuple[ControllerEffects, ...]


def shipped_rules(scenario: str, *, even: bool = False) -> RuleSet | None:
    """The rules that come with ascar for a scenario; None where none were found to be better than without.

    Args:
        scenario: the name of a preset.
        even: choose the rules for the objective tp - stdev instead of the largest throughput.
    """
    name = f"{scenario}-even" if even else scenario
    return ruleset(name) if name in RULESETS else None


def under_controller(scenario: Scenario, controller: str, followers: Followers = None) -> Scenario:
    """The scenario whose streams all use another controller.

    Raises:
        InputError: there is no such controller.
    """
    if controller not in CONTROLLERS:
        raise InputError(f"--controllers = {controller[:80]!r}: must be of {', '.join(CONTROLLERS)}")
    return with_controller(scenario, controller, followers=followers)


def contenders_of(
    scenario: Scenario,
    rules: RuleSet | None,
    controllers: Sequence[str] = CONTROLLERS,
    followers: Followers = None,
) -> dict[str, Scenario]:
    """Who takes part, by name: the rules first, where there are any, and the scenario as it is.

    Raises:
        InputError: there is no such controller.
    """
    named = {} if rules is None else {"rules": with_rule_text(scenario, rules.bare().text(), followers)}
    rivals = {name: under_controller(scenario, name, followers) for name in controllers}
    return {**named, AS_IT_IS: scenario, **rivals}


def with_tuned(
    contenders: dict[str, Scenario],
    objective: Objective,
    runs: int,
    *,
    followers: Followers = None,
    threads: int | None = None,
    listener: Callable[[BatchProgress], None] = lambda _: None,
) -> tuple[dict[str, Scenario], tuple[TunedController, ...]]:
    """The contenders with the best static setting, and with each rival that has settings tuned, too.

    Each is tuned with the usual bounds, on seeds that the contest does not use.

    Args:
        contenders: scenarios by name.
        objective: what they are tuned to.
        runs: the runs that each may take.
        followers: the streams that they control.
        threads: runs at a time; None: one a core.
        listener: told how far it has come.

    Raises:
        InputError: there are too few runs.
    """
    scenario, tuned = contenders[AS_IT_IS], list["TunedController"]()
    names = (STATIC, *(one for one in TUNABLE if one in contenders))
    whole = runs * len(names)
    for before, name in enumerate(names):

        def tell(made: int, before: int = before) -> None:
            done = before * runs + made
            listener(BatchProgress(done, whole, done / whole))

        tuned.append(
            tune_controller(
                [scenario],
                name,
                objective,
                runs,
                bounds=bounds_of(None),
                followers=followers,
                threads=threads,
                told=tell,
            )
        )
    named = {
        "best static" if one.controller == STATIC else f"{one.controller}, tuned": one.of(scenario)
        for one in tuned
    }
    return {**contenders, **named}, tuple(tuned)


def contest(
    contenders: dict[str, Scenario],
    objective: Objective,
    runs: int,
    confidence: float,
    *,
    threads: int | None = None,
    listener: Callable[[BatchProgress], None] | None = None,
) -> Contested:
    """Run all contenders on the same seeds, which no search has seen, and compare the first with each.

    Args:
        contenders: scenarios by name, the scenario as it is among them.
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
    made = [RuleRun(metrics_of(one, names), (), None, group_rates(one)) for one in outcomes]
    by_name = {name: tuple(made[at * runs : (at + 1) * runs]) for at, name in enumerate(contenders)}
    scores = {name: [objective.score(one.metrics) for one in own] for name, own in by_name.items()}
    groups = group_names(contenders[AS_IT_IS])
    effects = tuple(
        ControllerEffects(
            name=name,
            figures=figure_changes((by_name[AS_IT_IS], own)),
            groups=group_changes(groups, (by_name[AS_IT_IS], own)),
        )
        for name, own in by_name.items()
        if name != AS_IT_IS
    )
    return Contested(against_each(scores, objective.direction, confidence), effects)


def rehearse(
    scenario: Scenario, rules: RuleSet, listener: Callable[[BatchProgress], None] | None = None
) -> None:
    """Try rules in a simulation before they are put in force.

    Raises:
        Refused: the throughput is shown to be less than without them, or a group of threads to get less than
            the usual bound allows.
    """
    found = contest(
        contenders_of(scenario, rules, ()), objective_of("throughput"), _REHEARSALS, 0.99, listener=listener
    )
    against, (effects,) = found.entries[1], found.effects
    if against.verdict == "worse":
        raise Refused(
            f"rules {rules_id(rules)}: the throughput in {scenario.name} is "
            f"{found.entries[0].mean:.4g} MB/s, and {against.mean:.4g} without them; nothing was changed; "
            "leave these rules out"
        )
    for one in standings(bounds_of(None), ((), ()), effects.groups):
        if one.standing == "broken":
            raise Refused(
                f"rules {rules_id(rules)}: break {one.bound} in {scenario.name}: {one.value:.3g} "
                f"({one.low:.3g} to {one.high:.3g}); nothing was changed; leave these rules out"
            )


def fresh(scenario: Scenario) -> Scenario:
    """The scenario with seeds that no search has seen."""
    return msgspec.structs.replace(scenario, seed=scenario.seed + FRESH)
