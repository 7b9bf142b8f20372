"""A disk that does not answer: ticks go on, a kill reaches the nodes, nothing is done before it is stored."""

import json
import time
from pathlib import Path

import pytest

from knob_setting import has_node, set_knob
from preloads import preload
from waiting import until

KNOBS = "[[knob]]\nname = 'vm.page-cluster'\nminimum = 0\nmaximum = 8\n"
AGENT = "[[knob]]\nname = 'vm.page-cluster'\n"
TICKS = 10


class Gate:
    """Whether states of the interface reach its disk."""

    def __init__(self, folder):
        self.path = folder / "gate"
        library = preload(Path(__file__).parent / "slow_disk.c", folder)
        self.before = ["env", f"LD_PRELOAD={library}", "SLOW_NAME=.state.", f"SLOW_GATE={self.path}"]

    def shut(self):
        self.path.touch()

    def open(self):
        self.path.unlink()


@pytest.fixture
def operator(system):
    """A bus whose answers are not taken for those to another one."""
    bus = system.bus()
    bus.serial = 1000
    return bus


@pytest.fixture
def gate(system):
    return Gate(system.folder)


def ask(bus, op, **keys):
    """Ask for something whose answer is not waited for; where it will come."""
    bus.serial += 1
    reply = f"_INBOX.{bus.user}.late.{bus.serial}"
    bus.publish(f"control.{bus.user}.{op}", {"op": op, "why": "to see", **keys}, reply)
    return reply


def answer(bus, reply, patience_s=100.0):
    return json.loads(bus.next(lambda name, payload: payload if name == reply else None, patience_s))


def consecutive(bus, count=TICKS):
    """The numbers of the next ticks; they come one after the other, at their time."""
    first = bus.json("ticks")["tick"]
    start_s = time.monotonic()
    numbers = [first, *(bus.json("ticks", lambda it: it["tick"] > first)["tick"] for _ in range(count - 1))]
    assert time.monotonic() - start_s < 100
    return numbers


def test_a_kill_reaches_the_nodes_and_is_done_when_it_is_stored(system, operator, sysctl, gate):
    bus = system.bus()
    system.interface(KNOBS, before=gate.before)
    system.agent(AGENT)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    gate.shut()
    # It may be at a write already.
    told = operator.control("kill")
    assert told["not_stored"] == "it is being written"
    until(lambda: sysctl.read() == sysctl.default, what="the nodes put everything back")
    until(lambda: operator.control("confirmation")["kill"]["unconfirmed"] == 0, what="the node confirms it")
    numbers = consecutive(bus)
    assert numbers == list(range(numbers[0], numbers[0] + TICKS))
    assert operator.control("confirmation")["kill"]["not_stored"] == "it is being written"
    gate.open()
    until(lambda: "not_stored" not in operator.control("confirmation")["kill"], what="it is stored")


def test_what_is_told_as_applied_is_known_to_a_new_start(system, sysctl, gate):
    bus = system.bus()
    interface = system.interface(KNOBS, before=gate.before)
    system.agent(AGENT)
    bus.json("ticks", has_node)
    bus.publish("actions.test", {"id": "a", "set": {"vm.page-cluster": 6}})
    until(lambda: sysctl.read() == 6, what="the node sets it")
    # What came of it may be stored already; if not, it is not told.
    gate.shut()
    try:
        told = bus.json("outcomes", lambda it: it["verdict"] == "applied", 3.0)
    except AssertionError:
        told = None
    interface.kill()
    interface.wait()
    gate.open()
    system.interface(KNOBS, before=gate.before)
    bus = system.bus()
    bus.json("ticks", has_node)
    if told is not None:
        until(lambda: sysctl.read() == 6, what="the setting that was told as applied")


def test_a_mode_is_answered_when_it_is_stored_and_not_before(system, operator, gate):
    bus = system.bus()
    system.interface(KNOBS, mode="observe", before=gate.before)
    bus.json("ticks")
    gate.shut()
    # Less careful than what is in force, and so not in force before it is stored.
    later = ask(operator, "mode", mode="approve")
    consecutive(bus)
    seen = []
    operator.publish("control.test.status", {"op": "status", "why": ""}, "_INBOX.test.status")

    def is_status(name, payload):
        seen.append(name)
        return json.loads(payload)["ok"] if name == "_INBOX.test.status" else None

    # All that was said to anybody before this answer has come before it.
    assert operator.next(is_status)["mode"] == "observe"
    assert later not in seen
    gate.open()
    assert answer(operator, later)["ok"] == {"mode": "approve"}
    assert operator.control("status")["mode"] == "approve"


def test_a_revive_that_is_not_stored_ends_no_kill(system, operator, gate):
    bus = system.bus()
    interface = system.interface(KNOBS, before=gate.before)
    bus.json("ticks")
    operator.control("kill")
    until(lambda: "not_stored" not in operator.control("confirmation")["kill"], what="the kill is stored")
    gate.shut()
    ask(operator, "revive")
    consecutive(bus)
    assert operator.control("status")["killed"] is True
    # It dies in the middle of the write.
    interface.kill()
    interface.wait()
    gate.open()
    system.interface(KNOBS, before=gate.before)
    bus = system.bus()
    status = bus.json("ticks") and bus.control("status")
    assert status["killed"] is True
    # With a disk that answers it ends.
    assert bus.control("revive") == {}
    assert bus.control("status")["killed"] is False
