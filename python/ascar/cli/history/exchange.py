"""`ascar history export` and `import`: runs out of one history and into another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.epilog import examples
from ascar.cli.options import All, Force, Json, Out, UnitReadings
from ascar.render import count

if TYPE_CHECKING:
    from ascar.history import History

EXPORT_EXAMPLES = examples(
    "ascar history export mailserver --out mailserver.csv       the latest run as a table",
    "ascar history export 3 5 --out runs.json",
    "ascar history export --all --out everything.parquet",
)
IMPORT_EXAMPLES = examples("ascar history import runs.json")


def export(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[STUDY|RUN]...", help="The runs to export.")
    ] = None,
    out: Out = ...,  # type: ignore[assignment]
    everything: All = False,
    force: Force = False,
    readings: UnitReadings = True,
    json: Json = False,
) -> int:
    """Write runs to a file that `ascar history import` reads; as .csv or .parquet also other programs."""
    from ascar.cli.file_output import check_new
    from ascar.cli.output import emit, people, say
    from ascar.cli.studies import find_run
    from ascar.errors import InputError
    from ascar.history import History
    from ascar.results.history import HistoryExportResult

    with History.existing() as history:
        if everything == bool(runs):
            raise InputError(
                f"--all: cannot be given together with {' '.join(runs)!r}; give one of them"
                if runs
                else "no run is named; name runs, e.g. the latest of a study, or give --all"
            )
        check_new(out, force=force)
        if everything:
            ids, left_out = _readable(history)
        else:
            ids, left_out = [find_run(history, run).id for run in runs or []], {}
        history.export(ids, out, readings=readings)
    for run, why in left_out.items():
        say(f"warning: run {run} is left out: {why}")
    if json:
        emit(
            "history-export",
            HistoryExportResult(runs=tuple(ids), left_out=tuple(sorted(left_out)), file=str(out)),
        )
    else:
        people().print(f"{count(len(ids), 'run')} written to {out}", soft_wrap=True)
    return 0


def _readable(history: History) -> tuple[list[int], dict[int, str]]:
    """The runs that can be read, and why the others cannot."""
    from ascar.errors import AscarError
    from ascar.history import DamagedRun, RunKind

    ids: list[int] = []
    left_out: dict[int, str] = {}
    for summary in history.listed():
        if isinstance(summary, DamagedRun):
            left_out[summary.id] = f"damaged: {'; '.join(summary.damage)}"
            continue
        try:
            run = history.run(summary.id, None)
            _ = run.space, run.trials(readings=False), run.conclusion()
            if run.kind is RunKind.STUDY:
                _ = run.objective
        except AscarError as error:
            left_out[summary.id] = error.message
        else:
            ids.append(summary.id)
    return ids, left_out


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `ascar history export` wrote.")],
    json: Json = False,
) -> int:
    """Add the runs of a file to the history; all of them or none. They get new numbers."""
    from ascar.cli.output import emit, people
    from ascar.history import History
    from ascar.results.history import HistoryImportResult

    with History() as history:
        ids = history.import_runs(file)
    if json:
        emit("history-import", HistoryImportResult(runs=tuple(ids), file=str(file)))
    else:
        people().print(f"{count(len(ids), 'run')} added: {', '.join(map(str, ids))}", soft_wrap=True)
    return 0
