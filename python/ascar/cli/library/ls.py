"""`ascar library ls`: what a library holds."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, LibraryFile

EXAMPLES = examples("ascar library ls", "ascar library ls --json | jq '.solutions[].id'")


def ls(library: LibraryFile = None, json: Json = False) -> int:
    """List the workloads, and what was made for them with the gains there: rules and configurations."""
    from ascar.cli.library.workloads import opened
    from ascar.cli.output import emit, people
    from ascar.render import percent
    from ascar.results.library import LibraryLsResult, LibrarySolution, LibraryWorkload

    kept = opened(library)
    solutions: list[LibrarySolution] = []
    for (workload, objective), ids in kept.made_for.items():
        for key in ids:
            gain = kept.gain(key, workload, objective)
            solutions.append(
                LibrarySolution(
                    id=key,
                    kind=kept.solutions[key].kind,
                    system=kept.solutions[key].system,
                    workload=workload,
                    objective=objective,
                    gain=None if gain is None else gain.gain,
                    tried_on=sum(one == key and aim == objective for one, _, aim in kept.gains),
                )
            )
    if json:
        workloads = tuple(
            LibraryWorkload(name=one.name, source=one.source) for one in kept.workloads.values()
        )
        emit(
            "library-ls",
            LibraryLsResult(workloads=workloads, solutions=tuple(solutions), gains=len(kept.gains)),
        )
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "kind", "made for", "objective", "gain there", "tried on"):
        table.add_column(heading)
    for one in solutions:
        kind = f"{one.kind} of {one.system}" if one.system else one.kind
        table.add_row(one.id, kind, one.workload, one.objective, percent(one.gain), str(one.tried_on))
    out = people()
    out.print(table)
    without = len(kept.workloads) - len({workload for workload, _ in kept.made_for})
    out.print(
        f"{len(kept.workloads)} workloads, {without} of them without a solution of their own; "
        f"{len(kept.rules)} different rule sets, {len(kept.of_kind('configuration'))} configurations, "
        f"{len(kept.gains)} gains",
        soft_wrap=True,
        markup=False,
    )
    return 0
