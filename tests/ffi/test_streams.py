"""Streams of the C library: what they refuse, and that they do what `ascar.Stream` does."""

from __future__ import annotations

import ctypes
import random
import re
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ascar

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).resolve().parents[2]
AFTER_REPLY = 2**64 - 1
NOW_US_MAX = 2**63 - 1
RULES = """\
2,50
0,2147483647,0,2147483647,100,300,100,100,40
0,2147483647,0,2147483647,300,2147483647,80,-10,90
"""
EXTENDED = """\
2,50,slow_ack_ewma,timeout_rate,write_share
0,2147483647,0,2147483647,100,2147483647,0,2147483647,0,2147483647,0,500,100,50,40
0,2147483647,0,2147483647,100,2147483647,0,2147483647,0,2147483647,500,2147483647,80,-10,90
"""


@pytest.fixture
def stream(streams) -> Iterator[int]:
    handle = ctypes.c_void_p()
    streams.call("stream_create", handle)
    assert handle.value is not None
    yield handle.value
    assert streams.dll.ascar_stream_free(handle.value) == 0


class Held:
    """A stream of the C library with the methods of `ascar.Stream`."""

    def __init__(self, streams, handle: int) -> None:
        self._streams, self._handle = streams, handle

    def ask(self, now_us: int, count: int) -> int | None:
        at_us = ctypes.c_uint64(7)
        self._streams.call("stream_ask", self._handle, now_us, count, at_us)
        return None if at_us.value == AFTER_REPLY else at_us.value

    def sent(self, now_us: int, count: int, *, offset_bytes: int = 0, file: int = 0, writes: bool = False):
        sending, request = self._streams.new("sending"), self._streams.new("request")
        sending.offset_bytes, sending.bytes, sending.file, sending.writes = offset_bytes, count, file, writes
        self._streams.call("stream_sent", self._handle, now_us, sending, request)
        return request

    def replied(self, request, now_us: int) -> None:
        self._streams.call("stream_replied", self._handle, request, now_us)

    def timed_out(self, request, now_us: int) -> None:
        self._streams.call("stream_timed_out", self._handle, request, now_us)

    def cancelled(self, request) -> None:
        self._streams.call("stream_cancelled", self._handle, request)

    @property
    def state(self):
        state = self._streams.new("stream_state")
        self._streams.call("stream_state", self._handle, state)
        return state

    @property
    def rules(self) -> str:
        found = ctypes.c_size_t()
        self._streams.call("stream_rules", self._handle, None, 0, found)
        text = ctypes.create_string_buffer(found.value)
        self._streams.call("stream_rules", self._handle, ctypes.addressof(text), found.value, found)
        assert text.raw.endswith(b"\0")
        return text.value.decode()


def test_a_stream_limits_requests(streams, stream, failed):
    held = Held(streams, stream)
    assert (held.state.window, held.state.pace_us, held.state.rules) == (8.0, 0, 0)
    streams.call("stream_set_fixed", stream, 2.0, 100)
    assert held.ask(1000, 4096) == 1000
    first = held.sent(1000, 4096)
    assert (first.sent_us, first.bytes) == (1000, 4096)
    assert held.ask(1000, 4096) == held.ask(1050, 4096) == 1100
    with pytest.raises(failed, match=r"STATE: the request may leave at 1100 us, and now_us is 1099; wait"):
        held.sent(1099, 4096)
    held.sent(1130, 4096, writes=True)
    assert held.ask(1130, 1) is None
    assert (held.state.requests_in_flight, held.state.bytes_in_flight) == (2, 8192)
    held.replied(first, 1500)
    with pytest.raises(failed, match="STATE: the request is over, or never left"):
        held.replied(first, 1500)
    assert held.ask(1500, 512) == 1500
    streams.call("stream_give_back", stream)
    assert held.state.requests_in_flight == 1
    with pytest.raises(failed, match="STATE: the request has no place; ask first"):
        held.sent(1500, 512)


