"""`ascar report`: one self-contained page with the numbers and the plots."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ascar.cli.options import Json, StudyOrRun, examples

__all__ = ["EXAMPLES", "report"]

EXAMPLES = examples("ascar report mailserver --out report", "ascar report 3 --out /srv/www/run-3")


def report(
    run: StudyOrRun,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Made when missing.")],
    json: Json = False,
) -> int:
    """Write a run's report: one self-contained HTML page, and the plots as files of their own."""
    from ascar.analysis.report import write_report
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_run
    from ascar.history import History

    with History() as history:
        found = find_run(history, run)
        files = write_report(found, out)
    if json:
        emit("report", {"run_id": found.id, "directory": str(out), "files": [str(file) for file in files]})
    else:
        people().print(f"{files[0]}", soft_wrap=True)
    return 0
