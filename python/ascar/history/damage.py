"""What in a history is not as it was written, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ascar.history import schema
from ascar.history.checksum import readings_checksum, trial_checksum
from ascar.history.seal import checksum_of_run
from ascar.history.words import MAY_BE_MISSING, OF_RUN, OF_TRIAL, wrong_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_run, _trial, _metric, _reading = schema.run, schema.trial, schema.metric, schema.reading


def damaged(connection: sa.Connection) -> list[str]:
    """What the database itself finds wrong, and each run and trial whose words or checksum do not fit."""
    found: list[str] = []
    if connection.dialect.name == "sqlite":
        lines = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        found += [f"file: {line}" for line in lines if line != "ok"]
    rows = connection.execute(sa.select(_run).order_by(_run.c.id)).all()
    for row in rows:
        found += damage_of_run(connection, row)
    # Not by the runs: a trial may have become one of a run that is not there.
    for run_id in connection.execute(
        sa.select(_trial.c.run_id).distinct().order_by(_trial.c.run_id)
    ).scalars():
        found += damage_of_trials(connection, run_id, readings=True)
    return found


def damage_of_run(connection: sa.Connection, row: Any) -> list[str]:
    """What is damaged of a run itself, its trials left out.

    Args:
        connection: a transaction.
        row: the run's columns.
    """
    name = f"run {row.id} ({row.name})"
    if faults := wrong_words(row._mapping, OF_RUN):
        return [f"{name}: {fault}" for fault in faults]
    return [] if row.checksum == checksum_of_run(connection, row.id) else [name]


def wrong_trial_words(connection: sa.Connection, run_id: int) -> list[str]:
    """Columns of a run's trials that do not hold their words; the database looks for them, in a moment."""
    columns = [_trial.c[column] for column in OF_TRIAL]
    # NULL is neither in a list nor outside of it.
    is_other = [
        _trial.c[column].not_in([one.value for one in kind])
        | (_trial.c[column].is_(None) & sa.literal(column not in MAY_BE_MISSING))
        for column, kind in OF_TRIAL.items()
    ]
    wrong = (
        sa.select(_trial.c.number, *columns)
        .where(_trial.c.run_id == run_id, sa.or_(*is_other))
        .order_by(_trial.c.number)
    )
    rows: Any = connection.execute(wrong).all()
    return [
        f"run {run_id}: trial {row.number}: {fault}"
        for row in rows
        for fault in wrong_words(row._mapping, OF_TRIAL)
    ]


def damage_of_trials(connection: sa.Connection, run_id: int, *, readings: bool) -> list[str]:
    """What is damaged of a run's trials.

    Args:
        connection: a transaction.
        run_id: the run.
        readings: whether unit readings are looked at too; these are most of the time.
    """
    return list(_damage_of_trials(connection, run_id, readings=readings))


def _damage_of_trials(connection: sa.Connection, run_id: int, *, readings: bool) -> Iterator[str]:
    metrics = _by_number(connection, _metric, run_id)
    series = _by_number(connection, _reading, run_id) if readings else {}
    trials = sa.select(_trial).where(_trial.c.run_id == run_id).order_by(_trial.c.number)
    rows: Any = connection.execute(trials).all()
    for row in rows:
        name = f"run {run_id}: trial {row.number}"
        if faults := wrong_words(row._mapping, OF_TRIAL):
            yield from (f"{name}: {fault}" for fault in faults)
        elif row.checksum != trial_checksum(row._mapping, metrics.get(row.number, [])):
            yield name
        if readings and row.readings_checksum != readings_checksum(series.get(row.number, [])):
            yield f"run {run_id}: readings of trial {row.number}"


def _by_number(connection: sa.Connection, table: sa.Table, run_id: int) -> dict[int, list[Mapping[str, Any]]]:
    found: dict[int, list[Mapping[str, Any]]] = {}
    rows: Any = connection.execute(sa.select(table).where(table.c.run_id == run_id)).all()
    for row in rows:
        found.setdefault(row.number, []).append(row._mapping)
    return found
