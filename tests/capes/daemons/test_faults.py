"""Processes that die, servers that go, disks that fill, garbage: tuning goes on or holds safely."""

import os
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest

from knob_setting import has_node, set_knob
from waiting import until

KNOBS = "[[knob]]\nname = 'vm.page-cluster'\nminimum = 0\nmaximum = 8\n"
AGENT = "[[collector]]\nkind = 'cpu'\n[[knob]]\nname = 'vm.page-cluster'\n"


def keeper_of(agent):
    """Behind the agent's starter, and behind the process that holds its lease."""

    def child(pid, *words):
        found = subprocess.run(["pgrep", "-P", str(pid), *words], capture_output=True, text=True, check=True)
        return found.stdout.strip()

    return int(child(child(child(agent.pid), "-f", "keeper"), "-f", "keeper"))


def test_an_agent_that_is_killed_leaves_every_knob_as_it_was(system, sysctl):
    bus = system.bus()
    system.interface(KNOBS)
    agent = system.agent(AGENT)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    agent.kill()
    until(lambda: sysctl.read() == sysctl.default, what="the keeper puts it back")
    assert bus.json("events", lambda it: it["event"] == "node" and it["state"] == "gone")["node"] == "node1"
    refused = bus.ask("actions", {"id": "a-2", "set": {"vm.page-cluster": 5}})
    assert refused["reason"].startswith("node: ")
    # Another one gets the session's setting.
    system.agent(AGENT)
    until(lambda: sysctl.read() == 6, what="the setting in force")


def test_a_keeper_that_is_killed_is_replaced_and_its_knobs_are_put_back_and_set_again(system, sysctl):
    bus = system.bus()
    system.interface(KNOBS)
    agent = system.agent(AGENT)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    os.kill(keeper_of(agent), signal.SIGKILL)
    until(lambda: "another one has put back its knobs" in system.log("node1"), what="another keeper")
    until(lambda: sysctl.read() == 6, what="the setting in force")
    agent.terminate()
    assert agent.wait(60) == 0
    assert sysctl.read() == sysctl.default


def test_an_interface_that_is_killed_loses_no_tick_that_it_told_and_goes_on(system, sysctl):
    bus = system.bus()
    interface = system.interface(KNOBS)
    system.agent(AGENT)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    told = [bus.json("ticks", has_node)["tick"] for _ in range(10)]
    interface.kill()
    interface.wait()
    system.interface(KNOBS)
    first = bus.json("ticks", lambda it: it["tick"] > told[-1] + 3 and has_node(it))
    # It knows what it had set.
    assert first["setting"] == {"vm.page-cluster": 6}
    assert bus.control("status")["defaults"] == {"vm.page-cluster": sysctl.default}
    database = sqlite3.connect(f"file:{system.folder}/replay.sqlite?mode=ro", uri=True)
    stored = {tick for (tick,) in database.execute("SELECT tick FROM ticks")}
    database.close()
    assert set(told) <= stored
    bus.control("restore")
    until(lambda: sysctl.read() == sysctl.default, what="restore")


def test_without_the_server_knobs_go_back_and_with_it_the_session_goes_on(system, sysctl):
    bus = system.bus()
    system.interface(KNOBS)
    system.agent(AGENT, contact_s=3)
    bus.json("ticks", has_node)
    assert set_knob(bus, 6)["verdict"] == "applied"
    system.server.kill()
    system.server.wait()
    until(lambda: sysctl.read() == sysctl.default, what="the dead man's switch")
    # The agent writes its line after the knob is back.
    until(lambda: "nothing heard of the interface" in system.log("node1"), what="the agent's word of it")
    system.start_server()
    bus = system.bus()
    bus.json("ticks", has_node)
    until(lambda: sysctl.read() == 6, what="the setting in force")


def test_a_node_that_freezes_is_missed_and_the_others_go_on(system):
    bus, watcher = system.bus(), system.bus()
    system.interface()
    system.agent("[[collector]]\nkind = 'cpu'\n")
    frozen = system.agent("[[collector]]\nkind = 'cpu'\n", node="node2")
    bus.json("ticks", lambda it: has_node(it) and has_node(it, "node2"))
    frozen.send_signal(signal.SIGSTOP)
    bus.json("ticks", lambda it: has_node(it) and it["missing"] == ["node2"])
    gone = {"event": "node", "node": "node2", "state": "gone"}
    watcher.json("events", lambda it: gone.items() <= it.items())
    frozen.send_signal(signal.SIGCONT)
    bus.json("ticks", lambda it: has_node(it) and has_node(it, "node2"))


