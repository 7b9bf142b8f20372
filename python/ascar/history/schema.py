"""The history's tables. Text columns that hold structures hold JSON; numbers keep all their bits."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

SCHEMA_VERSION = 7

metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

machine = Table(
    "machine",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("description", Text, nullable=False),
)

# One row a run; the same study may be run many times. Ids are never given twice, so that one written down
# somewhere never comes to mean another run after a purge.
run = Table(
    "run",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, index=True),
    Column("digest", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("objective", Text, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("text", Text, nullable=False),
    Column("space", Text, nullable=False),
    Column("versions", Text, nullable=False),
    Column("machine_id", Integer, ForeignKey("machine.id"), nullable=False),
    Column("started_at", Text, nullable=False),
    Column("finished_at", Text, nullable=False),
    Column("outcome", Text),
    # Since version 4: "study", "session" or "search"; earlier ones kept studies only.
    Column("kind", Text, nullable=False, server_default="study"),
    # Since version 6: of all other columns and of the machine's description; see checksum.py.
    Column("checksum", Text),
    # Since version 7: the file that the run was imported from; NULL where it was made in this history, or
    # imported before.
    Column("imported", Text),
    sqlite_autoincrement=True,
)

trial = Table(
    "trial",
    metadata,
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("configuration_key", Text, nullable=False),
    Column("configuration", Text, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("score", Float(53)),
    Column("duration_s", Float(53), nullable=False),
    Column("measurement", Text),
    Column("change", Text),
    Column("stage_s", Text, nullable=False),
    Column("unmet", Text, nullable=False),
    Column("failure", Text),
    Column("boot_id", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    # Since version 2: 1 where the machine went down while this configuration was in force.
    Column("crashed", Integer, nullable=False, server_default="0"),
    # Since version 3: why the load was ended early, JSON; NULL unless pruned.
    Column("abandonment", Text),
    # Since version 4: who proposed the configuration, NULL where that was not kept; and why.
    Column("origin", Text),
    Column("reason", Text, nullable=False, server_default=""),
    # Since version 6: of all other columns and the metrics, and of the readings.
    Column("checksum", Text),
    Column("readings_checksum", Text),
    Index("trial_by_configuration", "run_id", "configuration_key"),
    Index("trial_by_score", "run_id", "state", "number", "purpose", "score", "duration_s"),
)

# SQLite keeps NaN as NULL, so a value that is NULL is a metric that was NaN.
metric = Table(
    "metric",
    metadata,
    Column("run_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("value", Float(53)),
    ForeignKeyConstraint(["run_id", "number"], ["trial.run_id", "trial.number"], ondelete="CASCADE"),
    sqlite_with_rowid=False,
)

# One row a (trial, metric): `count` little-endian float64 in each blob. One row a reading would take eight
# times the space and the time.
reading = Table(
    "reading",
    metadata,
    Column("run_id", Integer, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("seconds_f64", LargeBinary, nullable=False),
    Column("values_f64", LargeBinary, nullable=False),
    ForeignKeyConstraint(["run_id", "number"], ["trial.run_id", "trial.number"], ondelete="CASCADE"),
)
