from __future__ import annotations

import io
from pathlib import Path

import pytest

from ascar.errors import InputError
from ascar.pilot.sources.stream import Stream, StreamColumns


def stream(text, value="v", time="t", name="run.csv"):
    data = text if isinstance(text, bytes) else text.encode()
    return Stream(Path(name), io.BytesIO(data), StreamColumns(value, time), value)


def test_rows_and_objects_are_readings():
    assert list(stream("t,v\n0,1\n1,2.5\n\n2,3").readings()) == [(0, 1), (1, 2.5), (2, 3)]
    lines = '{"t": 0, "v": 1}\n{"event": "start"}\n{"t": 1, "v": 2}\n'
    assert list(stream(lines).readings()) == [(0, 1), (1, 2)]
    assert list(stream("t\tv\n0\t1\n", name="run.tsv").readings()) == [(0, 1)]
    assert list(stream("\ufefft,v\n0,1\n").readings()) == [(0, 1)]


def test_times_may_be_dates():
    text = '{"t": "2030-01-01T00:00:00Z", "v": 1}\n{"t": "2030-01-01T01:00:10+01:00", "v": 1}\n'
    (first, _), (second, _) = stream(text).readings()
    assert second - first == 10
    assert next(stream("t,v\n2030-01-01 00:00,1\n").readings())[0] == first


def test_the_only_column_of_numbers_need_not_be_named():
    found = stream("t,host,v\n0,a,1\n", value=None)
    assert list(found.readings()) == [(0, 1)]
    assert found.name == "v"
    told = stream('{"event": "start"}\n{"t": 0, "v": 1}\n', value=None)
    assert (list(told.readings()), told.name) == ([(0, 1)], "v")
    every = Stream(Path("run.csv"), io.BytesIO(b"v\n4\n5\n"), StreamColumns(None, None, 10.0))
    assert list(every.readings()) == [(0, 4), (10, 5)]


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("t,v\n0,1\n1,")
    found = Stream.open(path, StreamColumns("v", "t"))
    assert list(found.readings(last=False)) == [(0, 1)]
    with path.open("a") as file:
        file.write("25\n2,3\n")
    assert list(found.readings(last=False)) == [(1, 25), (2, 3)]
    found.close()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("t,v\n0,x\n", "line 2: 'v' = 'x'"),
        ("t,v\nsoon,1\n", "line 2: 't' = 'soon'"),
        ("t,v\n0,1,2\n", "line 2: has 3 cells"),
        ("t,w\n0,1\n", "has no column 'v'"),
        ("s,v\n0,1\n", "has no column 't'"),
        ('{"t": 0, "v": "1e999"}\n', "line 1: 'v'"),
        ('{"t": 0, "v": true}\n', "line 1: 'v'"),
        ('{"t": 0, "v": 1}\n[1]\n', "line 2: must be a JSON object"),
        ('{"t": 0, "v": 1}\n{"t"\n', "line 2: is not JSON"),
        (b"t,v\n\xff,1\n", "line 2: is not UTF-8"),
        ('t,v\n"0,1\n', "line 2: is not a row"),
        (b"t,v\n" + b"1" * 2_000_000, "line 2: is longer"),
        (",".join("v" * 20_000) + "\n", "columns: at most"),
        ('{"v":' * 100_000 + "\n", "line 1: is not JSON"),
    ],
)
def test_what_is_no_reading_is_refused_by_line(text, named):
    with pytest.raises(InputError, match=named):
        list(stream(text).readings())


def test_times_must_come_from_somewhere():
    with pytest.raises(InputError, match="--every"):
        StreamColumns("v")
    with pytest.raises(InputError, match="--every"):
        StreamColumns("v", "t", 1.0)


def test_files_that_cannot_be_opened_are_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        Stream.open(tmp_path / "none.csv", StreamColumns("v", "t"))
    with pytest.raises(InputError, match="directory"):
        Stream.open(tmp_path, StreamColumns("v", "t"))
