"""The learner as a process: it tunes a system of which the best setting is known, through a real session."""

import itertools
import json
import sqlite3
import subprocess
import sys

import pytest

# Best at window 40 and mode fast; a draft renamed is never read half.
CONTROLLER = """
import json, pathlib, sys
path, start = pathlib.Path(sys.argv[1]), {"window": 8, "mode": "slow"}
def put(values):
    draft = path.with_suffix(".draft"); draft.write_text(json.dumps(values)); draft.replace(path)
values = dict(start); put(values)
for line in sys.stdin:
    order = json.loads(line)
    values = dict(start) if "restore" in order else values | order.get("set", {})
    put(values)
    print(json.dumps({"ok": values}), flush=True)
put(start)
"""
MONITOR = """
import json, pathlib, random, sys, time
path = pathlib.Path(sys.argv[1]); random.seed(1)
while True:
    if path.exists():
        values = json.loads(path.read_text())
        best = 1000 - 12 * abs(values["window"] - 40)
        ops = best * (1 if values["mode"] == "fast" else 0.7) * random.gauss(1, 0.01)
        print(json.dumps({"ops_per_s": ops, "latency_ms": 1e4 / ops}), flush=True)
    time.sleep(0.03)
"""
KNOBS = """
[[program.knob]]
name = "window"
minimum = 1
maximum = 100
[[program.knob]]
name = "mode"
choices = ["slow", "fast"]
"""
INTERFACE = """
[[knob]]
name = "window"
minimum = 1
maximum = 100
step = 1
change_max = 40
{scope}
[[knob]]
name = "mode"
choices = ["slow", "fast"]
[[rule]]
forbid = "window > 60"
why = "too much memory"
[[metric]]
name = "ops_per_s"
indicators = ["app.ops_per_s"]
aggregate = "mean"
[[metric]]
name = "latency_ms"
indicators = ["app.latency_ms"]
aggregate = "mean"
"""
# Changes show at once here: visits may be short.
QUICK = "[modern]\nsettle_ticks_max = 2\nfirst_ticks = 4\nvisit_ticks_max = 3\n"


@pytest.fixture
def tuned(system):
    """A session about the system above, at ten ticks a second."""
    system.interval_s = 0.1
    for name, text in (("controller.py", CONTROLLER), ("monitor.py", MONITOR)):
        (system.folder / name).write_text(text)

    class Tuned:
        @staticmethod
        def start(mode="automatic", nodes=("node1",), scope=""):
            system.interface(INTERFACE.format(scope=scope), mode=mode)
            for node in nodes:
                knobs = str(system.folder / f"{node}.json")
                control = json.dumps([sys.executable, str(system.folder / "controller.py"), knobs])
                monitor = json.dumps([sys.executable, str(system.folder / "monitor.py"), knobs])
                collector = f"[[collector]]\nkind = 'program'\nname = 'app'\ncommand = {monitor}\n"
                system.agent(f"{collector}[[program]]\ncommand = {control}\n{KNOBS}", node=node)

        @staticmethod
        def config(text="", name="learner"):
            path = system.folder / f"{name}.toml"
            objective = "" if "objective" in text else "objective = 'maximize ops_per_s'\n"
            path.write_text(
                f"session = 'test'\nconnection = '{system.connection('learner')}'\nstate = '{name}.npz'\n"
                f"checkpoint_s = 1\n{objective}{text}"
            )
            return path

        @staticmethod
        def learner(text=QUICK, *options):
            path = Tuned.config(text)
            return system.start(
                [sys.executable, "-m", "ascar", "capes", "train", "--config", path, *options], "learner"
            )

        @staticmethod
        def run(path, *options):
            command = [sys.executable, "-m", "ascar", "capes", "train", "--config", path, "--json", *options]
            return subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)

    return Tuned


def good(report, window="window", mode="mode"):
    wanted = report["wanted"]
    at_peak = wanted.get(mode) == "fast" and abs(wanted[window] - 40) <= 4
    return at_peak and report["phase"] == "learning" and report["performance"]


