"""`ascar sharp search`: rules for a workload, made by trying them."""

from __future__ import annotations

from ascar.cli.options import Json, Quiet, examples
from ascar.cli.sharp.options import (
    Also,
    Budget,
    Evaluations,
    Faithful,
    FirstIn,
    Force,
    ObjectiveText,
    Out,
    Pairs,
    Patience,
    Resume,
    ScenarioName,
    ScheduleName,
    Start,
)
from ascar.cli.sim.options import Seconds, Seed, Settings, Threads, scenario_of

__all__ = ["EXAMPLES", "search"]

EXAMPLES = examples(
    "ascar sharp search random-write --evaluations 2000 --out rules.txt",
    "ascar sharp search scenario.toml --objective tp-stdev:1 --budget '10 min' --out rules.txt",
    "ascar sharp search scenario.toml --objective 'minimize latency_ms_p99' --out rules.txt --resume",
    "ascar sharp search random-write --also clients.count=20 --out sizes.txt",
    "ascar sharp search measured.toml --first-in model.toml --evaluations 100 --out rules.txt",
)


def search(
    scenario: ScenarioName,
    out: Out,
    objective: ObjectiveText = "throughput",
    budget: Budget = None,
    evaluations: Evaluations = None,
    faithful: Faithful = False,
    schedule: ScheduleName = "sharp",
    start: Start = None,
    patience: Patience = None,
    also: Also = None,
    first_in: FirstIn = None,
    pairs: Pairs = 20,
    resume: Resume = False,
    force: Force = False,
    seconds: Seconds = None,
    seed: Seed = None,
    settings: Settings = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Make a rule set for a workload (Li, algorithm 1), and compare it with the system as it is.

    Every run is written down in FILE.journal when it ends; after a kill, --resume goes on from there, to the
    same end. The last comparison is made on fresh seeds: "the default is fine" is a result too.
    """
    from ascar.cli.file_output import write_new
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.found import document, print_found
    from ascar.cli.sharp.progress import showing
    from ascar.cli.sharp.task import Task, carry_out, ends_of, plan_from
    from ascar.errors import InputError
    from ascar.sharp import Terms, objective_of

    if resume and force:
        raise InputError("--resume with --force: give one of them; --force throws the journal away")
    plan = plan_from(schedule, start, patience, faithful=faithful)
    if first_in is not None and plan.schedule != "sharp":
        raise InputError(f"--first-in with --schedule = {plan.schedule!r}: only 'sharp' has two phases")
    task = Task(
        system=scenario_of(scenario, seconds, seed, settings),
        also=tuple(scenario_of(scenario, seconds, seed, [*(settings or ()), one]) for one in also or ()),
        first_in=None if first_in is None else scenario_of(first_in, seconds, seed, None),
        objective=objective_of(objective),
        plan=plan,
        ends=ends_of(plan, budget, evaluations),
        terms=Terms(pairs_max=pairs),
        threads=threads,
        out=out,
        begin="resume" if resume else "anew" if force else "new",
    )
    with showing(quiet=quiet) as listener:
        done = carry_out(task, listener)
    if done.found.best is not None:
        write_new(out, done.found.best.observed.text(), force=True)
    if json:
        emit("sharp-search", document(task, done) | {"out": str(out)})
    else:
        print_found(people(), done)
        people().print(f"rules: {out}", soft_wrap=True, markup=False)
    return 0
