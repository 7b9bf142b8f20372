"""One run of a study: its trials as they come, and what it comes to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from ascar.errors import HistoryError
from ascar.history import codec, schema
from ascar.objective import Objective
from ascar.outcome import Failure, Outcome, Purpose, Trial, TrialState, Verdict
from ascar.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from ascar.history.database import Database
    from ascar.history.lock import StudyLock
    from ascar.measurement import Series
    from ascar.space import Configuration, Space

__all__ = ["BestSoFar", "Moment", "Run", "RunState"]

_trial, _metric, _reading, _study = schema.trial, schema.metric, schema.reading, schema.study


class RunState(StrEnum):
    """How a run stands. Whether a running one is alive says its lock."""

    RUNNING = "running"
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Moment:
    """Where and when a history is written.

    Attributes:
        now: the time, ISO 8601, UTC.
        boot_id: which boot of which machine this is; another one means that the machine went down since.
    """

    now: Callable[[], str]
    boot_id: str


@dataclass(frozen=True, slots=True)
class BestSoFar:
    """A trial that was better than all before it.

    Attributes:
        number: the trial's.
        elapsed_s: seconds that this and all earlier trials of the search took (Cao 5.2: set-up and load).
        score: the objective's value.
    """

    number: int
    elapsed_s: float
    score: float


class Run:
    """One run of a study, in the history.

    Made by `History.begin` and `History.resume`, which hold the study's lock and write, and by `History.run`,
    which reads.

    Attributes:
        id: the run's id.
        name: the study's name.
        space: what was searched.
        machine: what the result is valid for, as the target described it.
        versions: of the programs that took part.
        started_at: ISO 8601, UTC.
    """

    def __init__(
        self, database: Database, row: Any, space: Space, lock: StudyLock | None, moment: Moment
    ) -> None:
        self.id: int = row.id
        self.name: str = row.name
        self.space = space
        self.started_at: str = row.started_at
        self._where = f"history {database.name}: run {self.id} ({self.name})"
        self.machine: Mapping[str, Any] = codec.decode(
            codec.load(row.description, self._where), dict[str, Any], self._where
        )
        self.versions: Mapping[str, str] = codec.decode(
            codec.load(row.versions, self._where), dict[str, str], self._where
        )
        self._text: str = row.text
        self._objective: str = row.objective
        self._database = database
        self._lock = lock
        self._moment = moment

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the study go; if it was not finished, its running trials and the run become interrupted."""
        if self._lock is None:
            return
        try:
            self._interrupt()
        finally:
            self._lock.release()
            self._lock = None

    @property
    def study(self) -> Study:
        """The study as its file said it.

        Raises:
            StudyError: this version of ascar reads study files differently.
        """
        return Study.parse(self._text)

    @property
    def objective(self) -> Objective:
        """What was to be reached."""
        return Objective.parse(self._objective)

    @property
    def state(self) -> RunState:
        """How the run stands now."""
        return RunState(self._column(_study.c.state))

    # Writing.

    def next_number(self) -> int:
        """The number that the next trial gets; counts from 1."""
        with self._database.read() as connection:
            last = connection.execute(
                sa.select(sa.func.max(_trial.c.number)).where(self._mine(_trial))
            ).scalar()
        return 1 + (last or 0)

    def start_trial(self, trial: Trial) -> None:
        """Put on disk that a configuration is about to be tried, before anything is changed.

        Raises:
            HistoryError: it cannot be written.
        """
        self._assert_owned()
        row = codec.trial_row(
            replace(trial, started_at=trial.started_at or self._moment.now()), self._moment.boot_id
        )
        with self._database.write() as connection:
            connection.execute(_trial.insert().values(study_id=self.id, **row))

    def finish_trial(self, trial: Trial) -> None:
        """Put on disk what became of a trial, all of it or nothing; may be tried again after an error.

        Raises:
            HistoryError: it cannot be written; every earlier trial is still there.
        """
        self._assert_owned()
        assert trial.state is not TrialState.RUNNING, "a finished trial has an end"
        with self._database.write() as connection:
            self._put(connection, trial)

    def _put(self, connection: sa.Connection, trial: Trial) -> None:
        connection.execute(_trial.delete().where(self._mine(_trial), _trial.c.number == trial.number))
        connection.execute(
            _trial.insert().values(study_id=self.id, **codec.trial_row(trial, self._moment.boot_id))
        )
        for table, rows in ((_metric, codec.metric_rows(trial)), (_reading, codec.reading_rows(trial))):
            if rows:
                connection.execute(table.insert(), [{"study_id": self.id, **row} for row in rows])

    def finish(self, outcome: Outcome) -> None:
        """Put on disk what the run came to.

        Raises:
            HistoryError: it cannot be written.
        """
        self._assert_owned()
        record: dict[str, object] = {
            "best": outcome.best and outcome.best.number,
            "default": outcome.default and outcome.default.number,
            "recommended": dict(outcome.recommended),
            "verdict": outcome.verdict,
            "stage_s": outcome.stage_s,
            "counts": {state.value: count for state, count in outcome.counts.items()},
            "stopped": outcome.stopped,
        }
        self._set_state(RunState.COMPLETE, codec.dump(record))

    # Reading.

    def trials(self, *, readings: bool = True) -> list[Trial]:
        """Every trial that has ended, by number.

        Args:
            readings: with their unit readings; without, thousands of trials are read in a moment.
        """
        with self._database.read() as connection:
            return self._trials(connection, _trial.c.state != TrialState.RUNNING.value, readings)

    def trial(self, number: int) -> Trial | None:
        """The trial of that number, running or ended, with its readings; None where there is none."""
        with self._database.read() as connection:
            found = self._trials(connection, _trial.c.number == number, readings=True)
        return found[0] if found else None

    def crashed(self) -> list[Configuration]:
        """Configurations whose last trial was running when the machine went down, in that order."""
        last = {codec.configuration_key(trial.configuration): trial for trial in self.trials(readings=False)}
        return [
            trial.configuration
            for trial in sorted(last.values(), key=lambda trial: trial.number)
            if _crash(trial)
        ]

    def crash_count(self, configuration: Configuration) -> int:
        """How often the machine went down during this run while that configuration was in force."""
        key = codec.configuration_key(configuration)
        with self._database.read() as connection:
            return sum(
                map(_crash, self._trials(connection, _trial.c.configuration_key == key, readings=False))
            )

    def best_so_far(self) -> list[BestSoFar]:
        """The steps of the best score over time (Cao Fig. 5.2), verification left out."""
        query = (
            sa.select(_trial.c.number, _trial.c.state, _trial.c.score, _trial.c.duration_s, _trial.c.unmet)
            .where(self._mine(_trial), _trial.c.purpose != Purpose.VERIFY.value)
            .order_by(_trial.c.number)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        objective, steps, elapsed_s = self.objective, list[BestSoFar](), 0.0
        for number, state, score, duration_s, unmet in rows:
            elapsed_s += duration_s
            usable = state == TrialState.COMPLETE and unmet == "[]"
            if usable and score is not None and (not steps or objective.better(score, steps[-1].score)):
                steps.append(BestSoFar(number, elapsed_s, score))
        return steps

    def outcome(self) -> Outcome:
        """What the run came to; for one that did not end, what it came to so far, not verified."""
        text = self._column(_study.c.outcome)
        trials = self.trials(readings=False)
        if text is None:
            return self._outcome_so_far(trials)
        record = codec.decode(codec.load(text, self._where), dict[str, Any], self._where)
        by_number = {trial.number: trial for trial in trials}
        return Outcome(
            run_id=self.id,
            study=self.name,
            best=by_number.get(record["best"]),
            default=by_number.get(record["default"]),
            recommended=self._configuration(record["recommended"]),
            verdict=codec.decode(record["verdict"], Verdict, self._where),
            stage_s=codec.decode(record["stage_s"], dict[str, float], self._where),
            counts={TrialState(state): int(count) for state, count in record["counts"].items()},
            stopped=record["stopped"],
            machine=self.machine,
        )

    def _outcome_so_far(self, trials: list[Trial]) -> Outcome:
        defaults = [trial for trial in trials if trial.purpose is Purpose.DEFAULT and trial.usable]
        candidates = [trial for trial in trials if trial.purpose is not Purpose.VERIFY and trial.usable]
        sign = self.objective.sign
        best = max(candidates, key=lambda trial: sign * (trial.score or 0.0), default=None)
        default = defaults[0] if defaults else None
        stage_s: Counter[str] = Counter()
        for trial in trials:
            stage_s.update(trial.stage_s)
        return Outcome(
            run_id=self.id,
            study=self.name,
            best=best,
            default=default,
            recommended=default.configuration if default else self.space.default(),
            verdict=Verdict("not-verified", note="the run has not ended; go on with `ascar tune --resume`"),
            stage_s=dict(stage_s),
            counts=Counter(trial.state for trial in trials),
            stopped="",
            machine=self.machine,
        )

    # What the rest is made of.

    def _trials(
        self, connection: sa.Connection, condition: sa.ColumnElement[bool], readings: bool
    ) -> list[Trial]:
        mine = sa.and_(self._mine(_trial), condition)
        rows = connection.execute(sa.select(_trial).where(mine).order_by(_trial.c.number)).all()
        metrics: dict[int, dict[str, float]] = {}
        for row in self._belonging(connection, _metric, mine):
            metrics.setdefault(row.number, {})[row.name] = float("nan") if row.value is None else row.value
        series: dict[int, dict[str, Series]] = {}
        if readings:
            for row in self._belonging(connection, _reading, mine):
                series.setdefault(row.number, {})[row.name] = codec.series_of(row, self._where)
        return [
            codec.trial_of(
                row,
                self._configuration(codec.load(row.configuration, self._where)),
                metrics.get(row.number, {}),
                series.get(row.number, {}),
                f"{self._where}: trial {row.number}",
            )
            for row in rows
        ]

    def _belonging(
        self, connection: sa.Connection, table: sa.Table, condition: sa.ColumnElement[bool]
    ) -> Any:
        joined = table.join(_trial)
        return connection.execute(sa.select(table).select_from(joined).where(condition))

    def _configuration(self, values: Any) -> Configuration:
        return self.space.configuration(values)

    def _column(self, column: sa.Column[Any]) -> Any:
        with self._database.read() as connection:
            found = connection.execute(sa.select(column).where(_study.c.id == self.id)).all()
        if not found:
            raise HistoryError(f"{self._where}: is no longer in the history; it was purged")
        return found[0][0]

    def _mine(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.study_id == self.id

    def _assert_owned(self) -> None:
        assert self._lock is not None, "only a run that was begun or resumed, and not closed, is written to"

    def _set_state(self, state: RunState, outcome: str | None = None) -> None:
        with self._database.write() as connection:
            connection.execute(
                _study.update()
                .where(_study.c.id == self.id)
                .values(state=state.value, outcome=outcome, finished_at=self._moment.now())
            )

    def _interrupt(self) -> None:
        """End what is still running."""
        with self._database.write() as connection:
            still = sa.and_(_study.c.id == self.id, _study.c.state == RunState.RUNNING.value)
            ended = {"state": RunState.INTERRUPTED.value, "finished_at": self._moment.now()}
            connection.execute(_study.update().where(still).values(**ended))
            self._end_running(connection)

    def take_up(self) -> None:
        """Go on with a run that another process left, however it left it; `History.resume` does this."""
        self._assert_owned()
        with self._database.write() as connection:
            self._end_running(connection)
            connection.execute(
                _study.update()
                .where(_study.c.id == self.id)
                .values(state=RunState.RUNNING.value, finished_at="")
            )

    def _end_running(self, connection: sa.Connection) -> None:
        """Trials left running become interrupted; those of another boot went down with the machine."""
        running = _trial.c.state == TrialState.RUNNING.value
        boots = dict(
            connection.execute(
                sa.select(_trial.c.number, _trial.c.boot_id).where(self._mine(_trial), running)
            )
            .tuples()
            .all()
        )
        for trial in self._trials(connection, running, readings=False):
            crash = boots[trial.number] != self._moment.boot_id
            failure = (
                Failure("machine", "the machine went down while this configuration was in force")
                if crash
                else None
            )
            self._put(connection, replace(trial, state=TrialState.INTERRUPTED, failure=failure))


def _crash(trial: Trial) -> bool:
    return (
        trial.state is TrialState.INTERRUPTED
        and trial.failure is not None
        and trial.failure.stage == "machine"
    )
