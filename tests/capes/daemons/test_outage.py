"""The message server is away for half a minute: knobs go back meanwhile, no tick is lost, tuning goes on."""

import json
import sqlite3
import sys
import time

import pytest

from waiting import until

OUTAGE_S = 30.0
# A system that does best with the knob at 7.
MONITOR = """
import json, random, time
while True:
    value = int(open("/proc/sys/vm/page-cluster").read())
    print(json.dumps({"ops_per_s": (1000 - 60 * abs(value - 7)) * random.gauss(1, 0.01)}), flush=True)
    time.sleep(0.05)
"""
INTERFACE = """
[[knob]]
name = "vm.page-cluster"
minimum = 0
maximum = 8
step = 1
[[metric]]
name = "ops_per_s"
indicators = ["app.ops_per_s"]
aggregate = "mean"
"""
LEARNER = """
session = "test"
objective = "maximize ops_per_s"
[modern]
settle_ticks_max = 2
first_ticks = 4
visit_ticks_max = 3
"""


@pytest.mark.slow
def test_half_a_minute_without_the_message_server(system, sysctl):
    (system.folder / "monitor.py").write_text(MONITOR)
    command = json.dumps([sys.executable, str(system.folder / "monitor.py")])
    collector = f"[[collector]]\nkind = 'program'\nname = 'app'\ncommand = {command}\n"
    file = system.folder / "learner.toml"
    file.write_text(f"connection = '{system.connection('learner')}'\n{LEARNER}")
    bus = system.bus()
    interface = system.interface(INTERFACE)
    agent = system.agent(f"{collector}[[knob]]\nname = 'vm.page-cluster'\n", contact_s=5)
    learner = system.start(
        [sys.executable, "-P", "-m", "ascar", "capes", "train", "--config", file], "learner"
    )
    bus.json("learner", lambda it: it["changes"] >= 3, 200)
    changes = bus.json("learner", lambda it: it["wanted"].get("vm.page-cluster") == 7, 200)["changes"]
    until(lambda: sysctl.read() == 7, what="the best value")
    told = [bus.json("ticks", lambda it: "node1" in it["nodes"])["tick"] for _ in range(10)]

    system.server.kill()
    system.server.wait()
    gone_s = time.monotonic()
    until(lambda: sysctl.read() == sysctl.default, what="the dead man's switch")
    assert time.monotonic() - gone_s < OUTAGE_S, "before the server is back"
    while time.monotonic() - gone_s < OUTAGE_S:
        assert sysctl.read() == sysctl.default, "nobody sets anything now"
        time.sleep(0.2)
    system.start_server()

    bus = system.bus()
    after = bus.json("ticks", lambda it: "node1" in it["nodes"], 200)
    assert (after["tick"] - told[-1]) * system.interval_s >= OUTAGE_S - 1
    until(lambda: sysctl.read() != sysctl.default, what="the session's setting")
    # Somebody turns the knob by hand: the learner finds back, so it hears, decides, and is obeyed.
    while bus.control("set", set={"vm.page-cluster": 1})["verdict"] != "accepted":
        bus.json("ticks")
    bus.json("outcomes", lambda it: it["id"].startswith("hand-") and it["verdict"] == "applied")
    report = bus.json("learner", lambda it: it["changes"] > changes and it["phase"] == "learning", 200)
    bus.json("ticks", lambda it: it["setting"]["vm.page-cluster"] >= 6, 200)
    assert report["tick"] >= after["tick"]
    told.append(after["tick"])
    assert [one.poll() for one in (interface, agent, learner)] == [None] * 3, "nobody had to be started again"
    parts = bus.history(from_tick=told[0], to_tick=told[-1] + 1)
    served = sum(header["rows"] for header, _ in parts if header.get("node") == "node1")
    database = sqlite3.connect(f"file:{system.folder}/replay.sqlite?mode=ro", uri=True)
    stored = {tick for (tick,) in database.execute("SELECT tick FROM ticks")}
    database.close()
    assert set(told) <= stored
    assert served >= len(told)
    for process in (learner, agent):
        process.terminate()
        assert process.wait(100) == 0
    assert sysctl.read() == sysctl.default
    assert "Traceback" not in system.log("learner")
