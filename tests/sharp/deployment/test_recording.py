"""Recordings of several controllers are put together; what cannot be is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ascar.errors import MessagingError
from ascar.sharp.deployment.messages import RecordingPart
from ascar.sharp.deployment.recording import ControllerTrace, recorded_of, together


def trace(begin_s: float, end_s: float, /, **columns: Any) -> ControllerTrace:
    """Two reads, a quarter and half of the way."""
    length_s = end_s - begin_s
    rows: dict[str, Any] = {
        "seconds": (begin_s + length_s / 4, begin_s + length_s / 2),
        "operation": (0, 0),
        "thread": (1, 1),
        "file": (5, 5),
        "offset_bytes": (0, 4096),
        "size_bytes": (4096, 4096),
        "latency_s": (0.01, None),
        "begin_s": begin_s,
        "end_s": end_s,
    }
    return recorded_of([RecordingPart(controller="client1", parts=1, **(rows | columns))])


def test_what_several_did_at_one_time_is_put_together() -> None:
    found = together([trace(1000.0, 1020.0), trace(1004.0, 1024.0)])
    assert (found.begin_s, found.end_s) == (1004.0, 1020.0)
    assert found.operations.seconds.tolist() == [1005.0, 1009.0, 1010.0, 1014.0]
    assert len(set(found.operations.thread.tolist())) == 2


def test_clocks_that_are_apart_are_told_and_nobody_takes_it_for_a_pause() -> None:
    with pytest.raises(MessagingError) as raised:
        together([trace(1000.0, 1020.0), trace(4600.0, 4620.0)])
    assert raised.value.message == (
        "recordings of 2 controllers have no time in common: the last begins 3580 s after the first ends; "
        "set the clocks of their nodes"
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"seconds": (math.nan, 1.0)},
        {"seconds": (-1.0, 1.0)},
        {"latency_s": (math.inf, None)},
        {"latency_s": (-0.5, None)},
        {"end_s": 0.0},
        {"begin_s": math.nan},
        {"waiting_mean": -1.0},
        {"offset_bytes": (0, 2**63)},
        {"operation": (0, 99)},
        {"size_bytes": (4096,)},
    ],
)
def test_numbers_that_are_impossible_are_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(MessagingError, match="client1: a recording with"):
        trace(1000.0, 1020.0, **columns)
