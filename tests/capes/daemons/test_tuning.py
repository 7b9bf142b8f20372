"""Ticks, actions, modes, the service level: agent, interface and keeper as processes."""

import json
import sqlite3
import struct
import sys

import pytest

from waiting import until

KNOBS = """
[[knob]]
name = "vm.page-cluster"
minimum = 0
maximum = 8
change_max = 4
"""
AGENT = """
calendar = true
[[collector]]
kind = "cpu"
[[collector]]
kind = "vm"
[[collector]]
kind = "memory"
[[collector]]
kind = "block"
[[knob]]
name = "vm.page-cluster"
maximum = 9
"""
METRIC = """
[[metric]]
name = "free_bytes"
indicators = ["memory.free_bytes"]
[[metric]]
name = "cpus_max"
indicators = ["cpu.count"]
aggregate = "max"
"""


def has_values(message):
    return "node1" in message["nodes"]


def act(bus, name, value, number=1, **keys):
    return bus.ask("actions", {"version": 1, "id": f"a-{number}", "set": {name: value}, **keys})


def outcome(bus, number=1):
    is_end = ("applied", "failed")
    return bus.json("outcomes", lambda it: it["id"] == f"a-{number}" and it["verdict"] in is_end)


def test_ticks_come_are_stored_and_are_read_again(system):
    bus = system.bus()
    system.interface(KNOBS + METRIC)
    system.agent(AGENT)
    first = bus.json("ticks", has_values)
    heard = [first]
    while sum(map(has_values, heard)) < 8:  # on a busy machine the agent may miss one
        heard.append(bus.json("ticks"))
    assert [it["tick"] for it in heard] == list(range(first["tick"], first["tick"] + len(heard)))
    ticks = [it for it in heard if has_values(it)]
    last = ticks[-1]
    assert last["stored"] and last["parts"] == 1 and last["missing"] == [] and last["holding"] is None
    layout, values = last["nodes"]["node1"]
    names = last["layouts"][layout]
    found = dict(zip(names, values, strict=True))
    assert found["memory.free_bytes"] == pytest.approx(last["metrics"]["free_bytes"], rel=1e-6)
    assert {"calendar.hour", "cpu.idle_share", "knob.vm.page-cluster", "vm.faults_per_s"} <= set(names)
    assert last["setting"] == {"vm.page-cluster": found["knob.vm.page-cluster"]}

    parts = bus.history(from_tick=first["tick"], to_tick=last["tick"] + 1)
    rows = {}
    for header, block in parts:
        if "rows" in header:
            count, width = header["rows"], len(header["names"])
            numbers = struct.unpack(f"<{count}q", block[: 8 * count])
            cells = struct.unpack(f"<{count * width}f", block[8 * count :])
            for row, tick in enumerate(numbers):
                rows[header["node"], tick] = dict(
                    zip(header["names"], cells[row * width : (row + 1) * width], strict=True)
                )
    assert parts[-1][0]["next_tick"] is None
    for tick in ticks:
        layout, values = tick["nodes"]["node1"]
        stored = rows["node1", tick["tick"]]
        for name, value in zip(tick["layouts"][layout], values, strict=True):
            assert value is None or abs(stored[name] - value) <= 1e-6 * abs(value), name
        assert rows[None, tick["tick"]]["cpus_max"] == tick["metrics"]["cpus_max"]
    extent = bus.history(extent=True)[0][0]
    assert extent["nodes"] == ["node1"] and extent["first_tick"] <= first["tick"] <= extent["last_tick"]


