"""`ascar sweep`: every configuration, which makes a dataset."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import (
    AllowLive,
    BudgetOrNone,
    FormatDevices,
    Json,
    OutOrNone,
    Part,
    Quiet,
    Replicates,
    Resume,
    StudyFile,
    Subset,
    SubsetReplicates,
)

EXAMPLES = examples(
    "ascar sweep study.toml --out dataset.csv",
    "ascar sweep study.toml --replicates 3 --budget '8 h'",
    "ascar sweep study.toml --replicates 3 --resume --budget '8 h'      go on",
    "ascar sweep study.toml --replicates 3 --subset 30 --subset-replicates 10",
    "ascar sweep study.toml --replicates 0 --subset 100 --subset-replicates 10",
    "ascar sweep study.toml --part 1/2 --out first.parquet      another machine does 2/2",
)


def sweep(
    study: StudyFile,
    resume: Resume = False,
    replicates: Replicates = 1,
    subset: Subset = 0,
    subset_replicates: SubsetReplicates = 0,
    part: Part = "1/1",
    budget: BudgetOrNone = None,
    out: OutOrNone = None,
    format_device: FormatDevices = None,
    allow_live: AllowLive = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Measure every valid configuration of a study's space: a dataset, no search and no claim of a gain.

    Parameters that are expensive to change vary slowest. Replicates are made pass by pass, the groups of
    configurations that share what is expensive in another order each time. The study's own budget does not
    limit a sweep. Kept in the history under the study's name with "-sweep" added. Exit status 3 when the
    budget ended it first; --resume goes on.
    """
    from ascar.cli.interrupts import resumable
    from ascar.cli.output import emit, people
    from ascar.cli.progress import showing
    from ascar.cli.statuses import decided
    from ascar.cli.studies import Confirmed, read_study
    from ascar.cli.summary import print_sweep
    from ascar.history import History
    from ascar.history.exchange import suffix_of
    from ascar.study import duration
    from ascar.sweep import SweepPlan, part_of
    from ascar.sweep import sweep as run_loop

    budget_s = None if budget is None else duration("--budget", budget)
    plan = SweepPlan(replicates, budget_s, subset, subset_replicates, part_of(part))
    plan.check()
    wanted = read_study(study, confirmed=Confirmed(format_device, allow_live))
    if out is not None:
        suffix_of(out)
    with History() as history:
        with resumable(f"sweep {study} --resume"), showing(wanted.objective, quiet=quiet) as listener:
            outcome = run_loop(wanted, history, plan, resume=resume, listener=listener)
        if out is not None:
            history.export([outcome.run_id], out)
    complete = outcome.stopped == ""
    if json:
        from ascar.results.encode import extended
        from ascar.results.tuning import SweepResult

        file = None if out is None else str(out)
        emit("sweep", extended(SweepResult, outcome, complete=complete, file=file))
    else:
        print_sweep(people(), outcome, wanted.objective.unit)
        if out is not None:
            people().print(f"dataset: {out}", soft_wrap=True)
    return decided(complete)
