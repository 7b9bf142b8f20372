"""The kill switch: it stays pulled, knobs go back whatever blocks, and it tells what is confirmed."""

import json
import os
import signal
import stat
import subprocess
import sys

import pytest

from knob_setting import has_node, set_knob
from waiting import until

KNOBS = "[[knob]]\nname = 'vm.page-cluster'\nminimum = 0\nmaximum = 8\n"
AGENT = "[[collector]]\nkind = 'cpu'\n[[knob]]\nname = 'vm.page-cluster'\n"
PROGRAM = """
import sys
for line in sys.stdin:
    if "set" in line:
        print('{"ok": {"depth": 5}}', flush=True)
        break
    print('{"ok": {"depth": 1}}', flush=True)
sys.stdin.read()
"""


def confirmed(bus):
    """Whether every node has confirmed the kill."""
    told = bus.control("confirmation")
    return told["killed"] and told["kill"]["unconfirmed"] == 0


def blocking(folder):
    """A collector of a file that never answers."""
    device = folder / "lustre" / "osc" / "fs-OST0000-osc-ffff9a0b1c2d3e4f"
    device.mkdir(parents=True)
    os.mkfifo(device / "stats")
    return f"[[collector]]\nkind = 'lustre'\nroot = '{folder / 'lustre'}'\n"


@pytest.fixture
def ascar_kill(system):
    """The command line's kill: its exit status, and what it prints."""

    def kill(*words):
        where = ("--session", "test", "--connection", str(system.connection("operator")))
        command = [sys.executable, "-P", "-m", "ascar", "capes", "control", "kill", *words, *where]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return kill


@pytest.mark.parametrize("damage", ["truncated", "empty", "missing", "flipped", "both missing"])
def test_a_state_that_cannot_be_read_means_killed(system, damage):
    bus = system.bus()
    interface = system.interface(KNOBS)
    bus.json("ticks")
    bus.control("mode", mode="approve")
    interface.terminate()
    assert interface.wait(60) == 0
    states = sorted(system.folder.glob("replay.sqlite.state.*"))
    assert [path.name for path in states] == ["replay.sqlite.state.0", "replay.sqlite.state.1"]
    for path in states:
        content = path.read_bytes()
        if "missing" in damage:
            path.unlink()
            if damage == "missing":
                break
            continue
        flipped = bytes([content[0], content[1] ^ 4]) + content[2:]
        path.write_bytes({"truncated": content[:-9], "empty": b"", "flipped": flipped}[damage])
    system.interface(KNOBS)
    # Asked before it listens there is no answer; the ticks of the one before do not count.
    bus = system.bus()
    status = bus.json("ticks") and bus.control("status")
    assert status["killed"] is True
    assert "the state cannot be read" in status["kill"]["why"]
    assert bus.ask("actions", {"id": "a", "set": {"vm.page-cluster": 6}})["reason"].startswith("killed")
    assert "the session is killed until `ascar capes control revive`" in system.log("interface")
    bus.control("revive")
    assert bus.control("status")["killed"] is False


def test_an_old_state_is_taken_over_and_an_old_kill_stays(system):
    old = system.folder / "replay.sqlite.state"
    setting = {"current": {}, "defaults": {}, "changed": []}
    state = {"version": 1, "setting": setting, "killed": True, "mode": "automatic", "workload": None}
    old.write_text(json.dumps(state))
    bus = system.bus()
    system.interface(KNOBS)
    bus.json("ticks")
    assert bus.control("status")["killed"] is True
    assert not old.exists()


def test_files_of_a_session_are_its_owners_alone(system):
    bus = system.bus()
    system.interface(KNOBS)
    bus.json("ticks")
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in system.folder.glob("replay.sqlite*")}
    assert {"replay.sqlite", "replay.sqlite-wal", "replay.sqlite.state.0"} <= set(found)
    assert set(found.values()) == {0o600}, found


