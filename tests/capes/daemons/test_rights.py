"""Who may do what: the configuration in docs/howto/several-nodes.md, role by role, on a real server."""

import json
import re
import secrets
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ascar.capes.session.files import users
from ascar.messaging import MessageServer
from waiting import until

PAGE = Path(__file__).parents[3] / "docs/howto/several-nodes.md"
KNOBS = "[[knob]]\nname = 'vm.page-cluster'\nminimum = 0\nmaximum = 8\n"
AGENT = "[[collector]]\nkind = 'cpu'\n[[knob]]\nname = 'vm.page-cluster'\n"
OPS = [
    "status",
    "mode",
    "approve",
    "reject",
    "kill",
    "revive",
    "restore",
    "set",
    "floor",
    "ceiling",
    "workload",
]
OPS += ["audit"]
USERS = ["interface", "learner", "agent-node1", "agent-client2", "operator", "viewer"]
TOLD = ["ticks", "outcomes", "events", "learner", "session"]
ORDERS = ["nodes.node1", "nodes.client2", "nodes.all"]
HEARD = [f"agents.{node}.{what}" for node in ("node1", "client2") for what in ("hello", "frames", "results")]
ASKED = [f"{what}.{user}" for what in ("actions", "history") for user in USERS]
ASKED += [f"control.{user}.{op}" for user in USERS for op in OPS]
NOBODYS = ["actions", "history", "control", "control.operator", "actions.learner.x", "agents.node1", "x"]
SUBJECTS = [*TOLD, *ORDERS, *HEARD, *ASKED, *NOBODYS, *(f"_INBOX.{user}.a" for user in USERS), "_INBOX.a"]

PUBLISH = {
    "interface": [
        *ORDERS,
        "ticks",
        "outcomes",
        "events",
        *(f"_INBOX.{user}.a" for user in USERS),
        "_INBOX.a",
    ],
    "learner": ["actions.learner", "history.learner", "control.learner.status", "learner"],
    "agent-node1": [one for one in HEARD if "node1" in one],
    "agent-client2": [one for one in HEARD if "client2" in one],
    "operator": [f"control.operator.{op}" for op in OPS],
    "viewer": ["history.viewer"],
}
SUBSCRIBE = {
    "interface": [*HEARD, *ASKED, "actions.*", "history.*", "control.*.*"],
    "learner": ["ticks", "outcomes", "events", "_INBOX.learner.a", "_INBOX.learner.>"],
    "agent-node1": ["nodes.node1", "nodes.all"],
    "agent-client2": ["nodes.client2", "nodes.all"],
    "operator": ["_INBOX.operator.a", "_INBOX.operator.>"],
    "viewer": [*TOLD, "_INBOX.viewer.a", "_INBOX.viewer.>"],
}
# Of `ascar capes up`, on one machine: its agent is "agent", and the session itself turns phases.
OWN_USERS = ["agent", "interface", "learner", "session", "operator", "viewer"]
OWN_SUBJECTS = [*TOLD, *ORDERS, *HEARD, *NOBODYS, "_INBOX.a", *(f"_INBOX.{user}.a" for user in OWN_USERS)]
OWN_SUBJECTS += [f"{what}.{user}" for what in ("actions", "history") for user in OWN_USERS]
OWN_SUBJECTS += [f"control.{user}.{op}" for user in OWN_USERS for op in OPS]
OWN_PUBLISH = {
    "agent": PUBLISH["agent-node1"],
    "interface": [
        *(one for one in PUBLISH["interface"] if not one.startswith("_INBOX")),
        "_INBOX.a",
        *(f"_INBOX.{user}.a" for user in OWN_USERS),
    ],
    "learner": PUBLISH["learner"],
    "session": ["session", *(f"control.session.{op}" for op in ("status", "mode", "restore", "set"))],
    "operator": [one for one in OWN_SUBJECTS if re.fullmatch(r"control\.operator\.[a-z]+", one)],
    "viewer": PUBLISH["viewer"],
}
OWN_SUBSCRIBE = {
    "agent": SUBSCRIBE["agent-node1"],
    "interface": [
        *(one for one in OWN_SUBJECTS if re.fullmatch(r"(agents|control)\.\w+\.\w+", one)),
        *(one for one in OWN_SUBJECTS if re.fullmatch(r"(actions|history)\.\w+", one)),
        *("actions.*", "history.*", "control.*.*"),
    ],
    "learner": [*TOLD, "_INBOX.learner.a", "_INBOX.learner.>"],
    "session": [*TOLD, "_INBOX.session.a", "_INBOX.session.>"],
    "operator": SUBSCRIBE["operator"],
    "viewer": SUBSCRIBE["viewer"],
}
WILD = ["_INBOX.>", ">", "*", "actions.*", "history.*", "control.*.*"]
WILD += [f"_INBOX.{user}.>" for user in USERS]


