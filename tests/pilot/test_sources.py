"""Readings from files: real ones of fio's and hyperfine's form, and hostile ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import numpy as np
import pytest

from ascar.errors import InputError
from ascar.pilot.sources import FILE_BYTES_MAX, read_all, read_column


def _file(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def test_a_name_with_brackets_is_no_pattern(tmp_path):
    path = tmp_path / "[ab]*?.csv"
    path.write_text("v\n1\n2\n")
    assert read_column(path).values.tolist() == [1.0, 2.0]


def test_csv_gives_the_named_column_in_order_with_its_times(tmp_path):
    path = _file(tmp_path, "run.csv", "t,mb_per_s,note\n0.5, 10 ,a\n1.0,12.5,b\n1.5,1e1,c\n")
    found = read_column(path, "mb_per_s", "t")
    assert found.name == "mb_per_s"
    assert found.values.tolist() == [10.0, 12.5, 10.0]
    assert found.seconds is not None
    assert found.seconds.tolist() == [0.5, 1.0, 1.5]


def test_csv_with_one_column_of_numbers_needs_no_name(tmp_path):
    path = _file(tmp_path, "run.csv", '\ufeffcommand,seconds\n"a,b",1.5\n"c\nd",2.5\n')
    found = read_column(path)
    assert (found.name, found.values.tolist()) == ("seconds", [1.5, 2.5])


def test_tsv_is_separated_by_tabs(tmp_path):
    path = _file(tmp_path, "run.tsv", "a\tb\n1\t2\n3\t4\n")
    assert read_column(path, "b").values.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("text", "column", "told"),
    [
        ("", None, "empty"),
        ("a,b\n1,2\n", None, "name one with --column: 'a', 'b'"),
        ("a,b\n1,2\n", "c", "no column 'c'; it has 'a', 'b'"),
        ("a\n1\nx\n", "a", "line 3: 'a' = 'x'"),
        ("a\n1\n\n3\n", "a", "finite number"),
        ("a\n1\ninf\n", "a", "line 3: 'a' = 'inf'"),
        ("a\n1\nnan\n", "a", "line 3: 'a' = 'nan'"),
        ("a\n", "a", "no readings of 'a'"),
        ("a\n", None, "no column begins with a number; it has 'a'"),
        ("a,b\nx,y\n", None, "no column begins with a number; it has 'a', 'b'"),
        ("a\n1,2\n", "a", "separated values"),
    ],
)
def test_a_wrong_csv_is_refused_with_the_place(tmp_path, text, column, told):
    with pytest.raises(InputError) as caught:
        read_column(_file(tmp_path, "run.csv", text), column)
    assert told in str(caught.value)


def test_time_that_runs_backwards_is_refused(tmp_path):
    with pytest.raises(InputError, match="time runs backwards at reading 2: 1 after 2"):
        read_column(_file(tmp_path, "run.csv", "t,a\n1,1\n2,1\n1,1\n"), "a", "t")


def test_json_lines_leave_out_lines_without_the_key(tmp_path):
    path = _file(tmp_path, "run.jsonl", '{"event":"start"}\n\n{"ops": 5, "t": 1}\n{"ops": 7, "t": 2}\n')
    found = read_column(path, "ops", "t")
    assert found.values.tolist() == [5.0, 7.0]
    assert found.seconds is not None
    assert found.seconds.tolist() == [1.0, 2.0]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    for name, text in (("run.jsonl", '{"a": 1}\n'), ("run.csv", "a\n1\n")):
        assert read_column(_file(tmp_path, name, "\ufeff" + text), "a").values.tolist() == [1.0]


def test_json_lines_with_one_number_need_no_name_whatever_came_before(tmp_path):
    path = _file(tmp_path, "run.jsonl", '{"event":"start"}\n{"ops": 5}\n{"event":"end"}\n')
    assert read_column(path).values.tolist() == [5.0]
    with pytest.raises(InputError, match="no column begins with a number; it has 'event'"):
        read_column(_file(tmp_path, "none.jsonl", '{"event":"start"}\n'))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"ops": 1}\n{"ops": "x"}\n', "line 2: 'ops' = 'x'"),
        ('{"ops": true}\n', "line 1: 'ops' = True"),
        ('{"ops": 1e400}\n', "line 1"),
        ('{"ops": 1}\n[1]\n', "line 2: must be a JSON object"),
        ('{"ops": 1\n', "line 1: is not JSON"),
        ('{"iops": 1}\n', "no column 'ops'; it has 'iops'"),
        ("[" * 100_000 + "\n", "line 1"),
    ],
)
def test_wrong_json_lines_are_refused_with_the_line(tmp_path, text, told):
    with pytest.raises(InputError) as caught:
        read_column(_file(tmp_path, "run.jsonl", text), "ops")
    assert told in str(caught.value)


def test_a_list_of_numbers_is_a_series(tmp_path):
    assert read_column(_file(tmp_path, "run.json", "[1, 2.5, 3]")).values.tolist() == [1.0, 2.5, 3.0]


HYPERFINE = {
    "results": [
        {"command": "gzip a", "mean": 1.1, "times": [1.0, 1.2], "exit_codes": [0, 0]},
        {"command": "xz a", "mean": 3.0, "times": [3.0, 3.1, 2.9], "exit_codes": [0, 0, 0]},
    ]
}


def test_hyperfine_gives_one_series_a_command(tmp_path):
    path = _file(tmp_path, "hyperfine.json", json.dumps(HYPERFINE))
    assert read_column(path, "xz a").values.tolist() == [3.0, 3.1, 2.9]
    assert [one.name for one in read_all(path)] == ["gzip a", "xz a"]
    with pytest.raises(InputError, match="name one with --column: 'gzip a', 'xz a'"):
        read_column(path)


def test_messages_before_a_document_may_hold_brackets(tmp_path):
    path = _file(tmp_path, "run.json", "fio: option {direct} [0] ignored\n  [1, 2]\n")
    assert read_column(path).values.tolist() == [1.0, 2.0]
    assert read_column(_file(tmp_path, "run.json", "\ufeff[3, 4]")).values.tolist() == [3.0, 4.0]


def test_what_is_no_number_in_a_document_is_named_by_its_place(tmp_path):
    with pytest.raises(InputError, match=r"list: \[2\] = 'x'"):
        read_column(_file(tmp_path, "run.json", '[1, 2, "x"]'))
    wrong = {"results": [{"command": "gzip a", "times": [1.0, float("nan")]}]}
    with pytest.raises(InputError, match=r"'gzip a': times\[1\] = nan"):
        read_column(_file(tmp_path, "run.json", json.dumps(wrong)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "{}",
        '{"results": []}',
        '{"results": [{"command": "a"}]}',
        '{"results": 5}',
        '"a"',
        "[1",
        "{" * 9999,
    ],
)
def test_other_json_is_refused(tmp_path, text):
    with pytest.raises(InputError):
        read_column(_file(tmp_path, "run.json", text))


def _job(**directions):
    empty = {"total_ios": 0, "io_bytes": 0, "runtime": 0, "lat_ns": {"mean": 0.0}}
    return {"jobname": "a"} | {name: directions.get(name, empty) for name in ("read", "write", "trim")}


def _document(at_ms, requests, runtime_ms, latency_ns=100.0):
    one = {
        "total_ios": requests,
        "io_bytes": requests * 4096,
        "runtime": runtime_ms,
        "lat_ns": {"mean": latency_ns},
    }
    return {"fio version": "fio-3.33", "timestamp_ms": at_ms, "jobs": [_job(read=one), _job(read=one)]}


def test_fio_documents_differ_by_what_happened_between_them(tmp_path):
    documents = [
        _document(11_000, 100, 1000),
        _document(12_000, 300, 2000, 200.0),
        _document(12_100, 320, 2100),
    ]
    path = _file(tmp_path, "fio.json", "fio: a warning\n" + "\n".join(map(json.dumps, documents)))
    found = read_column(path, "read.iops")
    assert found.values.tolist() == [200.0, 400.0]  # two jobs; the short rest at the end is left out
    assert found.seconds is not None
    assert found.seconds.tolist() == [1.0, 2.0]
    # 300 requests of 200 ns, less the first 100 of 100 ns: 200 requests took 50,000 ns.
    assert read_column(path, "read.lat_ns").values.tolist() == [100.0, 250.0]
    assert read_column(path).name == "read.iops"


def test_one_fio_document_is_one_reading_and_says_what_would_give_more(tmp_path):
    found = read_column(_file(tmp_path, "fio.json", json.dumps(_document(11_000, 100, 1000))), "read.iops")
    assert found.values.tolist() == [200.0]
    assert "--status-interval" in found.note


@pytest.mark.parametrize(
    "document",
    [
        {"jobs": []},
        {"jobs": 5, "timestamp_ms": 1},
        {"jobs": [{}], "timestamp_ms": 1},
        {"jobs": [None], "timestamp": "x"},
        _document(0, float("inf"), 1),
    ],
)
def test_what_only_looks_like_fio_is_refused(tmp_path, document):
    with pytest.raises(InputError):
        read_column(_file(tmp_path, "fio.json", json.dumps(document)), "read.iops")


def test_an_averaged_fio_log_adds_up_directions_and_jobs(tmp_path):
    one_job = (
        "250, 10, 0, 0, 0\n251, 1, 1, 0, 0\n500, 20, 0, 0, 0\n502, 2, 1, 0, 0\n750, 30, 0, 0\n751, 3, 1, 0\n"
    )
    path = _file(tmp_path, "a_bw.log", one_job * 2)
    assert read_column(path).values.tolist() == [22.0, 44.0, 66.0]
    assert read_column(path, "write").values.tolist() == [2.0, 4.0, 6.0]
    assert read_column(path, "write").name == "write.bw_kib_per_s"


def test_latencies_are_not_added_up(tmp_path):
    path = _file(tmp_path, "a_lat.1.log", "3, 500, 0, 4096, 0\n3, 700, 0, 4096, 0\n9, 600, 0, 4096, 0\n")
    found = read_column(path)
    assert (found.name, found.values.tolist()) == ("lat_ns", [500.0, 700.0, 600.0])
    mixed = _file(tmp_path, "b_lat.1.log", "3, 500, 0, 4096\n3, 700, 1, 4096\n")
    with pytest.raises(InputError, match="--column: read, write"):
        read_column(mixed)
    with pytest.raises(InputError, match="must be one of read, write"):
        read_column(mixed, "trim")


@pytest.mark.parametrize("text", ["", "hello\n", "1,2\n", "1, x, 0, 0\n", "1, 2, 0, nan\n"])
def test_what_is_no_fio_log_is_refused(tmp_path, text):
    with pytest.raises(InputError):
        read_column(_file(tmp_path, "a_bw.log", text))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1e300, 5, 0, 0\n", "line 2: time_ms = 1e\\+300"),
        ("-1, 5, 0, 0\n", "line 2: time_ms = -1"),
        ("2, -5, 0, 0\n", "line 2: value = -5"),
        ("2, 5, 9, 0\n", "line 2: direction = 9"),
    ],
)
def test_a_line_that_fio_cannot_have_written_is_refused(tmp_path, line, told):
    with pytest.raises(InputError, match=told):
        read_column(_file(tmp_path, "a_bw.log", "1, 5, 0, 0\n" + line))


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_what_fio_writes_here_can_be_read(tmp_path):
    log = tmp_path / "run"
    arguments = f"""
        --name=a --filename={tmp_path / "data"} --size=8m --rw=randrw --bs=4k --ioengine=psync --time_based
        --numjobs=2 --log_avg_msec=100 --write_bw_log={log} --write_lat_log={log} --per_job_logs=0
        --output-format=json --status-interval=1 --output={tmp_path / "fio.json"}
    """.split()
    for runtime_s in (2, 8, 32):  # a machine that stops it for a while makes it write fewer lines
        command = ["fio", *arguments, f"--runtime={runtime_s}"]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
        total = read_column(tmp_path / "run_bw.log")
        if len(total.values) >= 15:
            break
    read, write = (read_column(tmp_path / "run_bw.log", name) for name in ("read", "write"))
    assert 15 <= len(total.values) <= 10 * runtime_s + 1
    assert total.values.sum() == pytest.approx(read.values.sum() + write.values.sum(), rel=1e-6)
    assert (read_column(tmp_path / "run_lat.log", "read").values > 0).all()
    rate = read_column(tmp_path / "fio.json", "read.bw_bytes_per_s")
    assert rate.values.mean() / 1024 == pytest.approx(read.values.mean(), rel=0.5)


def test_files_that_are_none_or_too_many_are_refused(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    for path, told in [
        (tmp_path / "none.csv", "No such file"),
        (tmp_path, "not a regular file"),
        (pipe, "not a regular file"),
        (large, "split it"),
        (_file(tmp_path, "run.xls", "a"), "end in .csv"),
    ]:
        with pytest.raises(InputError, match=told):
            read_column(path)
    with pytest.raises(InputError, match="--time"):
        read_column(_file(tmp_path, "x.json", "[1]"), None, "t")


def test_bytes_that_are_no_text_are_refused(tmp_path):
    for name in ("a.csv", "a.jsonl", "a.json", "a_bw.log"):
        path = tmp_path / name
        path.write_bytes(np.random.default_rng(1).bytes(4096))
        with pytest.raises(InputError):
            read_column(path)
