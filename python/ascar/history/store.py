"""The history: every study that was run, for good."""

from __future__ import annotations

import hashlib
import os
import platform
import tomllib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import sqlalchemy as sa

from ascar import __version__
from ascar.errors import HistoryError, InputError, Refused, StudyError
from ascar.history import codec, schema
from ascar.history.checksum import see
from ascar.history.damage import damaged
from ascar.history.database import Database
from ascar.history.exchange import read_runs, write_runs
from ascar.history.kinds import RunKind, RunState
from ascar.history.latest import Latest
from ascar.history.listing import DamagedRun, RunSummary, list_runs, process_of
from ascar.history.lock import RunLock, lock_name
from ascar.history.record import FORMAT, FORMAT_VERSION, run_record
from ascar.history.run import Run, WriteContext
from ascar.history.seal import checksum_of_run, seal_runs
from ascar.history.trials import RunTrials
from ascar.history.words import OF_RUN, see_words
from ascar.results.machine_difference import machine_difference
from ascar.space.document import space_to_document
from ascar.study.file import measured_tables

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from types import TracebackType

    from ascar.results.trial import Trial
    from ascar.space import Space
    from ascar.study import Study

_run, _trial, _machine = schema.run, schema.trial, schema.machine
# Columns of a run that an export holds as they are.
_COPIED = ("kind", "name", "digest", "state", "objective", "seed", "text", "started_at", "finished_at")


@dataclass(frozen=True, slots=True)
class BegunRun:
    """What is known of a run when it begins.

    Attributes:
        kind: the loop that makes the run.
        name: the name of the study, the session or the rules' file.
        digest: the same for runs of the same thing.
        objective: the objective, as text.
        seed: the seed of every random choice.
        text: the study file; empty for a search.
        space: the parameters that may change.
    """

    kind: RunKind
    name: str
    digest: str
    objective: str
    seed: int
    text: str
    space: Space

    @property
    def title(self) -> str:
        """What is run, for messages."""
        return f"study.name = {self.name!r}" if self.kind is RunKind.STUDY else f"{self.kind} {self.name!r}"


def default_path() -> Path | str:
    """Where the history is: $ASCAR_HISTORY (a file or a database URL), or the user's state directory."""
    if named := os.environ.get("ASCAR_HISTORY"):
        return named if "://" in named else Path(named)
    return _state_directory() / "history.sqlite"


def _state_directory() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "ascar"


