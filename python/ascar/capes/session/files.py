"""The files of a session's processes, made from its study, and who may do what on its message server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.capes.messages.bus import prefix
from ascar.capes.session.study import DEVICE
from ascar.messaging import User
from ascar.toml import toml_text

if TYPE_CHECKING:
    from pathlib import Path

    from ascar.capes.session.study import KnobSection, OnlineStudy, ProgramSection

LOAD = "load"
"""Name of the collector that has the load's readings."""
_STALE_S = 5.0


def users(session: str, node: str) -> list[User]:
    """The parts of a session, each with no more than it needs (docs/capes-protocol.md)."""
    start = prefix(session)
    told = (*(f"{start}.{one}" for one in ("ticks", "outcomes", "events", "learner", "session")), "_INBOX.>")

    def to(*names: str) -> tuple[str, ...]:
        return tuple(f"{start}.{name}" for name in names)

    return [
        User("agent", to(f"agents.{node}.>"), to(f"nodes.{node}", "nodes.all")),
        User("interface", (f"{start}.>", "_INBOX.>"), (f"{start}.>",)),
        User("learner", to("actions", "history", "control", "learner"), told),
        User("session", to("control", "session"), told),
        User("viewer", to("history"), told),
    ]


def knob_names(study: OnlineStudy, device: str | None) -> list[str]:
    """The knobs of the study by the names that they have here.

    Args:
        study: the study, with DEV in place of the device.
        device: the kernel's name of it; None: there is none.
    """
    return [_here(knob.name, device) for knob in study.capes.knob]


def machine_knobs(study: OnlineStudy, device: str | None) -> dict[str, KnobSection]:
    """The knobs of the study that are this machine's, not a program's, by the names that they have here."""
    knobs = dict(zip(knob_names(study, device), study.capes.knob, strict=True))
    return {name: knob for name, knob in knobs.items() if name not in study.program_knobs}


def agent_text(study: OnlineStudy, device: str | None, readings: Path | None) -> str:
    """The agent's file.

    Args:
        study: the study of the session.
        device: the kernel's name of the target's device; None: there is none.
        readings: the file that the load's readings are appended to; None: there is no load.
    """
    capes = study.capes
    collectors: list[dict[str, Any]] = [_tables_here(one, device) for one in capes.collector]
    if not collectors:
        block: dict[str, Any] = (
            {"kind": "block"} if device is None else {"kind": "block", "devices": [device]}
        )
        collectors = [block, *({"kind": kind} for kind in ("vm", "memory", "cpu", "pressure"))]
    if readings is not None:
        follow = ["tail", "-n", "1", "-F", str(readings)]
        collectors.append({"kind": "program", "name": LOAD, "command": follow, "stale_s": _STALE_S})
    knobs = [
        {"name": name, "minimum": _whole(knob.minimum), "maximum": _whole(knob.maximum)}
        for name, knob in zip(knob_names(study, device), capes.knob, strict=True)
        if knob.name not in study.program_knobs
    ]
    return toml_text(
        {
            **capes.agent,
            "session": study.session,
            "node": capes.node,
            "interval_s": capes.interval_s,
            "contact_s": capes.contact_s,
            "connection": "messages/agent.toml",
            "significant_digits": capes.agent.get("significant_digits", 6),
            "collector": collectors,
            "average": [_tables_here(one, device) for one in capes.average],
            "knob": knobs,
            "program": [_program(study, one) for one in capes.program],
        }
    )


def interface_text(study: OnlineStudy, device: str | None) -> str:
    """The interface's file; its mode is the study's."""
    capes = study.capes
    metrics = [_tables_here(one, device) for one in capes.metric]
    named = {one.get("name") for one in metrics}
    metrics += [
        {"name": name, "indicators": [f"{LOAD}.{name}"], "aggregate": "mean"}
        for name in study.objective.formula.names
        if name not in named
    ]
    knobs = [
        {
            "name": name,
            "scope": "all",
            "minimum": knob.minimum,
            "maximum": knob.maximum,
            "choices": list(knob.choices) or None,
            "step": knob.step,
            "change_max": knob.change_max,
            "interval_ticks": knob.interval_ticks,
        }
        for name, knob in zip(knob_names(study, device), capes.knob, strict=True)
    ]
    return toml_text(
        {
            **capes.interface,
            "session": study.session,
            "interval_s": capes.interval_s,
            "connection": "messages/interface.toml",
            "database": "replay.sqlite",
            "mode": capes.mode,
            "prometheus": capes.prometheus,
            "retention": dict(capes.retention) or None,
            "knob": knobs,
            "metric": metrics,
            "floor": list(capes.floor),
            "rule": [_tables_here(one, device) for one in capes.rule],
            "window": list(capes.window),
        }
    )


def learner_text(study: OnlineStudy, device: str | None) -> str:
    """The learner's file."""
    capes = study.capes
    ratios = [name for name, knob in zip(knob_names(study, device), capes.knob, strict=True) if knob.ratio]
    return toml_text(
        {
            "session": study.session,
            "connection": "messages/learner.toml",
            "algorithm": capes.algorithm,
            "objective": study.objectives[0] if len(study.objectives) == 1 else list(study.objectives),
            "weights": list(study.weights) or None,
            "ratios": ratios or None,
            "seed": study.seed,
            **capes.learner,
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


def _program(study: OnlineStudy, program: ProgramSection) -> dict[str, Any]:
    """A program as the agent's file has it."""
    known = {knob.name: knob for knob in study.capes.knob}
    knobs: list[dict[str, Any]] = []
    for name in program.knobs:
        knob = known[name]
        words = list(knob.choices) or None
        knobs.append({"name": name, "minimum": knob.minimum, "maximum": knob.maximum, "choices": words})
    return {"command": list(program.command), "knob": knobs}


def _here(text: str, device: str | None) -> str:
    return text if device is None else text.replace(f".{DEVICE}.", f".{device}.")


def _tables_here(table: dict[str, Any], device: str | None) -> dict[str, Any]:
    """A table with the device's name for DEV, in formulas with its `_` too."""
    if device is None:
        return table
    text = msgspec.json.encode(table).decode()
    for sign in (".", "_"):
        text = text.replace(f"{sign}{DEVICE}{sign}", f"{sign}{device}{sign}")
    return msgspec.json.decode(text)


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)
