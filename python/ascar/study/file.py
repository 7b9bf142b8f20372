"""A whole study: TOML text read into one frozen value."""

from __future__ import annotations

import hashlib
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import StudyError
from ascar.objective import Objective
from ascar.small_file import SmallFile
from ascar.study.keys import convert, duration, formula
from ascar.study.sections import (
    MeasurementSection,
    StartSection,
    StudySection,
    VerifySection,
    check_measurement,
    check_start,
    check_study,
    check_verify,
)
from ascar.study.stop import StopSection, check_stop, targets_of

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.expression import Expression

FILE_BYTES_MAX = 1_000_000


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    study: StudySection
    target: dict[str, Any]
    space: dict[str, Any] = {}
    workload: dict[str, Any] = {}
    measurement: MeasurementSection = MeasurementSection()
    optimizer: dict[str, Any] = {}
    start: StartSection = StartSection()
    stop: StopSection = StopSection()
    verify: VerifySection = VerifySection()


class Study(msgspec.Struct, frozen=True):
    """A study: what is tuned, under which load, for what, and within what.

    Attributes:
        name: the study's name.
        objective: the objective; where there are several, the compromise between them.
        objectives: all of them; one where there is only that.
        constraints: the constraints that a recommended configuration must satisfy.
        budget_s: seconds for the whole study.
        seed: the seed of every random choice.
        target: the `[target]` table; its keys are the target kind's own.
        space: the `[space]` table.
        workload: the `[workload]` table; its keys are the workload kind's own.
        measurement: the precision that one evaluation must reach.
        optimizer: the `[optimizer]` table.
        start: the configurations to try first.
        stop: reasons to end early.
        stop_targets: the formulas of its targets, by their text.
        verify: the last comparison.
        digest: SHA-256 of the file's meaning: the same for the same study, whatever its comments.
        text: the file as it was read.
    """

    name: str
    objective: Objective
    objectives: tuple[Objective, ...]
    constraints: tuple[Expression, ...]
    budget_s: float
    seed: int
    target: dict[str, Any]
    space: dict[str, Any]
    workload: dict[str, Any]
    measurement: MeasurementSection
    optimizer: dict[str, Any]
    start: StartSection
    stop: StopSection
    stop_targets: dict[str, Expression]
    verify: VerifySection
    digest: str
    text: str

    @classmethod
    def read(cls, path: Path) -> Study:
        """Read a study file.

        Raises:
            StudyError: the file cannot be read, or a key is wrong.
        """
        return cls.parse(study_text(path, "make one with `ascar init`"))

    @classmethod
    def parse(cls, text: str) -> Study:
        """Read a study from TOML text.

        Raises:
            StudyError: a key is unknown, missing, of the wrong type or out of range.
        """
        try:
            table = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise StudyError(f"study file is not TOML: {error}") from error
        file = convert(table, _File)
        check_study(file.study)
        check_measurement(file.measurement)
        check_start(file.start)
        check_stop(file.stop)
        check_verify(file.verify)
        objectives = _objectives(file.study.objective)
        canonical = msgspec.json.encode(table, order="sorted")
        return cls(
            name=file.study.name,
            objective=Objective.compromise(objectives, file.study.weights),
            objectives=objectives,
            constraints=tuple(
                formula(f"study.constraints[{index}]", constraint)
                for index, constraint in enumerate(file.study.constraints)
            ),
            budget_s=duration("study.budget", file.study.budget),
            seed=file.study.seed,
            target=file.target,
            space=file.space,
            workload=file.workload,
            measurement=file.measurement,
            optimizer=file.optimizer,
            start=file.start,
            stop=file.stop,
            stop_targets=targets_of(file.stop),
            verify=file.verify,
            digest=hashlib.sha256(canonical).hexdigest(),
            text=text,
        )


def _objectives(texts: str | tuple[str, ...]) -> tuple[Objective, ...]:
    if isinstance(texts, str):
        return (Objective.parse(texts),)
    return tuple(Objective.parse(text, f"study.objective[{index}]") for index, text in enumerate(texts))


def study_text(path: Path, advice: str) -> str:
    """The text of a study file.

    Args:
        path: the path of the file.
        advice: the advice to give where the file cannot be read.

    Raises:
        StudyError: it cannot be read, is too large, or is no text.
    """
    return SmallFile(path, f"study file {str(path)!r}", FILE_BYTES_MAX, advice, StudyError).text()
