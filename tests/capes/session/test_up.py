"""`ascar capes up` with all its processes: what dies comes back, knobs are put back whatever is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascar.capes.messages.following import watch
from ascar.capes.session.folder import Folder
from ascar.errors import MessagingError
from documents import check_document
from process_state import writable_and_executable
from waiting import until

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 200.0
STUDY = """
[study]
name = "faults"
objective = "maximize free_bytes"

[target]
kind = "linux"
settings = ["vm.page-cluster"]

[space.parameters.vm_page_cluster]
low = 0
high = 8

[online]
interval_s = 0.2
contact_s = 3
collector = [{ kind = "memory" }, { kind = "cpu" }]

[online.learner.modern]
first_ticks = 3
settle_ticks_max = 1
visit_ticks_min = 1
visit_ticks_max = 2
stay_ticks_max = 2
worth = 0

[[online.metric]]
name = "free_bytes"
indicators = ["memory.free_bytes"]

[online.proof]
after = "1 s"
phase = "2 s"
settle = "500 ms"
p_value = 1e-6
"""


def ascar(*words):
    return [sys.executable, "-P", "-m", "ascar", "capes", *map(str, words)]


def document(done):
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)
    check_document(found)
    return found


def works_in(cwd, folder):
    try:
        return cwd.readlink().is_relative_to(folder)
    except OSError:  # it has ended, or is somebody else's
        return False


class Running:
    """A session, and what is known of it."""

    def __init__(self, folder, machine):
        self.folder = folder
        study = folder / "study.toml"
        study.write_text(STUDY)
        self.place = folder / "session"
        self.log = (folder / "up.log").open("wb")
        command = machine.words(*ascar("up", study, "--folder", self.place, "--json"))
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)

    def begin(self):
        until(lambda: self.process.poll() is not None or self.is_ready(), LIMIT_S, "ticks")
        assert self.process.poll() is None, (self.folder / "up.log").read_text()

    def is_ready(self):
        running = Folder(self.place).running()
        return running is not None and running.ready

    def see(self, condition, what):
        """The first state that is told for which something is true."""

        async def look():
            async with asyncio.timeout(LIMIT_S):
                while True:
                    with contextlib.suppress(MessagingError):  # the server may just be away
                        settings = Folder(self.place).settings("viewer")
                        async with contextlib.aclosing(watch(settings, "faults")) as states:
                            async for state in states:
                                if condition(state):
                                    return state
                    await asyncio.sleep(0.1)

        try:
            return asyncio.run(look())
        except TimeoutError:
            raise AssertionError(what) from None

    def parts(self):
        state = self.see(lambda state: state.parts, "its parts")
        return {part.name: part for part in state.parts}

    def ticks(self):
        with contextlib.closing(
            sqlite3.connect(f"file:{self.place}/replay.sqlite?mode=ro", uri=True)
        ) as base:
            return [tick for (tick,) in base.execute("SELECT DISTINCT tick FROM ticks ORDER BY tick")]

    def children(self):
        """Processes that have the folder as an argument, or work in it, as the learner does."""
        found = subprocess.run(["pgrep", "-f", str(self.place)], capture_output=True, text=True, check=False)
        inside = [one.parent.name for one in Path("/proc").glob("[0-9]*/cwd") if works_in(one, self.place)]
        return [int(pid) for pid in {*found.stdout.split(), *inside}]

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()
        sys.stdout.write((self.folder / "up.log").read_text()[-2000:])
        for log in sorted(self.place.glob("*.log")):
            sys.stdout.write(f"--- {log.name}\n{log.read_text()[-2000:]}\n")


@pytest.fixture
def knob(own_machine):
    if own_machine is None:
        pytest.skip("needs root")
    ascard = Path(sys.executable).parent / "ascard"
    asked = subprocess.run([ascard, "interface", "--help"], capture_output=True, check=False)
    if asked.returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    return own_machine


@pytest.fixture
def session(tmp_path, knob):
    session = Running(tmp_path, knob)
    try:
        session.begin()
        yield session
    finally:
        session.end()


def heard(state):
    """The last tick that the node was heard in."""
    return state.tick if any(node.is_here for node in state.nodes) else 0


@pytest.mark.slow
def test_what_is_killed_comes_back_and_the_end_puts_everything_back(session, knob):
    until(lambda: knob.read() != knob.default, LIMIT_S, "the learner turns the knob")
    before = session.parts()
    assert set(before) >= {"messages", "interface", "agent", "learner"}
    for pid in (session.process.pid, *(part.pid for part in before.values())):
        assert writable_and_executable(pid) == []
    told = [session.see(heard, "ticks").tick]
    for name in ("messages", "interface", "agent", "learner"):
        os.kill(before[name].pid, signal.SIGKILL)

        def is_back(state, name=name):
            parts = {part.name: part for part in state.parts}
            one = parts.get(name)
            return one is not None and one.state == "running" and one.pid != before[name].pid

        tick = session.see(is_back, f"{name} is started again").tick or told[-1]
        told.append(session.see(lambda state, tick=tick: heard(state) > tick + 5, f"ticks after {name}").tick)
    assert {name: part.restarts for name, part in session.parts().items()} == dict.fromkeys(before, 1)
    # The server is silent for longer than the agent's patience: its knobs go back, and later come again.
    messages = session.parts()["messages"].pid

    def is_frozen_elsewhere():
        os.kill(messages, signal.SIGSTOP)
        time.sleep(0.5)  # what was on its way arrives
        if knob.read() != knob.default:
            return True
        os.kill(messages, signal.SIGCONT)
        return False

    try:
        until(is_frozen_elsewhere, LIMIT_S, "the knob is away from its default")
        log = session.place / "agent.log"
        until(lambda: "nothing heard of the interface" in log.read_text(), LIMIT_S, "the dead man's switch")
        until(lambda: knob.read() == knob.default, LIMIT_S, "the knob is put back")
    finally:
        os.kill(messages, signal.SIGCONT)
    until(lambda: knob.read() != knob.default, LIMIT_S, "tuning goes on")
    told.append(session.see(heard, "ticks").tick)
    status = subprocess.run(
        ascar("status", session.place, "--json"), capture_output=True, text=True, check=False
    )
    seen = document(status)
    assert seen["objective"] == "maximize free_bytes"
    # What was before it looked is known as well.
    assert len(seen["performance"]) > 20 and seen["baseline"]["ticks"] >= 5
    stopped = subprocess.run(
        ascar("down", session.place, "--json"), capture_output=True, text=True, check=False
    )
    assert document(stopped)["session"] == "faults"
    out, _ = session.process.communicate(timeout=LIMIT_S)
    ended = json.loads(out)
    check_document(ended)
    assert (session.process.returncode, ended["stopped"], ended["left_changed"]) == (0, "asked", {})
    assert knob.read() == knob.default
    assert ended["defaults"] == {"vm.page-cluster": knob.default}
    # Every tick that was told is on disk.
    assert set(told) <= set(session.ticks())
    until(lambda: not session.children(), LIMIT_S, "nothing of it runs")


@pytest.mark.slow
def test_compared_from_elsewhere_then_killed_at_once(session, knob):
    until(lambda: knob.read() != knob.default, LIMIT_S, "the learner turns the knob")
    for seconds in (12, 24, 48):  # a busy machine may not come to a pair of phases in twelve
        words = ("--budget", f"{seconds} s", "--phase", "4 s", "--settle", "500 ms", "--json")
        done = subprocess.run(
            ascar("prove", session.place, *words), capture_output=True, text=True, check=False
        )
        if done.returncode in (0, 3):  # 3: nothing is claimed
            break
    assert document(done)["pairs"] >= 1
    session.see(lambda state: state.mode == "automatic", "tuning goes on")
    until(lambda: knob.read() != knob.default, LIMIT_S, "the learner turns the knob again")
    session.process.kill()
    session.process.wait()
    until(lambda: not session.children(), LIMIT_S, "nothing of it runs")
    until(lambda: knob.read() == knob.default, LIMIT_S, "the knob is put back")
    assert Folder(session.place).running() is None


@pytest.mark.slow
def test_the_comparison_and_keeping_what_was_learnt(tmp_path, knob):
    study = tmp_path / "study.toml"
    study.write_text(STUDY)
    try:
        words = ("--folder", tmp_path / "s", "--budget", "20 s", "--prove", "--keep", "--json")
        command = knob.words(*ascar("up", study, *words))
        ended = document(subprocess.run(command, capture_output=True, text=True, check=False))
        assert ended["stopped"] == "time"
        assert ended["proof"]["pairs"] >= 1
        # Memory that is free does not depend on the knob; with so small a p, chance makes no claim either.
        assert ended["proof"]["claim"] == "none"
        wanted = ended["setting"]["vm.page-cluster"]
        assert ended["kept"] == ({} if wanted == knob.default else {"vm.page-cluster": wanted})
        shown = subprocess.run(
            knob.words(sys.executable, "-P", "-m", "ascar", "history", "show", ended["session"], "--json"),
            capture_output=True,
            text=True,
            check=False,
        )
        kept = document(shown)
        assert (kept["kind"], kept["state"], kept["outcome"]) == ("session", "complete", None)
        assert {key: ended[key] for key in kept["session"]} == kept["session"]
        assert kept["session"]["first_tick"] <= kept["session"]["last_tick"]
        assert knob.read() == wanted
    finally:
        restore = knob.words(sys.executable, "-P", "-m", "ascar", "restore")
        subprocess.run(restore, capture_output=True, check=False)
    assert knob.read() == knob.default


def test_bad_input_touches_nothing(tmp_path, knob):
    study = tmp_path / "study.toml"
    for old, new, words in (
        ('"vm.page-cluster"', '"vm.page-clusters"', "vm.page-clusters"),
        ("low = 0", "low = 7", f"leaves out the default, {knob.default}"),
        ("first_ticks = 3", "first_tick = 3", "first_tick"),
        (
            "contact_s = 3",
            "contact_s = 3\nmode = 'observe'",
            "--prove: online.mode = 'observe'",
        ),
    ):
        study.write_text(STUDY.replace(old, new))
        prove = ["--prove"] if "--prove" in words else []
        done = subprocess.run(
            knob.words(*ascar("up", study, "--folder", tmp_path / "s", *prove)),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert words in done.stderr.splitlines()[-1], done.stderr
    assert knob.read() == knob.default


@pytest.mark.parametrize("command", ["status", "down", "prove"])
def test_a_session_that_does_not_run_is_told(command, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    done = subprocess.run(ascar(command, "nobody"), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "session 'nobody': does not run" in done.stderr, done.stderr