class History:
    """Every study, trial and reading.

    Args:
        location: a file, or a database URL; None: `default_path()`.
        moment: clock and boot id; None: this machine's.

    Raises:
        HistoryError: cannot be opened, is damaged, is not a history, or was written by a newer version.
    """

    def __init__(self, location: Path | str | None = None, moment: WriteContext | None = None) -> None:
        self._database = Database(default_path() if location is None else location)
        self._moment = moment or WriteContext(_now, _boot_id())
        self._runs: list[Run] = []
        file = self._database.file
        self._locks = Path(f"{file}.locks") if file else _state_directory() / "locks"

    @classmethod
    def existing(cls) -> Self:
        """The history as it is, for reading: nothing is made where there is none yet.

        Raises:
            InputError: $ASCAR_HISTORY names a file that is not there.
            HistoryError: as the constructor.
        """
        path = default_path()
        if isinstance(path, Path) and not path.exists():
            if named := os.environ.get("ASCAR_HISTORY"):
                raise InputError(
                    f"ASCAR_HISTORY = {named!r}: there is no such file; correct it, "
                    "or let `ascar tune` make it"
                )
            return cls("sqlite://")
        return cls(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let every run go, and close the file."""
        try:
            for run in self._runs:
                run.close()
        finally:
            self._database.close()

    # Writing runs.

    def begin(
        self,
        study: Study,
        space: Space,
        machine: Mapping[str, Any],
        versions: Mapping[str, str] | None = None,
    ) -> Run:
        """A new run of a study, locked against a second one.

        Args:
            study: the study.
            space: the space of the search, as the study restricts it.
            machine: the machine that the results are valid for; JSON-ready.
            versions: the versions of programs that take part, beside ascar's and Python's.

        Raises:
            Refused: another process runs a study of this name.
            HistoryError: it cannot be written.
        """
        begun = BegunRun(
            kind=RunKind.STUDY,
            name=study.name,
            digest=study.digest,
            objective=f"{study.objective.direction} {study.objective.formula}",
            seed=study.seed,
            text=study.text,
            space=space,
        )
        return self.begin_run(begun, machine, versions)

    @contextmanager
    def recording(
        self, begun: BegunRun, machine: Mapping[str, Any], *, go_on: bool = False
    ) -> Generator[Run]:
        """A session or a search while it runs; bad input leaves no run.

        Args:
            begun: what is known of it.
            machine: the machine that the results are valid for; JSON-ready.
            go_on: whether an interrupted run of the same goes on.

        Raises:
            Refused: another process runs it.
            HistoryError: it cannot be written.
        """
        left = self._interrupted(begun) if go_on else None
        run = self.begin_run(begun, machine) if left is None else self._taken_up(left, begun)
        try:
            with run:
                yield run
        except InputError:
            if left is None:
                self.purge([run.id])
            raise

    def begin_run(
        self, begun: BegunRun, machine: Mapping[str, Any], versions: Mapping[str, str] | None = None
    ) -> Run:
        """A new run of any kind, locked against a second one.

        Args:
            begun: what is known of it.
            machine: the machine that the results are valid for; JSON-ready.
            versions: the versions of programs that take part, beside ascar's and Python's.

        Raises:
            Refused: another process runs something of this kind and name.
            HistoryError: it cannot be written.
        """
        now = self._moment.now()
        name = lock_name(begun.kind, begun.name, begun.digest)
        lock = RunLock(self._locks, name, now, begun.title)
        try:
            with self._database.write() as connection:
                # The lock is ours: whoever left a run of this name as running is gone.
                same = _run.c.name if begun.kind is RunKind.STUDY else _run.c.digest
                left = sa.and_(
                    _run.c.kind == begun.kind.value,
                    same == (begun.name if begun.kind is RunKind.STUDY else begun.digest),
                    _run.c.state == RunState.RUNNING.value,
                )
                ids = connection.execute(sa.select(_run.c.id).where(left)).scalars().all()
                connection.execute(_run.update().where(left).values(state=RunState.INTERRUPTED.value))
                seal_runs(connection, ids)
                row = {
                    "kind": begun.kind.value,
                    "name": begun.name,
                    "digest": begun.digest,
                    "state": RunState.RUNNING.value,
                    "objective": begun.objective,
                    "seed": begun.seed,
                    "text": begun.text,
                    "space": codec.dump(space_to_document(begun.space), ordered=True),
                    "versions": codec.dump({**_versions(), **(versions or {})}),
                    "machine_id": _machine_id(connection, machine),
                    "started_at": now,
                    "finished_at": "",
                }
                inserted = connection.execute(_run.insert().values(**row)).inserted_primary_key
                assert inserted is not None
                seal_runs(connection, [inserted[0]])
            return self._open(inserted[0], lock)
        except BaseException:
            lock.release()
            raise

    def resume(self, study: Study, machine: Mapping[str, Any] | None = None, which: Run | None = None) -> Run:
        """The latest run of a study, locked, to go on with; its running trials are marked as interrupted.

        Budget, `[stop]` and `[verify]` of the study may have changed: they decide how long a run goes on,
        not what was measured.

        Args:
            study: the study as it is now.
            machine: the machine that results are valid for now; None: that of the run.
            which: the run to go on with, as it was; None: the latest of the study.

        Raises:
            StudyError: there is none, the study has changed since (names the first key that differs), or
                it is another machine's.
            Refused: another process runs it.
            HistoryError: it cannot be read or written.
        """
        lock = RunLock(self._locks, study.name, self._moment.now(), f"study.name = {study.name!r}")
        try:
            run = self._open(self._latest_of(study) if which is None else which.id, lock)
            _check_machine(run, machine or {})
            run.take_up(study if which is None else None)
        except BaseException:
            lock.release()
            raise
        return run

    # Reading runs.

    def runs(self, name: str | None = None) -> list[RunSummary]:
        """Every run, the latest first; damaged ones, which `listed` names, are left out.

        Args:
            name: only this study's.
        """
        with self._database.read() as connection:
            found = list_runs(connection, self._locks, name, trials_checked=False)
        return [one for one in found if isinstance(one, RunSummary)]

    def listed(self, name: str | None = None) -> list[RunSummary | DamagedRun]:
        """Every run, the latest first, with all its trials held against their checksums.

        Args:
            name: only this study's.
        """
        with self._database.read() as connection:
            return list_runs(connection, self._locks, name, trials_checked=True)

    def run(self, which: int | str, kind: RunKind | None = RunKind.STUDY) -> Run:
        """A run for reading: by its id, or the latest of a name.

        Args:
            which: the run.
            kind: the kind that it must be of; None: any.

        Raises:
            InputError: there is none of that kind; names those there are.
        """
        with self._database.read() as connection:
            kinds = tuple(RunKind) if kind is None else (kind,)
            of_kind = _run.c.kind.in_([one.value for one in kinds])
            conditions: list[sa.ColumnElement[bool]] = []
            if isinstance(which, str):
                conditions.append((_run.c.name == which) & of_kind)
            if isinstance(which, int) or (which.isdecimal() and len(which) < 10):
                conditions.insert(0, _run.c.id == int(which))
            latest = sa.select(sa.func.max(_run.c.id))
            found = next(
                (
                    run_id
                    for condition in conditions
                    if (run_id := connection.execute(latest.where(condition)).scalar()) is not None
                ),
                None,
            )
            if found is None:
                names = connection.execute(sa.select(_run.c.name).distinct().limit(20)).scalars().all()
                known = ", ".join(sorted(names)) or "nothing yet"
                raise InputError(
                    f"run {which!r}: is not in the history {self._database.name}; it holds: {known}"
                )
        run = self._open(found, None)
        if kind is not None and run.kind is not kind:
            raise InputError(
                f"run {run.id}: is a {run.kind.value}, where a {kind.value} is wanted; "
                f"`ascar history show {run.id}` shows it"
            )
        return run

    def damaged(self) -> list[str]:
        """What is not as it was written, in words; empty where everything is.

        Raises:
            HistoryError: the file cannot be read at all.
        """
        with self._database.read() as connection:
            return damaged(connection)

    def purge(self, ids: Iterable[int]) -> int:
        """Remove runs with all their trials and readings, for good; returns how many there were.

        Raises:
            InputError: one of them is not there; nothing was removed.
            Refused: one of them is running; nothing was removed.
        """
        wanted = sorted(set(ids))
        with self._database.write() as connection:
            found = {row.id: row for row in connection.execute(sa.select(_run).where(_run.c.id.in_(wanted)))}
            for run_id in wanted:
                if run_id not in found:
                    raise InputError(
                        f"run {run_id}: is not in the history; `ascar history ls` lists those that are"
                    )
                row = found[run_id]
                pid = process_of(row, self._locks) if row.state == RunState.RUNNING.value else None
                if pid is not None:
                    raise Refused(f"run {run_id} ({row.name}): process {pid} is running it; stop that first")
            connection.execute(_run.delete().where(_run.c.id.in_(wanted)))
            in_use = sa.select(_run.c.machine_id)
            connection.execute(_machine.delete().where(_machine.c.id.not_in(in_use)))
            locks = sa.select(_run.c.kind, _run.c.name, _run.c.digest).distinct()
            kept = {lock_name(*row) for row in connection.execute(locks)}
        for name in {lock_name(row.kind, row.name, row.digest) for row in found.values()} - kept:
            with suppress(Refused):  # a run of this name is just beginning
                RunLock(self._locks, name, "").remove()
        return len(wanted)

    # Runs out and in.

    def export(self, ids: Iterable[int], path: Path, *, readings: bool = True) -> None:
        """Write runs to one file, complete: JSON, Parquet or CSV by its name.

        Args:
            ids: the runs'.
            path: the file to write; an existing file is replaced.
            readings: include every unit reading; these are most of the size.

        Raises:
            InputError: a run is not there, or the name ends otherwise.
            HistoryError: it cannot be written.
        """
        runs: list[tuple[dict[str, Any], list[Trial]]] = []
        for run_id in ids:
            run = self.run(run_id, None)
            with self._database.read() as connection:
                row = connection.execute(sa.select(_run).where(_run.c.id == run_id)).one()
            runs.append((_record(row, run), run.trials(readings=readings)))
        if not runs:
            raise InputError("history export: names no run; `ascar history ls` lists them")
        write_runs(path, runs, readings=readings)

    def import_runs(self, path: Path) -> list[int]:
        """Add the runs of an export, all of them or none; returns their new ids.

        Raises:
            InputError: it is not an export, is damaged, is newer than this ascar, or a run is here already.
            HistoryError: it cannot be written.
        """
        where = f"file {str(path)!r}"
        runs = [run_record(table, where) for table in read_runs(path)]
        ids: list[int] = []
        with self._database.write() as connection:
            for run, space, trials in runs:
                same = (_run.c.digest == run.digest) & (_run.c.started_at == run.started_at)
                known = connection.execute(sa.select(_run.c.id).where(same, _run.c.name == run.name)).scalar()
                if known is not None:
                    raise InputError(
                        f"{where}: its run of {run.name!r} exists already as run {known}; nothing to do"
                    )
                complete = run.state == RunState.COMPLETE.value and run.outcome is not None
                row = {name: getattr(run, name) for name in _COPIED}
                row["state"] = (RunState.COMPLETE if complete else RunState.INTERRUPTED).value
                row["space"] = codec.dump(space_to_document(space), ordered=True)
                row["versions"] = codec.dump(run.versions)
                row["machine_id"] = _machine_id(connection, run.machine)
                row["outcome"] = codec.dump(run.outcome) if complete else None
                row["imported"] = os.path.abspath(path)  # noqa: PTH100 - a link stays one
                inserted = connection.execute(_run.insert().values(**row)).inserted_primary_key
                assert inserted is not None
                ids.append(inserted[0])
                seal_runs(connection, ids[-1:])
                rows = RunTrials(inserted[0], where)
                for trial in trials:
                    rows.put(connection, trial, "")
        return ids

    # What the rest is made of.

    def _interrupted(self, begun: BegunRun) -> int | None:
        """The latest run of the same, where it has not ended."""
        same = (_run.c.kind == begun.kind.value) & (_run.c.digest == begun.digest)
        latest = sa.select(_run.c.id, _run.c.state).where(same).order_by(_run.c.id.desc()).limit(1)
        with self._database.read() as connection:
            row = connection.execute(latest).first()
        return None if row is None or row.state == RunState.COMPLETE.value else row.id

    def _taken_up(self, run_id: int, begun: BegunRun) -> Run:
        name = lock_name(begun.kind, begun.name, begun.digest)
        lock = RunLock(self._locks, name, self._moment.now(), begun.title)
        try:
            run = self._open(run_id, lock)
            run.take_up()
        except BaseException:
            lock.release()
            raise
        return run

    def _latest_of(self, study: Study) -> int:
        """The latest run of this very study."""
        with self._database.read() as connection:
            row = connection.execute(
                sa.select(_run.c.id, _run.c.text)
                .where(_run.c.name == study.name, _run.c.kind == RunKind.STUDY.value)
                .order_by(_run.c.id.desc())
                .limit(1)
            ).first()
        if row is None:
            raise StudyError(
                f"study.name = {study.name!r}: has no run to go on with; leave --resume out to begin one"
            )
        if difference := _difference(row.text, study.text):
            raise StudyError(
                f"{difference} (run {row.id} of {study.name!r}); what was measured would no longer fit: put "
                "back what the study file said then, or leave --resume out to begin a new run"
            )
        return row.id

    def _open(self, run_id: int, lock: RunLock | None) -> Run:
        with self._database.read() as connection:
            row: Any = connection.execute(
                sa.select(_run, _machine.c.description)
                .select_from(_run.join(_machine))
                .where(_run.c.id == run_id)
            ).one()
            where = f"history {self._database.name}: run {run_id}"
            see_words(row._mapping, OF_RUN, where)
            see(row.checksum, checksum_of_run(connection, run_id), where)
        run = Run(
            self._database,
            row,
            lock,
            self._moment,
            Latest(self._locks, lock_name(row.kind, row.name, row.digest)),
        )
        self._runs.append(run)
        return run


def _record(row: Any, run: Run) -> dict[str, Any]:
    """A run without its trials, as an export has it."""
    return {
        **{name: getattr(row, name) for name in _COPIED},
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "space": space_to_document(run.space),
        "machine": run.machine,
        "versions": run.versions,
        "outcome": None if row.outcome is None else codec.load(row.outcome, f"run {run.id}"),
    }


def _machine_id(connection: sa.Connection, machine: Mapping[str, Any]) -> int:
    """The row of a machine's description; the same description is kept once."""
    digest = hashlib.sha256(codec.dump(machine).encode()).hexdigest()
    known = connection.execute(sa.select(_machine.c.id).where(_machine.c.digest == digest)).scalar()
    if known is not None:
        return known
    inserted = connection.execute(
        _machine.insert().values(digest=digest, description=codec.dump(machine, ordered=True))
    )
    assert inserted.inserted_primary_key is not None
    return inserted.inserted_primary_key[0]


def _versions() -> dict[str, str]:
    return {"ascar": __version__, "python": platform.python_version()}


def _check_machine(run: Run, machine: Mapping[str, Any]) -> None:
    """See that a run was measured on this machine.

    Raises:
        StudyError: it was not.
    """
    if difference := machine_difference(run.machine, machine):
        raise StudyError(
            f"machine {difference} (run {run.id} of {run.name!r}): what was measured before does not "
            "compare; leave --resume out to begin a new run"
        )


def _difference(old: str, new: str) -> str:
    """The first key that decides what is measured and differs, and how many do; empty where none does."""
    before, after = (_flat(measured_tables(tomllib.loads(text))) for text in (old, new))
    keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    if not keys:
        return ""
    key, absent = keys[0], "absent"
    more = f" (and {len(keys) - 1} more keys)" if len(keys) > 1 else ""
    return f"{key}: was {before.get(key, absent)}, is now {after.get(key, absent)}{more}"


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Values by dotted key, as text."""
    flat: dict[str, str] = {}
    for key, value in table.items():
        flat |= (
            _flat(cast("dict[str, Any]", value), f"{prefix}{key}.")
            if isinstance(value, dict)
            else {f"{prefix}{key}": repr(value)}
        )
    return flat


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError as error:
        raise HistoryError(f"this boot's id: {error}; ascar needs Linux with /proc mounted") from error