@pytest.mark.slow
def test_it_finds_the_best_setting_survives_its_own_death_and_garbage_and_learns_from_what_is_stored(
    system, tuned
):
    bus = system.bus()
    tuned.start()
    learner = tuned.learner()
    report = bus.json("learner", lambda it: it["changes"] >= 3, 200)
    assert report["version"] == 1 and report["algorithm"] == "modern" and report["epsilon"] is None
    assert report["baseline"]["low"] <= report["baseline"]["mean"] <= report["baseline"]["high"]
    assert 380 < report["baseline"]["mean"] < 480
    garbage = [b"", b"null", b"[]", b"\xff\x00", b"[" * 5000, b'{"tick": -1}', b'{"tick": 99999999999999}']
    garbage += [
        b'{"version":1,"tick":9e9,"metrics":{},"setting":{}}',
        b'{"version":1,"tick":99999999999999,"metrics":{"ops_per_s":1},"setting":{"window":[]}}',
        b'{"id":"learner-1","verdict":"applied","tick":3,"set":{"window":-4}}',
        b'{"id":[],"verdict":7}',
        b'{"version":2,"tick":1}',
    ]
    for payload in garbage:
        for subject in ("ticks", "outcomes", "events"):
            bus.publish(subject, payload)
    assert learner.poll() is None
    first = bus.json("learner", lambda it: it["changes"] >= 5, 200)
    learner.kill()
    learner.wait()
    state = system.folder / "learner.npz"
    assert state.exists()
    bus.messages.clear()
    learner = tuned.learner()
    again = bus.json("learner", lambda it: it["phase"] != "starting" and it["tick"] > first["tick"], 200)
    assert again["changes"] >= 1 and again["baseline"]["ticks"] >= 4, "it goes on from its state"
    report = bus.json("learner", good, 200)
    assert report["expected"]["low"] <= report["expected"]["mean"] <= report["expected"]["high"]
    bus.json("learner", lambda it: good(it) and 850 < it["performance"] < 1050, 200)
    # Somebody turns a knob by hand; it finds back.
    while bus.control("set", set={"window": 10})["verdict"] != "accepted":
        bus.json("ticks")
    bus.json("outcomes", lambda it: it["id"].startswith("hand-") and it["verdict"] == "applied")
    bus.json("learner", lambda it: good(it) and it["performance"] > 850, 200)
    learner.terminate()
    assert learner.wait(100) == 0, system.log("learner")
    assert "Traceback" not in system.log("learner")
    assert (
        system.log("learner").count("ticks of version = 2: this ascar reads 1, install matching versions")
        == 1
    )
    with sqlite3.connect(system.folder / "replay.sqlite") as database:
        ids = [row[0] for row in database.execute("SELECT id FROM actions WHERE verdict = 'accepted'")]
        refusals = [
            row[0] for row in database.execute("SELECT reason FROM actions WHERE verdict = 'refused'")
        ]
    database.close()
    assert len(ids) == len(set(ids)), "ids of two starts are never the same"
    assert len({name.rpartition("-")[0] for name in ids if name.startswith("learner-")}) == 2
    assert all(reason.startswith(("rule: window > 60", "busy", "node: ")) for reason in refusals), refusals

    # Everything stands in the replay database as well.
    before = (system.folder / "node1.json").read_text()
    done = tuned.run(tuned.config(QUICK, "fresh"), "--only-history")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["only_history"] and found["ticks"] > 40 and found["steps"] == 0
    assert 0 <= found["errors"][-1]["prediction_error"] < 0.6
    assert (system.folder / "fresh.npz").exists()
    # Of two sessions; here the other one is the same.
    done = tuned.run(tuned.config(QUICK, "both"), "--only-history", "--history", "test")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ticks"] > 2 * found["ticks"] - 20
    text = "algorithm = 'classic'\n[classic]\npreset = 'game'\nhidden_size = 16\n"
    done = tuned.run(tuned.config(text, "classic"), "--only-history", "--steps", "300")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    errors = [one["prediction_error"] for one in found["errors"]]
    assert found["steps"] == 300 and errors[-1] < errors[0]
    assert (system.folder / "node1.json").read_text() == before, "nothing was turned"


def test_it_observes_obeys_the_kill_switch_and_outlives_the_server(system, tuned):
    bus = system.bus()
    tuned.start(mode="observe")
    objective = 'objective = ["maximize ops_per_s", "minimize latency_ms"]\nweights = [2, 1]\n'
    learner = tuned.learner(f"{objective}{QUICK}")
    bus.json("outcomes", lambda it: it["verdict"] == "observed", 200)
    report = bus.json("learner", lambda it: it["phase"] == "learning", 200)
    assert report["changes"] == 0 and report["objective"].startswith("maximize ops_per_s ** 0.666667")
    bus.control("mode", mode="automatic")
    bus.json("learner", lambda it: it["changes"] >= 2, 200)
    bus.control("kill")
    held = bus.json("learner", lambda it: it["phase"] == "holding", 200)
    tick = bus.json("ticks", lambda it: it["holding"] == "killed" and it["tick"] >= held["tick"], 200)
    later = bus.json("learner", lambda it: it["tick"] > tick["tick"] + 5, 200)
    assert later["phase"] == "holding" and later["changes"] == held["changes"]
    bus.control("revive")
    bus.json("learner", lambda it: it["changes"] > held["changes"], 200)
    system.server.kill()
    system.server.wait()
    system.start_server()
    bus = system.bus()
    report = bus.json("learner", lambda it: it["phase"] == "learning", 200)
    bus.json("learner", lambda it: it["changes"] > report["changes"] or good(it), 200)
    assert learner.poll() is None
    assert "Traceback" not in system.log("learner")


