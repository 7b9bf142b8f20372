"""Runs and trials as an export has them: plain JSON, checked when it comes in."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ascar import typed
from ascar.errors import InputError, StudyError
from ascar.history import codec
from ascar.history.conclusion import check_conclusion, check_outcome
from ascar.objective import Objective
from ascar.results.measurement import Measurement, Series
from ascar.results.trial import Abandonment, Change, Failure, Origin, Purpose, Trial, TrialState
from ascar.space.document import space_from_document
from ascar.space.renamed import has_old_names, study_with_present_names, with_present_names
from ascar.study import Study, study_digest, study_table
from ascar.systems.catalogue import check_where_known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.space import Configuration, Space

FORMAT = "ascar-history"
FORMAT_VERSION = 3
_PRESENT_NAMES_SINCE = 3
# The same as a study file's: it becomes part of a lock file's name.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class SeriesRecord(msgspec.Struct, frozen=True):
    """Unit readings."""

    seconds: list[float]
    values: list[float]


class ChangeRecord(msgspec.Struct, frozen=True):
    """What a change took."""

    parameters: tuple[str, ...]
    category: int
    step_s: dict[str, float]
    filled: bool = False


class TrialRecord(msgspec.Struct, frozen=True):
    """A trial, as an export has it."""

    number: int
    configuration: dict[str, Any]
    purpose: Purpose
    state: TrialState
    started_at: str
    score: float | None = None
    measurement: Measurement | None = None
    metrics: dict[str, float] = {}
    series: dict[str, SeriesRecord] = {}
    change: ChangeRecord | None = None
    stage_s: dict[str, float] = {}
    unmet: tuple[str, ...] = ()
    failure: Failure | None = None
    abandonment: Abandonment | None = None
    origin: Origin | None = None
    reason: str = ""

    def trial(self, configuration: Configuration) -> Trial:
        """The trial itself.

        Raises:
            InputError: its parts do not fit each other.
        """
        if self.number < 1 or self.state is TrialState.RUNNING:
            raise InputError(
                f"number {self.number}, state {self.state.value!r}: must be above zero, and ended"
            )
        if self.score is not None and not math.isfinite(self.score):
            raise InputError(f"score {self.score}: must be a finite number, or null")
        for name, series in self.series.items():
            if len(series.seconds) != len(series.values):
                raise InputError(
                    f"series {name!r}: {len(series.seconds)} instants, {len(series.values)} readings"
                )
        change = self.change
        return Trial(
            number=self.number,
            configuration=configuration,
            purpose=self.purpose,
            state=self.state,
            score=self.score,
            measurement=self.measurement,
            metrics=self.metrics,
            series={name: Series.of(series.seconds, series.values) for name, series in self.series.items()},
            change=None
            if change is None
            else Change(change.parameters, change.category, change.step_s, change.filled),
            stage_s=self.stage_s,
            unmet=self.unmet,
            failure=self.failure,
            abandonment=self.abandonment,
            started_at=self.started_at,
            origin=self.origin,
            reason=self.reason,
        )


class RunRecord(msgspec.Struct, frozen=True):
    """A run, as an export has it.

    Attributes:
        format: "ascar-history".
        version: the version of this format.
        name: the study's.
        digest: a digest of the study file's meaning.
        state: the state of the run.
        objective: "maximize FORMULA" or "minimize FORMULA".
        seed: the seed of every random choice.
        text: the study file.
        space: the space of the search.
        machine: the machine that the results are valid for.
        versions: the versions of the programs that took part.
        started_at: ISO 8601, UTC.
        finished_at: the same; empty where it did not end.
        outcome: the outcome; None where the run did not end.
        trials: the trials by number; empty where they stand in the rows of a table.
        kind: the loop that made the run; version 1 had studies only.
    """

    format: str
    version: int
    name: str
    digest: str
    state: str
    objective: str
    seed: int
    text: str
    space: dict[str, Any]
    machine: dict[str, Any]
    versions: dict[str, str]
    started_at: str
    finished_at: str
    outcome: dict[str, Any] | None
    trials: list[TrialRecord] = []
    kind: Literal["study", "session", "search", "learning"] = "study"


def trial_record(trial: Trial, *, readings: bool) -> dict[str, Any]:
    """A trial as plain JSON values, which `TrialRecord` reads.

    Args:
        trial: a trial that has ended.
        readings: include its unit readings.
    """
    parts = ("number", "purpose", "state", "started_at", "score", "measurement", "metrics", "change")
    record = {
        name: getattr(trial, name)
        for name in (*parts, "stage_s", "unmet", "failure", "abandonment", "origin", "reason")
    }
    record["configuration"] = dict(trial.configuration)
    kept = trial.series.items() if readings else ()
    record["series"] = {
        name: {"seconds": series.seconds.tolist(), "values": series.values.tolist()} for name, series in kept
    }
    return codec.plain(record)


def _with_present_names(table: Mapping[str, Any]) -> dict[str, Any]:
    """A run of a storage preset, exported while the kernel's settings in it had names of their own."""
    found = {**table, **{key: with_present_names(table.get(key)) for key in ("space", "outcome")}}
    found["trials"] = [
        {**trial, **{key: with_present_names(trial.get(key)) for key in ("configuration", "change")}}
        for trial in table.get("trials", ())
    ]
    if isinstance(text := table.get("text"), str):
        found["text"] = study_with_present_names(text)
        found["digest"] = study_digest(study_table(found["text"]))
    return found


def _check_target(text: str, space: Space, where: str) -> None:
    """Refuse a space that the target of the study does not have.

    Raises:
        InputError: it does not.
    """
    try:
        target = Study.parse(text).target
    except StudyError:  # which this version reads differently, and neither exports nor applies
        return
    try:
        check_where_known(target, space)
    except InputError as error:
        raise InputError(f"{where}: {error.message}") from error


def run_record(table: Mapping[str, Any], where: str) -> tuple[RunRecord, Space, list[Trial]]:
    """A run from outside, checked in every part.

    Args:
        table: the decoded JSON of the run.
        where: the file, for messages.

    Raises:
        InputError: it is not a run of ours, newer than this ascar, or its parts do not fit each other.
    """
    if table.get("format") != FORMAT:
        raise InputError(f"{where}: is not an export of a history; `ascar history export` makes one")
    version = table.get("version")
    if not isinstance(version, int) or version < 1 or version > FORMAT_VERSION:
        raise InputError(
            f"{where}: has version {version!r}, this ascar reads versions up to {FORMAT_VERSION}; "
            "use a newer ascar"
        )
    if version < _PRESENT_NAMES_SINCE and has_old_names(table.get("space")):
        table = _with_present_names(table)
    try:
        run = typed.convert(table, RunRecord, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise InputError(f"{where}: {error}; export it again") from error
    if not _NAME.fullmatch(run.name):
        raise InputError(f"{where}: name {run.name!r}: is not a name of a study; export it again")
    space = space_from_document(run.space)
    if run.kind == "study":
        Objective.parse(run.objective)
        _check_target(run.text, space, where)
        if run.outcome is not None:
            check_outcome(run.outcome, space, where)
    elif run.outcome is not None:
        check_conclusion(run.kind, run.outcome, where)
    trials: dict[int, Trial] = {}
    for record in run.trials:
        if record.number in trials:
            raise InputError(f"{where}: trial {record.number} appears twice; export it again")
        try:
            trials[record.number] = record.trial(space.validate(record.configuration))
        except InputError as error:
            raise InputError(f"{where}: trial {record.number}: {error.message}; export it again") from error
    return run, space, [trials[number] for number in sorted(trials)]
