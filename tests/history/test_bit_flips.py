"""A bit that flips on the disk is found: it is never read as other data."""

from __future__ import annotations

import json
import random
import sqlite3

import pytest

from ascar.cli.main import main
from ascar.errors import AscarError, HistoryError
from ascar.history import DamagedRun, History
from ascar.results.trial import Origin, Purpose, TrialState

FLIPS = 150
COMMAND_FLIPS = 30
COMMANDS = {
    "ls": ("history", "ls", "--json"),
    "show": ("history", "show", "1", "--json"),
    "trial": ("history", "show", "1", "--trial", "3", "--json"),
    "check": ("history", "check", "--json"),
}


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


@pytest.mark.slow
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


@pytest.fixture
def said(monkeypatch, capfd):
    """The exit status of a command on a history, what it prints, and its error."""

    def run(path, command):
        monkeypatch.setenv("ASCAR_HISTORY", str(path))
        capfd.readouterr()
        status = main(list(COMMANDS[command]))
        printed = capfd.readouterr()
        return status, json.loads(printed.out) if printed.out else None, printed.err

    return run


def flipped(content, rng, folder):
    """A copy of a history's file with one bit flipped."""
    for stale in folder.glob("flipped.sqlite*"):
        if stale.is_file():
            stale.unlink()
    changed = bytearray(content)
    changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path = folder / "flipped.sqlite"
    path.write_bytes(changed)
    return path


@pytest.mark.slow
def test_commands_show_the_same_or_say_what_is_damaged_in_one_line(written, tmp_path, seed, said):
    whole = {command: said(written, command) for command in COMMANDS}
    assert {status for status, *_ in whole.values()} == {0}
    content, rng, damaged = written.read_bytes(), random.Random(seed), 0
    for _ in range(COMMAND_FLIPS):
        path = flipped(content, rng, tmp_path)
        for command, (_, shown, _) in whole.items():
            status, now, error = said(path, command)
            if now is None or now["schema"] == "ascar/error/1":
                assert status == 1 and error.count("\n") == 1, (command, error)
                assert error.startswith("error: history"), error
            elif command == "ls" and now["runs"] and now["runs"][0]["state"] == "damaged":
                assert "run 1" in now["runs"][0]["damage"][0]
            elif command == "check":
                assert status == (1 if now["damaged"] else 0)
            else:
                assert now == shown, command
                continue
            damaged += 1
    assert damaged > 0


WORDS = [
    *(("trial", column, "trial 2") for column in ("state", "purpose", "origin")),
    *(("run", column, "run 1") for column in ("kind", "state")),
]


@pytest.mark.parametrize("value", ["'asleep'", "''", "x'ff00'", "7", "'COMPLETE'"])
@pytest.mark.parametrize(("table", "column", "what"), WORDS)
def test_a_word_that_is_none_is_named_with_run_trial_and_column(written, table, column, what, value):
    only = "number = 2" if table == "trial" else "id = 1"
    with History(written) as history:
        with history._database.write() as connection:
            connection.exec_driver_sql(f"UPDATE {table} SET {column} = {value} WHERE {only}")
        named = history.damaged()
        (listed,) = history.listed()
        assert isinstance(listed, DamagedRun)
        assert history.runs() == []
        with pytest.raises(HistoryError) as refused:
            run = history.run(1, None)
            _ = run.state, run.trials(readings=False), run.trial(2)
    for line in (named[0], listed.damage[0], refused.value.message):
        assert "\n" not in line
        assert "run 1" in line and what in line and f"{column} = " in line and "must be" in line, line


@pytest.mark.parametrize(
    "column", ["configuration", "measurement", "change", "stage_s", "unmet", "failure", "abandonment"]
)
def test_a_structure_that_is_none_is_named_with_its_column(written, column):
    from ascar.history.seal import checksums_of_trial

    with History(written) as history:
        with history._database.write() as connection:
            connection.exec_driver_sql(f"UPDATE trial SET {column} = '7' WHERE number = 2")
            # With a checksum that fits: what a faulty program wrote.
            whole, _ = checksums_of_trial(connection, 1, 2)
            connection.exec_driver_sql("UPDATE trial SET checksum = ? WHERE number = 2", (whole,))
        with pytest.raises(HistoryError) as refused:
            history.run(1).trials()
    assert f"trial 2: {column}: " in refused.value.message


def test_every_word_of_every_list_is_read(history, study, space, configuration, make):
    from msgspec.structs import replace

    with history.begin(study, space, {}) as run:
        number = 0
        for changes in (
            *({"state": one} for one in TrialState if one is not TrialState.RUNNING),
            *({"purpose": one} for one in Purpose),
            *({"origin": one} for one in (None, *Origin)),
        ):
            number += 1
            run.finish_trial(replace(make.complete(number, configuration), **changes))
        assert len(run.trials()) == number
    assert history.damaged() == []
    assert sum(history.listed()[0].counts.values()) == number


def test_a_damaged_run_hides_no_other_and_can_be_purged(written, clock, study, space, configuration, make):
    with History(written, clock.moment()) as history:
        with history.begin(study, space, {"cpu": "x"}) as run:
            run.finish_trial(make.complete(1, configuration))
        with history._database.write() as connection:
            connection.exec_driver_sql(
                "UPDATE trial SET state = 'x', score = 7 WHERE run_id = 1 AND number = 4"
            )
            connection.exec_driver_sql("UPDATE trial SET score = 1e9 WHERE run_id = 1 AND number = 2")
        second, first = history.listed()
        assert (second.id, sum(second.counts.values())) == (2, 1)
        assert isinstance(first, DamagedRun)
        assert [line.partition(" = ")[0] for line in first.damage] == [
            "run 1: trial 2",
            "run 1: trial 4: state",
        ]
        assert history.purge([1]) == 1
        assert [one.id for one in history.listed()] == [2]


def test_what_a_run_came_to_so_far_is_sealed_too(history, study, space, configuration, make):
    with history.begin(study, space, {}) as run:
        run.finish_trial(make.complete(1, configuration))
        run.keep(run.outcome())
        assert history.damaged() == []


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
