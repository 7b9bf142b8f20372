"""How the runs of a signature come to their files: no more opening and closing than in the original."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ascar.features import Trace, TraceOperation, signature_of, signature_workload
from ascar.features.signature_opening import opening_of

if TYPE_CHECKING:
    from collections.abc import Iterator

READ, WRITE = TraceOperation.READ, TraceOperation.WRITE
MAIL = (
    *(
        (TraceOperation.DELETE, 0),
        (TraceOperation.CREATE, 1),
        (WRITE, 1),
        (TraceOperation.SYNC, 1),
        (TraceOperation.CLOSE, 1),
    ),
    *((TraceOperation.OPEN, 2), (READ, 2), (WRITE, 2), (TraceOperation.SYNC, 2), (TraceOperation.CLOSE, 2)),
    *((TraceOperation.OPEN, 3), (READ, 3), (TraceOperation.CLOSE, 3)),
)
"""A mail server's loop: a mail is delivered, another read and answered, a third one read."""
PAGES = tuple(
    (operation, file) for file in (0, 1) for operation in (TraceOperation.OPEN, READ, TraceOperation.CLOSE)
)
DATABASE = ((READ, 1), (READ, 2), (WRITE, 3), (TraceOperation.SYNC, 3), (WRITE, 1), (WRITE, 2))
"""A database's loop: files that were opened long ago."""


def trace(loop: tuple[tuple[TraceOperation, int], ...], loops: int = 200) -> Trace:
    """So many times round a loop of operations on files of its own numbers."""
    rows = [(operation, file) for _ in range(loops) for operation, file in loop]
    operations, files = zip(*rows, strict=True)
    return Trace.of(
        {
            "seconds": [place * 1e-4 for place in range(len(rows))],
            "operation": operations,
            "file": files,
            "offset_bytes": [place % 7 * 8192 for place in range(len(rows))],
            "size_bytes": [4096 if operation in (READ, WRITE) else 0 for operation in operations],
            "latency_s": [1e-5] * len(rows),
        }
    )


def flowops(text: str) -> Iterator[tuple[str, int]]:
    """Each flowop of a workload file, and how often in a row it is done."""
    for line in text.splitlines():
        found = re.match(r"\s*flowop (\w+) ", line)
        if found:
            iters = re.search(r"iters=(\d+)", line)
            yield found[1], int(iters[1]) if iters else 1


@pytest.mark.parametrize("loop", [MAIL, PAGES, DATABASE], ids=["mail", "pages", "database"])
def test_a_signature_asks_for_as_much_as_its_original(loop: tuple[tuple[TraceOperation, int], ...]) -> None:
    """Otherwise it would be slower, or faster, however alike its reads and writes are."""
    counts: dict[str, int] = {}
    for kind, times in flowops(signature_workload(trace(loop))):
        if kind != "delay":
            counts[kind] = counts.get(kind, 0) + times
    scale = signature_of(trace(loop)).length / sum(
        operation not in (TraceOperation.OPEN, TraceOperation.CLOSE) for operation, _ in loop
    )
    wanted = {
        "openfile": TraceOperation.OPEN,
        "closefile": TraceOperation.CLOSE,
        "createfile": TraceOperation.CREATE,
    }
    for kind, operation in wanted.items():
        assert counts.get(kind, 0) == scale * sum(one is operation for one, _ in loop), kind
    assert sum(counts.values()) == scale * len(loop)


def test_where_runs_find_their_files() -> None:
    mail = opening_of({READ: 2, WRITE: 2}, creates=1, opens=3)
    assert (mail.created, mail.shared, mail.opened, sum(mail.held.values())) == (1, 1, 3, 0)
    database = opening_of({READ: 4, WRITE: 6}, creates=0, opens=0)
    assert (database.shared, database.opened, dict(database.held)) == (0, 0, {READ: 4, WRITE: 6})
    journal = opening_of({WRITE: 2}, creates=1, opens=1)
    assert (journal.created, journal.opened, journal.held[WRITE]) == (1, 1, 1)
    spool = opening_of({WRITE: 1}, creates=3, opens=3)
    assert (spool.created, spool.lone, spool.opened) == (1, 2, 1)


def test_a_single_run_of_a_loop_opens_its_file_or_it_would_not_be_another_one() -> None:
    assert opening_of({READ: 1}, creates=0, opens=0).opened == 1


def test_every_run_comes_to_a_file_in_one_way() -> None:
    for number in range(5**4):
        reads, writes, creates, opens = (number // 5**place % 5 for place in range(4))
        opening = opening_of({READ: reads, WRITE: writes}, creates, opens)
        held = sum(opening.held.values())
        assert min(opening.created, opening.shared, held, opening.lone, opening.opened) >= 0
        assert opening.opened + opening.shared + held == reads + writes
        assert opening.created + opening.lone == creates
        assert opening.opened >= opening.created + opening.shared
        assert opening.held[READ] + opening.shared <= reads
        assert opening.held[WRITE] + opening.shared + opening.created <= writes


def test_files_are_filled_with_what_fills_them_and_appended_what_is_appended() -> None:
    loop = (*MAIL[:5], *MAIL[5:10])
    mail = trace(loop)
    made = np.asarray([file for _ in range(200) for _, file in loop]) == 1
    is_write = mail.operation == WRITE
    sizes = np.where(is_write, np.where(made, 98_304, 512), mail.size_bytes)
    text = signature_workload(dataclasses.replace(mail, size_bytes=sizes))
    lines = [line.strip() for line in text.splitlines()]
    after_making = [lines[place + 1] for place, line in enumerate(lines) if "createfile" in line]
    others = {line for line in lines if "flowop write " in line} - set(after_making)
    assert after_making
    assert others
    # One run may stand for some of both.
    assert any("iosize=98304" in line for line in after_making)
    assert not any("iosize=512" in line for line in after_making)
    assert any("iosize=512" in line for line in others)
    assert not any("iosize=98304" in line for line in others)
