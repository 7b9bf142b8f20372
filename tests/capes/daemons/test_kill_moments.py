"""The kill switch is pulled while processes are killed, stopped and started at random moments."""

import random
import signal

import pytest

from waiting import until

KNOBS = "[[knob]]\nname = 'vm.page-cluster'\nminimum = 0\nmaximum = 8\n"
AGENT = "[[collector]]\nkind = 'cpu'\n[[knob]]\nname = 'vm.page-cluster'\n"
TROUBLES = ("none", "agent killed", "agent stopped", "interface killed", "both killed", "server killed")
TIMES = 5


@pytest.mark.slow
def test_after_kills_at_random_moments_every_knob_is_back_and_stays_back(system, sysctl, seed):
    """After each pull every knob goes back, the kill outlives a new start, and a revive ends it."""
    draw = random.Random(seed)
    bus = system.bus()
    interface, agent = system.interface(KNOBS), system.agent(AGENT, contact_s=3)
    for number, trouble in enumerate(draw.sample(TROUBLES * TIMES, k=TIMES * len(TROUBLES))):
        bus.json("ticks", lambda it: "node1" in it["nodes"] and it["holding"] is None)
        verdict = bus.ask("actions", {"id": f"a-{number}", "set": {sysctl.name: draw.choice((5, 6, 7))}})
        assert verdict["verdict"] == "accepted", verdict
        if draw.random() < 0.7:
            until(lambda: sysctl.read() != sysctl.default, what="the setting in force")
        is_early = draw.random() < 0.5
        if is_early and "agent" in trouble:
            agent.send_signal(signal.SIGSTOP if "stopped" in trouble else signal.SIGKILL)
        told = bus.control("kill")
        assert told["confirmed"] == 0 and told["unconfirmed"] == 1, told
        while "not_stored" in told:  # the disk is busy, and a new start might not know of it yet
            told = bus.control("confirmation")["kill"]
        if not is_early and "agent" in trouble:
            agent.send_signal(signal.SIGSTOP if "stopped" in trouble else signal.SIGKILL)
        if trouble in ("interface killed", "both killed"):
            interface.kill()
            interface.wait()
        if trouble == "both killed":
            agent.kill()
        if trouble == "server killed":
            system.server.kill()
            system.server.wait()
            system.start_server()
            bus = system.bus()
        until(lambda: sysctl.read() == sysctl.default, what=f"{number}: every knob back, {trouble}")
        if interface.poll() is not None:
            interface = system.interface(KNOBS)
            # Without the ticks of the one before.
            bus = system.bus()
        agent.send_signal(signal.SIGCONT)
        if trouble in ("agent killed", "both killed"):
            agent.wait()
            agent = system.agent(AGENT, contact_s=3)
        bus.json("ticks", lambda it: "node1" in it["nodes"])
        until(lambda bus=bus: is_confirmed(bus), what=f"{number}: the node confirms it, {trouble}")
        assert sysctl.read() == sysctl.default
        refused = bus.ask("actions", {"id": f"b-{number}", "set": {sysctl.name: 8}})
        assert refused["reason"].startswith("killed"), refused
        bus.control("revive")
    agent.terminate()
    assert agent.wait(60) == 0
    assert sysctl.read() == sysctl.default


def is_confirmed(bus):
    """Whether every node has confirmed the kill."""
    told = bus.control("confirmation")
    assert told["killed"], told
    return told["kill"]["unconfirmed"] == 0
