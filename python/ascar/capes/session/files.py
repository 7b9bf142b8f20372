"""The files of a session's processes, made from its study, and who may do what on its message server."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.capes.session.environment import ADAPTER
from ascar.capes.session.parameters import (
    forbidden_by,
    in_session_names,
    interface_tables,
    keeper_tables,
    ratios,
    system_tables,
)
from ascar.messaging import session_users
from ascar.systems.kernel_parameters import DEVICE
from ascar.toml import toml_text

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.capes.session.environment import LoadEnvironment
    from ascar.capes.session.study import OnlineStudy
    from ascar.messaging import User

LOAD = "load"
"""Name of the collector that has the load's readings."""
_STALE_S = 5.0


def users(session: str, node: str) -> list[User]:
    """The parts of a session, each with no more than it needs (docs/capes-protocol.md)."""
    return session_users(session, {"agent": node})


def agent_text(study: OnlineStudy, environment: LoadEnvironment, readings: Path | None) -> str:
    """The agent's file.

    Args:
        study: the study of the session.
        environment: what is tuned.
        readings: the file that the load's readings are appended to; None: there is no load.
    """
    online, device = study.online, environment.device
    collectors: list[dict[str, Any]] = [_tables_here(one, device) for one in online.collector]
    if not collectors:
        block: dict[str, Any] = (
            {"kind": "block"} if device is None else {"kind": "block", "devices": [device]}
        )
        collectors = [block, *({"kind": kind} for kind in ("vm", "memory", "cpu", "pressure"))]
    if readings is not None:
        follow = ["tail", "-n", "1", "-F", str(readings)]
        collectors.append({"kind": "program", "name": LOAD, "command": follow, "stale_s": _STALE_S})
    reach = [sys.executable, "-P", "-m", "ascar", "adapter", "--connect", ADAPTER]
    if environment.tells:
        told = [*reach, "--sample-every", f"{online.interval_s} s"]
        stale_s = max(_STALE_S, 3 * online.interval_s)
        collectors.append({"kind": "program", "name": environment.kind, "command": told, "stale_s": stale_s})
    programs = [{"command": reach, "knob": system_tables(environment.parameters)}]
    return toml_text(
        {
            **online.agent,
            "session": study.session,
            "node": online.node,
            "interval_s": online.interval_s,
            "contact_s": online.contact_s,
            "connection": "messages/agent.toml",
            "significant_digits": online.agent.get("significant_digits", 6),
            "collector": collectors,
            "average": [_tables_here(one, device) for one in online.average],
            "knob": keeper_tables(environment.parameters),
            "program": programs if environment.has_adapter else [],
        }
    )


def interface_text(study: OnlineStudy, environment: LoadEnvironment) -> str:
    """The interface's file; its mode is the study's."""
    online, guard, device = study.online, study.guard, environment.device
    metrics = [_tables_here(one, device) for one in online.metric]
    named = {one.get("name") for one in metrics}
    source = LOAD if environment.workspace is not None else environment.kind
    metrics += [
        {"name": name, "indicators": [f"{source}.{name}"], "aggregate": "mean"}
        for name in study.objective.formula.names
        if name not in named
    ]
    default, parameters = environment.space.default(), environment.parameters
    by_space = forbidden_by(environment.space, parameters, default)
    rules = [_tables_here(one, device) for one in guard.rule]
    by_guard = [{**one, "forbid": in_session_names(one["forbid"], parameters, default)} for one in rules]
    return toml_text(
        {
            **online.interface,
            "session": study.session,
            "interval_s": online.interval_s,
            "connection": "messages/interface.toml",
            "database": "replay.sqlite",
            "mode": online.mode,
            "prometheus": online.prometheus,
            "retention": dict(online.retention) or None,
            "knob": interface_tables(environment.parameters, guard),
            "metric": metrics,
            "floor": list(guard.floor),
            "ceiling": list(guard.ceiling),
            "rule": [*by_space, *by_guard],
            "window": list(guard.window),
        }
    )


def learner_text(study: OnlineStudy, environment: LoadEnvironment) -> str:
    """The learner's file."""
    return toml_text(
        {
            "session": study.session,
            "connection": "messages/learner.toml",
            "algorithm": study.online.algorithm,
            "objective": study.objectives[0] if len(study.objectives) == 1 else list(study.objectives),
            "weights": list(study.weights) or None,
            "ratios": ratios(environment.parameters) or None,
            "seed": study.seed,
            **study.online.learner,
        }
    )


def write_private(path: Path, text: str) -> None:
    """A file that nobody else can read, at no moment; readers see all of it or the one before."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def _tables_here(table: dict[str, Any], device: str | None) -> dict[str, Any]:
    """A table with the device's name for DEV, in formulas with its `_` too."""
    if device is None:
        return table
    text = msgspec.json.encode(table).decode()
    for sign in (".", "_"):
        text = text.replace(f"{sign}{DEVICE}{sign}", f"{sign}{device}{sign}")
    return msgspec.json.decode(text)
