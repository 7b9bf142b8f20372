"""Checksums written into rows: of a run after each change of it, and of everything that had none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ascar.history import schema
from ascar.history.checksum import readings_checksum, run_checksum, trial_checksum

if TYPE_CHECKING:
    from collections.abc import Sequence

_run, _machine, _trial = schema.run, schema.machine, schema.trial


def seal_runs(connection: sa.Connection, ids: Sequence[int]) -> None:
    """Write the checksums of runs, after a change of them."""
    for run_id in ids:
        found = checksum_of_run(connection, run_id)
        connection.execute(_run.update().where(_run.c.id == run_id).values(checksum=found))


def checksum_of_run(connection: sa.Connection, run_id: int) -> str:
    """The checksum that a run should have."""
    # All columns that there are: in the middle of a migration they are not yet those of the schema.
    row: Any = connection.execute(sa.text("SELECT * FROM run WHERE id = :id"), {"id": run_id}).one()
    machine = sa.select(_machine.c.description).where(_machine.c.id == row.machine_id)
    return run_checksum(row._mapping, connection.execute(machine).scalar() or "")


def checksums_of_trial(connection: sa.Connection, run_id: int, number: int) -> tuple[str, str]:
    """The checksums that a trial and its readings should have."""
    mine = (_trial.c.run_id == run_id) & (_trial.c.number == number)
    row: Any = connection.execute(sa.select(_trial).where(mine)).one()
    rows: Any = [
        connection.execute(sa.select(table).where(table.c.run_id == run_id, table.c.number == number)).all()
        for table in (schema.metric, schema.reading)
    ]
    metrics, readings = ([one._mapping for one in found] for found in rows)
    return trial_checksum(row._mapping, metrics), readings_checksum(readings)


def seal_everything(connection: sa.Connection) -> None:
    """Write the checksums of all runs and trials, which had none."""
    for run_id, number in connection.execute(sa.select(_trial.c.run_id, _trial.c.number)).all():
        mine = (_trial.c.run_id == run_id) & (_trial.c.number == number)
        whole, readings = checksums_of_trial(connection, run_id, number)
        connection.execute(_trial.update().where(mine).values(checksum=whole, readings_checksum=readings))
    seal_runs(connection, connection.execute(sa.select(_run.c.id)).scalars().all())
