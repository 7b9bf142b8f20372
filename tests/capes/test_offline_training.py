"""Stored ticks as they come over the bus: parts are checked, and put together by tick."""

import asyncio

import msgspec
import numpy as np
import pytest

from ascar.capes.process.observer import ObservationLayout
from ascar.capes.process.tick_history import extent, part_of, past, rows_before
from ascar.errors import MessagingError


def payload(header, ticks=None, values=None):
    text = msgspec.json.encode(header)
    block = b""
    if ticks is not None:
        block = np.array(ticks, "<i8").tobytes() + np.array(values, "<f4").tobytes()
    return len(text).to_bytes(4, "little") + text + block


class Interface:
    """Answers requests from a list of replies, and notes them."""

    def __init__(self, *replies):
        self.answers, self.requests = list(replies), []

    async def replies(self, what, document, timeout_s):
        assert what == "history"
        self.requests.append(document)
        for part in self.answers.pop(0):
            yield part


def gathered(interface, first, last):
    async def gather():
        return [one async for one in past(interface, first, last)]

    return asyncio.run(gather())


NAN = float("nan")
FIRST = [
    payload({"part": 0, "last": False, "node": "n1", "names": ["x", "y"], "rows": 2}, [5, 6], [1, 2, 3, NAN]),
    payload({"part": 1, "last": False, "node": "n2", "names": ["y", "z"], "rows": 1}, [6], [9, 8]),
    payload({"part": 2, "last": False, "node": None, "names": ["m", "k"], "rows": 2}, [5, 7],
            [10, 1, NAN, 2]),
    payload({"part": 3, "last": False, "actions": [{"tick": 5}]}),
    payload({"part": 4, "last": False, "settings": [
        {"tick": 6, "setting": {"a": 2}}, {"tick": 5, "setting": {"a": 1}}]}),
    payload({"part": 5, "last": False, "workloads": [
        {"tick": 7, "name": None, "job": "1"}, {"tick": 6, "name": "web", "job": "1"}, {"tick": "x"}, 3]}),
    payload({"part": 6, "last": True, "next_tick": 8}),
]  # fmt: skip
SECOND = [payload({"part": 0, "last": True, "next_tick": None})]


def test_ranges_are_put_together_by_tick():
    interface = Interface(FIRST, SECOND)
    one, other = gathered(interface, 5, 20)
    assert [(it["from_tick"], it["to_tick"]) for it in interface.requests] == [(5, 21), (8, 21)]
    assert one.ticks.tolist() == [5, 6, 7] and other.ticks.tolist() == []
    assert one.metrics_by_tick() == {5: {"m": 10.0, "k": 1.0}, 7: {"k": 2.0}}
    assert [one.setting(tick) for tick in (4, 5, 6, 99)] == [None, {"a": 1}, {"a": 2}, {"a": 2}]
    assert [one.workload(tick) for tick in (5, 6, 7, 99)] == [None, "web", "", ""]
    assert other.workload(9) is None
    found = dict(one.matrices(ObservationLayout(("n1", "n2", "n3"), ("z", "y", "x"))))
    expected = {
        5: [[NAN, 2, 1], [NAN] * 3, [NAN] * 3],
        6: [[NAN, NAN, 3], [8, 9, NAN], [NAN] * 3],
        7: [[NAN] * 3] * 3,
    }
    assert sorted(found) == [5, 6, 7]
    for tick, matrix in found.items():
        np.testing.assert_array_equal(matrix, expected[tick])


def test_who_was_there_lately():
    interface = Interface(FIRST, SECOND)
    assert asyncio.run(rows_before(interface, 20, 16)) == {"n1": {"x", "y"}, "n2": {"y", "z"}}
    assert interface.requests[0]["from_tick"] == 5


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"\x01", b"\xff\xff\xff\x7f{}", payload([]), b"\x02\x00\x00\x00\xff{",
        payload({"error": "no such range"}),
        payload({"node": "n", "names": ["x"], "rows": 2}, [5], [1]),
        payload({"node": "n", "names": ["x"], "rows": -1}),
        payload({"node": "n", "names": "x", "rows": 1}, [5], [1]),
        payload({"node": 7, "names": ["x"], "rows": 1}, [5], [1]),
        payload({"node": "n", "names": [3], "rows": 1}, [5], [1]),
        payload({"node": "n", "names": ["x"], "rows": 1 << 62}, [5], [1]),
    ],
    ids=lambda it: repr(it)[:40],
)  # fmt: skip
def test_what_is_no_part_is_refused(bad):
    with pytest.raises(MessagingError, match="history"):
        part_of(bad)


def test_a_reply_that_goes_round_in_circles_or_never_ends_is_refused():
    for following in (5, 4, 99):
        reply = [payload({"part": 0, "last": True, "next_tick": following})]
        with pytest.raises(MessagingError, match="next_tick"):
            gathered(Interface(reply, SECOND), 5, 20)
    with pytest.raises(MessagingError, match="no end"):
        gathered(Interface(FIRST[:-1]), 5, 20)


def test_an_empty_database_has_no_extent():
    empty = payload({"last": True, "first_tick": None, "last_tick": None, "nodes": []})
    assert asyncio.run(extent(Interface([empty]))) is None
    found = asyncio.run(
        extent(Interface([payload({"last": True, "first_tick": 3, "last_tick": 9, "nodes": ["a"]})]))
    )
    assert (found.first, found.last, found.nodes) == (3, 9, ("a",))
    with pytest.raises(MessagingError, match="extent"):
        asyncio.run(
            extent(Interface([payload({"last": True, "first_tick": "3", "last_tick": 9, "nodes": []})]))
        )
