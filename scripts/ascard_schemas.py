"""What `ascard agent` and `ascard interface` print and send; docs/capes-protocol.md tells the rest.

A message may have keys that a reader does not know: the schemas require what is there today and forbid
nothing more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ascar.results.schema import DIALECT

DIRECTORY = Path(__file__).resolve().parent.parent / "docs" / "schemas"
WIDTH = 160

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}

COUNT: Schema = {"type": "integer", "minimum": 0}

NUMBER: Schema = {"type": "number"}

INTEGER: Schema = {"type": "integer"}

FLAG: Schema = {"type": "boolean"}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return {**schema, "type": [*kinds, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def items(schema: Schema) -> Schema:
    """A list of it."""
    return {"type": "array", "items": schema}


def table(schema: Schema) -> Schema:
    """An object with any keys, each value being that."""
    return {"type": "object", "additionalProperties": schema}


def about(schema: Schema, description: str) -> Schema:
    """The same, explained."""
    return {**schema, "description": description}


VALUE: Schema = {"type": ["string", "number", "boolean"]}
VERSION: Schema = {"const": 1}
NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
LAYOUT: Schema = {"type": "string", "pattern": "^[0-9a-f]{8}$", "description": "of the names' order"}
TICK = about(INTEGER, "seconds since 1970 divided by the interval, as the interface counts them")
ID: Schema = {"type": "string", "minLength": 1, "maxLength": 64}
SHORT: Schema = {"type": "string", "maxLength": 200}
MODE: Schema = {"enum": ["observe", "approve", "automatic"]}
SETTING = about(table(VALUE), "by KNOB, KNOB@NODE or KNOB@NODE/STREAM")
LOCAL_SETTING = about(table(VALUE), "by KNOB or KNOB/STREAM: of one node")
METRICS = about(table(maybe(NUMBER)), "null: cannot be told")


def message(required: dict[str, Schema], **optional: Schema) -> Schema:
    """An object that has the first keys, perhaps the others, and perhaps more."""
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def one_of(**kinds: Schema) -> Schema:
    """One of several, each by its name."""
    return {
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
        "$defs": kinds,
    }


def order(op: str, /, **keys: Schema) -> Schema:
    """What the interface tells an agent to do."""
    return message({"op": {"const": op}, **keys})


def event(name: str, /, **keys: Schema) -> Schema:
    """Something that has happened."""
    return message({"event": {"const": name}, "tick": TICK, **keys})


ACTION_KEYS: dict[str, Schema] = {
    "version": VERSION,
    "tick": about(TICK, "that was acted on"),
    "why": SHORT,
}
VERDICTS = ["accepted", "refused", "waiting", "observed", "applied", "failed"]
STORED_ACTION = message(
    {
        "tick": TICK,
        "id": TEXT,
        "set": maybe(SETTING),
        "verdict": {"enum": VERDICTS},
        "reason": maybe(TEXT),
        "why": TEXT,
        "actor": TEXT,
    }
)
ROWS = about(COUNT, "in the block behind the header: so many int64 ticks, then float32 values row by row")
KNOB_RULE = message(
    {
        "name": TEXT,
        "scope": {"enum": ["all", "node", "stream"]},
        "minimum": maybe(NUMBER),
        "maximum": maybe(NUMBER),
        "choices": items(TEXT),
        "step": about(maybe(NUMBER), "what a learner may move it by"),
        "change_max": about(maybe(NUMBER), "largest change at once"),
        "interval_ticks": about(COUNT, "fewest between two changes"),
    }
)
BLOCKED = about(items(TEXT), "collectors that do not answer, and `knobs`")
KILL = message(
    {
        "why": about(TEXT, "who, and why; or what of the state cannot be read"),
        "asked_s": about(NUMBER, "seconds since the nodes were asked"),
        "confirmed": about(COUNT, "nodes that have put every knob back"),
        "unconfirmed": about(COUNT, "nodes that have not said so"),
        "nodes": about(
            items(
                message(
                    {
                        "node": NAME,
                        "state": {"enum": ["asked", "failed", "unreachable"]},
                        "error": about(maybe(TEXT), "its answer instead"),
                        "silent_ticks": about(maybe(INTEGER), "null: never heard"),
                    }
                )
            ),
            "100 of the unconfirmed at most",
        ),
    },
    not_stored=about(TEXT, "why a new start may not know of the kill"),
)
STATUS = message(
    {
        "version": VERSION,
        "tick": TICK,
        "interval_s": NUMBER,
        "mode": MODE,
        "killed": FLAG,
        "kill": about(maybe(KILL), "null: the session is not killed"),
        "holding": about(maybe(TEXT), "why nothing may be changed now"),
        "workload": maybe(NAME),
        "database": TEXT,
        "node_count": COUNT,
        "nodes": items(
            message(
                {
                    "node": NAME,
                    "here": FLAG,
                    "monitor_only": FLAG,
                    "blocked": BLOCKED,
                    "silent_ticks": about(maybe(INTEGER), "null: never heard"),
                    "indicators": COUNT,
                    "cut_off": about(maybe(TEXT), "the limit that it broke, if it is not listened to"),
                }
            )
        ),
        "knobs": items(KNOB_RULE),
        "floors": items(message({"metric": TEXT, "minimum": NUMBER})),
        "ceilings": items(message({"metric": TEXT, "maximum": NUMBER})),
        "setting": SETTING,
        "defaults": about(SETTING, "what was in force before the session"),
        "changed": about(items(TEXT), "keys that the session has set"),
        "metrics": METRICS,
        "on_its_way": maybe(
            message({"id": ID, "stage": COUNT, "taken": COUNT, "waiting": COUNT, "later": COUNT})
        ),
        "waiting": about(
            items(message({"id": ID, "set": SETTING, **ACTION_KEYS, "actor": TEXT})),
            "for approval; 100 at most",
        ),
        "counters": message(
            {
                **dict.fromkeys(
                    (
                        "frames",
                        "frame_bytes",
                        "garbage",
                        "cut_off",
                        "late",
                        "skewed",
                        "rows_stored",
                        "ticks_stored",
                        "ticks_failed",
                        "ticks_lost",
                    ),
                    COUNT,
                ),
                "verdicts": table(COUNT),
                "refusals": about(table(COUNT), "by the reason's first word"),
            }
        ),
    }
)
AUDIT = message(
    {
        "tick": TICK,
        "unix_s": NUMBER,
        "actor": TEXT,
        "what": TEXT,
        "why": TEXT,
        "detail": about({}, "any JSON"),
    }
)
BY: dict[str, Schema] = {"person": {**TEXT, "description": "who asks, by their own account"}, "why": TEXT}


def deed(op: str, /, **keys: Schema) -> Schema:
    """A request to the interface."""
    return message({"op": {"const": op}, **keys}, **BY)


DOCUMENTS: dict[str, tuple[str, Schema]] = {
    "agent-once": (
        "`ascard agent --once`: one sample.",
        message(
            {"node": NAME, "indicators": about(table(maybe(NUMBER)), "null: could not be read, or no number")}
        ),
    ),
    "hello": (
        "P.agents.NODE.hello: what a node has, or that its agent ends.",
        one_of(
            hello=message(
                {
                    "version": VERSION,
                    "node": NAME,
                    "boot_id": TEXT,
                    "interval_s": NUMBER,
                    "layout": LAYOUT,
                    "names": items(TEXT),
                    "monitor_only": FLAG,
                    "touched": about(FLAG, "knobs may differ from what they were before the agent"),
                    "blocked": BLOCKED,
                    "knobs": items(
                        message(
                            {
                                "name": TEXT,
                                "value": VALUE,
                                "minimum": maybe(NUMBER),
                                "maximum": maybe(NUMBER),
                                "choices": items(TEXT),
                                "streams": about(table(VALUE), "what `*` stands for, and each one's value"),
                            }
                        )
                    ),
                }
            ),
            farewell=message(
                {
                    "version": VERSION,
                    "node": NAME,
                    "leaving": {"const": True},
                    "touched": about(FLAG, "not everything could be put back"),
                }
            ),
        ),
    ),
    "result": (
        "P.agents.NODE.results: what came of a set or a restore.",
        one_of(
            done=message(
                {"id": TEXT, "ok": about({"type": "object"}, "of a set: LOCAL KEY to what is in force")}
            ),
            failed=message({"id": TEXT, "error": TEXT}),
        ),
    ),
    "order": (
        "P.nodes.NODE and P.nodes.all: what agents are told to do.",
        one_of(
            set=order("set", id=TEXT, set=LOCAL_SETTING),
            key=order("key"),
            hello=order("hello"),
            restore=order("restore", id=TEXT),
            beat=order(
                "beat",
                tick=TICK,
                killed=about(FLAG, "the session is killed: agents put back what is changed"),
            ),
        ),
    ),
    "tick": (
        "P.ticks: a tick that is over, or a part of one.",
        message(
            {
                "version": VERSION,
                "tick": TICK,
                "part": COUNT,
                "parts": {"type": "integer", "minimum": 1},
                "stored": about(FLAG, "on disk"),
                "layouts": about(
                    {"type": "object", "propertyNames": LAYOUT, "additionalProperties": items(TEXT)},
                    "names of indicators",
                ),
                "nodes": {
                    "type": "object",
                    "propertyNames": NAME,
                    "additionalProperties": {
                        "type": "array",
                        "prefixItems": [LAYOUT, items(maybe(NUMBER))],
                        "minItems": 2,
                        "maxItems": 2,
                    },
                },
                "missing": items(NAME),
                "cut_off": about(
                    table(TEXT), "nodes that are not listened to, with the limit that each broke"
                ),
                "metrics": METRICS,
                "setting": about(maybe(SETTING), "a long one in pieces; null: as it was told last"),
                "mode": MODE,
                "holding": maybe(TEXT),
                "workload": maybe(NAME),
            }
        ),
    ),
    "action": (
        "P.actions: what somebody wants to be set.",
        message({"id": ID, "set": SETTING}, **ACTION_KEYS),
    ),
    "verdict": (
        "The reply to an action, and P.outcomes.",
        message(
            {
                "version": VERSION,
                "id": about(TEXT, "the action's; empty where it had none"),
                "tick": TICK,
                "verdict": {"enum": VERDICTS},
                "reason": maybe(TEXT),
                "set": SETTING,
            }
        ),
    ),
    "history-request": (
        "P.history: a range of stored ticks, or how far they reach.",
        one_of(
            range=message(
                {"version": VERSION, "from_tick": TICK, "to_tick": about(TICK, "not included")},
                nodes=about(maybe(items(NAME)), "null: all"),
            ),
            extent=message({"version": VERSION, "extent": {"const": True}}),
        ),
    ),
    "history-header": (
        "The JSON of each part of a reply to P.history, after its length, before its block.",
        one_of(
            ticks=message(
                {
                    "part": COUNT,
                    "last": {"const": False},
                    "node": NAME,
                    "layout": LAYOUT,
                    "names": items(TEXT),
                    "rows": ROWS,
                }
            ),
            metrics=message(
                {
                    "part": COUNT,
                    "last": {"const": False},
                    "node": {"const": None},
                    "names": items(TEXT),
                    "rows": ROWS,
                }
            ),
            actions=message({"part": COUNT, "last": {"const": False}, "actions": items(STORED_ACTION)}),
            settings=message(
                {
                    "part": COUNT,
                    "last": {"const": False},
                    "settings": items(
                        message(
                            {"tick": TICK, "setting": about(table(maybe(VALUE)), "null: the key is gone")},
                            whole=about(FLAG, "false: only what has changed"),
                        )
                    ),
                }
            ),
            workloads=message(
                {
                    "part": COUNT,
                    "last": {"const": False},
                    "workloads": items(
                        message({"tick": TICK, "name": about(maybe(NAME), "null: it ended"), "job": TEXT})
                    ),
                }
            ),
            end=message(
                {"part": COUNT, "last": {"const": True}, "next_tick": about(maybe(TICK), "where to go on")}
            ),
            extent=message(
                {
                    "part": COUNT,
                    "last": {"const": True},
                    "first_tick": maybe(TICK),
                    "last_tick": maybe(TICK),
                    "nodes": items(NAME),
                }
            ),
            nodes=message({"part": COUNT, "last": {"const": False}, "nodes": items(NAME)}),
            failed=message({"part": COUNT, "last": {"const": True}, "error": TEXT}),
        ),
    ),
    "control": (
        "P.control: what people and job schedulers ask for.",
        one_of(
            status=deed("status"),
            confirmation=deed("confirmation"),
            mode=deed("mode", mode=MODE),
            approve=deed("approve", id=ID),
            reject=deed("reject", id=ID),
            kill=deed("kill"),
            revive=deed("revive"),
            restore=deed("restore"),
            set=deed("set", set=SETTING),
            floor=deed("floor", metric=TEXT, minimum=maybe(NUMBER)),
            workload=message(
                {"op": {"const": "workload"}, "phase": {"enum": ["start", "end"]}, "name": NAME},
                job=SHORT,
                **BY,
            ),
            audit=message({"op": {"const": "audit"}}, limit=COUNT, **BY),
        ),
    ),
    "control-reply": (
        "The reply to P.control; `ok` of a status is ascard/status, of an audit ascard/audit.",
        one_of(
            done=message(
                {"ok": {"type": "object"}},
                part=about(COUNT, "of a status that is too long for one message"),
                parts=COUNT,
            ),
            refused=message({"error": TEXT}),
        ),
    ),
    "status": ("What the interface says of itself: `ok` of a control's status.", STATUS),
    "audit": (
        "Who changed what and why, the newest first: `ok` of a control's audit.",
        message({"audit": items(AUDIT)}),
    ),
    "event": (
        "P.events: what everybody should hear of.",
        one_of(
            workload=event("workload", phase={"enum": ["start", "end"]}, name=NAME, job=TEXT, database=TEXT),
            mode=event("mode", mode=MODE),
            kill=event("kill"),
            revive=event("revive"),
            breach=message(
                {"event": {"const": "breach"}, "tick": TICK, "metric": TEXT, "mean": NUMBER},
                minimum=about(NUMBER, "of a floor"),
                maximum=about(NUMBER, "of a ceiling"),
            ),
            node=message(
                {
                    "event": {"const": "node"},
                    "tick": TICK,
                    "node": NAME,
                    "state": {"enum": ["here", "gone", "cut off"]},
                },
                reason=about(TEXT, "the limit that it broke"),
            ),
            storage=message(
                {"event": {"const": "storage"}, "tick": TICK, "stored": FLAG, "error": maybe(TEXT)},
                refused=about(TEXT, "a database that could not be opened"),
            ),
        ),
    ),
}


def pages() -> dict[Path, str]:
    """Every schema's text by its path."""
    texts: dict[Path, str] = {}
    for name, (description, schema) in DOCUMENTS.items():
        head = {"$schema": DIALECT, "title": f"ascard/{name}/1", "description": description}
        texts[DIRECTORY / f"{name}.json"] = f"{_compact(head | schema, '')}\n"
    return texts


def _compact(value: Any, indent: str, label: str = "") -> str:
    """JSON of which every part that fits stands on one line, and every list of names."""
    line = json.dumps(value, ensure_ascii=False)
    names = isinstance(value, list) and all(isinstance(item, str) for item in value)
    if names or not isinstance(value, dict | list) or len(indent + label + line) <= WIDTH:
        return f"{label}{line}"
    inner = f"{indent}  "
    if isinstance(value, dict):
        parts = [_compact(item, inner, f"{json.dumps(key)}: ") for key, item in value.items()]
    else:
        parts = [_compact(item, inner) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    body = f",\n{inner}".join(parts)
    return f"{label}{first}\n{inner}{body}\n{indent}{last}"