def test_an_action_is_checked_applied_recorded_and_put_back_at_the_end(system, sysctl):
    bus = system.bus()
    rules = "[[rule]]\nforbid = 'vm_page_cluster == 4'\nwhy = 'unlucky'\n"
    system.interface(KNOBS + rules)
    agent = system.agent(AGENT)
    bus.json("ticks", has_values)
    for set_, reason in [
        ({"vm.nothing": 1}, "unknown: vm.nothing"),
        ({"vm.page-cluster": 9}, "range: vm.page-cluster = 9"),
        ({"vm.page-cluster@node1": 5}, "scope: "),
        ({"vm.page-cluster": 4}, "rule: vm_page_cluster == 4 (unlucky)"),
        ({"vm.page-cluster": 8}, "rate: vm.page-cluster from 3 to 8"),
    ]:
        verdict = bus.ask("actions", {"id": "x", "set": set_})
        assert verdict["verdict"] == "refused" and verdict["reason"].startswith(reason), verdict
    assert sysctl.read() == sysctl.default
    assert act(bus, sysctl.name, 5, tick=7, why="policy")["verdict"] == "accepted"
    assert outcome(bus)["verdict"] == "applied"
    assert sysctl.read() == 5
    bus.json("ticks", lambda it: it["setting"] == {"vm.page-cluster": 5})
    assert bus.ask("actions", {"id": "nothing", "set": {}})["verdict"] == "accepted"
    status = bus.control("status")
    assert status["changed"] == ["vm.page-cluster"] and status["defaults"] == {
        "vm.page-cluster": sysctl.default
    }
    assert status["counters"]["refusals"] == {"range": 1, "rate": 1, "rule": 1, "scope": 1, "unknown": 1}
    agent.terminate()
    assert agent.wait(60) == 0
    assert sysctl.read() == sysctl.default
    with sqlite3.connect(system.folder / "replay.sqlite") as database:
        sql = "SELECT verdict, content, why FROM actions WHERE id = 'a-1' ORDER BY n"
        until(lambda: len(database.execute(sql).fetchall()) == 2, what="two entries")
        assert database.execute(sql).fetchall()[0] == ("accepted", '{"vm.page-cluster":5}', "policy")
        refused = database.execute("SELECT count(*) FROM actions WHERE reason IS NOT NULL").fetchone()
        assert refused == (5,)
        assert database.execute("SELECT count(*) FROM audit WHERE actor = 'test'").fetchone()[0] >= 1
    database.close()


def test_modes_approval_the_kill_switch_and_the_audit(system, sysctl):
    bus = system.bus()
    system.interface(KNOBS, mode="observe")
    system.agent(AGENT)
    bus.json("ticks", has_values)
    assert act(bus, sysctl.name, 5)["verdict"] == "observed"
    bus.control("mode", mode="approve")
    assert act(bus, sysctl.name, 5, 2)["verdict"] == "waiting"
    assert sysctl.read() == sysctl.default
    assert bus.control("reject", id="a-2")["verdict"] == "refused"
    assert act(bus, sysctl.name, 6, 3)["verdict"] == "waiting"
    assert bus.control("status")["waiting"][0]["set"] == {"vm.page-cluster": 6}
    bus.control("approve", id="a-3")
    assert outcome(bus, 3)["verdict"] == "applied"
    assert sysctl.read() == 6
    bus.control("kill")
    until(lambda: sysctl.read() == sysctl.default, what="the kill switch")
    assert act(bus, sysctl.name, 5, 4)["reason"].startswith("killed")
    bus.control("revive")
    bus.control("mode", mode="automatic")
    assert act(bus, sysctl.name, 5, 5)["verdict"] == "accepted"
    assert outcome(bus, 5)["verdict"] == "applied"
    bus.control("restore")
    until(lambda: sysctl.read() == sysctl.default, what="restore")
    kinds = ("kill", "revive", "restore", "set", "approve", "reject")

    def audited() -> list[str]:
        whats = [entry["what"] for entry in bus.control("audit", limit=50)["audit"]]
        return [what for what in whats if what in kinds]

    expected = ["restore", "set", "revive", "kill", "approve", "set", "reject"]
    until(lambda: audited() == expected, what=f"the audit log {expected}")  # written a moment after the deed
    wrong = bus.ask_control("explode")
    assert "allowed are status, mode" in wrong["error"]


def test_below_the_floor_the_last_good_setting_comes_back_and_is_held(system, sysctl):
    # A system that suffers when the knob is high.
    program = system.folder / "application.py"
    program.write_text(
        "import json, time\n"
        "while True:\n"
        "    value = int(open('/proc/sys/vm/page-cluster').read())\n"
        "    print(json.dumps({'ops_per_s': 100 if value < 6 else 10}), flush=True)\n"
        "    time.sleep(0.05)\n"
    )
    floor = """
    [[metric]]
    name = "ops_per_s"
    indicators = ["app.ops_per_s"]
    [[floor]]
    metric = "ops_per_s"
    minimum = 50
    window_ticks = 4
    hold_ticks = 500
    """
    bus = system.bus()
    system.interface(KNOBS + floor)
    command = json.dumps([sys.executable, str(program)])
    system.agent(AGENT + f"[[collector]]\nkind = 'program'\nname = 'app'\ncommand = {command}\n")
    bus.json("ticks", lambda it: it["metrics"]["ops_per_s"] == 100)
    assert act(bus, sysctl.name, 5)["verdict"] == "accepted"
    assert outcome(bus)["verdict"] == "applied"
    good = bus.json("ticks", lambda it: it["setting"].get("vm.page-cluster") == 5)["tick"]
    for _ in range(8):
        bus.json("ticks", lambda it: it["tick"] > good and it["metrics"]["ops_per_s"] == 100)
    assert act(bus, sysctl.name, 7, 2)["verdict"] == "accepted"
    assert outcome(bus, 2)["verdict"] == "applied"
    breach = bus.json("events", lambda it: it["event"] == "breach")
    assert breach["metric"] == "ops_per_s" and breach["minimum"] == 50 > breach["mean"]
    bus.json("outcomes", lambda it: it["id"].startswith("fallback-") and it["verdict"] == "applied")
    assert sysctl.read() == 5
    assert act(bus, sysctl.name, 6, 3)["reason"].startswith("holding until tick")


