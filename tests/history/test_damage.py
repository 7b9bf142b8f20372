"""Files that are damaged, foreign, unreachable or on a full disk: one clear error, and nothing lost."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from ascar.errors import HistoryError, Refused
from ascar.history import History
from ascar.results.measurement import Series
from ascar.results.trial import Purpose, Trial, TrialState

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")


def one_line(error: HistoryError) -> str:
    assert "\n" not in error.message
    return error.message


def test_a_file_that_is_no_database(path):
    path.parent.mkdir()
    path.write_bytes(random.Random(1).randbytes(8192))
    with pytest.raises(HistoryError) as refused:
        History(path)
    assert "is not a history, or is damaged" in one_line(refused.value)
    assert str(path) in refused.value.message


def test_an_empty_file_becomes_a_history(path):
    path.parent.mkdir()
    path.touch()
    with History(path) as history:
        assert history.runs() == []


def test_another_programs_database_is_left_alone(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(HistoryError) as refused:
        History(path)
    assert "another program's database (it has a table 'songs')" in one_line(refused.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_pages_overwritten_by_noise(path, clock, study, space, configuration, make):
    with History(path, clock.moment()) as history, history.begin(study, space, {}) as run:
        for number in range(1, 60):
            run.finish_trial(make.complete(number, configuration))
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)  # the header stays, and with it SQLite's belief that this is a database
        file.write(random.Random(2).randbytes(size - 4096))
    with pytest.raises(HistoryError) as refused, History(path, clock.moment()) as history:
        history.runs()
        history.run(study.name).trials()
    one_line(refused.value)
    assert str(path) in refused.value.message


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("trial", "configuration = '{'"),
        ("trial", "configuration = '[]'"),
        ("trial", "stage_s = '[1]'"),
        ("trial", 'measurement = \'{"mean":"many"}\''),
        ("trial", "state = 'asleep'"),
        ("trial", "purpose = 'fun'"),
        ("reading", "count = 3"),
        ("reading", "values_f64 = x'00'"),
    ],
)
def test_rows_that_no_version_wrote(history, study, space, configuration, make, table, change):
    with history.begin(study, space, {}) as run:
        run.finish_trial(make.complete(1, configuration))
        with history._database.write() as connection:
            connection.exec_driver_sql(f"UPDATE {table} SET {change}")
        with pytest.raises(HistoryError) as refused:
            run.trials()
    assert f"run {run.id}" in one_line(refused.value)


@pytest.mark.parametrize("column", ["outcome", "space", "versions"])
def test_a_run_that_no_version_wrote(history, study, space, column):
    with history.begin(study, space, {}) as run:
        run.finish(run.outcome())
    with history._database.write() as connection:
        connection.exec_driver_sql(f"UPDATE run SET {column} = '[1]'")
    with pytest.raises(HistoryError) as refused:
        found = history.run(run.id)
        _ = found.space, found.outcome()
    one_line(refused.value)


def test_a_directory_is_no_history(tmp_path):
    with pytest.raises(HistoryError, match="cannot be opened"):
        History(tmp_path)


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(HistoryError) as refused:
        History(tmp_path / "file" / "history.sqlite")
    assert "file" in one_line(refused.value)


@pytest.mark.parametrize("url", ["nosuch://x/y", "postgresql+nosuch://x/y", "sqlite+://", "://"])
def test_urls_that_mean_nothing(url):
    with pytest.raises(HistoryError):
        History(url)


def test_a_password_is_not_shown():
    with pytest.raises(HistoryError) as refused:
        History("postgresql+nosuch://user:secret@host/name")
    assert "secret" not in refused.value.message


def test_a_lock_that_cannot_be_made(history, study, space, path):
    Path(f"{path}.locks").write_text("in the way")
    with pytest.raises(HistoryError, match="lock"):
        history.begin(study, space, {})


def test_a_lock_file_with_nonsense_still_locks(history, study, space, path):
    with history.begin(study, space, {}):
        lock = Path(f"{path}.locks") / f"{study.name}.lock"
        lock.write_bytes(b"\xff{{{")
        with pytest.raises(Refused, match="process unknown"):
            history.begin(study, space, {})


@pytest.fixture
def small_disk(tmp_path):
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "ascar-test", directory], check=True)
    yield directory
    subprocess.run(["umount", directory], check=True)


@ROOT
@pytest.mark.root
def test_a_full_disk_loses_nothing_and_is_got_over(small_disk, clock, study, space, configuration, same):
    def trial(number: int) -> Trial:
        values = np.random.default_rng(number).normal(size=4000)
        series = {"x": Series(np.arange(4000.0), values)}
        return Trial(
            number, configuration, Purpose.SEARCH, TrialState.COMPLETE, score=float(number), series=series
        )

    written: list[Trial] = []
    with History(small_disk / "h.sqlite", clock.moment()) as history:
        run = history.begin(study, space, {})
        with pytest.raises(HistoryError) as full:
            for number in range(1, 1000):
                run.finish_trial(trial(number))
                written.append(trial(number))
        assert "the disk is full" in one_line(full.value)
        assert "--resume" in full.value.message
        assert 5 < len(written) < 200
        assert same(tuple(run.trials()), tuple(written))
        subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
        run.finish_trial(trial(len(written) + 1))  # the very trial that did not fit
        assert len(run.trials()) == len(written) + 1
        run.close()
    with History(small_disk / "h.sqlite", clock.moment()) as history:
        assert same(tuple(history.run(study.name).trials()[:-1]), tuple(written))


@ROOT
@pytest.mark.root
def test_a_full_disk_does_not_hide_the_error_under_way(small_disk, clock, study, space, configuration, make):
    with History(small_disk / "h.sqlite", clock.moment()) as history:
        with pytest.raises(ZeroDivisionError), history.begin(study, space, {}) as run:
            run.start_trial(make.running(1, configuration))
            with (small_disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
                while ballast.write(bytes(4096)) == 4096:
                    pass
            raise ZeroDivisionError
        assert run.trials() == []  # nothing could be written any more: the trial still says running
        (small_disk / "ballast").unlink()
        with history.resume(study) as again:
            assert [trial.state for trial in again.trials()] == [TrialState.INTERRUPTED]