@pytest.fixture
def secured(system):
    """The page's server, without TLS (test_several_nodes.py has it); names are those of the tests."""
    text = re.search(r"<!-- file: head nats.conf -->\n```\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    text, removed = re.subn(r"^listen: .*\n|^tls \{\n(  .*\n)+\}\n", "", text, flags=re.MULTILINE)
    assert removed == 2
    text = text.replace(".files.", ".test.").replace("client1", "node1")
    for user, word in re.findall(r'user: "(\S+)", password: "([^"]+)"', text):
        system.credentials[user] = secrets.token_hex(12)
        text = text.replace(f'"{word}"', f'"{system.credentials[user]}"')
    assert sorted(system.credentials) == sorted(USERS)
    (system.folder / "nats.conf").write_text(text)
    system.server.kill()
    system.server.wait()
    system.start_server("-c", system.folder / "nats.conf")
    system.enter = lambda user, *subjects: system.bus(
        (user, system.credentials[user]), subjects or ["_INBOX.none"]
    )
    return system


def allowed(bus, verb, subjects):
    """Those that the server does not refuse."""
    full = {one: one if one[0] in "_>*" else f"ascar.capes.test.{one}" for one in subjects}
    words = {"PUB": "PUB {} 0\r\n\r\n", "SUB": "SUB {} 9\r\nUNSUB 9\r\n"}
    bus.socket.sendall("".join(words[verb].format(one) for one in full.values()).encode() + b"PING\r\n")
    refused = set()
    while (line := bus._line()) != b"PONG":
        found = re.search(rb'Permissions Violation for (?:Publish|Subscription) to "([^"]+)"', line)
        if found:
            refused.add(found[1].decode())
    return [one for one, subject in full.items() if subject not in refused]


@pytest.mark.parametrize("user", USERS)
def test_each_role_may_do_its_part_and_no_more(secured, user):
    bus = secured.enter(user)
    assert sorted(allowed(bus, "PUB", SUBJECTS)) == sorted(PUBLISH[user])
    assert sorted(allowed(bus, "SUB", [*SUBJECTS, *WILD])) == sorted(SUBSCRIBE[user])


@pytest.mark.parametrize("user", OWN_USERS)
def test_each_part_of_a_session_of_ones_own_may_do_its_part_and_no_more(system, user):
    with MessageServer(system.folder / "messages", users("test", "node1")) as server:
        settings = server.settings(user)
        system.port = urlsplit(settings.url).port
        bus = system.bus((user, settings.password), ["_INBOX.none"])
        wild = [">", "*", "_INBOX.>", "actions.*", "history.*", "control.*.*"]
        wild += [f"_INBOX.{one}.>" for one in OWN_USERS]
        assert sorted(allowed(bus, "PUB", OWN_SUBJECTS)) == sorted(OWN_PUBLISH[user])
        assert sorted(allowed(bus, "SUB", [*OWN_SUBJECTS, *wild])) == sorted(OWN_SUBSCRIBE[user])


def test_who_asked_is_who_the_server_says_and_the_kill_switch_stays_pulled(secured):
    secured.interface(KNOBS, mode="observe")
    operator = secured.enter("operator", "_INBOX.operator.>")
    learner = secured.enter("learner", "ticks", "_INBOX.learner.>")
    learner.json("ticks")
    boss = {"op": "kill", "actor": "boss", "why": "to see", "person": "alice at head"}
    assert operator.ask("control.operator.kill", boss)["ok"]["unconfirmed"] == 0
    for op, keys in (("revive", {}), ("mode", {"mode": "automatic"})):
        for user in ("learner", "operator"):
            learner.publish(f"control.{user}.{op}", {"op": op, "actor": "operator", **keys})
    # By a subject that it may use.
    assert "must be" in learner.ask("control.learner.status", {"op": "revive"})["error"]
    status = learner.control("status")
    assert status["killed"] is True and status["mode"] == "observe"
    assert status["kill"]["why"] == "operator: to see"

    def audit():
        return [(one["actor"], one["what"], one["detail"]) for one in operator.control("audit")["audit"]]

    until(audit, what="the audit log")  # written a moment after the deed
    assert audit() == [("operator", "kill", {"person": "alice at head"})]


def test_a_reply_reaches_who_asked_and_nobody_else(secured):
    secured.interface(KNOBS)
    agent = secured.enter("agent-node1", "nodes.node1", "nodes.all")
    agent.json("nodes.all", lambda it: it["op"] == "beat")
    operator = secured.enter("operator", "_INBOX.operator.>")
    viewer = secured.enter("viewer", "ticks", "_INBOX.viewer.>")
    garbage = operator.control("status")["counters"]["garbage"]
    replies = ("ascar.capes.test.nodes.node1", "_INBOX.operator.x", "_INBOX.viewer", "_INBOX.viewerx.a")
    for reply in replies:
        viewer.publish("history.viewer", {"version": 1, "extent": True}, reply)
    # Answered behind them: what was to come has come.
    assert viewer.history(extent=True)[-1][0]["last"]
    operator.publish("control.operator.status", {"op": "status"}, "_INBOX.operator.last")
    name, payload = operator.next(lambda name, payload: (name, payload))
    assert name == "_INBOX.operator.last"
    status = json.loads(payload)["ok"]
    assert status["counters"]["garbage"] == garbage + len(replies)

    def beat_or_reply(name, payload):
        tick = json.loads(payload).get("tick", 0) if name.endswith(".nodes.all") else None
        return name if tick is None or tick > status["tick"] else None

    assert agent.next(beat_or_reply) == "ascar.capes.test.nodes.all"


def test_tuning_goes_on_under_these_rights(secured, sysctl):
    secured.interface(KNOBS)
    process = secured.agent(AGENT)
    learner = secured.enter("learner", "ticks", "outcomes", "events", "_INBOX.learner.>")
    learner.json("ticks", lambda it: "node1" in it["nodes"])
    action = {"id": "a-1", "set": {"vm.page-cluster": 6}, "actor": "operator"}
    assert learner.ask("actions", action)["verdict"] == "accepted"
    ends = ("applied", "failed")
    assert learner.json("outcomes", lambda it: it["verdict"] in ends)["verdict"] == "applied"
    assert sysctl.read() == 6
    viewer = secured.enter("viewer", "ticks", "_INBOX.viewer.>")
    viewer.json("ticks", lambda it: "node1" in it["nodes"])
    assert viewer.history(extent=True)[0][0]["nodes"] == ["node1"]
    stored = [header for header, _ in viewer.history(from_tick=0, to_tick=2**40) if "actions" in header]
    assert {one["actor"] for header in stored for one in header["actions"]} == {"learner"}
    # An order is the interface's alone to give.
    learner.publish("nodes.node1", {"op": "set", "id": "x", "set": {"vm.page-cluster": 8}})
    tick = learner.json("ticks")["tick"]
    learner.json("ticks", lambda it: it["tick"] > tick + 3)
    assert sysctl.read() == 6
    process.terminate()
    assert process.wait(60) == 0