def test_above_a_ceiling_the_initial_setting_comes_back_and_is_held(system, sysctl):
    program = system.folder / "application.py"
    program.write_text(
        "import json, time\n"
        "while True:\n"
        "    value = int(open('/proc/sys/vm/page-cluster').read())\n"
        "    print(json.dumps({'latency_ms': 10 if value < 6 else 100}), flush=True)\n"
        "    time.sleep(0.05)\n"
    )
    metric = "[[metric]]\nname = 'latency_ms'\nindicators = ['app.latency_ms']\n"
    ceiling = "[[ceiling]]\nmetric = 'latency_ms'\nmaximum = 1000\nwindow_ticks = 4\nhold_ticks = 500\n"
    bus = system.bus()
    system.interface(KNOBS + metric + ceiling)
    command = json.dumps([sys.executable, str(program)])
    system.agent(AGENT + f"[[collector]]\nkind = 'program'\nname = 'app'\ncommand = {command}\n")
    bus.json("ticks", lambda it: it["metrics"]["latency_ms"] == 10)
    assert bus.control("status")["ceilings"] == [{"metric": "latency_ms", "maximum": 1000.0}]
    assert "maximum = " in bus.ask_control("ceiling", metric="latency_ms", maximum="x")["error"]
    assert "error" not in bus.ask_control("ceiling", metric="latency_ms", maximum=50)
    before = sysctl.read()
    assert act(bus, sysctl.name, 7)["verdict"] == "accepted"
    assert outcome(bus)["verdict"] == "applied"
    breach = bus.json("events", lambda it: it["event"] == "breach")
    assert breach["metric"] == "latency_ms" and breach["maximum"] == 50 < breach["mean"]
    bus.json("outcomes", lambda it: it["id"].startswith("fallback-") and it["verdict"] == "applied")
    assert sysctl.read() == before
    assert "more than 50" in act(bus, sysctl.name, 6, 2)["reason"]


def test_a_program_sets_knobs_in_stages_and_a_refusal_puts_all_back(system):
    # Three nodes, each with a program that keeps its knob in a file.
    program = system.folder / "controller.py"
    program.write_text(
        "import json, pathlib, sys\n"
        "path = pathlib.Path(sys.argv[1]); path.write_text('8'); most = int(sys.argv[2])\n"
        "for line in sys.stdin:\n"
        "    order = json.loads(line)\n"
        "    if order.get('set', {}).get('depth', 0) > most:\n"
        "        print(json.dumps({'error': 'too deep'}), flush=True); continue\n"
        "    if 'set' in order: path.write_text(str(order['set']['depth']))\n"
        "    if 'restore' in order: path.write_text('8')\n"
        "    print(json.dumps({'ok': {'depth': int(path.read_text())}}), flush=True)\n"
        "path.write_text('8')\n"
    )
    bus = system.bus()
    system.interface(
        "[[knob]]\nname = 'depth'\nminimum = 1\nmaximum = 99\n[rollout]\nshare = 0.3\nticks = 50\n"
    )
    for number, most in enumerate((99, 99, 50), 1):
        command = json.dumps([sys.executable, str(program), str(system.folder / f"depth{number}"), str(most)])
        knob = "[[program.knob]]\nname = 'depth'\nminimum = 1\nmaximum = 99\n"
        system.agent(f"[[program]]\ncommand = {command}\n{knob}", node=f"node{number}")

    def depths():
        return [int((system.folder / f"depth{number}").read_text() or 0) for number in (1, 2, 3)]

    bus.json("ticks", lambda it: len(it["nodes"]) == 3)
    assert act(bus, "depth", 16)["verdict"] == "accepted"
    until(lambda: 16 in depths(), what="the first node")
    assert depths().count(16) == 1
    assert act(bus, "depth", 17, 2)["reason"].startswith("busy")
    assert outcome(bus)["verdict"] == "applied"
    assert depths() == [16, 16, 16]
    # One of them refuses.
    assert act(bus, "depth", 60, 3)["verdict"] == "accepted"
    failed = outcome(bus, 3)
    assert failed["verdict"] == "failed" and "too deep" in failed["reason"]
    until(lambda: depths() == [16, 16, 16], what="everything back")


