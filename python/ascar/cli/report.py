"""`ascar report`: one self-contained page with the numbers and the plots."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, Out, StudyOrRun

EXAMPLES = examples("ascar report mailserver --out report", "ascar report 3 --out /srv/www/run-3")


def report(
    run: StudyOrRun,
    out: Out,
    json: Json = False,
) -> int:
    """Write a run's report: one self-contained HTML page with the numbers and the plots."""
    from ascar.analysis import write_report
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_run
    from ascar.history import History
    from ascar.results.tuning import ReportResult

    with History.existing() as history:
        found = find_run(history, run)
        page = write_report(found, found.outcome(), out)
    if json:
        emit("report", ReportResult(run_id=found.id, page=str(page)))
    else:
        people().out(page)
    return 0
