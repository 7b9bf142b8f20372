"""A run's trials in the tables: written whole, read whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ascar.history import codec, schema
from ascar.history.checksum import readings_checksum, see, trial_checksum
from ascar.history.words import OF_TRIAL, see_words

if TYPE_CHECKING:
    from ascar.results.measurement import Series
    from ascar.results.trial import Trial

_trial, _metric, _reading = schema.trial, schema.metric, schema.reading

# Of every trial: statements that are made once are compiled once.
_INSERT = {table: table.insert() for table in (_trial, _metric, _reading)}
_DELETE = _trial.delete().where(
    _trial.c.run_id == sa.bindparam("of_run"), _trial.c.number == sa.bindparam("of_number")
)
_LAST = sa.select(sa.func.max(_trial.c.number)).where(_trial.c.run_id == sa.bindparam("of_run"))


@dataclass(frozen=True, slots=True)
class RunTrials:
    """The trials of one run.

    Attributes:
        run_id: the run's.
        where: the run, for messages.
    """

    run_id: int
    where: str

    @property
    def mine(self) -> sa.ColumnElement[bool]:
        """Rows of `trial` that belong to this run."""
        return _trial.c.run_id == self.run_id

    def last_number(self, connection: sa.Connection) -> int:
        """The highest number of a trial; 0 without trials."""
        return connection.execute(_LAST, {"of_run": self.run_id}).scalar() or 0

    def start(self, connection: sa.Connection, trial: Trial, boot_id: str) -> None:
        """Write a trial that is about to begin; its number must be new."""
        self._insert(connection, trial, boot_id, [], [])

    def put(self, connection: sa.Connection, trial: Trial, boot_id: str) -> None:
        """Write a trial with its metrics and readings, in place of what was there under its number."""
        connection.execute(_DELETE, {"of_run": self.run_id, "of_number": trial.number})
        metrics, readings = codec.metric_rows(trial), codec.reading_rows(trial)
        self._insert(connection, trial, boot_id, metrics, readings)
        for table, rows in ((_metric, metrics), (_reading, readings)):
            if rows:
                connection.execute(_INSERT[table], [{"run_id": self.run_id, **row} for row in rows])

    def _insert(
        self,
        connection: sa.Connection,
        trial: Trial,
        boot_id: str,
        metrics: list[dict[str, Any]],
        readings: list[dict[str, Any]],
    ) -> None:
        row = {"run_id": self.run_id, **codec.trial_row(trial, boot_id)}
        row |= {"checksum": trial_checksum(row, metrics), "readings_checksum": readings_checksum(readings)}
        connection.execute(_INSERT[_trial], row)

    def read(
        self, connection: sa.Connection, condition: sa.ColumnElement[bool], *, readings: bool
    ) -> list[Trial]:
        """Trials that meet a condition on `trial`, by number.

        Raises:
            HistoryError: a row is damaged, or holds what no version of ascar wrote.
        """
        wanted = self.mine & condition
        rows = connection.execute(sa.select(_trial).where(wanted).order_by(_trial.c.number)).all()
        metrics: dict[int, dict[str, float]] = {}
        self._see(connection, rows, wanted, readings=readings)
        for row in _belonging(connection, _metric, wanted):
            metrics.setdefault(row.number, {})[row.name] = float("nan") if row.value is None else row.value
        series: dict[int, dict[str, Series]] = {}
        if readings:
            for row in _belonging(connection, _reading, wanted):
                series.setdefault(row.number, {})[row.name] = codec.series_of(row, self.where)
        return [
            codec.trial_of(
                row,
                metrics.get(row.number, {}),
                series.get(row.number, {}),
                f"{self.where}: trial {row.number}",
            )
            for row in rows
        ]

    def _see(
        self, connection: sa.Connection, rows: Any, wanted: sa.ColumnElement[bool], *, readings: bool
    ) -> None:
        """See that trials are as they were written.

        Raises:
            HistoryError: one is damaged.
        """
        metrics = _by_number(_belonging(connection, _metric, wanted))
        series = _by_number(_belonging(connection, _reading, wanted)) if readings else {}
        for row in rows:
            where = f"{self.where}: trial {row.number}"
            see_words(row._mapping, OF_TRIAL, where)  # these can be named
            see(row.checksum, trial_checksum(row._mapping, metrics.get(row.number, [])), where)
            if readings:
                see(
                    row.readings_checksum, readings_checksum(series.get(row.number, [])), f"{where}: readings"
                )


def _by_number(rows: Any) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row.number, []).append(row._mapping)
    return found


def _belonging(connection: sa.Connection, table: sa.Table, wanted: sa.ColumnElement[bool]) -> Any:
    return connection.execute(sa.select(table).select_from(table.join(_trial)).where(wanted))
