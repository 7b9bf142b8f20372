"""A history of 10^4 trials is listed, and its best found, without reading them all."""

from __future__ import annotations

import time

import pytest

from ascar.history import History
from ascar.history.checksum import readings_checksum, trial_checksum
from ascar.history.codec import metric_rows, reading_rows, trial_row
from ascar.history.schema import metric, reading, trial


@pytest.fixture
def large(path, clock, study, space, configuration, make):
    """10,000 trials of 8 readings, put in as one transaction; what is timed is the reading."""
    with History(path, clock.moment()) as history:
        with history.begin(study, space, {}) as run, history._database.write() as connection:
            made = [make.complete(number, configuration, 50.0 + number % 997) for number in range(1, 10_001)]
            rows_of_trials = []
            for one in made:
                row = {"run_id": run.id, **trial_row(one, "boot-1")}
                row["checksum"] = trial_checksum(row, metric_rows(one))
                row["readings_checksum"] = readings_checksum(reading_rows(one))
                rows_of_trials.append(row)
            for table, rows in (
                (trial, rows_of_trials),
                (metric, [row for one in made for row in metric_rows(one)]),
                (reading, [row for one in made for row in reading_rows(one)]),
            ):
                connection.execute(table.insert(), [{"run_id": run.id, **row} for row in rows])
        yield history


def timed(function) -> float:
    """The best of five: the first may wait for the disk, and any for other programs."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return min(taken)


@pytest.mark.slow
def test_listing_and_best_so_far_are_fast(large, study, configuration):
    run = large.run(study.name)
    assert large.runs()[0].best_score == 50.0 + 996
    assert [step.score for step in run.best_so_far()][-1] == 50.0 + 996
    # Far less than reading every trial, whatever the pace of the machine.
    whole_s = timed(run.trials)
    assert timed(large.runs) < whole_s / 5
    assert timed(run.best_so_far) < whole_s / 5
    assert timed(lambda: run.crash_count(configuration)) < whole_s / 20
    assert timed(run.crashed) < whole_s / 20
    assert timed(run.next_number) < whole_s / 20


@pytest.mark.slow
def test_a_trial_more_takes_no_longer(large, study, configuration, make, in_memory):
    if in_memory is None:
        pytest.skip("needs room in memory: a trial waits for the disk, whose pace is not that of reading")
    with large.resume(study) as run:
        number = run.next_number()

        def write() -> None:
            run.start_trial(make.running(number, configuration))
            run.finish_trial(make.complete(number, configuration))
            with large._database.write() as connection:
                connection.execute(trial.delete().where(trial.c.number == number))

        assert timed(write) < timed(run.trials) / 5
