"""A program's output becomes readings, whatever it prints."""

from __future__ import annotations

import pytest

from ascar.program.extraction import parse_extractor
from ascar.program.harvest import DOCUMENT_BYTES_MAX, LINE_BYTES_MAX, Harvest


def harvest(time=None, **metrics):
    found = {name: parse_extractor(name, text) for name, text in metrics.items()}
    return Harvest(found, None if time is None else parse_extractor("time", time))


def test_each_matching_line_is_a_reading_at_its_arrival():
    one = harvest(ops_per_s=r"regex:ops (\d+)")
    assert one.feed(b"start\nops 10\n", 1.0)
    assert not one.feed(b"nothing\nop", 1.5)
    assert one.feed(b"s 20\n", 2.0)
    assert one.series()["ops_per_s"].seconds.tolist() == [1.0, 2.0]
    assert one.series()["ops_per_s"].values.tolist() == [10, 20]
    assert one.metrics() == {"ops_per_s": 20}


def test_a_time_column_says_when():
    one = harvest(time=r"regex:^\[ *([0-9.]+)s\]", ops_per_s=r"regex:ops (\d+)")
    one.feed(b"[ 1.5s] ops 10\n[ 3.0s] ops 20\nsummary ops 15\n", 9.0)
    assert one.series()["ops_per_s"].seconds.tolist() == [1.5, 3.0]


def test_lines_of_json_are_readings():
    one = harvest(time="json:t", ops_per_s="json:r.ops")
    one.feed(b'{"t": 1, "r": {"ops": 5}}\nnoise {\n{"t": 2, "r": {"ops": 6}}\n{"t": 3, "r": {}}\n', 9.0)
    assert one.series()["ops_per_s"].values.tolist() == [5, 6]


def test_one_document_over_many_lines_is_the_whole_run():
    one = harvest(ops_per_s="json:results[0].ops")
    one.feed(b'warming up\n{\n  "results": [\n    {"ops": 7}\n  ]\n}', 9.0)
    assert one.series() == {}
    assert one.metrics() == {"ops_per_s": 7}


def test_the_last_line_may_lack_its_newline():
    one = harvest(ops_per_s=r"regex:ops (\d+)")
    one.feed(b"ops 10\nops 11", 1.0)
    assert one.metrics() == {"ops_per_s": 11}


def test_two_readings_of_one_instant_stay_in_order():
    one = harvest(ops_per_s=r"regex:ops (\d+)")
    one.feed(b"ops 1\nops 2\nops 3\n", 1.0)
    seconds = one.series()["ops_per_s"].seconds.tolist()
    assert seconds == sorted(set(seconds))
    assert seconds[-1] == pytest.approx(1.0)


def test_bytes_that_are_no_text_are_passed_over():
    one = harvest(ops_per_s=r"regex:ops (\d+)")
    one.feed(b"\xff\xfe\x00\nops 4 \xff\n", 1.0)
    assert one.metrics() == {"ops_per_s": 4}


def test_a_line_without_end_takes_bounded_memory():
    one = harvest(ops_per_s=r"regex:ops (\d+)")
    for _ in range(40):
        one.feed(b"x" * 2**20, 1.0)
    assert len(one._rest) <= LINE_BYTES_MAX
    assert len(one._document) <= DOCUMENT_BYTES_MAX + 2**20
    one.feed(b"\nops 5\n", 2.0)
    assert one.metrics() == {"ops_per_s": 5}


def test_a_document_beyond_the_limit_is_no_document():
    one = harvest(ops_per_s="json:ops")
    one.feed(b'{\n"ops": 7, "x": "' + b"y" * (DOCUMENT_BYTES_MAX + 1) + b'"}\n', 1.0)
    assert one.metrics() == {}


def test_the_last_lines_are_kept():
    one = harvest()
    one.feed("".join(f"line {number}\n" for number in range(100)).encode(), 1.0)
    assert one.tail()[-1] == "line 99"
    assert len(one.tail()) == 20
    assert one.lines == 100


def test_a_summary_tells_of_the_whole_run_and_is_no_reading():
    one = harvest(ops_per_s="json:ops", text=r"regex:ops\D+(\d+)")
    one.feed(b'{"kind": "reading", "ops": 10}\n{"kind": "reading", "ops": 30}\n', 1.0)
    assert not one.feed(b'{"kind": "summary", "ops": 19}\n', 2.0)
    assert one.series()["ops_per_s"].values.tolist() == [10, 30]
    assert one.metrics() == {"ops_per_s": 19, "text": 30}
