"""`ascar explore`, and the configurations that its page saves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

from ascar.capes.session.files import users
from ascar.capes.session.folder import Folder, Running
from ascar.history import History
from ascar.messaging import MessageServer
from ascar.results.trial import Purpose
from ascar.space import preset
from ascar.study import Study
from documents import check_document
from process_state import writable_and_executable

TABLE = "fs,depth,iops\next4,1,10.5\nxfs,1,12.5\next4,2,11\nxfs,2,19\n"
STUDY = """
[study]
name = "disk"
objective = "maximize throughput_ops_per_s"
budget = "1 min"
[target]
kind = "localfs"
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(TABLE)
    return path


@contextmanager
def exploring(*arguments):
    """The command in a process of its own; gives its document."""
    command = [sys.executable, "-m", "ascar", "explore", "--json", "--port", "0", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line
            if line == "}\n":
                break
        yield process, json.loads(text)


def test_a_table_is_served_until_it_is_interrupted(table):
    with exploring("--table", table, "--objective", "iops") as (process, document):
        check_document(document)
        assert (document["rows"], document["dimensions"], document["direction"]) == (
            4,
            ["fs", "depth"],
            "max",
        )
        with urllib.request.urlopen(document["url"].replace("/?", "/api/table?"), timeout=100) as answer:
            assert answer.read(4) == b"ASCX"
        assert writable_and_executable(process.pid) == []
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (TABLE, ["--objective", "speed"], "the table has no column 'speed'; it has fs, depth, iops"),
        (TABLE, [], "--objective: name the table's column that was measured"),
        (TABLE, ["--objective", "iops", "--direction", "up"], "--direction = 'up': must be min or max"),
        (TABLE, ["--objective", "iops", "--ignore", "fs,depth"], "no parameter takes two values"),
        (
            TABLE + "xfs,3,broken\n",
            ["--objective", "iops"],
            "column 'iops': row 5 holds 'broken'; a metric must",
        ),
        ("", ["--objective", "iops"], "cannot be read: empty CSV; it must be a CSV or Parquet file"),
        ("fs,iops\n", ["--objective", "iops"], "has no rows; give one with a row for each evaluation"),
    ],
)
def test_bad_input_is_one_line(ascar, tmp_path, content, arguments, said):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    done = ascar("explore", "--table", path, "--port", 0, "--no-open", *arguments)
    assert done.status == 2
    assert said in done.error


def test_a_million_different_texts(ascar, tmp_path):
    path = tmp_path / "many.csv"
    with path.open("w") as file:
        file.write("host,fs,iops\n")
        file.writelines(f"h{row},{row % 2},{row % 100}.5\n" for row in range(1_000_000))
    done = ascar("explore", "--table", path, "--objective", "iops", "--port", 0, "--no-open")
    assert done.status == 2
    assert "column 'host': holds text of 1000000 different values, at most 200 can be shown" in done.error


def test_nothing_to_explore(ascar):
    assert "name a study, or a table" in ascar("explore").error
    assert "is not in the history" in ascar("explore", "nothing").error
    assert "applies only to a --table" in ascar("explore", "nothing", "--parameters", "a").error


def test_a_session_that_runs_is_watched(tmp_path):
    with (
        Folder(tmp_path / "watched") as folder,
        MessageServer(folder.path / "messages", users("watched", "n")),
    ):
        folder.announce(Running(os.getpid(), "watched", "study.toml", 0.0))
        with exploring("--session", folder.path) as (process, document):
            check_document(document)
            assert (document["name"], document["rows"]) == (None, 0)
            with urllib.request.urlopen(document["url"].replace("/?", "/api/events?"), timeout=100) as stream:
                while b'"session": "watched"' not in stream.readline():
                    pass
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 0
        # From another machine: by a connection file.
        viewer = folder.path / "messages" / "viewer.toml"
        with exploring("--session", "watched", "--connection", viewer) as (process, document):
            with urllib.request.urlopen(document["url"].replace("/?", "/api/events?"), timeout=100) as stream:
                while b'"session": "watched"' not in stream.readline():
                    pass
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--connection", "x.toml"), "--connection = 'x.toml': needs --session"),
        (("--session", "a", "--connection", "/nowhere/x.toml"), "/nowhere/x.toml"),
        (("--session", "/nowhere/nothing"), "session 'nothing': does not run on this machine"),
        (("--session", "no such name"), "session"),
        (
            ("--session", "a", "disk"),
            "--session = 'a': cannot be shown with studies or tables; leave them out",
        ),
        (("--session", "a", "--objective", "iops"), "leave out the options of tables"),
    ],
)
def test_no_session_to_watch(ascar, arguments, said):
    done = ascar("explore", *arguments)
    assert done.status == 2
    assert said in done.error


@pytest.fixture
def run(trial_of):
    """A finished trial of a study of this machine's file systems."""
    space = preset("storage-v5").permit_weaker([])
    with History() as history, history.begin(Study.parse(STUDY), space, {"target": "localfs"}) as begun:
        default = space.default()
        begun.finish_trial(trial_of(1, default, 10.0, purpose=Purpose.DEFAULT))
        begun.finish_trial(trial_of(2, space.nearest({**default, "fs": "xfs"}), 12.0))
    return space


def test_a_run_that_was_interrupted_can_be_explored(run):
    with exploring("disk") as (process, document):
        assert (document["rows"], document["objective"]) == (2, "trial.score")
        assert "fs" in document["dimensions"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) in (0, 130)


def test_a_saved_configuration_is_exported(run, ascar, tmp_path):
    values = dict(run.nearest({**run.default(), "fs": "xfs", "block_read_ahead_kb": 512}))
    path = tmp_path / "configuration.json"
    document = {"schema": "ascar/configuration/1", "configuration": {**values, "workload": "mailserver"}}
    path.write_text(json.dumps(document))
    done = ascar("export", "disk", "--configuration", path)
    assert done.status == 0
    assert "512" in done.out
    assert "workload: no parameters of this study; left out" in done.err
    assert "leave out either" in ascar("export", "disk", "--configuration", path, "--trial", 1).error


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not a configuration"),
        ("[1]", "is not a configuration"),
        ('{"configuration": {}}', "schema '': must be 'ascar/configuration/1'"),
        ('{"schema": "ascar/configuration/2", "configuration": {}}', "must be 'ascar/configuration/1'"),
        ('{"schema": "ascar/configuration/1", "configuration": {"fs": "vfat"}}', "'vfat' is not allowed"),
        ("x" * 1_000_001, "larger than 1000000 bytes; save one in"),
        (None, "No such file or directory; save one in"),
    ],
)
def test_a_file_that_is_no_configuration(run, ascar, tmp_path, content, said):
    path = tmp_path / "configuration.json"
    if content is not None:
        path.write_text(content)
    done = ascar("apply", "disk", "--dry-run", "--configuration", path)
    assert done.status == 2
    assert said in done.error
