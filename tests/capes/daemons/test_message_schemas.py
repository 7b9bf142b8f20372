"""What agent and interface print and send has the published form, and no key that is not published."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from waiting import until

DIRECTORY = Path(__file__).parents[3] / "docs" / "schemas"
SUBJECTS = {
    r"ticks": "tick",
    r"actions\.[^.]+": "action",
    r"outcomes": "verdict",
    r"events": "event",
    r"control\.[^.]+\.[^.]+": "control",
    r"history\.[^.]+": "history-request",
    r"nodes\.[^.]+": "order",
    r"agents\.[^.]+\.hello": "hello",
    r"agents\.[^.]+\.results": "result",
}
INTERFACE = """
[[knob]]
name = "vm.page-cluster"
minimum = 0
maximum = 8
[[metric]]
name = "free_bytes"
indicators = ["memory.free_bytes"]
[[metric]]
name = "nothing"
indicators = ["no.such"]
[[floor]]
metric = "free_bytes"
minimum = 0
"""
AGENT = """
[[collector]]
kind = "cpu"
[[collector]]
kind = "memory"
[[knob]]
name = "vm.page-cluster"
maximum = 9
"""


@cache
def validator(name):
    """Closed: a key that is not published is an error."""
    schema = json.loads((DIRECTORY / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(closed(schema))


HEADERS = ("rows", "actions", "settings", "workloads", "next_tick", "first_tick")


def closed(schema):
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        schema.setdefault("additionalProperties", False)
    return schema


def check(name, message):
    validator(name).validate(message)
    return message


def test_a_sample_on_the_command_line(system):
    path = system.folder / "agent.toml"
    path.write_text(
        f"node = 'node1'\ninterval_s = 0.2\nconnection = '{system.connection('agent')}'\n"
        f"state_directory = '{system.folder}'\n{AGENT}"
    )
    command = [system.ascard, "agent", "--config", path, "--once"]
    done = subprocess.run(command, capture_output=True, check=True)
    sample = check("agent-once", json.loads(done.stdout))
    assert sample["indicators"]["memory.free_bytes"] > 0
    with pytest.raises(jsonschema.ValidationError):
        check("agent-once", {**sample, "surprise": 1})


def test_every_message_of_a_session(system, sysctl):
    bus, spy = system.bus(), system.bus()
    system.interface(INTERFACE, mode="approve")
    agent = system.agent(AGENT)
    bus.json("ticks", lambda it: "node1" in it["nodes"])

    def act(number, value):
        action = {"version": 1, "id": f"a-{number}", "set": {sysctl.name: value}, "why": "to see"}
        return check("verdict", bus.ask("actions", action))["verdict"]

    def outcome(number):
        ends = ("applied", "failed")
        return bus.json("outcomes", lambda it: it["id"] == f"a-{number}" and it["verdict"] in ends)

    assert act(1, 99) == "refused"
    assert act(2, 5) == "waiting"
    waiting = check("status", bus.control("status"))
    assert [one["id"] for one in waiting["waiting"]] == ["a-2"]
    bus.control("approve", id="a-2")
    assert outcome(2)["verdict"] == "applied"
    assert act(3, 6) == "waiting"
    assert check("verdict", bus.control("reject", id="a-3"))["verdict"] == "refused"
    bus.control("mode", mode="observe")
    assert act(4, 4) == "observed"
    bus.control("mode", mode="automatic")
    assert act(5, 4) == "accepted"
    assert outcome(5)["verdict"] == "applied"
    check("status", bus.control("status"))
    assert check("verdict", bus.control("set", set={sysctl.name: 2}))["verdict"] == "accepted"
    bus.json("outcomes", lambda it: it["id"].startswith("hand-") and it["verdict"] == "applied")
    bus.control("workload", phase="start", name="fileserver", job="j-1")
    bus.json("ticks", lambda it: it["workload"] == "fileserver")
    bus.control("workload", phase="end", name="fileserver")
    bus.control("floor", metric="free_bytes", minimum=1)
    bus.control("restore")
    bus.control("kill")
    last = bus.json("ticks", lambda it: it["holding"] == "killed")["tick"]
    bus.control("revive")
    for request in ({"op": "nonsense"}, {"op": "mode", "mode": "wild"}):
        assert "error" in check("control-reply", bus.ask_control(**request))
    check("control-reply", bus.ask_control("status"))

    def audited():
        return {one["what"] for one in check("audit", bus.control("audit", limit=50))["audit"]}

    def kinds():
        headers = [header for header, _ in bus.history(from_tick=0, to_tick=last + 1, nodes=None)]
        headers += [header for header, _ in bus.history(extent=True)]
        return {HEADERS[found(header)] for header in headers}

    # On a slow disk they come to be stored a moment later.
    until(lambda: {"mode", "kill", "set"} <= audited(), what="the audit log")
    until(lambda: kinds() == set(HEADERS), what="headers of every kind")
    assert "error" in check("history-header", bus.history(version=2, extent=True)[-1][0])

    agent.terminate()
    bus.json("events", lambda it: it["event"] == "node" and it["state"] == "gone")
    spy.publish("over", {})
    seen = {"event": set(), "op": set(), "verdict": set(), "leaving": set()}
    while (heard := spy.next(lambda name, payload: (name, payload)))[0] != "ascar.capes.test.over":
        note(seen, *heard)
    assert seen["event"] == {"node", "mode", "workload", "kill", "revive"}
    assert {"set", "hello", "restore", "beat", "status", "workload"} <= seen["op"]
    assert seen["verdict"] == {"refused", "waiting", "observed", "accepted", "applied"}
    assert seen["leaving"] == {True}


def found(header):
    check("history-header", header)
    return [key in header for key in HEADERS].index(True)


def note(seen, subject, payload):
    """Check what was on a subject, unless a test sent it wrong on purpose."""
    rest = subject.removeprefix("ascar.capes.test.")
    name = next((schema for form, schema in SUBJECTS.items() if re.fullmatch(form, rest)), None)
    if name is None:
        return
    message = json.loads(payload)
    if message.get("op") == "nonsense" or message.get("mode") == "wild" or message.get("version") == 2:
        return
    check(name, message)
    for key, values in seen.items():
        if key in message:
            values.add(message[key])