@pytest.mark.slow
def test_each_workload_has_a_state_of_its_own_where_that_is_wanted(system, tuned):
    bus = system.bus()
    tuned.start()
    learner = tuned.learner(f"state_per_workload = true\n{QUICK}")
    first = bus.json("learner", lambda it: it["changes"] >= 4, 200)
    assert first["workload"] is None
    bus.control("workload", phase="start", name="web", job="17")
    own = bus.json("learner", lambda it: it["workload"] == "web", 200)
    assert own["changes"] < 4, "it begins afresh"
    own = bus.json("learner", lambda it: it["workload"] == "web" and it["changes"] >= 6, 200)
    bus.control("workload", phase="end", name="web", job="17")
    back = bus.json("learner", lambda it: it["workload"] is None and it["tick"] > own["tick"], 200)
    assert back["changes"] >= 4 and back["tick"] > own["tick"], "it goes on from its state"
    assert back["baseline"]["ticks"] >= 4
    bus.control("workload", phase="start", name="web", job="18")
    again = bus.json("learner", lambda it: it["workload"] == "web" and it["tick"] > back["tick"], 200)
    assert again["changes"] >= own["changes"]
    learner.terminate()
    assert learner.wait(100) == 0, system.log("learner")
    assert (system.folder / "learner.npz").exists() and (system.folder / "learner-web.npz").exists()
    assert "learning of web: 2 knobs" in system.log("learner")
    # Of what is stored only its own ticks are learnt.
    path = tuned.config(f"state_per_workload = true\n{QUICK}", "other")
    done = tuned.run(path, "--only-history")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["state"].endswith("other-web.npz")
    with sqlite3.connect(system.folder / "replay.sqlite") as database:
        whole = database.execute("SELECT count(DISTINCT tick) FROM ticks").fetchone()[0]
    database.close()
    assert 10 < found["ticks"] < whole - 10


def test_a_knob_of_each_node_is_one_to_learn_for_each(system, tuned):
    bus = system.bus()
    tuned.start(nodes=("node1", "node2"), scope="scope = 'node'")
    tuned.learner(f'knobs = ["window"]\n{QUICK}')
    keys = {"window@node1", "window@node2"}
    bus.json("learner", lambda it: set(it["wanted"]) == keys and it["changes"] >= 4, 200)
    tick = bus.json("ticks", lambda it: it["setting"]["window@node1"] != it["setting"]["window@node2"], 200)
    assert tick["setting"]["mode"] == "slow", "not one that it may turn"


def test_a_file_or_a_session_that_does_not_fit_is_refused_in_one_line(system, tuned):
    bus = system.bus()
    tuned.start()
    bus.json("ticks", lambda it: it["setting"].get("window") == 8)
    done = tuned.run(tuned.config("knobs = ['windw*']\n", "wrong"))
    assert done.returncode == 2
    assert "knobs: 'windw*' fits no knob of the interface: window, mode" in done.stderr
    (system.folder / "broken.npz").write_bytes(b"no state at all")
    done = tuned.run(tuned.config("", "broken"))
    assert done.returncode == 2
    assert "broken.npz" in done.stderr and "damaged" in done.stderr


def test_databases_are_merged_into_one(system, tuned):
    bus = system.bus()
    tuned.start()
    bus.json("ticks", lambda it: it["setting"].get("window") == 8)
    for _ in range(8):
        bus.json("ticks", lambda it: "node1" in it["nodes"])
    whole, source = system.folder / "whole.sqlite", system.folder / "replay.sqlite"
    command = [system.ascard, "interface", "merge", source, source, "--into", whole]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(whole) as database:
        ticks = [row[0] for row in database.execute("SELECT tick FROM ticks ORDER BY tick")]
    database.close()
    gaps = [after - before for before, after in itertools.pairwise(ticks)]
    assert len(set(ticks)) == len(ticks) > 10 and max(gaps) == 1000
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "already exists" in done.stderr