def test_garbage_on_every_subject_changes_nothing(system, sysctl):
    bus = system.bus()
    system.interface(KNOBS)
    agent = system.agent(AGENT)
    bus.json("ticks", has_node)
    garbage = [
        b"",
        b"\x00" * 50,
        b"\xff\xfe{",
        b"{}",
        b"[]",
        b"null",
        b'{"op": 1, "set": 1, "id": []}',
        os.urandom(900),
    ]
    garbage += [
        b"[" * 5000,
        b'{"op":"set","id":"x","set":{"vm.page-cluster":"; reboot"}}',
        b'{"version":99,"names":[""]}',
    ]
    subjects = ["actions.test", "history.test", "control.test.kill", "nodes.node1", "nodes.all"]
    subjects += [
        f"agents.{node}.{what}" for node in ("node1", "strange") for what in ("hello", "frames", "results")
    ]
    for subject in [*subjects, "agents.node1.unknown", "agents.a.b.c", "nonsense"]:
        for payload in garbage:
            bus.publish(subject, payload, "_INBOX.test.nobody")
    tick = bus.json("ticks", has_node)["tick"]
    bus.json("ticks", lambda it: has_node(it) and it["tick"] > tick + 10)
    assert agent.poll() is None
    assert sysctl.read() == sysctl.default
    assert bus.control("status")["counters"]["garbage"] > 10
    assert set_knob(bus, 6)["verdict"] == "applied"


@pytest.fixture
def small_disk(tmp_path):
    """Has to be there before the machine that is to see it."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


def test_a_full_disk_holds_everything_and_loses_no_tick(small_disk, system, sysctl):
    bus = system.bus()
    system.interface(KNOBS, database=small_disk / "replay.sqlite")
    system.agent(AGENT)
    bus.json("ticks", has_node)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    held = bus.json("ticks", lambda it: has_node(it) and not it["stored"])
    assert held["holding"].startswith("storage: ")
    refused = bus.ask("actions", {"id": "a-1", "set": {"vm.page-cluster": 6}})
    assert refused["verdict"] == "refused" and refused["reason"].startswith("storage: ")
    filler.unlink()
    bus.json("ticks", lambda it: has_node(it) and it["stored"])
    extent = bus.history(from_tick=held["tick"], to_tick=held["tick"] + 1)
    assert any(header.get("node") == "node1" and header["rows"] == 1 for header, _ in extent)
    assert set_knob(bus, 6, 2)["verdict"] == "applied"


def test_a_second_interface_on_one_database_is_refused(system):
    bus = system.bus()
    system.interface()
    bus.json("ticks")
    second = system.interface()
    assert second.wait(100) == 2
    assert "another interface writes it" in system.log("interface")


def test_lustre_parameters_are_read_set_and_put_back(system, tmp_path):
    """In a namespace of mounts where `/sys/fs/lustre` is ours."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    tree = tmp_path / "lustre"
    device = "fs-OST0000-osc-ffff9a0b1c2d3e4f"
    folder = tree / "osc" / device
    folder.mkdir(parents=True)
    for name, value in [("max_rpcs_in_flight", 16), ("max_dirty_mb", 32), ("max_pages_per_rpc", 1024)]:
        (folder / name).write_text(f"{value}\n")
    (folder / "stats").write_text("req_waittime 100 samples [usec] 1 9 5000 9\n")
    script = (
        'mount -t tmpfs none /sys/fs && mkdir /sys/fs/lustre && mount --bind $0 /sys/fs/lustre && exec "$@"'
    )
    before = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, tree]
    knob = "lustre.osc.*.max_rpcs_in_flight"
    bus = system.bus()
    system.interface(f"[[knob]]\nname = '{knob}'\nscope = 'stream'\nminimum = 1\nmaximum = 256\n")
    text = f"[[collector]]\nkind = 'lustre'\n[[knob]]\nname = '{knob}'\n"
    agent = system.agent(text, before=before)
    seen = bus.json("ticks", has_node)
    layout, values = seen["nodes"]["node1"]
    found = dict(zip(seen["layouts"][layout], values, strict=True))
    assert found["lustre.fs-OST0000.max_rpcs_in_flight"] == 16
    assert found["knob.lustre.osc.fs-OST0000.max_rpcs_in_flight"] == 16
    key = f"{knob}@node1/fs-OST0000"
    assert seen["setting"] == {key: 16}
    assert bus.ask("actions", {"id": "a", "set": {key: 32}})["verdict"] == "accepted"
    assert bus.json("outcomes", lambda it: it["verdict"] in ("applied", "failed"))["verdict"] == "applied"
    assert (folder / "max_rpcs_in_flight").read_text().strip() == "32"
    # What Lustre may have raised beside it is in the journal as well.
    journals = "".join(
        path.read_text() for path in Path(tmp_path / "journal-node1").rglob("*") if path.is_file()
    )
    assert f"lustre.osc.{device}.max_dirty_mb" in journals
    agent.terminate()
    assert agent.wait(60) == 0
    assert (folder / "max_rpcs_in_flight").read_text().strip() == "16"


def test_wrong_files_are_refused_by_their_keys(system):
    for text, word in [("nodes = 5", "nodes"), ("[[collector]]\nkind = 'magic'", "magic")]:
        agent = system.agent(text)
        assert agent.wait(60) == 2
        assert word in system.log("node1")
    interface = system.interface("[[rule]]\nforbid = 'nothing > 1'\nwhy = 'x'\n")
    assert interface.wait(60) == 2
    assert "'nothing > 1'" in system.log("interface") or '"nothing > 1"' in system.log("interface")
