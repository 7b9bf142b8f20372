"""`ascar history check`: whether the history is as it was written."""

from __future__ import annotations

from ascar.cli.epilog import examples
from ascar.cli.options import Json

EXAMPLES = examples("ascar history check", "ascar history check --json")


def check(json: Json = False) -> int:
    """Check the file, and every run, trial and reading, against their checksums; name what is damaged.

    What is damaged is never shown as a result. Exits with 1 if anything is.
    """
    from ascar.cli.output import emit, people
    from ascar.cli.statuses import DONE, FAILED
    from ascar.history import History
    from ascar.results.history import HistoryCheckResult

    with History.existing() as history:
        damaged = history.damaged()
    if json:
        emit("history-check", HistoryCheckResult(damaged=tuple(damaged)))
    else:
        for one in damaged:
            people().print(f"damaged: {one}", markup=False, soft_wrap=True)
        if not damaged:
            people().print("nothing is damaged")
    return FAILED if damaged else DONE
