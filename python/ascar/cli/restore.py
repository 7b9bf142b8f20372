"""`ascar restore`: put back what a keeper that died left behind, and what `ascar apply` put in force."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json, KeepApplied

EXAMPLES = examples(
    "ascar restore",
    "ascar restore --keep-applied      only what a crash left behind",
)


def restore(
    keep_applied: KeepApplied = False,
    json: Json = False,
) -> int:
    """Put back what was there before: what `ascar apply` put in force, and what a crash left behind.

    What waits for `ascar confirm` is put back too; with --keep-applied it stays until its time is over, and
    is listed. Works from the journal, which every change was written to before it was made. A value that
    someone else has changed since is left alone and named. Studies that are running are not touched. Exit
    status 1 if something could not be put back.
    """
    from ascar.cli.confirm import unconfirmed_lines
    from ascar.cli.output import emit, people
    from ascar.cli.progress_line import AFTER_TWO_SECONDS, progress_line
    from ascar.cli.statuses import DONE, FAILED
    from ascar.render import clock
    from ascar.results.encode import extended
    from ascar.results.machine import RestoreResult
    from ascar.systems.keeper import restore_all

    def words(left_s: float) -> str:
        return f"putting back what was there before; at most {clock(left_s)} left"

    with progress_line(words, first_s=AFTER_TWO_SECONDS, quiet=json) as listener:
        report = restore_all(everything=not keep_applied, listener=listener)
    if json:
        emit("restore", extended(RestoreResult, report))
        return FAILED if report.failed else DONE
    console = people()
    for restored in report.restored:
        console.print(f"restored: {restored}", soft_wrap=True, markup=False)
    for left in report.left_alone:
        line = f"left alone: {left.target}: is {left.found}, not {left.expected} as ascar left it"
        console.print(f"{line}: someone else changed it", soft_wrap=True, markup=False, style="yellow")
    for failed in report.failed:
        console.print(f"not restored: {failed}", soft_wrap=True, markup=False, style="red")
    for line in unconfirmed_lines(report.unconfirmed):
        console.print(line, soft_wrap=True, markup=False, style="yellow")
    if not (report.restored or report.left_alone or report.failed or report.unconfirmed):
        console.print("nothing to restore")
    return FAILED if report.failed else DONE
