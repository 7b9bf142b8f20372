"""`ascar library find`: rules for a workload."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Caution, Force, Json, LibraryFile, LibraryWorkload, ObjectiveText, OutOrNone

EXAMPLES = examples(
    "ascar library find scenario.toml --out rules.txt",
    "ascar library find trace.csv --caution 1",
)


def find(
    workload: LibraryWorkload,
    out: OutOrNone = None,
    force: Force = False,
    objective: ObjectiveText = "throughput",
    caution: Caution = 0.0,
    library: LibraryFile = None,
    json: Json = False,
) -> int:
    """Find the rules of which the most gain is to be expected, or none where no gain is.

    "None" is a result, too: then nothing is written, and the exit status is 0.
    """
    from ascar.cli.file_output import check_new, write_new
    from ascar.cli.library.workloads import objective_named, opened, seen
    from ascar.cli.output import emit, people
    from ascar.render import percent
    from ascar.results.library import LibraryFindResult, NearWorkload
    from ascar.sharp.matching import Chooser
    from ascar.sharp.matching.results import choice_result

    if out is not None:
        check_new(out, force=force)
    wanted = objective_named(objective)
    kept = opened(library)
    named = seen(workload, kept)
    chooser = Chooser(kept, wanted.text, caution)
    choice = chooser.choose(named.features)
    nearest = chooser.nearest(named.features, 5)
    if choice is not None and out is not None:
        write_new(out, choice.rule_set.bare().text(), force=True)
    if json:
        result = LibraryFindResult(
            workload=named.name,
            objective=wanted.text,
            choice=None if choice is None else choice_result(choice),
            nearest=tuple(NearWorkload(workload=name, distance=distance) for name, distance in nearest),
            out=None if out is None or choice is None else str(out),
        )
        emit("library-find", result)
        return 0
    console = people()
    if choice is None:
        console.print("no rules: of none is a gain to be expected", markup=False)
    else:
        least = f", at least {percent(choice.low)} at a caution of {caution:g}" if caution else ""
        console.print(
            f"rules {choice.rules}, made for {choice.made_for}: {percent(choice.gain)} expected{least}",
            soft_wrap=True,
            markup=False,
        )
    alike = ", ".join(f"{name} ({distance:.2f})" for name, distance in nearest)
    console.print(f"most alike: {alike}", soft_wrap=True, markup=False)
    if choice is not None and out is not None:
        console.print(f"rules: {out}", soft_wrap=True, markup=False)
    return 0