def test_a_workload_has_a_database_of_its_own(system):
    bus = system.bus()
    interface = system.interface("database_per_workload = true\n")
    system.agent(AGENT)
    bus.json("ticks", has_values)
    watcher = system.bus()
    bus.control("workload", phase="start", name="fileserver", job="17")
    event = watcher.json("events", lambda it: it["event"] == "workload")
    assert (event["phase"], event["name"], event["job"]) == ("start", "fileserver", "17")

    def goes_on(it, after):
        return has_values(it) and it["workload"] == "fileserver" and it["tick"] > after

    tick = bus.json("ticks", lambda it: goes_on(it, event["tick"] + 3))["tick"]
    extent = bus.history(extent=True)[0][0]
    with sqlite3.connect(system.folder / "replay.sqlite") as database:
        before = database.execute("SELECT max(tick) FROM ticks").fetchone()[0]
    database.close()
    assert extent["first_tick"] > before and extent["last_tick"] >= tick
    own = system.folder / "replay-fileserver.sqlite"
    assert own.exists()
    # A job goes on while the interface is begun anew.
    interface.kill()
    interface.wait()
    interface = system.interface("database_per_workload = true\n")
    again = bus.json("ticks", lambda it: goes_on(it, tick + 1))["tick"]
    parts = bus.history(from_tick=event["tick"] - 5, to_tick=again + 100)
    told = [one for header, _ in parts for one in header.get("workloads", [])]
    assert told == [{"tick": event["tick"], "name": "fileserver", "job": "17"}]
    bus.control("workload", phase="end", name="fileserver")
    # At once the next one.
    bus.control("workload", phase="start", name="fileserver", job="18")
    bus.control("workload", phase="end", name="fileserver", job="18")
    end = bus.json("ticks", lambda it: it["workload"] is None and it["tick"] > again)["tick"]
    bus.json("ticks", lambda it: it["tick"] > end + 2)

    def stored():
        whole = bus.history(from_tick=0, to_tick=end + 100)
        workloads = [one for header, _ in whole for one in header.get("workloads", [])]
        return [(one["name"], one["job"]) for one in workloads]

    # On a slow disk they come to be stored a moment later.
    until(lambda: len(stored()) == 4, what="what was announced")
    assert stored() == [("fileserver", "17"), (None, ""), ("fileserver", "18"), (None, "18")]
    with sqlite3.connect(own) as database:
        assert database.execute("SELECT max(tick) FROM ticks").fetchone()[0] >= again - 1
    database.close()
    wrong = bus.ask_control("workload", phase="start", name="../../etc")
    assert "name" in wrong["error"]


def test_prometheus_reads_what_is_counted(system):
    import socket
    import urllib.request

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    bus = system.bus()
    system.interface(f"prometheus = '127.0.0.1:{port}'\n" + METRIC.replace("[[metric]]", "[[metric]]", 1))
    system.agent(AGENT)
    bus.json("ticks", lambda it: it["metrics"].get("free_bytes"))

    def page():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=100) as answer:
            return answer.read().decode()

    # Of a tick in which the agent sent nothing there is no metric.
    until(lambda: 'ascar_capes_metric{name="free_bytes"}' in page(), what="a tick with values")
    assert "ascar_capes_nodes 1" in page()


def test_an_administrator_and_a_job_scheduler_speak_to_it_by_a_command(system, sysctl):
    import os
    import subprocess

    bus = system.bus()
    system.interface(KNOBS, mode="approve")
    system.agent(AGENT)
    bus.json("ticks", has_values)

    def ask(*words, status=0):
        where = ("--session", "test", "--connection", system.connection("operator"))
        command = [sys.executable, "-P", "-m", "ascar", "capes", "control", *words, *where]
        environment = {**os.environ, "SUDO_USER": "alice"}
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    assert act(bus, sysctl.name, 6, 3)["verdict"] == "waiting"
    assert "a-3  vm.page-cluster = 6" in ask("waiting")
    assert "accepted" in ask("approve", "a-3", "--why", "looks fine")
    until(lambda: sysctl.read() == 6, what="what was approved")
    assert "range: vm.page-cluster = 99" in ask("set", "vm.page-cluster=99", status=1)
    assert "test: kill" in ask("kill")
    until(lambda: sysctl.read() == sysctl.default, what="the kill switch")
    ask("revive")
    found = json.loads(ask("workload", "start", "fileserver", "--job", "17", "--json"))
    assert (found["schema"], found["asked"]["name"]) == ("ascar/capes-control/1", "fileserver")
    bus.json("ticks", lambda it: it["workload"] == "fileserver")
    until(lambda: "phase = start" in ask("audit"), what="the audit log")
    lines = ask("audit")
    assert "  anyone (alice as root at" in lines
    assert "approve id = a-3: looks fine" in lines
    assert "set vm.page-cluster = 6, id = a-3" in lines
    assert "does not wait" in ask("approve", "a-3", status=1)
