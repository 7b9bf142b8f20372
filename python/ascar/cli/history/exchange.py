"""`ascar history export` and `import`: runs out of one history and into another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascar.cli.options import Json, examples

__all__ = ["EXPORT_EXAMPLES", "IMPORT_EXAMPLES", "export", "import_"]

EXPORT_EXAMPLES = examples(
    "ascar history export mailserver --out mailserver.csv       the latest run as a table",
    "ascar history export 3 5 --out runs.json",
    "ascar history export --all --out everything.parquet",
)
IMPORT_EXAMPLES = examples("ascar history import runs.json")


def export(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[STUDY|RUN]...", help="Which runs.")] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="The name says the form: .json, .parquet or .csv."),
    ] = ...,  # type: ignore[assignment]
    everything: Annotated[bool, typer.Option("--all", help="Every run there is.")] = False,
    readings: Annotated[bool, typer.Option(help="With unit readings, which are most of the size.")] = True,
    json: Json = False,
) -> int:
    """Write runs to a file that `ascar history import` reads; as .csv or .parquet also other programs."""
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_run
    from ascar.errors import InputError
    from ascar.history import History

    with History() as history:
        if everything == bool(runs):
            raise InputError(
                f"runs = {' '.join(runs or [])!r}, --all = {everything}: name runs, or give --all"
            )
        ids = (
            [run.id for run in history.runs()]
            if everything
            else [find_run(history, run).id for run in runs or []]
        )
        history.export(ids, out, readings=readings)
    if json:
        emit("history-export", {"runs": ids, "file": str(out)})
    else:
        people().print(f"{len(ids)} runs written to {out}", soft_wrap=True)
    return 0


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `ascar history export` wrote.")],
    json: Json = False,
) -> int:
    """Add the runs of a file to the history; all of them or none. They get new numbers."""
    from ascar.cli.output import emit, people
    from ascar.history import History

    with History() as history:
        ids = history.import_runs(file)
    if json:
        emit("history-import", {"runs": ids, "file": str(file)})
    else:
        people().print(f"{len(ids)} runs added: {', '.join(map(str, ids))}", soft_wrap=True)
    return 0
