"""What undoes changes that no keeper makes: a record in the keeper's journal, and the program that reads it.

    python -m ascar.systems.KIND.restoration < RECORD

`RECORD` is a kind's record as JSON. It is in the journal before anything is changed, and holds no secret. It
is no argument of the program: Linux takes none of more than 128 KiB (execve(2)), and a Lustre client has ten
thousand settings. Journals of version 4 and older have it as the argument.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ascar import typed
from ascar.errors import AscarError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ascar.systems.keeper import Keeper

R = TypeVar("R")


def note(keeper: Keeper, record: object, previous: object | None, limit_s: float) -> None:
    """Have the keeper's journal say what undoes the next change as well as the ones before.

    Args:
        keeper: one of the user's.
        record: what undoes them all; its module is the program that reads it.
        previous: what undoes those before, and is not needed any more; None: there were none.
        limit_s: how long it may take.

    Raises:
        InputError: the record is too long for the keeper.
    """
    if record == previous:
        return
    keeper.undo_command(program_of(record), limit_s, stdin=_text(record))
    if previous is not None:
        forget(keeper, previous)


def forget(keeper: Keeper, record: object) -> None:
    """Take a noted record out of the keeper's journal: what it undoes is undone."""
    keeper.undo_forget(program_of(record), stdin=_text(record))


def program_of(record: object) -> list[str]:
    """The command that carries a record out, which is on its standard input."""
    return [sys.executable, "-m", type(record).__module__]


def restore(kind: type[R], carry_out: Callable[[R], Iterable[str]]) -> int:
    """Carry the record out that this program is given.

    Args:
        kind: the kind of the record.
        carry_out: does it; what it leaves alone is told on standard error, a line each.

    Returns:
        The exit status: 0 if all is as before; else standard error says why it is not.
    """
    given = sys.argv[1].encode() if len(sys.argv) > 1 else sys.stdin.buffer.read()
    try:
        for line in carry_out(typed.decode(given, kind)):
            sys.stderr.write(f"{line}\n")
    except (AscarError, msgspec.MsgspecError) as error:
        sys.stderr.write(" ".join(str(error).split()) + "\n")
        return 1
    return 0


def _text(record: object) -> str:
    return msgspec.json.encode(record).decode()
