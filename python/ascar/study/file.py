"""A whole study: TOML text read into one frozen value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.errors import StudyError
from ascar.objective import Objective
from ascar.small_file import SmallFile, toml_table
from ascar.study.bounds import check_consistent
from ascar.study.guard import GuardSection
from ascar.study.keys import convert, duration, formula, words_in
from ascar.study.nodes import on_node
from ascar.study.sections import (
    MeasurementSection,
    RecommendSection,
    StartSection,
    StudySection,
    VerifySection,
    check_measurement,
    check_recommend,
    check_start,
    check_study,
    check_verify,
)
from ascar.study.stop import StopSection, check_stop, targets_of
from ascar.toml import toml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from ascar.expression import Expression
    from ascar.space import Configuration, Space

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
    recommend: RecommendSection = RecommendSection()
    # That of `ascar capes up`, which a search leaves alone: one file serves both loops.
    online: dict[str, Any] = {}
    guard: GuardSection = GuardSection()
    node: tuple[dict[str, Any], ...] = ()


class Study(msgspec.Struct, frozen=True):
    """A study: what is tuned, under which load, for what, and within what.

    Attributes:
        name: the study's name.
        objective: the objective; where there are several, the compromise between them.
        objectives: all of them; one where there is only that.
        constraints: the constraints that a recommended configuration must satisfy, floors and ceilings among
            them.
        guard: what protects the system.
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
        recommend: how little the recommendation changes.
        digest: SHA-256 of the file's meaning: the same for the same study, whatever its comments.
        text: the file as it was read.
    """

    name: str
    objective: Objective
    objectives: tuple[Objective, ...]
    constraints: tuple[Expression, ...]
    guard: GuardSection
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
    recommend: RecommendSection
    digest: str
    text: str

    @property
    def recommend_margin(self) -> float:
        """The loss that is accepted for changing fewer parameters; 0: none is left out."""
        return self.verify.margin if self.recommend.margin is None else self.recommend.margin

    @classmethod
    def read(cls, path: Path) -> Study:
        """Read a study file.

        Raises:
            StudyError: the file cannot be read, or a key is wrong.
        """
        study = cls.parse(study_text(path, "make one with `ascar init`"), called(path))
        folder = path.parent.absolute()
        parts = {name: words_in(getattr(study, name), folder) for name in ("target", "workload", "optimizer")}
        return msgspec.structs.replace(study, **parts)

    @classmethod
    def of(
        cls, source: Study | Mapping[str, Any] | str | PathLike[str], /, **tables: Mapping[str, Any]
    ) -> Study:
        """A study from Python.

        Args:
            source: a study, the path of a study file, or its tables by name.
            tables: keys that take the place of the source's, by table: `stop={"trials": 50}`.

        Raises:
            StudyError: the file cannot be read, or a key is wrong.
        """
        if isinstance(source, Study):
            study = source
        elif isinstance(source, Mapping):
            study = cls.parse(_toml_of(source))
        else:
            study = cls.read(Path(source))
        if not tables:
            return study
        known = study_table(study.text)
        given = {name: known.get(name, {}) | dict(keys) for name, keys in tables.items()}
        changed = cls.parse(_toml_of(known | given))
        # A Python function is not a text, and goes along.
        return msgspec.structs.replace(changed, target={**study.target, **changed.target})

    @classmethod
    def of_function(
        cls,
        function: Callable[[Configuration], Any],
        space: Space,
        objective: str | Sequence[str] = "maximize value",
        budget: str = "1 min",
        **tables: Mapping[str, Any],
    ) -> Study:
        """A study whose system is a Python function (see `ascar.systems.function`).

        Args:
            function: called with a configuration; returns a number (the metric `value`) or numbers by metric,
                or yields them.
            space: the configurations that it can be called with.
            objective: "maximize FORMULA" or "minimize FORMULA" over its metrics, or several of those.
            budget: time for the whole study.
            tables: further keys of a study file, by table: `study={"name": "cache", "seed": 1}`.

        Raises:
            StudyError: a key is wrong.
        """
        from ascar.space import space_key  # only here: what reads a study file does without

        called = str(getattr(function, "__name__", type(function).__name__))
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", called).strip("-._")[:80] or "function"
        table = {
            **tables,
            "study": {"name": name, "objective": objective, "budget": budget, **tables.get("study", {})},
            "target": {
                **tables.get("target", {}),
                "kind": "function",
                "name": called,
                "space": space_key(space),
            },
        }
        study = cls.parse(_toml_of(table))
        return msgspec.structs.replace(
            study, target={**study.target, "function": function, "search_space": space}
        )

    @classmethod
    def parse(cls, text: str, what: str = "study file") -> Study:
        """Read a study from TOML text.

        Args:
            text: the text.
            what: the file in the user's words, for errors.

        Raises:
            StudyError: a key is unknown, missing, of the wrong type or out of range.
        """
        table = study_table(text, what)
        file = convert(table, _File)
        check_study(file.study)
        check_measurement(file.measurement)
        check_start(file.start)
        check_stop(file.stop)
        check_verify(file.verify)
        check_recommend(file.recommend)
        file.guard.check()
        objectives = _objectives(file.study.objective)
        constraints = tuple(
            formula(f"study.constraints[{index}]", constraint)
            for index, constraint in enumerate(file.study.constraints)
        )
        check_consistent((*constraints, *file.guard.limits))
        return cls(
            name=file.study.name,
            objective=Objective.compromise(objectives, file.study.weights),
            objectives=objectives,
            constraints=(*constraints, *file.guard.limits),
            guard=file.guard,
            budget_s=duration("study.budget", file.study.budget),
            seed=file.study.seed,
            target=on_node(file.target, file.node),
            space=file.space,
            workload=file.workload,
            measurement=file.measurement,
            optimizer=file.optimizer,
            start=file.start,
            stop=file.stop,
            stop_targets=targets_of(file.stop),
            verify=file.verify,
            recommend=file.recommend,
            digest=study_digest(table),
            text=text,
        )


def tuned_tables(path: Path) -> tuple[dict[str, Any], dict[str, Any], GuardSection]:
    """The tables [target], [space] and [guard] of a study, whichever loop it is for.

    Raises:
        StudyError: the file cannot be read, or has no [target].
    """
    table = table_of_file(path)
    found = {name: table.get(name, {}) for name in ("target", "space")}
    for name, keys in found.items():
        if not isinstance(keys, dict):
            raise StudyError(f"{name} = {keys!r:.80}: must be a table")
    if not found["target"]:
        raise StudyError("target: missing; the study needs it (`ascar init` writes a complete study file)")
    nodes = table.get("node", [])
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in cast("list[Any]", nodes)):
        raise StudyError("node: must be tables: write [[node]]")
    target = on_node(found["target"], cast("list[dict[str, Any]]", nodes))
    guard = convert(table.get("guard", {}), GuardSection, "guard")
    guard.check()
    return words_in(target, path.parent.absolute()), found["space"], guard


def _toml_of(tables: Mapping[str, Any]) -> str:
    """The text of a study file with these tables.

    Raises:
        StudyError: a value is one that TOML does not have.
    """
    try:
        return toml_text(tables)
    except (TypeError, ValueError, AttributeError) as error:
        raise StudyError(f"study: {error}; use numbers, texts, booleans, lists and tables") from error


def _objectives(texts: str | tuple[str, ...]) -> tuple[Objective, ...]:
    if isinstance(texts, str):
        return (Objective.parse(texts),)
    found = tuple(Objective.parse(text, f"study.objective[{index}]") for index, text in enumerate(texts))
    for index, one in enumerate(found):
        for before, other in enumerate(found[:index]):
            if one.formula == other.formula:
                raise StudyError(
                    f"study.objective[{index}] = {texts[index]!r}: has the formula of "
                    f"study.objective[{before}] = {texts[before]!r}; name each formula once"
                )
    return found


def study_text(path: Path, advice: str) -> str:
    """The text of a study file.

    Args:
        path: the path of the file.
        advice: the advice to give where the file cannot be read.

    Raises:
        StudyError: it cannot be read, is too large, or is not a text.
    """
    return SmallFile(path, called(path), FILE_BYTES_MAX, advice, StudyError).text()


def study_digest(tables: Mapping[str, Any]) -> str:
    """SHA-256 of what a study's tables mean to a search, whatever its comments."""
    return hashlib.sha256(msgspec.json.encode(_searched(tables), order="sorted")).hexdigest()


