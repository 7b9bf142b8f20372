"""Steps from one version of the schema to the next; a step once released never changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import sqlalchemy as sa

from ascar.history import codec
from ascar.history.seal import seal_everything
from ascar.space import Configuration
from ascar.space.renamed import has_old_names, study_with_present_names, with_present_names
from ascar.study import study_digest, study_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _crashes_as_column(connection: sa.Connection) -> None:
    """1 -> 2: whether the machine went down was only said inside the failure's JSON; count it in SQL."""
    connection.execute(sa.text("ALTER TABLE trial ADD COLUMN crashed INTEGER DEFAULT '0' NOT NULL"))
    interrupted = sa.text("SELECT study_id, number, failure FROM trial WHERE state = 'interrupted'")
    crashed = sa.text("UPDATE trial SET crashed = 1 WHERE study_id = :study_id AND number = :number")
    for study_id, number, failure in connection.execute(interrupted).all():
        if failure is not None and json.loads(failure).get("stage") == "machine":
            connection.execute(crashed, {"study_id": study_id, "number": number})


def _abandonment_as_column(connection: sa.Connection) -> None:
    """2 -> 3: why a pruned trial's load was ended early; before, none was."""
    connection.execute(sa.text("ALTER TABLE trial ADD COLUMN abandonment TEXT"))


def _runs_of_several_kinds(connection: sa.Connection) -> None:
    """3 -> 4: runs of studies become runs of a kind; what is known of a trial's origin is its purpose."""
    for statement in (
        "ALTER TABLE study RENAME TO run",
        "ALTER TABLE trial RENAME COLUMN study_id TO run_id",
        "ALTER TABLE metric RENAME COLUMN study_id TO run_id",
        "ALTER TABLE reading RENAME COLUMN study_id TO run_id",
        "DROP INDEX ix_study_name",
        "CREATE INDEX ix_run_name ON run (name)",
        "ALTER TABLE run ADD COLUMN kind TEXT DEFAULT 'study' NOT NULL",
        "ALTER TABLE trial ADD COLUMN origin TEXT",
        "ALTER TABLE trial ADD COLUMN reason TEXT DEFAULT '' NOT NULL",
        "UPDATE trial SET origin = purpose WHERE purpose IN ('default', 'sweep')",
        "UPDATE trial SET origin = 'verification' WHERE purpose IN ('verify', 'bias')",
    ):
        connection.execute(sa.text(statement))


def _present_names(connection: sa.Connection) -> None:
    """4 -> 5: the kernel's settings in the storage presets take the identifiers of their native names."""
    for run in connection.execute(
        sa.text("SELECT id, text, space, outcome FROM run WHERE kind = 'study'")
    ).all():
        space = json.loads(run.space)
        if not has_old_names(space):
            continue
        text = study_with_present_names(run.text)
        values = {
            "id": run.id,
            "text": text,
            "digest": study_digest(study_table(text)),
            "space": codec.dump(with_present_names(space), ordered=True),
            "outcome": _with_present_names(run.outcome),
        }
        statement = (
            "UPDATE run SET text = :text, digest = :digest, space = :space, outcome = :outcome WHERE id = :id"
        )
        connection.execute(sa.text(statement), values)
        _rename_in_trials(connection, run.id)


def _rename_in_trials(connection: sa.Connection, run_id: int) -> None:
    trials = sa.text("SELECT number, configuration, change FROM trial WHERE run_id = :id")
    statement = (
        "UPDATE trial SET configuration = :configuration, configuration_key = :key, change = :change "
        "WHERE run_id = :id AND number = :number"
    )
    for trial in connection.execute(trials, {"id": run_id}).all():
        values = with_present_names(json.loads(trial.configuration))
        new = {
            "id": run_id,
            "number": trial.number,
            "configuration": json.dumps(values, ensure_ascii=True, allow_nan=False),
            "key": Configuration(values).key(),
            "change": _with_present_names(trial.change),
        }
        connection.execute(sa.text(statement), new)


def _checksums(connection: sa.Connection) -> None:
    """5 -> 6: runs, trials and readings get checksums; what was damaged before is not found by them."""
    for table, column in (("run", "checksum"), ("trial", "checksum"), ("trial", "readings_checksum")):
        connection.execute(sa.text(f"ALTER TABLE {table} ADD COLUMN {column} TEXT"))
    seal_everything(connection)


def _imported_as_column(connection: sa.Connection) -> None:
    """6 -> 7: where an imported run came from; of earlier imports that is not known."""
    connection.execute(sa.text("ALTER TABLE run ADD COLUMN imported TEXT"))


def _with_present_names(text: str | None) -> str | None:
    return None if text is None else codec.dump(with_present_names(json.loads(text)))


MIGRATIONS: Mapping[int, Callable[[sa.Connection], None]] = {
    1: _crashes_as_column,
    2: _abandonment_as_column,
    3: _runs_of_several_kinds,
    4: _present_names,
    5: _checksums,
    6: _imported_as_column,
}
"""From a version to the step that leads to the next one."""
