"""`ascar history purge`: remove runs for good."""

from __future__ import annotations

from typing import Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import Json, Yes
from ascar.render import count

EXAMPLES = examples("ascar history purge 3 5", "ascar history purge 3 --yes")


def purge(
    runs: Annotated[
        list[int], typer.Argument(metavar="RUN...", help="The numbers of the runs; names are not accepted.")
    ],
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Remove runs with all their trials and readings, for good: all that are named, or none."""
    import sys

    from ascar.cli.output import emit, people
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.results.history import HistoryPurgeResult

    with History.existing() as history:
        if not yes:
            if json or not sys.stdin.isatty():
                raise InputError("--yes: missing; purging asks on a terminal, and needs --yes without one")
            named = ", ".join(f"{history.run(run).name} (run {run})" for run in runs)
            if not typer.confirm(f"Remove {named} for good?", err=True):
                return 0
        removed = history.purge(runs)
    if json:
        emit("history-purge", HistoryPurgeResult(runs=tuple(sorted(set(runs))), removed=removed))
    else:
        people().print(f"{count(removed, 'run')} removed")
    return 0
