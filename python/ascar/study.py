"""The study file: TOML read into frozen values, every mistake named by its key."""

from __future__ import annotations

import hashlib
import re
import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from ascar.errors import ExpressionError, InputError, StudyError
from ascar.expression import Expression, parse
from ascar.objective import Objective
from ascar.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "FILE_BYTES_MAX",
    "MeasurementSection",
    "StopSection",
    "Study",
    "StudySection",
    "VerifySection",
    "convert",
    "duration",
    "within",
]

FILE_BYTES_MAX = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_T = TypeVar("_T")


class StudySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[study]`: what to reach, within what.

    Attributes:
        name: letters, digits, ".", "_" and "-", at most 80.
        objective: "maximize FORMULA" or "minimize FORMULA" over metrics.
        budget: time for the whole study, the verification included.
        constraints: formulas over metrics that a recommended configuration must satisfy.
        seed: of every random choice.
    """

    name: str
    objective: str
    budget: str
    constraints: tuple[str, ...] = ()
    seed: int = 0


class MeasurementSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[measurement]`: when one evaluation is good enough.

    Attributes:
        preset: "quick", "normal" or "strict": sets interval_width and readings_min (Pilot's presets).
        interval_width: of the mean's interval, over the mean, e.g. 0.1; None: the preset's.
        confidence: of the intervals.
        readings_min: the fewest readings in the stable phase; None: the preset's.
        load_min: the load runs at least this long, unless it is abandoned.
        load_max: and at most this long.
        reading: time between unit readings.
        abandon: the load of a search trial is ended as soon as it is worse than the best so far; so often, at
            most, that happens to one that is as good; 0: never.
    """

    preset: str = "quick"
    interval_width: float | None = None
    confidence: float = 0.95
    readings_min: int | None = None
    load_min: str = "3 s"
    load_max: str = "10 s"
    reading: str = "250 ms"
    abandon: float = 0.01


class StopSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[stop]`: reasons to end the search before the budget does; any of them suffices.

    Attributes:
        trials: so many search trials were made.
        trials_without_gain: so many in a row brought nothing better (Cao 9.6, sliding window).
        target: a formula over metrics that a usable trial meets (Cao 9.6, user-specified).
    """

    trials: int | None = None
    trials_without_gain: int | None = None
    target: str | None = None


class VerifySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[verify]`: the last comparison, best against default, in turns, tested after every pair of runs.

    Attributes:
        p_value: the level at which two configurations are called different, over all looks together.
        margin: relative difference that does not matter: the comparison ends once the two are shown to differ
            by less; 0: never.
        runs_min: runs a side, at least.
        runs_max: runs a side, at most.
        budget_share: the share of the study's budget kept for it.
    """

    p_value: float = 0.01
    margin: float = 0.03
    runs_min: int = 5
    runs_max: int = 30
    budget_share: float = 0.3


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    study: StudySection
    target: dict[str, Any]
    space: dict[str, Any] = {}
    workload: dict[str, Any] = {}
    measurement: MeasurementSection = MeasurementSection()
    optimizer: dict[str, Any] = {}
    stop: StopSection = StopSection()
    verify: VerifySection = VerifySection()


class Study(msgspec.Struct, frozen=True):
    """A study: what is tuned, under which load, for what, and within what.

    Attributes:
        name: the study's name.
        objective: what to reach.
        constraints: what a recommended configuration must satisfy.
        budget_s: seconds for the whole study.
        seed: of every random choice.
        target: the `[target]` table; its keys are the target kind's own.
        space: the `[space]` table.
        workload: the `[workload]` table; its keys are the workload kind's own.
        measurement: when one evaluation is good enough.
        optimizer: the `[optimizer]` table.
        stop: reasons to end early.
        stop_target: `stop.target`, parsed.
        verify: the last comparison.
        digest: SHA-256 of the file's meaning: the same for the same study, whatever its comments.
        text: the file as it was read.
    """

    name: str
    objective: Objective
    constraints: tuple[Expression, ...]
    budget_s: float
    seed: int
    target: dict[str, Any]
    space: dict[str, Any]
    workload: dict[str, Any]
    measurement: MeasurementSection
    optimizer: dict[str, Any]
    stop: StopSection
    stop_target: Expression | None
    verify: VerifySection
    digest: str
    text: str

    @classmethod
    def read(cls, path: Path) -> Study:
        """Read a study file.

        Raises:
            StudyError: the file cannot be read, or a key is wrong.
        """
        try:
            with path.open("rb") as file:  # a device has no size to look at
                content = file.read(FILE_BYTES_MAX + 1)
            if len(content) > FILE_BYTES_MAX:
                raise StudyError(
                    f"study file {str(path)!r}: larger than {FILE_BYTES_MAX} bytes; this is no study file"
                )
            text = content.decode("utf-8")
        except OSError as error:
            raise StudyError(
                f"study file {str(path)!r}: {error.strerror}; make one with `ascar init`"
            ) from error
        except UnicodeDecodeError as error:
            raise StudyError(f"study file {str(path)!r}: is not UTF-8 text ({error.reason})") from error
        return cls.parse(text)

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
        _check(file)
        canonical = msgspec.json.encode(table, order="sorted")
        return cls(
            name=file.study.name,
            objective=Objective.parse(file.study.objective),
            constraints=tuple(
                _formula(f"study.constraints[{index}]", constraint)
                for index, constraint in enumerate(file.study.constraints)
            ),
            budget_s=duration("study.budget", file.study.budget),
            seed=file.study.seed,
            target=file.target,
            space=file.space,
            workload=file.workload,
            measurement=file.measurement,
            optimizer=file.optimizer,
            stop=file.stop,
            stop_target=None if file.stop.target is None else _formula("stop.target", file.stop.target),
            verify=file.verify,
            digest=hashlib.sha256(canonical).hexdigest(),
            text=text,
        )


def duration(key: str, text: str) -> float:
    """Seconds of the duration at `key`.

    Raises:
        StudyError: not a duration, or not above zero.
    """
    try:
        seconds = parse_duration(text)
    except InputError as error:
        raise StudyError(f"{key} = {text!r}: {error.message.removeprefix(f'{text!r}: ')}") from error
    if not seconds > 0:
        raise StudyError(f"{key} = {text!r}: must be longer than zero, e.g. '10 min'")
    return seconds


def convert(table: Mapping[str, Any], kind: type[_T], section: str = "") -> _T:
    """A table of the file as a value of type `kind`.

    Args:
        table: what TOML gave.
        kind: a frozen msgspec Struct that forbids unknown fields.
        section: the table's own key, for messages; empty at the top.

    Raises:
        StudyError: one line naming the key, the value and what is allowed.
    """
    try:
        return msgspec.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        raise StudyError(_explain(str(error), table, kind, section)) from error


def _explain(message: str, table: Mapping[str, Any], kind: type[Any], section: str) -> str:
    """Msgspec's message as one line that names the key, the value and what is allowed."""
    problem, _, where = message.partition(" - at `$")
    path = where.rstrip("`").strip(".") if where else ""
    unknown = re.search(r"unknown field `([^`]*)`", problem)
    missing = re.search(r"missing required field `([^`]*)`", problem)
    owner, value = _resolve(table, kind, path)
    allowed = list(getattr(owner, "__struct_fields__", ()))
    if unknown:
        key = _join(section, path, unknown[1])
        near = get_close_matches(unknown[1], allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{key}: unknown key; allowed here: {', '.join(allowed)}{hint}"
    if missing:
        key = _join(section, path, missing[1])
        return f"{key}: missing; the table needs it (`ascar init` writes a complete study file)"
    return f"{_join(section, path)} = {value!r}: must be {_allowed(problem, owner, path)}"


# What a key may look like, where its default does not show it.
_EXAMPLES = {
    "budget": "text such as '10 min'",
    "objective": "text such as 'maximize throughput_ops_per_s'",
    "file_systems": "a list such as ['ext4', 'xfs']",
}


def _allowed(problem: str, owner: Any, path: str) -> str:
    """What may stand at a key, in the words of a study file."""
    key = next((part for part in reversed(path.split(".")) if not part.startswith("[")), "")
    key = key.partition("[")[0]
    fields = {field.name: field for field in msgspec.structs.fields(owner)} if _is_struct(owner) else {}
    if key not in fields or not problem.startswith(("Expected", "Invalid enum value")):
        return problem.removeprefix("Expected ").replace("`", "")
    if key in _EXAMPLES:
        return _EXAMPLES[key]
    default = fields[key].default
    info = msgspec.inspect.type_info(fields[key].type)
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    words = [_words(kind, default) for kind in kinds if not isinstance(kind, msgspec.inspect.NoneType)]
    return " or ".join(words)


_KINDS: dict[type[msgspec.inspect.Type], str] = {
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.IntType: "a whole number, without quotes",
    msgspec.inspect.FloatType: "a number, without quotes",
    msgspec.inspect.DictType: "a table",
    msgspec.inspect.StructType: "a table",
}


def _words(kind: msgspec.inspect.Type, default: object) -> str:
    match kind:
        case msgspec.inspect.LiteralType(values):
            return f"one of {', '.join(repr(value) for value in values)}"
        case msgspec.inspect.StrType():
            return f"text such as {default!r}" if isinstance(default, str) else "text, in quotes"
        case (
            msgspec.inspect.VarTupleType(item_type=item)
            | msgspec.inspect.ListType(item_type=item)
            | msgspec.inspect.TupleType(item_types=(item, *_))
        ):
            return f"a list, each {_words(item, None)}"
        case _:
            return _KINDS.get(type(kind), "a value of another kind")


def _resolve(table: Any, kind: Any, path: str) -> tuple[Any, Any]:
    """The innermost struct type on a msgspec path, and the value found at its end."""
    owner: Any = kind
    holder: Any = kind
    value: Any = table
    for part in [part for part in re.split(r"\.|(?=\[)", path) if part]:
        if part.startswith("["):  # msgspec says "[...]", not which: the whole list is shown
            continue
        value = cast("dict[str, Any]", value).get(part) if isinstance(value, dict) else value
        fields = (
            {field.name: field.type for field in msgspec.structs.fields(owner)} if _is_struct(owner) else {}
        )
        owner = fields.get(part, owner)
        holder = owner if _is_struct(owner) else holder
    return holder, value


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part).replace(".[", "[") or "the file"


def _formula(key: str, text: str) -> Expression:
    try:
        return parse(text)
    except ExpressionError as error:
        raise StudyError(f"{key} = {text!r}: {error.message}") from error


def _check(file: _File) -> None:
    """Ranges that types cannot say."""
    if not _NAME.fullmatch(file.study.name):
        raise StudyError(
            f"study.name = {file.study.name!r}: must be 1 to 80 letters, digits, '.', '_' or '-', "
            "the first a letter or digit"
        )
    within("study.seed", file.study.seed, 0, 2**63 - 1)
    measurement, stop, verify = file.measurement, file.stop, file.verify
    presets = ("quick", "normal", "strict")
    if measurement.preset not in presets:
        raise StudyError(f"measurement.preset = {measurement.preset!r}: must be one of {', '.join(presets)}")
    if measurement.interval_width is not None:
        within("measurement.interval_width", measurement.interval_width, 1e-4, 2.0)
    within("measurement.confidence", measurement.confidence, 0.5, 0.9999)
    if measurement.readings_min is not None:
        within("measurement.readings_min", measurement.readings_min, 4, 1_000_000)
    load_min_s = duration("measurement.load_min", measurement.load_min)
    load_max_s = duration("measurement.load_max", measurement.load_max)
    if load_max_s < load_min_s:
        raise StudyError(
            f"measurement.load_max = {measurement.load_max!r}: must be at least load_min, "
            f"{measurement.load_min!r}"
        )
    within("measurement.reading (seconds)", duration("measurement.reading", measurement.reading), 0.1, 60)
    within("measurement.abandon", measurement.abandon, 0.0, 0.2)
    if stop.trials is not None:
        within("stop.trials", stop.trials, 1, 10_000_000)
    if stop.trials_without_gain is not None:
        within("stop.trials_without_gain", stop.trials_without_gain, 1, 10_000_000)
    within("verify.p_value", verify.p_value, 1e-6, 0.2)
    within("verify.margin", verify.margin, 0.0, 0.9)
    within("verify.runs_min", verify.runs_min, 2, 1000)
    within("verify.runs_max", verify.runs_max, verify.runs_min, 10_000)
    within("verify.budget_share", verify.budget_share, 0.0, 0.9)


def within(key: str, value: float, low: float, high: float) -> None:
    """Check a number's range.

    Raises:
        StudyError: it is below `low`, above `high`, or not a number.
    """
    if not low <= value <= high:
        raise StudyError(f"{key} = {value!r}: must be from {low:g} to {high:g}")
