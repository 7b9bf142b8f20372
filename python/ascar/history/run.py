"""One run of a study: its trials as they come, and what it comes to."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa
from msgspec.structs import replace

from ascar.errors import HistoryError, Refused, SpaceError, StudyError
from ascar.history import codec, schema
from ascar.history.checksum import see
from ascar.history.conclusion import conclusion_of, conclusion_text, outcome_of, outcome_so_far, outcome_text
from ascar.history.kinds import RunKind, RunState
from ascar.history.seal import checksum_of_run, seal_runs
from ascar.history.trials import RunTrials
from ascar.history.words import word
from ascar.objective import Objective
from ascar.results.trial import Failure, Purpose, TrialState
from ascar.space.document import space_from_json
from ascar.space.parameter import value_text
from ascar.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from ascar.history.conclusion import Conclusion
    from ascar.history.database import Database
    from ascar.history.latest import Latest
    from ascar.history.lock import RunLock
    from ascar.results.outcome import Outcome
    from ascar.results.trial import Trial
    from ascar.space import Configuration, Space

_trial, _run = schema.trial, schema.run
_COMPARED = [purpose.value for purpose in Purpose if purpose.of_comparison]


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Where and when a history is written.

    Attributes:
        now: the time, ISO 8601, UTC.
        boot_id: the id of the machine's present boot; another id means that the machine went down since.
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
    """One run of a study, an online session or a search for rules, in the history.

    Made by `History.begin`, `begin_run` and `resume`, which hold the run's lock and write, and by
    `History.run`, which reads. Trials, their space and an `Outcome` belong to a study; what a session or a
    search came to is its `conclusion`.

    Attributes:
        id: the run's id.
        kind: the loop that made the run.
        name: the name of the study, the session or the rules' file.
        machine: the machine that the result is valid for, as the target described it.
        versions: the versions of the programs that took part.
        started_at: ISO 8601, UTC.
        text: the study file; empty for a search.
        imported: the file that it was imported from; None where it was made here.
    """

    def __init__(
        self, database: Database, row: Any, lock: RunLock | None, moment: WriteContext, latest: Latest, /
    ) -> None:
        self.id: int = row.id
        self.name: str = row.name
        self.started_at: str = row.started_at
        self._where = f"history {database.name}: run {self.id} ({self.name})"
        self.kind = word(RunKind, row.kind, self._where, "kind")
        self.machine: Mapping[str, Any] = codec.decode(
            codec.load(row.description, f"{self._where}: machine"), dict[str, Any], f"{self._where}: machine"
        )
        self.versions: Mapping[str, str] = codec.decode(
            codec.load(row.versions, f"{self._where}: versions"), dict[str, str], f"{self._where}: versions"
        )
        self._trials = RunTrials(self.id, self._where)
        self.text: str = row.text
        self.imported: str | None = row.imported
        self._space: str = row.space
        self._objective: str = row.objective
        self._database = database
        self._lock = lock
        self._moment = moment
        self._latest = latest

    @property
    def origin_notes(self) -> list[str]:
        """What to read before this run's commands are run by anybody; nothing where it was made here."""
        if self.imported is None:
            return []
        return [
            f"run {self.id} was imported from {self.imported!r}: its commands and paths are its author's; "
            "read them before you run them"
        ]

    def check_made_here(self, advice: str) -> None:
        """See that what its study names may be run.

        Args:
            advice: what to do instead with a run that was imported.

        Raises:
            Refused: it was imported.
        """
        if self.imported is not None:
            raise Refused(
                f"run {self.id} was imported from {self.imported!r}: what its study names is its author's, "
                f"and none of it is run; {advice}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        with suppress(HistoryError):  # the error under way matters more, and `resume` cleans up all the same
            self.close()

    def close(self) -> None:
        """Let the study go; if it was not finished, its running trials and the run become interrupted."""
        if self._lock is None:
            return
        try:
            self._interrupt()
        finally:
            self._latest.remove()
            self._lock.release()
            self._lock = None

    @property
    def study(self) -> Study:
        """The study as its file said it.

        Raises:
            StudyError: this version of ascar reads study files differently.
        """
        return Study.parse(self.text)

    @cached_property
    def space(self) -> Space:
        """What was searched.

        Raises:
            HistoryError: it is damaged, or was written by a newer version.
        """
        try:
            return space_from_json(self._space)
        except SpaceError as error:
            try:
                return space_from_json(_without_stray_labels(self._space))
            except SpaceError:
                raise HistoryError(f"{self._where}: space: {error.message}") from error

    @property
    def objective(self) -> Objective:
        """What was to be reached."""
        return Objective.parse(self._objective)

    @property
    def objective_text(self) -> str:
        """What was to be reached, in the words of the run's kind."""
        return self._objective

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """All objectives of the study; their compromise alone where its file cannot be read any more."""
        try:
            return self.study.objectives
        except StudyError:
            return (self.objective,)

    @property
    def state(self) -> RunState:
        """How the run stands now."""
        return word(RunState, self._column(_run.c.state), self._where, "state")

    # Writing.

    def next_number(self) -> int:
        """The number that the next trial gets; counts from 1."""
        with self._database.read() as connection:
            return 1 + self._trials.last_number(connection)

    def start_trial(self, trial: Trial) -> None:
        """Put on disk that a configuration is about to be tried, before anything is changed.

        Raises:
            HistoryError: it cannot be written.
        """
        self._assert_owned()
        self._latest.remove()
        started = replace(trial, started_at=trial.started_at or self._moment.now())
        with self._database.write() as connection:
            self._trials.start(connection, started, self._moment.boot_id)

    def note_reading(self, number: int, second: float, score: float) -> None:
        """Let others see what the running trial has read; lost where that cannot be written."""
        self._latest.note(number, second, score)

    def finish_trial(self, trial: Trial) -> None:
        """Put on disk what became of a trial, all of it or nothing; may be tried again after an error.

        Raises:
            HistoryError: it cannot be written; every earlier trial is still there.
        """
        self._assert_owned()
        assert trial.state is not TrialState.RUNNING, "a finished trial has an end"
        with self._database.write() as connection:
            self._trials.put(connection, trial, self._moment.boot_id)
        self._latest.remove()

    def finish(self, outcome: Outcome) -> None:
        """Put on disk what the run of a study came to.

        Raises:
            HistoryError: it cannot be written.
        """
        self._finish(outcome_text(outcome))

    def keep(self, outcome: Outcome) -> None:
        """Put on disk what the run of a study came to so far; it goes on.

        Raises:
            HistoryError: it cannot be written.
        """
        self._assert_owned()
        known = _run.update().where(_run.c.id == self.id).values(outcome=outcome_text(outcome))
        with self._database.write() as connection:
            connection.execute(known)
            seal_runs(connection, [self.id])

    def conclude(self, conclusion: Conclusion) -> None:
        """Put on disk what a run came to that is not a study's.

        Raises:
            HistoryError: it cannot be written.
        """
        self._finish(conclusion_text(conclusion))

    def _finish(self, text: str) -> None:
        self._assert_owned()
        with self._database.write() as connection:
            self._set_state(connection, RunState.COMPLETE, self._moment.now(), text)

    # Reading.

    def trials(self, *, readings: bool = True) -> list[Trial]:
        """Every trial that has ended, by number.

        Args:
            readings: include their unit readings; without these, thousands of trials are read in a moment.
        """
        with self._database.read() as connection:
            return self._trials.read(
                connection, _trial.c.state != TrialState.RUNNING.value, readings=readings
            )

    def trial(self, number: int) -> Trial | None:
        """The trial of that number, running or ended, with its readings; None where there is none."""
        with self._database.read() as connection:
            found = self._trials.read(connection, _trial.c.number == number, readings=True)
        return found[0] if found else None

    def latest_readings(self, number: int) -> list[tuple[float, float]]:
        """Seconds and scores that the running trial of that number has read so far, on this machine."""
        return self._latest.read(number)

    def crashed(self) -> list[Configuration]:
        """Configurations whose last trial was running when the machine went down, in that order."""
        ended = self._trials.mine & (_trial.c.state != TrialState.RUNNING.value)
        last = sa.select(sa.func.max(_trial.c.number)).where(ended).group_by(_trial.c.configuration_key)
        wanted = _trial.c.number.in_(last) & (_trial.c.crashed == 1)
        with self._database.read() as connection:
            return [trial.configuration for trial in self._trials.read(connection, wanted, readings=False)]

    def crash_count(self, configuration: Configuration) -> int:
        """How often the machine went down during this run while that configuration was in force."""
        same = self._trials.mine & (_trial.c.configuration_key == configuration.key())
        crashes = sa.select(sa.func.count()).where(same, _trial.c.crashed == 1)
        with self._database.read() as connection:
            return connection.execute(crashes).scalar_one()

    def best_so_far(self) -> list[BestSoFar]:
        """The steps of the best score over time (Cao Fig. 5.2), comparisons in turns left out."""
        query = (
            sa.select(_trial.c.number, _trial.c.state, _trial.c.score, _trial.c.duration_s, _trial.c.unmet)
            .where(self._trials.mine, _trial.c.purpose.not_in(_COMPARED))
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
        text = self._column(_run.c.outcome)
        trials = self.trials(readings=False)
        return (
            outcome_so_far(self, trials)
            if text is None
            else outcome_of(self, text, trials, f"{self._where}: outcome")
        )

    def conclusion(self) -> Conclusion | None:
        """What a session or a search came to; None before its end, and for a study.

        Raises:
            HistoryError: it is damaged, or was written by a newer version.
        """
        text = self._column(_run.c.outcome)
        return None if text is None else conclusion_of(self.kind, text, f"{self._where}: outcome")

    # What the rest is made of.

    def _column(self, column: sa.Column[Any]) -> Any:
        with self._database.read() as connection:
            found = connection.execute(sa.select(column, _run.c.checksum).where(_run.c.id == self.id)).all()
            if not found:
                raise HistoryError(f"{self._where}: is no longer in the history; it was purged")
            see(found[0].checksum, checksum_of_run(connection, self.id), self._where)
        return found[0][0]

    def _assert_owned(self) -> None:
        assert self._lock is not None, "only a run that was begun or resumed, and not closed, is written to"

    def _set_state(
        self, connection: sa.Connection, state: RunState, finished_at: str, outcome: str | None = None
    ) -> None:
        ended = {"state": state.value, "finished_at": finished_at}
        if outcome is not None:
            ended["outcome"] = outcome
        connection.execute(_run.update().where(_run.c.id == self.id).values(**ended))
        seal_runs(connection, [self.id])

    def _interrupt(self) -> None:
        """End what is still running."""
        with self._database.write() as connection:
            self._end_running(connection)
            state = connection.execute(sa.select(_run.c.state).where(_run.c.id == self.id)).scalar()
            if state == RunState.RUNNING.value:
                self._set_state(connection, RunState.INTERRUPTED, self._moment.now())

    def take_up(self, study: Study | None = None) -> None:
        """Go on with a run, however it was left; `History.resume` does this.

        What it came to before stays until it ends again.

        Args:
            study: the study as its file says it now; None: as it was.
        """
        self._assert_owned()
        changed = {} if study is None else {"text": study.text, "digest": study.digest}
        with self._database.write() as connection:
            self._end_running(connection)
            self._set_state(connection, RunState.RUNNING, finished_at="")
            if changed:
                connection.execute(_run.update().where(_run.c.id == self.id).values(**changed))
                seal_runs(connection, [self.id])
        self.text = changed.get("text", self.text)

    def _end_running(self, connection: sa.Connection) -> None:
        """Trials left running become interrupted; those of another boot went down with the machine."""
        running = _trial.c.state == TrialState.RUNNING.value
        here = _trial.c.boot_id == self._moment.boot_id
        crash = Failure("machine", "the machine went down while this configuration was in force")
        for condition, failure in ((running & here, None), (running & ~here, crash)):
            for trial in self._trials.read(connection, condition, readings=False):
                ended = replace(trial, state=TrialState.INTERRUPTED, failure=failure)
                self._trials.put(connection, ended, self._moment.boot_id)


def _without_stray_labels(text: str) -> str:
    """A space document without labels of values that no parameter has, which early versions wrote."""
    try:
        document = json.loads(text)
        for parameter in document["parameters"]:
            values = {value_text(value) for value in parameter.get("values", [])}
            if values:
                labels = parameter.get("weaker", {})
                parameter["weaker"] = {key: labels[key] for key in labels if key in values}
    except (AttributeError, KeyError, TypeError, ValueError):
        return text
    return json.dumps(document)
