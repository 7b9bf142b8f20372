"""A study of the online loop tried out: files of its processes, collectors, metrics, parameters."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.capes.session.environment import RequestedEnvironment, prepared
from ascar.capes.session.files import agent_text, interface_text, write_private
from ascar.capes.session.folder import Folder
from ascar.capes.session.outcome import SessionRequest
from ascar.capes.session.parameters import OWNER, check_in_force
from ascar.capes.session.session_run import READINGS, SessionRun, messages_of
from ascar.checking import CheckProgress, another, missing_needs, result_without
from ascar.errors import AscarError, StudyError, WorkError
from ascar.program.node_binary import find_ascard
from ascar.results.check import CheckedParameter, CheckResult
from ascar.small_file import toml_table
from ascar.systems.adapter import in_force
from ascar.systems.asking import apply_checked, read_checked
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ascar.capes.session.environment import LoadEnvironment
    from ascar.capes.session.parameters import SessionParameter
    from ascar.capes.session.study import OnlineStudy
    from ascar.space import Configuration, Value

_LOAD_S = 3.0
_AGENT_S = 60.0
_BETWEEN_S = (1.0, 4.0, 12.0)


def check_session(study: OnlineStudy, listener: Callable[[CheckProgress], None]) -> CheckResult:
    """Try every part of a session once; at the end everything is put back.

    The message server is started, the processes check their files, the load runs for a few seconds, the agent
    takes one sample, each metric finds its indicators, and each parameter that the session would set is set,
    read back and put back.

    Raises:
        InputError: the study, or the machine, does not allow it; nothing was touched.
        Refused: a safety rule said no.
        WorkError: the target cannot be made.
    """
    kind = str(study.target.get("kind"))
    missing = missing_needs(study.target)
    if missing:
        return result_without(study.name, kind, missing)
    requested = RequestedEnvironment.of(study)
    begun_s, steps = time.monotonic(), 4
    problems: list[str] = []

    def tell(done: int, doing: str) -> None:
        listener(CheckProgress(done, steps, doing, time.monotonic() - begun_s))

    with (
        tempfile.TemporaryDirectory(prefix="ascar-check-") as place,
        Folder(Path(place) / "session") as folder,
    ):
        tell(0, "the target")
        running = folder.begin(study.session, study.name)
        with prepared(requested, folder.path, lambda line: tell(0, line)) as environment:
            check_in_force(environment.parameters)
            steps = len(environment.parameters) + 3
            with messages_of(study, folder) as server:
                run = SessionRun(study, folder, SessionRequest(study.name), lambda _: None, server, running)
                tell(1, "the files of the processes")
                run.stages(environment, has_load=environment.workspace is not None)
                tell(2, "the load and the agent")
                indicators = _sampled(run, requested, environment, problems)
            problems += _without_indicators(study, environment, indicators)
            parameters: list[CheckedParameter] = []
            for at, one in enumerate(environment.parameters, start=3):
                tell(at, one.key)
                parameters.append(_tried(one, requested, environment))
    problems += [f"{one.parameter}: {one.problem}" for one in parameters if one.problem is not None]
    known = {name: value for name, value in indicators.items() if value is not None}
    return CheckResult(
        study=study.name,
        kind=kind,
        missing=(),
        load_metrics={name[5:]: value for name, value in known.items() if name.startswith("load.")},
        sample=known,
        parameters=tuple(parameters),
        problems=tuple(problems),
    )


def _sampled(
    run: SessionRun, requested: RequestedEnvironment, environment: LoadEnvironment, problems: list[str]
) -> dict[str, float | None]:
    """The agent's indicators while the load runs; None: it has no value yet.

    A collector may take seconds until it tells something: where a metric lacks an indicator, the sample is
    taken again, with more time.
    """
    found: dict[str, float | None] = {}
    run.start_load(requested, environment)
    try:
        if run.load is not None:
            time.sleep(_LOAD_S)
        for between_s in _BETWEEN_S:
            found = _agent_sample(run, environment, max(between_s, run.study.online.interval_s))
            if not _without_indicators(run.study, environment, found):
                break
        if run.load is not None and run.load.fault:
            problems.append(f"the load: {run.load.fault}")
    except WorkError as error:
        problems.append(error.message)
    finally:
        if run.load is not None:
            run.load.end()
    return found


def _agent_sample(run: SessionRun, environment: LoadEnvironment, between_s: float) -> dict[str, float | None]:
    """What one agent tells that samples twice, for rates need two.

    Raises:
        WorkError: it tells nothing.
    """
    folder = run.folder.path
    online = msgspec.structs.replace(run.study.online, interval_s=between_s)
    study = msgspec.structs.replace(run.study, online=online)
    readings = folder / READINGS if environment.workspace is not None else None
    write_private(folder / "agent.toml", agent_text(study, environment, readings))
    words = [str(find_ascard()), "agent", "--config", "agent.toml", "--once"]
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=between_s + _AGENT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise WorkError(f"the agent takes no sample within {between_s + _AGENT_S:g} s") from None
    try:
        return dict(json.loads(done.stdout)["indicators"])
    except (ValueError, KeyError, TypeError):
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise WorkError(f"the agent takes no sample: {said[:300]}") from None


def _without_indicators(
    study: OnlineStudy, environment: LoadEnvironment, indicators: Mapping[str, float | None]
) -> list[str]:
    """The metrics that have no indicator here, or miss one."""
    table: dict[str, Any] = toml_table(interface_text(study, environment), StudyError)
    return [
        f"metric {metric['name']}: no indicator matches {pattern!r}; the agent has {len(indicators)} "
        "(--json shows them)"
        for metric in table.get("metric", [])
        for pattern in metric.get("indicators", [])
        if not any(fnmatchcase(name, pattern) for name in indicators)
    ]


def _tried(
    one: SessionParameter, requested: RequestedEnvironment, environment: LoadEnvironment
) -> CheckedParameter:
    """A parameter set to another value, read back, and put back."""
    space, target, name = environment.space, requested.target, one.parameter.name
    default = space.default()
    wanted = another(space, default, name)
    if wanted is None:
        return CheckedParameter(parameter=one.key, before=default.get(name))
    commands = tuple(target.commands(wanted, (name,)).get("shell", ()))
    begun_s = time.monotonic()
    read_back: Value | None = None
    problem: str | None = None
    try:
        read_back = _by_keeper(one, wanted) if one.of_kernel else _by_system(one, requested, environment)
    except AscarError as error:
        problem = error.message
    return CheckedParameter(
        parameter=one.key,
        before=default.get(name),
        tried=wanted[name],
        read_back=read_back,
        seconds=time.monotonic() - begun_s,
        commands=commands,
        problem=problem,
    )


def _by_keeper(one: SessionParameter, wanted: Configuration) -> Value:
    with Keeper(OWNER) as keeper:  # puts it back when it is closed
        return keeper.knob_write(one.key, wanted[one.parameter.name]).effective


def _by_system(
    one: SessionParameter, requested: RequestedEnvironment, environment: LoadEnvironment
) -> Value | None:
    target, space, name = requested.target, environment.space, one.parameter.name
    before = in_force(target, space)
    wanted = another(space, before, name)
    if wanted is None:
        return None
    try:
        apply_checked(target, wanted)
        return read_checked(target, (name,)).get(name)
    finally:
        apply_checked(target, before)
