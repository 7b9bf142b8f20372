"""`ascar sharp search`: rules for a workload, made by trying them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascar.cli.options import Json, Quiet, examples
from ascar.cli.sim.options import Seconds, Seed, Settings, Threads

__all__ = ["EXAMPLES", "search"]

EXAMPLES = examples(
    "ascar sharp search random-write --evaluations 2000 --out rules.txt",
    "ascar sharp search scenario.toml --objective tp-stdev:1 --budget '10 min' --out rules.txt",
    "ascar sharp search scenario.toml --objective 'minimize latency_ms_p99' --out rules.txt --resume",
)
_SEARCH_SHARE = 0.9  # of the budget; the rest is for the last comparison


def search(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A scenario file (.toml), or the name of a preset.")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the best rule set here.")],
    objective: Annotated[
        str,
        typer.Option(
            metavar="OBJECTIVE",
            help="'maximize FORMULA', 'minimize FORMULA', or a form of section 3.1.5, e.g. tp-stdev:1.",
        ),
    ] = "throughput",
    budget: Annotated[
        str | None, typer.Option(metavar="DURATION", help="For all of it, the last comparison included.")
    ] = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs of the search at most.")
    ] = None,
    faithful: Annotated[
        bool, typer.Option("--faithful", help="Algorithm 1 to the letter; the same as --schedule faithful.")
    ] = False,
    schedule: Annotated[str, typer.Option(metavar="sharp|faithful|remy", help="How to search.")] = "sharp",
    start: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Begin with this rule set instead of one rule.")
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="End after so many epochs without gain; 0: never."),
    ] = None,
    pairs: Annotated[int, typer.Option(metavar="N", help="Pairs of the last comparison at most.")] = 20,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a search that was cut off.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there, the journal too.")] = False,
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
    from ascar.cli.file_output import check_new, write_new
    from ascar.cli.interrupts import Interrupted
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import read
    from ascar.cli.sharp.found import document, print_found
    from ascar.cli.sharp.progress import showing
    from ascar.cli.sim.options import scenario_of
    from ascar.errors import InputError
    from ascar.sharp import (
        About,
        Journal,
        Judge,
        Limits,
        SimulatedBench,
        Terms,
        Verification,
        objective_of,
        verify,
    )
    from ascar.sharp import search as search_rules
    from ascar.sharp.search import FIRST, plan_of
    from ascar.study import duration

    if faithful and schedule not in ("sharp", "faithful"):
        raise InputError(f"--faithful with --schedule = {schedule!r}: give one of them")
    if resume and force:
        raise InputError("--resume with --force: give one of them; --force throws the journal away")
    schedule = "faithful" if faithful else schedule
    # Algorithm 1 itself never ends; ours does when epochs bring nothing.
    endless = schedule == "faithful" and patience is None
    plan = plan_of(schedule, FIRST if start is None else read(start).bare(), 0 if endless else patience)
    budget_s = None if budget is None else duration("--budget", budget)
    if plan.patience == 0 and budget_s is None and evaluations is None:
        raise InputError("--budget, --evaluations: must be given where nothing else ends the search")
    wanted = objective_of(objective)
    system = scenario_of(scenario, seconds, seed, settings)
    bench = SimulatedBench(system, wanted, threads)
    terms = Terms(pairs_max=pairs)
    check_new(out, force=force or resume)
    about = About.of(bench, wanted, plan)
    begin = "resume" if resume else "anew" if force else "new"
    limits = Limits(evaluations, None if budget_s is None else _SEARCH_SHARE * budget_s)
    with Journal(out.with_name(f"{out.name}.journal"), about, begin) as journal:
        with showing(quiet=quiet) as listener:
            judge = Judge(bench, wanted, journal, limits, listener=listener)
            try:
                found = search_rules(judge, plan)
                verdict = Verification("not-verified", note="too few runs to judge one rule set")
                if found.best is not None:
                    verdict = verify(judge, found.best.rules, terms, budget_s)
            except KeyboardInterrupt:
                raise Interrupted(
                    f"interrupted; {len(journal)} runs are kept in {out.name}.journal; "
                    "go on with the same command and --resume"
                ) from None
        if found.best is not None:
            write_new(out, found.best.observed.text(), force=True)
        if json:
            emit("sharp-search", document(system, plan, judge, found, verdict) | {"out": str(out)})
        else:
            print_found(people(), judge, found, verdict)
            people().print(f"rules: {out}", soft_wrap=True, markup=False)
    return 0