def test_a_database_that_everybody_could_read_is_closed_to_others_and_stays_open_to_its_group(system):
    bus = system.bus()
    interface = system.interface(KNOBS)
    bus.json("ticks")
    interface.kill()
    interface.wait(60)
    files = [system.folder / f"replay.sqlite{end}" for end in ("", "-wal", "-shm")]
    for path in files:
        path.chmod(0o644)
    system.interface(KNOBS)
    system.bus().json("ticks")
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o640] * 3


def test_a_collector_that_blocks_freezes_neither_ticks_nor_the_kill(system, sysctl, ascar_kill):
    bus = system.bus()
    system.interface(KNOBS)
    system.agent(AGENT + blocking(system.folder))
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    until(lambda: bus.control("status")["nodes"][0]["blocked"] == ["lustre"], what="the collector is named")
    assert "collector lustre: no answer within 2 s" in system.log("node1")
    status, lines = ascar_kill("--wait", "100")
    assert (status, sysctl.read()) == (0, sysctl.default), lines
    assert "1 of 1 nodes have put every knob back" in lines.replace("has", "have")


def test_a_collector_that_blocks_does_not_silence_the_dead_mans_switch(system, sysctl):
    bus = system.bus()
    interface = system.interface(KNOBS)
    system.agent(AGENT + blocking(system.folder), contact_s=3)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    interface.kill()
    until(lambda: sysctl.read() == sysctl.default, what="the dead man's switch")


def test_knobs_of_a_stopped_agent_go_back_and_the_kill_names_it(system, sysctl, ascar_kill):
    bus = system.bus()
    system.interface(KNOBS)
    agent = system.agent(AGENT, contact_s=3)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    agent.send_signal(signal.SIGSTOP)
    status, lines = ascar_kill("--wait", "0.5")
    assert status == 3, lines
    assert "0 of 1 nodes" in lines and "not confirmed after" in lines and "node1 (" in lines
    until(lambda: sysctl.read() == sysctl.default, what="the lease runs out")
    until(
        lambda: bus.control("confirmation")["kill"]["nodes"][0]["state"] == "unreachable", what="it is missed"
    )
    # The agent's lines, and its lease's, are in one log.
    assert "the lease has run out" in system.log("node1")
    agent.send_signal(signal.SIGCONT)
    until(lambda: confirmed(bus), what="it confirms what it was asked meanwhile")
    assert sysctl.read() == sysctl.default


def test_a_program_that_hangs_does_not_hold_up_the_kill(system, sysctl):
    bus = system.bus()
    program = system.folder / "program.py"
    program.write_text(PROGRAM)
    knob = "[[program.knob]]\nname = 'depth'\nminimum = 0\nmaximum = 9\n"
    command = json.dumps([sys.executable, str(program)])
    system.interface(KNOBS + "[[knob]]\nname = 'depth'\nminimum = 0\nmaximum = 9\n")
    system.agent(f"{AGENT}[[program]]\ncommand = {command}\n{knob}")
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    verdict = bus.ask("actions", {"id": "b", "set": {"depth": 5}})
    assert verdict["verdict"] == "accepted", verdict
    assert (
        bus.json("outcomes", lambda it: it["id"] == "b" and it["verdict"] != "accepted")["verdict"]
        == "applied"
    )
    bus.control("kill")
    until(lambda: sysctl.read() == sysctl.default, what="the keeper is asked first")
    until(lambda: "their lease is ended" in system.log("node1"), what="the program's lease")
    until(lambda: confirmed(bus), what="the next program puts its knob back")


def test_a_log_that_cannot_be_written_ends_no_process(system, sysctl):
    bus = system.bus()
    full = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"]
    interface = system.interface(KNOBS, before=full)
    agent = system.agent(AGENT + blocking(system.folder), before=full, contact_s=3)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    # Each of them now has something to say.
    system.server.kill()
    system.server.wait()
    until(lambda: sysctl.read() == sysctl.default, what="the dead man's switch")
    system.start_server()
    bus = system.bus()
    bus.json("ticks", has_node)
    until(lambda: sysctl.read() == 6, what="the setting in force")
    assert (interface.poll(), agent.poll()) == (None, None)