def test_what_cannot_be_is_refused_and_changes_nothing(streams, stream, failed):
    held = Held(streams, stream)
    assert held.ask(500, 10) == 500
    request = held.sent(500, 10)
    before = bytes(held.state)
    for now_us, said in [
        (499, "now_us is 499; allowed: 500 or more"),
        (NOW_US_MAX + 1, "allowed: at most 9223372036854775807"),
    ]:
        with pytest.raises(failed, match=f"ARGUMENT: .*{said}"):
            held.ask(now_us, 10)
        with pytest.raises(failed, match=f"ARGUMENT: .*{said}"):
            held.replied(request, now_us)
    other = ctypes.c_void_p()
    streams.call("stream_create", other)
    assert other.value is not None
    with pytest.raises(failed, match="STATE: the request is not this stream's"):
        Held(streams, other.value).replied(request, 600)
    streams.call("stream_free", other.value)
    for window in (0.99, 256.01, float("nan"), float("inf"), -1.0):
        with pytest.raises(failed, match=r"ARGUMENT: window is .*; allowed: 1 to 256 requests"):
            streams.call("stream_set_fixed", stream, window, 0)
    for rules, said in [
        (b"", "rules has 0 bytes; allowed: 1 to 262144 bytes of UTF-8"),
        (b"x" * 262145, "rules has 262145 bytes"),
        (b"1,2\n\xff\xfe", "rules is not UTF-8"),
        (b"1,2\n0,1,0,1,100,200,100,0,0\n", "rules: no rule holds for"),
        (b"1,2\n0,x", "rules: line 2, ack_hi: found"),
        (
            b"1,2,active_files=2\n0,2147483647,0,2147483647,100,2147483647,100,0,0\n",
            "active_files is 2; allowed: none",
        ),
    ]:
        with pytest.raises(failed, match=f"ARGUMENT: {re.escape(said)}"):
            streams.call("stream_set_rules", stream, rules, None)
    options = streams.new("rule_options")
    options.window = 0.5
    with pytest.raises(failed, match="ARGUMENT: window is 0.5"):
        streams.call("stream_set_rules", stream, RULES.encode(), options)
    for name, said in [
        (b"tahoe", 'controller is "tahoe"; allowed: fixed, aimd'),
        (b"", "name has 0 bytes"),
        (b"\xff", "UTF-8"),
    ]:
        with pytest.raises(failed, match=f"ARGUMENT: .*{said}"):
            streams.call("stream_set_rival", stream, name, 0, None)
    settings = streams.new("rival_settings")
    with pytest.raises(failed, match="ARGUMENT: latency_us_max is 0; allowed: 1 us or more"):
        streams.call("stream_set_rival", stream, b"aimd", 0, settings)
    count = ctypes.c_size_t(77)
    for name in ("stream_rule_uses", "stream_rules"):
        with pytest.raises(failed, match="STATE: no rules are in force"):
            streams.call(name, stream, None, 0, count)
        with pytest.raises(failed, match="ARGUMENT: .* is NULL"):
            streams.call(name, stream, None, 1, count)
    with pytest.raises(failed, match="ARGUMENT: stream is misaligned"):
        streams.call("stream_give_back", stream + 1)
    assert count.value == 77
    assert bytes(held.state) == before
    held.timed_out(request, 700)
    assert (held.state.requests_in_flight, held.state.timeouts) == (0, 1)


