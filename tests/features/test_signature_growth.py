"""Writes at a file's end: what a trace tells of them, and what its signature does with that."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from ascar.features import Trace, TraceOperation, parse_system_calls, signature_workload
from ascar.features.gaps import positional_gaps
from ascar.features.signature_growth import at_end, growing_share

READ, WRITE, OPEN, CREATE, CLOSE = (
    *(TraceOperation.READ, TraceOperation.WRITE, TraceOperation.OPEN),
    *(TraceOperation.CREATE, TraceOperation.CLOSE),
)


def trace(rows: list[tuple[TraceOperation, int, int, int, int]]) -> Trace:
    """From operation, file, offset, size, and the file's size at the start."""
    names = ("operation", "file", "offset_bytes", "size_bytes", "start_bytes")
    columns: dict[str, Any] = dict(zip(names, zip(*rows, strict=True), strict=True))
    return Trace.of({"seconds": np.arange(len(rows)) * 1e-4, **columns})


def test_where_files_end() -> None:
    rows = [
        ((CREATE, 1, 0, 0, -1), 1),
        ((WRITE, 1, 0, 10, -1), 1),
        ((WRITE, 2, 10, 5, -1), -1),  # who knows how large it was
        ((WRITE, 1, 10, 10, -1), 1),
        ((WRITE, 1, 5, 10, -1), 0),
        ((READ, 1, 0, 20, -1), 0),
        ((WRITE, 1, 20, 1, -1), 1),
        ((WRITE, 3, 64, 8, 1000), 0),  # a log that was made to its full size before
        ((WRITE, 3, 72, 8, 1000), 0),
        ((WRITE, 4, 1000, 8, 1000), 1),
        ((WRITE, 4, 1008, 2**61, 1000), 1),
        ((WRITE, 2, 15, 5, -1), -1),
        ((CREATE, 1, 0, 0, -1), 1),
        ((WRITE, 1, 20, 1, -1), 0),
    ]
    given = trace([row for row, _ in rows])
    moves = [place for place, (row, _) in enumerate(rows) if row[0] in (READ, WRITE)]
    assert [int(at_end(given)[place]) for place in moves] == [rows[place][1] for place in moves]
    assert len(at_end(given.where(np.zeros(len(given), bool)))) == 0


def mail(start_bytes: int, offset: int) -> Trace:
    """A mail is delivered; another one is read and answered at this offset, or at its end (-1)."""
    rows: list[tuple[TraceOperation, int, int, int, int]] = []
    ends: dict[int, int] = {}
    for number in range(400):
        made, read = number % 20, 100 + number % 30
        end = ends.get(read, start_bytes)
        rows += [(CREATE, made, 0, 0, -1), (WRITE, made, 0, 4096, -1), (CLOSE, made, 0, 0, -1)]
        rows += [(OPEN, read, 0, 0, start_bytes), (READ, read, 0, end, start_bytes)]
        rows += [
            (WRITE, read, end if offset < 0 else offset, 512, start_bytes),
            (CLOSE, read, 0, 0, start_bytes),
        ]
        ends[read] = end + 512 if offset < 0 else end
    return trace(rows)


@pytest.mark.parametrize(
    ("start_bytes", "offset", "share"), [(8192, -1, 1.0), (8192, 0, 0.0), (8192, 512, 0.0)]
)
def test_the_signature_writes_at_ends_as_often(start_bytes: int, offset: int, share: float) -> None:
    given = mail(start_bytes, offset)
    gaps = positional_gaps(given.only(WRITE))
    assert growing_share(given, gaps) == pytest.approx(share)
    text = signature_workload(given)
    appends, writes = text.count("flowop appendfile"), text.count("flowop write ")
    assert writes > 0  # files just made are filled by writes
    assert appends == (writes if share else 0)


def test_a_file_that_grows_is_cut_back_within_bounds() -> None:
    text = signature_workload(mail(8192, -1), file_bytes_max=2**20)
    found = re.search(r"name=files,.*?size=(\d+),entries=(\d+)", text)
    assert found is not None
    size, entries = int(found[1]), int(found[2])
    limits = {int(found) for found in re.findall(r"flowop appendfile .*workingset=(\d+)", text)}
    assert len(limits) == 1
    limit = limits.pop()
    assert limit >= size + 512
    assert limit * entries <= 2**20


def test_files_of_a_block_trace_do_not_grow() -> None:
    rows = [(WRITE, 0, 4096 * place if place % 3 else 0, 4096, -1) for place in range(300)]
    assert "appendfile" not in signature_workload(trace(rows))


def test_sizes_are_told_by_path() -> None:
    lines = [
        f'7 {1 + place / 100:.6f} pwrite64(3</d/log>, ""..., 10, {place * 10}) = 10' for place in range(3)
    ]
    assert list(parse_system_calls(lines, None, {"/d/log": 20}).start_bytes) == [20] * 3
    assert list(parse_system_calls(lines).start_bytes) == [-1] * 3
