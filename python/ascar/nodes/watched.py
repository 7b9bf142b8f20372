"""A program on another node that ends when the connection does, and says how long it ran there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Input that ends means that nobody listens any more. The program gets a session of its own, so that all of
# it can be asked to end, and is killed five seconds later. The last line tells the clock before and after,
# in nanoseconds.
_WATCHED = """
exec 3<&0
if [ "$1" = held ]; then
    echo ascar-ready >&2
    read -r _ <&3 || exit 1
fi
shift
begun=$(date +%s%N)
setsid "$@" </dev/null 3<&- & program=$!
{
    cat >/dev/null
    kill -INT -"$program"
    sleep 5
    kill -KILL -"$program"
} <&3 3<&- >/dev/null 2>&1 & watch=$!
wait "$program"; status=$?
ended=$(date +%s%N)
kill "$watch" 2>/dev/null
echo "ascar-ran $begun $ended" >&2
exit "$status"
"""
READY = b"ascar-ready\n"
"""What a held program says on standard error: it is there, and begins with the next line of its input."""
_RAN = re.compile(r"^ascar-ran (\d+) (\d+)\n?\Z", re.MULTILINE)


def watched(argv: Sequence[str], *, held: bool = False) -> list[str]:
    """The words of a program of a node whose input is held open as long as it may run.

    Args:
        argv: the program.
        held: whether it says `READY` and waits for a line before it begins.
    """
    return ["sh", "-c", _WATCHED, "watched", "held" if held else "at-once", *argv]


def ran_s(stderr: str) -> tuple[float | None, str]:
    """The time that a watched program ran, None if it does not say, and what else it wrote."""
    found = _RAN.search(stderr)
    if found is None:
        return None, stderr
    seconds = (int(found[2]) - int(found[1])) / 1e9
    return (seconds if seconds > 0 else None), stderr[: found.start()]