def _searched(tables: Mapping[str, Any]) -> dict[str, Any]:
    searched = {name: keys for name, keys in tables.items() if name not in ("online", "guard", "node")}
    # When changes are allowed, and how fast, decides nothing about what is found.
    guard = {part: keys for part, keys in tables.get("guard", {}).items() if part not in ("window", "pace")}
    return searched | ({"guard": guard} if guard else {})


def measured_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """What of a study's tables decides what trials measure: not how long it goes on, nor what is claimed."""
    kept = {
        name: keys for name, keys in _searched(tables).items() if name not in ("stop", "verify", "recommend")
    }
    return kept | {"study": {key: text for key, text in tables.get("study", {}).items() if key != "budget"}}


def table_of_file(path: Path) -> dict[str, Any]:
    """The tables of a study file, as they stand there.

    Raises:
        StudyError: the file cannot be read, or is not TOML.
    """
    return study_table(study_text(path, "make one with `ascar init`"), called(path))


def study_table(text: str, what: str = "study file") -> dict[str, Any]:
    """The tables of a study file's text, as they stand there.

    Args:
        text: the text.
        what: the file in the user's words, for errors.

    Raises:
        StudyError: the text is not TOML.
    """
    return toml_table(text, lambda reason: StudyError(f"{what} {reason}"))


def called(path: Path) -> str:
    """A study file in the user's words, for errors."""
    return f"study file {str(path)!r}"
