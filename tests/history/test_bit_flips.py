"""A bit that flips on the disk is found: it is never read as other data."""

from __future__ import annotations

import random
import sqlite3

import pytest

from ascar.errors import AscarError
from ascar.history import History

FLIPS = 250


def everything(path):
    """All that a history says of its runs; what it lists is among it."""
    with History(path) as history:
        run = history.run(1)
        history.export([run.id], path.with_suffix(".json"))
        return run.outcome().verdict, path.with_suffix(".json").read_bytes()


@pytest.fixture
def written(path, clock, study, space, configuration, make):
    with History(path, clock.moment()) as history, history.begin(study, space, {"cpu": "x"}) as run:
        for number in range(1, 6):
            run.finish_trial(make.complete(number, configuration))
        run.finish(run.outcome())
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


def test_a_flipped_bit_is_an_error_or_changes_nothing(written, tmp_path, seed):
    before, content = everything(written), written.read_bytes()
    rng, other, found = random.Random(seed), [], 0
    for _ in range(FLIPS):
        place, bit = rng.randrange(len(content)), rng.randrange(8)
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        path = tmp_path / "flipped.sqlite"
        for stale in tmp_path.glob("flipped.sqlite*"):
            if stale.is_file():
                stale.unlink()
        path.write_bytes(changed)
        try:
            if everything(path) != before:
                other.append((place, bit))
        except AscarError:
            found += 1
    assert other == []
    assert found > 0


def test_a_check_names_the_damage_and_nothing_else(
    written,
):
    with History(written) as history:
        assert history.damaged() == []
        with history._database.write() as connection:
            connection.exec_driver_sql("UPDATE trial SET score = score + 1 WHERE number = 2")
            connection.exec_driver_sql("UPDATE reading SET values_f64 = seconds_f64 WHERE number = 3")
            connection.exec_driver_sql("UPDATE metric SET value = value + 1 WHERE number = 4")
        found = history.damaged()
    assert "run 1: trial 2" in found
    assert "run 1: trial 4" in found
    assert [one for one in found if "trial 5" in one or "trial 1" in one] == []
