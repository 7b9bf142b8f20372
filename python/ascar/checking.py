"""A study tried out before it is run: the load once, and every parameter set, read back and put back once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.errors import AscarError, InputError, Refused
from ascar.evaluation import Evaluator
from ascar.events import ignore
from ascar.prepared_study import PreparedStudy
from ascar.results.check import CheckedParameter, CheckResult
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.study import duration
from ascar.systems import DEFAULT_KIND, system_of
from ascar.systems.asking import apply_checked, entering, read_checked, sample_checked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ascar.results.machine import Need
    from ascar.space import Configuration, Space, Value
    from ascar.study import Study
    from ascar.systems import Announced

_LOAD_MAX_S = 3.0


@dataclass(frozen=True, slots=True)
class CheckProgress:
    """How far a check is.

    Attributes:
        done: the number of steps that are done.
        steps: the number of all steps: the load, and each parameter.
        doing: what is being tried.
        elapsed_s: seconds since the beginning.
    """

    done: int
    steps: int
    doing: str
    elapsed_s: float


def check_study(study: Study, listener: Callable[[CheckProgress], None]) -> CheckResult:
    """Run the load for a few seconds, and change every parameter once; at the end everything is put back.

    The values that are tried are those that the search may use: weaker ones only where the study allows them.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
    """
    kind = str(study.target.get("kind", DEFAULT_KIND))
    missing = missing_needs(study.target)
    if missing:
        return result_without(study.name, kind, missing)
    prepared = PreparedStudy.open(_shortened(study))
    _check_window(prepared)
    try:
        with entering(prepared.target):
            prepared = prepared.entered()
            result = _tried(prepared, kind, listener)
    except Refused as refusal:
        # What a study may do is told before the server is confirmed: that is what one confirms by.
        if not _announced(prepared).statements:
            raise
        result = _untried(study.name, kind, (), (refusal.message,))
    announced = _announced(prepared)
    return msgspec.structs.replace(
        result, statements=announced.statements, rights=announced.rights, notes=announced.notes
    )


def _announced(prepared: PreparedStudy) -> Announced:
    """The statements of a study; of a server that was asked, those of settings that it has."""
    space = prepared.space
    return prepared.target.announced([name for name in space.names if name not in space.pinned])


def _check_window(prepared: PreparedStudy) -> None:
    """See that the guard allows changes now: a check changes every parameter.

    Raises:
        Refused: it does not.
    """
    if prepared.day is None or (closed_s := prepared.study.guard.closed_s(prepared.day.time())) == 0:
        return
    if closed_s is None:
        raise Refused("guard.window: no time of the week is in a window; change the windows")
    opens = (prepared.day.time() + timedelta(seconds=closed_s)).isoformat(" ", "minutes")
    raise Refused(
        f"guard.window: allows no change before {opens}; a check changes every parameter once, try it then"
    )


def missing_needs(target: Mapping[str, Any]) -> tuple[Need, ...]:
    """What the kind of a `[target]` table cannot do without, and this machine does not have."""
    kind = str(target.get("kind", DEFAULT_KIND))
    if "node" in target:
        return ()  # the node needs them, and says so when it is asked
    return tuple(need for need in system_of(target).needs() if kind in need.needed_by and not need.found)


def result_without(study: str, kind: str, missing: tuple[Need, ...]) -> CheckResult:
    """The result where something is missing, so that nothing was tried."""
    problems = tuple(f"{need.name} is missing: {need.purpose}" for need in missing)
    return _untried(study, kind, missing, problems)


def _untried(study: str, kind: str, missing: tuple[Need, ...], problems: tuple[str, ...]) -> CheckResult:
    return CheckResult(
        study=study,
        kind=kind,
        missing=missing,
        load_metrics={},
        sample={},
        parameters=(),
        problems=problems,
    )


def _shortened(study: Study) -> Study:
    """The study with a load of a few seconds."""
    wanted = study.measurement
    load_s = min(_LOAD_MAX_S, duration("measurement.load_max", wanted.load_max))
    reading_s = min(duration("measurement.reading", wanted.reading), load_s / 2)
    short = msgspec.structs.replace(
        wanted, load_min=f"{load_s:g} s", load_max=f"{load_s:g} s", reading=f"{reading_s:g} s"
    )
    return msgspec.structs.replace(study, measurement=short)


def _tried(prepared: PreparedStudy, kind: str, listener: Callable[[CheckProgress], None]) -> CheckResult:
    space, begun_s = prepared.space, time.monotonic()
    names = [one.name for one in space.parameters]
    problems: list[str] = []

    def tell(done: int, doing: str) -> None:
        listener(CheckProgress(done, len(names) + 2, doing, time.monotonic() - begun_s))

    tell(0, "the load")
    metrics = _loaded(prepared, problems)
    sample: dict[str, float] = {}
    try:
        found = sample_checked(prepared.target)
        sample = {**found.counters, **found.gauges}
    except AscarError as error:
        problems.append(error.message)
    parameters: list[CheckedParameter] = []
    for at, name in enumerate(names, start=1):
        tell(at, name)
        parameters.append(_changed(prepared, name))
    tell(len(names) + 1, "the default configuration again")
    try:
        apply_checked(prepared.target, space.default())
    except AscarError as error:
        problems.append(f"the default configuration cannot be put back: {error.message}")
    problems += [f"{one.parameter}: {one.problem}" for one in parameters if one.problem is not None]
    return CheckResult(
        study=prepared.study.name,
        kind=kind,
        missing=(),
        load_metrics=metrics,
        sample=sample,
        parameters=tuple(parameters),
        problems=tuple(problems),
    )


def _loaded(prepared: PreparedStudy, problems: list[str]) -> dict[str, float]:
    """The metrics of a short load under the default configuration."""
    trial = Trial(1, prepared.space.default(), Purpose.DEFAULT, TrialState.RUNNING)
    evaluator = Evaluator(prepared.study, prepared.target, prepared.workload, ignore, prepared.clock)
    try:
        trial = evaluator.evaluate(trial)
    except InputError as error:  # the objective or a constraint names what the load does not report
        problems.append(error.message)
        return {}
    if trial.failure is not None:
        problems.append(f"the load under the default configuration: {trial.failure.message}")
    return dict(trial.metrics)


def _changed(prepared: PreparedStudy, name: str) -> CheckedParameter:
    """One parameter set to another value; what the parameter before was set to is put back by that."""
    space, target = prepared.space, prepared.target
    default = space.default()
    wanted = another(space, default, name)
    before = default.get(name)
    if wanted is None:
        return CheckedParameter(parameter=name, before=before)
    commands = tuple(target.commands(wanted, (name,)).get("shell", ()))
    read_back: Value | None = None
    problem: str | None = None
    seconds: float | None = None
    try:
        seconds = apply_checked(target, wanted).total_s
        read_back = read_checked(target, (name,)).get(name)
    except AscarError as error:
        problem = error.message
    return CheckedParameter(
        parameter=name,
        before=before,
        tried=wanted.get(name),
        read_back=read_back,
        seconds=seconds,
        commands=commands,
        problem=problem,
    )


def another(space: Space, default: Configuration, name: str) -> Configuration | None:
    """A valid configuration that gives a parameter another value, with as few other changes as there can be.

    A parameter that does not apply in the default configuration is tried where it does.
    """
    found = _fewest(default, name, space.neighbours(default))
    if found is None and name not in default:
        around = [further for near in space.neighbours(default) for further in space.neighbours(near)]
        found = _fewest(default, name, around)
    return found


def _fewest(default: Configuration, name: str, candidates: Sequence[Configuration]) -> Configuration | None:
    fitting = [one for one in candidates if one.get(name) not in (None, default.get(name))]
    return min(fitting, key=lambda one: len(_changes(default, one)), default=None)


def _changes(default: Configuration, other: Configuration) -> set[str]:
    return {name for name in {*default, *other} if default.get(name) != other.get(name)}
