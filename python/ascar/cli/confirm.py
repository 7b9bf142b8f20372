"""`ascar confirm`: keep in force what `ascar apply --confirm` has put in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import Json, StudyOrRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ascar.results.machine import PendingConfirmation

EXAMPLES = examples(
    "ascar apply mailserver --mountpoint /srv/mail --confirm '10 min'",
    "ascar confirm mailserver",
)


def unconfirmed_lines(waiting: Sequence[PendingConfirmation]) -> Iterator[str]:
    """A line for each that waits for its confirmation."""
    from ascar.render import clock, count

    for one in waiting:
        yield (
            f"{one.owner}: {count(one.changes, 'change')} in force, put back in {clock(one.left_s)} "
            "unless `ascar confirm` comes first"
        )


def confirm(run: StudyOrRun, json: Json = False) -> int:
    """Keep in force what `ascar apply --confirm` has put in force.

    From then on it stays as after `ascar apply`: settings of the kernel until `ascar restore` or a reboot,
    those of a service's files until `ascar restore`. Exit status 1 if it was put back before, because the
    time was over; 2 if nothing of this run waits.
    """
    from ascar.application import owner_of
    from ascar.cli.output import emit, people
    from ascar.cli.studies import find_run
    from ascar.history import History
    from ascar.render import count
    from ascar.results.machine import ConfirmResult
    from ascar.systems import confirmation

    with History.existing() as history:
        found = find_run(history, run)
    changes = confirmation.confirm(owner_of(found), f"run {found.id} ({found.name})")
    if json:
        emit("confirm", ConfirmResult(run_id=found.id, changes=changes))
    else:
        people().print(f"confirmed: {count(changes, 'change')}; `ascar restore` puts back what was there")
    return 0
