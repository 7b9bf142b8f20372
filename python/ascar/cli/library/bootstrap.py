"""`ascar library bootstrap`: rules for the common workloads."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Altered,
    BudgetOrNone,
    Evaluations,
    Json,
    LibraryFile,
    ObjectiveText,
    Only,
    Pairs,
    Quiet,
    Threads,
)

EXAMPLES = examples(
    "ascar library bootstrap --budget '20 min'",
    "ascar library bootstrap --only random-write --only fileserver --altered 0",
)


def bootstrap(
    objective: ObjectiveText = "throughput",
    budget: BudgetOrNone = None,
    evaluations: Evaluations = 300,
    pairs: Pairs = 3,
    altered: Altered = 400,
    only: Only = None,
    library: LibraryFile = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Make rules for each of the common workloads in the simulator, and try them on all others.

    The common workloads are those of section 3.1.7 (ratios of reads to writes, sizes of random reads) and of
    Table 3.4. Every gain is kept when it is measured; interrupted, or out of time, the same command goes on.
    Exit status 3 when --budget ended it first.
    """
    import time

    from ascar.cli.interrupts import Interrupted
    from ascar.cli.library.workloads import objective_named, path_of
    from ascar.cli.output import emit, people, say
    from ascar.cli.statuses import decided
    from ascar.errors import InputError
    from ascar.library import Library
    from ascar.results.library import LibraryBootstrapResult
    from ascar.sharp.matching import BootstrapProgress, Effort, Workloads, alterations, common_set, fill
    from ascar.sharp.plan import SearchPlan
    from ascar.study import duration

    wanted = objective_named(objective)
    budget_s = None if budget is None else duration("--budget", budget)
    common = common_set()
    for name in only or ():
        if name not in common:
            raise InputError(f"--only = {name[:80]!r}: must be one of {', '.join(common)}")
    common = {name: one for name, one in common.items() if not only or name in only}
    mixes = alterations(altered) if altered else {}
    workloads = Workloads(common, {name: mix.scenario(name) for name, mix in mixes.items()})
    effort = Effort(SearchPlan(), evaluations, pairs, threads, budget_s)
    said_s = time.monotonic()

    def tell(step: BootstrapProgress) -> None:
        nonlocal said_s
        if quiet or time.monotonic() < said_s:
            return
        said_s = time.monotonic() + 10.0
        say(f"{step.what}: {step.done} of {step.of}, {step.workload}")

    path = path_of(library)
    try:
        with Library.writing(path) as kept:
            done = fill(kept, workloads, wanted, effort, listener=tell)
            result = LibraryBootstrapResult(
                library=str(path),
                complete=done.complete,
                workloads=len(kept.workloads),
                rules=len(kept.rules),
                gains=len(kept.gains),
            )
    except KeyboardInterrupt:
        raise Interrupted("interrupted; all that was measured is kept: the same command goes on") from None
    if json:
        emit("library-bootstrap", result)
    else:
        people().print(
            f"{path}: {result.workloads} workloads, {result.rules} rule sets, {result.gains} gains"
            + ("" if done.complete else "; the budget is spent: the same command goes on"),
            soft_wrap=True,
            markup=False,
        )
    return decided(done.complete)
