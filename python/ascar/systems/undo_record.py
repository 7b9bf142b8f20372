"""What undoes changes that no keeper makes: a record in the keeper's journal, and the program that reads it.

    python -m ascar.systems.KIND.restoration RECORD

`RECORD` is a kind's record as JSON. It is in the journal before anything is changed, and holds no secret.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ascar import typed
from ascar.errors import AscarError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.systems.keeper import Keeper

R = TypeVar("R")


def command_of(record: object) -> list[str]:
    """The command for the keeper's journal; the record's module is its program."""
    return [sys.executable, "-m", type(record).__module__, msgspec.json.encode(record).decode()]


def note(keeper: Keeper, record: object, previous: object | None, limit_s: float) -> None:
    """Have the keeper's journal say what undoes the next change as well as the ones before.

    Args:
        keeper: one of the user's.
        record: what undoes them all.
        previous: what undoes those before, and is not needed any more; None: there were none.
        limit_s: how long it may take.
    """
    if record == previous:
        return
    keeper.undo_command(command_of(record), limit_s)
    if previous is not None:
        keeper.undo_forget(command_of(previous))


def restore(record: str, kind: type[R], carry_out: Callable[[R], None]) -> int:
    """Carry a record out; 0 if all is as before, and else why it is not on standard error."""
    try:
        carry_out(typed.decode(record.encode(), kind))
    except (AscarError, msgspec.MsgspecError) as error:
        sys.stderr.write(" ".join(str(error).split()) + "\n")
        return 1
    return 0
