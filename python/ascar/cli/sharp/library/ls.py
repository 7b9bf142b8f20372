"""`ascar sharp library ls`: what a library holds."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, LibraryFile

EXAMPLES = examples("ascar sharp library ls", "ascar sharp library ls --json | jq '.rules[].id'")


def ls(library: LibraryFile = None, json: Json = False) -> int:
    """List the workloads, and the rule sets made for them with their gains there."""
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.library.workloads import opened
    from ascar.render import percent
    from ascar.results.sharp import LibraryRule, LibraryWorkload, SharpLibraryLsResult

    kept = opened(library)
    made: dict[str, list[str]] = {}
    for (workload, _), ids in kept.made_for.items():
        made.setdefault(workload, []).extend(ids)
    rules: list[LibraryRule] = []
    for (workload, objective), ids in kept.made_for.items():
        for key in ids:
            gain = kept.gain(key, workload, objective)
            tried = sum(one == key and aim == objective for one, _, aim in kept.gains)
            rules.append(
                LibraryRule(
                    id=key,
                    workload=workload,
                    objective=objective,
                    gain=None if gain is None else gain.gain,
                    tried_on=tried,
                )
            )
    if json:
        workloads = tuple(
            LibraryWorkload(name=one.name, source=one.source) for one in kept.workloads.values()
        )
        result = SharpLibraryLsResult(workloads=workloads, rules=tuple(rules), gains=len(kept.gains))
        emit("sharp-library-ls", result)
        return 0
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("rules", "made for", "objective", "gain there", "tried on"):
        table.add_column(heading)
    for one in rules:
        row = (one.id, one.workload, one.objective, percent(one.gain), str(one.tried_on))
        table.add_row(*row)
    out = people()
    out.print(table)
    without = [name for name in kept.workloads if name not in made]
    out.print(
        f"{len(kept.workloads)} workloads, {len(without)} of them without rules of their own; "
        f"{len(kept.rules)} different rule sets, {len(kept.gains)} gains",
        soft_wrap=True,
        markup=False,
    )
    return 0
