"""A history that can be read and not written: it is listed and shown, and a run is refused in one line."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager

import pytest

from ascar.errors import HistoryError
from ascar.history import History
from ascar.history.schema import SCHEMA_VERSION


@contextmanager
def read_only(folder):
    """As on a disk that is mounted so: root, too, cannot write."""
    if os.geteuid() == 0:
        if (
            subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False).returncode
            != 0
        ):
            pytest.skip("may not mount here")
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
            yield
        finally:
            subprocess.run(["umount", folder], check=True)
        return
    (folder / "history.sqlite").chmod(0o400)
    folder.chmod(0o500)
    try:
        yield
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("logged", [False, True])
def test_a_read_only_history_is_listed(path, clock, study, space, configuration, make, logged):
    with History(path, clock.moment()) as history, history.begin(study, space, {}) as run:
        run.finish_trial(make.complete(1, configuration))
        if logged:  # copied while it is written to: the newest is in the log alone
            copied = path.parent.parent / "copy#1 ?"
            copied.mkdir()
            for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
                (copied / name).write_bytes((path.parent / name).read_bytes())
            path = copied / path.name
    before = {file: file.read_bytes() for file in path.parent.iterdir() if file.name == path.name}
    with read_only(path.parent), History(path) as history:
        (summary,) = history.runs()
        assert [trial.number for trial in history.run(study.name).trials()] == [1]
        with pytest.raises(HistoryError, match="read-only"):
            history.purge([summary.id])
    assert before == {file: file.read_bytes() for file in before}


def test_a_read_only_history_of_an_older_version_says_what_to_do(path, clock):
    with History(path, clock.moment()) as history, history._database.write() as connection:
        connection.exec_driver_sql(f"UPDATE schema_version SET version = {SCHEMA_VERSION - 1}")
    with read_only(path.parent), pytest.raises(HistoryError, match="is read-only; copy it to where"):
        History(path)
