"""Clocks that jump: an hour ahead, two hours back, a day back with a new start of the interface."""

import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from waiting import until

KNOB = "[[knob]]\nname = 'vm.page-cluster'\nminimum = 0\nmaximum = 8\n"
AGENT = f"[[collector]]\nkind = 'cpu'\n{KNOB}"
# The wall clock, as many seconds off as the file says.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(which, now);
    const char *path = getenv("CLOCK_OFF_BY");
    if (done == 0 && which == CLOCK_REALTIME && path) {
        char text[32] = {0};
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
            close(file);
        }
    }
    return done;
}
"""


@pytest.fixture
def off(system):
    """Makes a program's clock wrong: `off(NAME, SECONDS)`; what it returns goes before the command."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source, library = system.folder / "clock.c", system.folder / "clock.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)

    def off(name, seconds):
        path = system.folder / f"{name}-off-by"
        draft = path.with_suffix(".draft")
        draft.write_text(str(seconds))
        draft.replace(path)
        return ["env", f"LD_PRELOAD={library}", f"CLOCK_OFF_BY={path}"]

    return off


def test_clocks_that_jump(system, sysctl, off):
    bus = system.bus()
    interface = system.interface(KNOB, before=off("interface", 0))
    agent = system.agent(AGENT, before=off("node1", 0))
    system.agent("[[collector]]\nkind = 'cpu'\n", node="node2")
    told = []

    def ticks(count, bus=bus):
        """So many in which both nodes are; none comes before another."""
        found = []
        while len(found) < count:
            tick = bus.json("ticks", lambda it: {"node1", "node2"} <= set(it["nodes"]))
            assert not told or tick["tick"] > told[-1]
            told.append(tick["tick"])
            found.append(tick)
        return found

    def turn(value, number):
        """An action is carried out all the same."""
        verdict = bus.ask("actions", {"id": f"a-{number}", "set": {"vm.page-cluster": value}})
        assert verdict["verdict"] == "accepted", verdict
        ends = ("applied", "failed")
        done = bus.json("outcomes", lambda it: it["id"] == f"a-{number}" and it["verdict"] in ends)
        assert done["verdict"] == "applied", done
        assert sysctl.read() == value

    ticks(5)

    def skewed():
        return bus.control("status")["counters"]["skewed"]

    for number, seconds in enumerate((3600, -7200)):
        before = skewed()
        off("node1", seconds)
        until(lambda before=before: skewed() > before, what="a frame of another time")
        ticks(8)
        turn(5 + number, number)
    off("node1", 0)
    for seconds in (86_400, -86_400):
        off("interface", seconds)
        ticks(5)
    span = told[-1] - told[0]
    assert span < 4000, "ticks follow no clock that is set"
    turn(4, 7)
    # Killed, it begins anew with the wrong clock: behind what was written.
    interface.kill()
    interface.wait()
    system.interface(KNOB, before=off("interface", -86_400))
    ticks(8)
    until(lambda: sysctl.read() == 4, what="the session's setting")
    turn(7, 8)
    with sqlite3.connect(f"file:{system.folder}/replay.sqlite?mode=ro", uri=True) as database:
        stored = {tick for (tick,) in database.execute("SELECT tick FROM ticks")}
    database.close()
    assert set(told) <= stored
    agent.terminate()
    assert agent.wait(100) == 0
    assert sysctl.read() == sysctl.default


def test_a_node_that_is_only_monitored_turns_nothing_and_no_agent_listens(system, sysctl):
    bus = system.bus()
    system.interface(KNOB)
    agent = system.agent(f"monitor_only = true\n{AGENT}")
    bus.json("ticks", lambda it: "node1" in it["nodes"])
    until(lambda: bus.control("status")["nodes"], what="its hello")
    assert bus.control("status")["nodes"][0]["monitor_only"] is True
    verdict = bus.ask("actions", {"id": "a-1", "set": {"vm.page-cluster": 6}})
    assert (verdict["verdict"], sysctl.read()) == ("refused", sysctl.default), verdict
    own = subprocess.run(
        ["ls", "-l", f"/proc/{agent.pid}/fd"], capture_output=True, text=True, check=True
    ).stdout
    listening = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        text = Path(f"/proc/{agent.pid}/net/{table}").read_text()
        rows = [line.split() for line in text.splitlines()[1:]]
        listening |= {row[9] for row in rows if row[3] == ("0A" if table.startswith("tcp") else "07")}
    # Its connection, and the way to its starter.
    assert own.count("socket:[") == 2, own
    assert not [inode for inode in listening if f"socket:[{inode}]" in own]
