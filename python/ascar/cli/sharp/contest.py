"""`ascar sharp contest`: rules against other congestion control."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Confidence,
    Controllers,
    DurationOrNone,
    Json,
    Metadata,
    ObjectiveText,
    Quiet,
    RulesOrNone,
    Runs,
    ScenarioName,
    ScenarioSettings,
    SeedOrNone,
    Threads,
    TuneRuns,
)

EXAMPLES = examples(
    "ascar sharp contest random-write                      the rules that come with ascar for this scenario",
    "ascar sharp contest scenario.toml --rules rules.txt --objective tp-stdev:1 --runs 40",
    "ascar sharp contest random-read --controllers aimd,vegas --json",
    "ascar sharp contest random-write --tune 100",
    "ascar sharp contest mdtest --metadata --rules metadata.txt",
)


def contest(
    scenario: ScenarioName,
    rules: RulesOrNone = None,
    controllers: Controllers = None,
    tune: TuneRuns = None,
    objective: ObjectiveText = "throughput",
    metadata: Metadata = False,
    runs: Runs = 20,
    confidence: Confidence = 0.95,
    seconds: DurationOrNone = None,
    seed: SeedOrNone = None,
    settings: ScenarioSettings = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Compare rules with controllers that were published elsewhere, and with the scenario as it is.

    All of them run on the same seeds, which no search has seen. The rules are those of --rules, or those that
    come with ascar for the scenario; where there are none, the scenario as it is takes their place. The level
    is divided by the number of comparisons, so that all intervals hold together.

    With --tune each controller that has settings takes part a second time, with those that ascar's optimizer
    found for this scenario, and so does the best static window and gap.
    """
    from ascar.cli.contenders import contenders_table
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.effects import controllers_table
    from ascar.cli.sharp.files import read
    from ascar.cli.sim.options import scenario_of
    from ascar.cli.sim.progress import showing
    from ascar.names import names_of
    from ascar.results.contest import SharpContestResult, TunedRival
    from ascar.sharp import objective_of
    from ascar.sharp.contest import CONTROLLERS, contenders_of, fresh, shipped_rules, with_tuned
    from ascar.sharp.contest import contest as run_contest
    from ascar.simulation.controlled import check_followers

    system, followers = scenario_of(scenario, seconds, seed, settings), "metadata" if metadata else None
    check_followers(system, followers)
    wanted = objective_of(objective, followers)
    chosen = shipped_rules(scenario) if rules is None else read(rules)
    named = None if chosen is None else str(rules or scenario)
    rivals = CONTROLLERS if controllers is None else names_of("--controllers", controllers)
    contenders, tuned = contenders_of(system, chosen, rivals, followers), ()
    if tune is not None:
        with showing(quiet=quiet, what="tuning") as listener:
            contenders, tuned = with_tuned(
                contenders, wanted, tune, followers=followers, threads=threads, listener=listener
            )
    with showing(quiet=quiet) as listener:
        ranked = run_contest(contenders, wanted, runs, confidence, threads=threads, listener=listener)
    if json:
        result = SharpContestResult(
            scenario=scenario,
            rules=named,
            objective=wanted.text,
            runs=runs,
            first_seed=fresh(system).seed,
            confidence=confidence,
            contenders=ranked.entries,
            effects=ranked.effects,
            tuned=tuple(
                TunedRival(controller=one.controller, settings=dict(one.settings), runs=one.runs)
                for one in tuned
            ),
        )
        emit("sharp-contest", result)
        return 0
    said = "no rules come with ascar for it" if named is None else f"rules {named}"
    people().print(f"{scenario}, {said}; {runs} runs of each, {wanted.text}", soft_wrap=True, markup=False)
    people().print(contenders_table(ranked.entries, wanted.unit))
    people().print(controllers_table(ranked.effects))
    return 0