def test_the_use_of_rules_is_told_as_far_as_there_is_room(streams, stream):
    held = Held(streams, stream)
    streams.call("stream_set_rules", stream, RULES.encode(), None)
    assert (held.state.rules, held.state.window) == (2, 8.0)
    for at_us in range(1000, 51_000, 1000):
        assert (held.ask(at_us, 1) or 0) <= at_us
        held.replied(held.sent(at_us, 1), at_us + (10 if at_us % 5000 else 300))
    uses, found = (ctypes.c_uint64 * 2)(), ctypes.c_size_t()
    streams.call("stream_rule_uses", stream, ctypes.addressof(uses), 1, found)
    assert (found.value, uses[1]) == (2, 0)
    streams.call("stream_rule_uses", stream, ctypes.addressof(uses), 2, found)
    assert sum(uses) == 49
    assert min(uses) > 0
    text = held.rules
    assert [int(line.split(",")[9]) for line in text.splitlines()[1:]] == list(uses)
    short = ctypes.create_string_buffer(b"x" * 10)
    streams.call("stream_rules", stream, ctypes.addressof(short), 5, found)
    assert (short.raw[:6], found.value) == (text[:4].encode() + b"\0x", len(text) + 1)
    streams.call("stream_set_rules", stream, text.encode(), None)
    assert held.rules.count(",0,0,0,0") == 2


KINDS = ["aimd", "cubic", "bbr", "bbr3", "vegas", "gradient2", "envoy", "copa", "iopathtune", RULES, EXTENDED]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.partition("\n")[0] for kind in KINDS])
def test_python_does_what_c_does(streams, stream, kind):
    held, own = Held(streams, stream), ascar.Stream()
    if "\n" in kind:
        streams.call("stream_set_rules", stream, kind.encode(), None)
        own.set_rules(kind)
    else:
        streams.call("stream_set_rival", stream, kind.encode(), 5, None)
        own.set_rival(kind, 5)
    numbers = random.Random(kind)
    now_us, flying = 1000, []
    for _ in range(4000):
        size = numbers.choice((0, 4096, 65536))
        asked = held.ask(now_us, size)
        assert asked == own.ask(now_us, size)
        if asked is not None and asked <= now_us:
            traits = {"offset_bytes": numbers.choice((0, 4096, 8192)), "writes": numbers.random() < 0.5}
            flying.append((held.sent(now_us, size, **traits), own.sent(now_us, size, **traits)))
        elif flying:
            one, other = flying.pop(numbers.randrange(len(flying)))
            how = numbers.choices(("replied", "timed_out", "cancelled"), (30, 1, 1))[0]
            when = () if how == "cancelled" else (now_us,)
            getattr(held, how)(one, *when)
            getattr(own, how)(other, *when)
        now_us += numbers.randrange(300)
        state, told = held.state, own.state
        names = [name for name, _ in state._fields_ if name != "rules"]
        assert {name: getattr(state, name) for name in names} == {name: getattr(told, name) for name in names}
    assert held.state.replies > 300
    if "\n" in kind:
        assert held.rules == own.rules
        assert held.state.rules == 2


def test_threads_may_share_a_stream(streams, stream):
    streams.call("stream_set_fixed", stream, 4.0, 0)
    held, lock, time_us, most = Held(streams, stream), threading.Lock(), [0], [0]

    def work() -> None:
        for _ in range(500):
            request = None
            while request is None:
                with lock:
                    time_us[0] += 1
                    at_us = held.ask(time_us[0], 1)
                    if at_us is not None and at_us <= time_us[0]:
                        request = held.sent(time_us[0], 1)
                        most[0] = max(most[0], held.state.requests_in_flight)
            with lock:
                time_us[0] += 1
                held.replied(request, time_us[0])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (held.state.requests_in_flight, held.state.replies) == (0, 3000)
    assert most[0] <= 4


def test_the_cost_is_measured(prefix, compiler, tmp_path):
    compiler("cc")
    found = spec_from_file_location("stream_cost", ROOT / "benchmarks/stream_cost.py")
    assert found is not None
    assert found.loader is not None
    benchmark = module_from_spec(found)
    found.loader.exec_module(benchmark)
    assert benchmark.rule_text().startswith("29,2\n")
    costs = benchmark.measure(prefix, tmp_path, 200)
    for cost in costs.values():
        assert cost["rules"] == 29
        assert cost["rules_used"] > 4
        assert 0 < cost["p50_ns"] <= cost["p99_ns"]
