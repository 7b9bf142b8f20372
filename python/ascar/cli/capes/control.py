"""`ascar capes control`: a word of people, or of a job scheduler, to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ascar.cli.capes.where import session_at
from ascar.cli.epilog import examples
from ascar.cli.options import Connection, Job, Json, Quiet, Session, Wait, Why

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.capes.messages.control_requests import ControlRequest
    from ascar.messaging import Settings

EXAMPLES = examples(
    "ascar capes control kill --why 'disk replaced'      every knob back at once; nothing more until revive",
    "ascar capes control kill --wait 60                  who has not confirmed it after a minute",
    "ascar capes control mode approve                    or observe, automatic",
    "ascar capes control waiting                         what waits for approval",
    "ascar capes control approve learner-5f2c-17         or reject",
    "ascar capes control set vm.dirty_ratio=30           checked like any other action",
    "ascar capes control floor throughput_bytes_per_s 2e8",
    "ascar capes control workload start fileserver --job 17     in a prolog; end in the epilog",
    "ascar capes control audit 50                        who changed what, and why",
    "ascar capes control kill --session lustre --connection /etc/ascar/operator.toml",
)


def control(
    operation: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION",
            help="kill, revive, restore, mode, waiting, approve, reject, set, floor, ceiling, workload or "
            "audit.",
        ),
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="The arguments of the operation; see the examples."),
    ] = None,
    session: Session = None,
    connection: Connection = None,
    why: Why = "",
    job: Job = "",
    wait: Wait = 10.0,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Ask something of a session: the kill switch, its mode, approval, a setting, a limit, a workload's name.

    The interface judges it, and writes it down with who asked and why.

    After `kill` it waits until every node has confirmed that its knobs are back, and names the others.

    Exit status: 0 done, 1 refused or nobody answers, 2 bad input, 3 a node has not confirmed the kill.
    """
    from ascar.capes.messages.confirmation import KillConfirmation
    from ascar.capes.messages.control_requests import control_request_of
    from ascar.cli.output import emit, people
    from ascar.cli.statuses import DONE, FAILED, decided
    from ascar.messaging import run_interruptible

    order = control_request_of(operation, words or (), job=job)
    name, settings = session_at(session, connection, "operator")
    answer = run_interruptible(_asked(settings(), name, order, why, wait))
    refused = answer.get("verdict") in ("refused", "failed")
    # What was rejected is refused because it was asked for.
    refused = refused and order.op != "reject"
    kill = KillConfirmation.of(answer) if order.op == "kill" else None
    is_complete = kill is None or kill.is_complete
    if json:
        from ascar.results.capes import CapesControlResult

        result = CapesControlResult(session=name, operation=order.op, asked=order.keys, answer=answer)
        emit("capes-control", result)
    elif not quiet or refused or not is_complete:
        for line in _lines(name, order, answer):
            people().print(line, markup=False, highlight=False, soft_wrap=True)
    return FAILED if refused else DONE if is_complete else decided(False)


async def _asked(
    settings: Settings, session: str, order: ControlRequest, why: str, wait_s: float
) -> dict[str, Any]:
    from ascar.capes.messages.bus import Bus
    from ascar.capes.messages.confirmation import kill_confirmation

    async with await Bus.open(settings, session, name="ascar capes control") as bus:
        op = "status" if order.op == "waiting" else order.op
        found = await bus.control(op, why=why, person=_person(), **order.keys)
        if op == "kill":
            found = await kill_confirmation(bus, found, wait_s)
    answer = cast("dict[str, Any]", found) if isinstance(found, dict) else {"answer": found}
    return {"waiting": answer.get("waiting", [])} if order.op == "waiting" else answer


def _person() -> str:
    """Who asks, beside the user of the message server: the user of this machine, also behind sudo."""
    import os
    import pwd
    import socket

    try:
        own = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        own = str(os.getuid())
    behind = os.environ.get("SUDO_USER")
    who = own if behind in (None, "", own) else f"{behind} as {own}"
    return f"{who} at {socket.gethostname()}"[:200]


def _lines(session: str, order: ControlRequest, answer: Mapping[str, Any]) -> list[str]:
    if order.op == "audit":
        entries: list[dict[str, Any]] = list(answer.get("audit") or [])
        return [_entry(one) for one in entries] or ["nothing was done yet"]
    if order.op == "waiting":
        waiting: list[dict[str, Any]] = list(answer.get("waiting") or [])
        return [_plain(f"{one.get('id')}  {_setting(one.get('set'))}") for one in waiting] or [
            "nothing waits"
        ]
    if order.op == "kill":
        from ascar.capes.messages.confirmation import KillConfirmation

        return [_plain(f"{session}: {line}") for line in KillConfirmation.of(answer).lines()]
    if "verdict" in answer:
        reason = f": {answer['reason']}" if answer.get("reason") else ""
        return [_plain(f"{session}: {answer['verdict']}{reason}")]
    shown = " ".join("none" if value is None else str(value) for value in order.keys.values())
    return [_plain(f"{session}: {order.op} {shown}".strip())]


def _entry(entry: Mapping[str, Any]) -> str:
    """One of the audit log."""
    from datetime import datetime

    at = datetime.fromtimestamp(float(entry.get("unix_s") or 0)).astimezone()
    detail = entry.get("detail")
    table: dict[str, object] = dict(cast("dict[str, object]", detail)) if isinstance(detail, dict) else {}
    person = table.pop("person", None)
    # The set of a `set` and the mode of a `mode` say enough without their key.
    named = table.pop(str(entry.get("what")), None)
    main = _setting(named) or ("" if named is None else str(named))
    shown = ", ".join(part for part in (main, _setting(table)) if part)
    why = f": {entry['why']}" if entry.get("why") else ""
    who = str(entry.get("actor") or "somebody") + (f" ({person})" if person else "")
    return _plain(f"{at:%Y-%m-%d %H:%M:%S}  {who}  {entry.get('what')} {shown}".rstrip() + why)


def _setting(found: object) -> str:
    import json

    if not isinstance(found, dict):
        return ""
    entries = cast("dict[str, object]", found).items()
    return ", ".join(
        f"{key} = {value if isinstance(value, str) else json.dumps(value)}" for key, value in entries
    )


def _plain(text: str) -> str:
    """Nothing that a terminal would obey."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
