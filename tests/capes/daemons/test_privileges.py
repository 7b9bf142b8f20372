"""What each running process of the node binary has kept of the rights that it was started with."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ascar.program.node_binary import find_ascard
from preloads import preload
from process_state import writable_and_executable
from waiting import until

KNOBS = "[[knob]]\nname = 'vm.page-cluster'\nminimum = 0\nmaximum = 8\n"
# A program that the agent starts shows its own status, again and again.
COLLECTOR = "[[collector]]\nkind = 'program'\nname = 'own'\ncommand = ['{python}', '-c', '{text}']\n"
TALKS = "import json, time\nwhile True: print(json.dumps(dict(a=1)), flush=True); time.sleep(0.2)"
AGENT = (
    COLLECTOR.replace("'{text}'", '"""{text}"""').format(python=sys.executable, text=TALKS)
    + "[[knob]]\nname = 'vm.page-cluster'\n"
)

# By their numbers in linux/capability.h.
CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, KILL, NET_ADMIN = 0, 1, 2, 3, 5, 12
SETPCAP, SYS_PTRACE, SYS_ADMIN, SYS_RESOURCE, SYSLOG = 8, 19, 21, 24, 34
KEPT = {
    "agent": {DAC_READ_SEARCH},
    "holder": set(),
    "interface": {DAC_OVERRIDE},
    "load": {DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, SYS_RESOURCE},
    "keeper": {
        CHOWN,
        DAC_OVERRIDE,
        DAC_READ_SEARCH,
        FOWNER,
        KILL,
        NET_ADMIN,
        SYS_PTRACE,
        SYS_ADMIN,
        SYS_RESOURCE,
        SYSLOG,
    },
}
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


def status(pid):
    """The fields of all threads of a process."""
    threads = [Path("/proc/thread-self")] if pid == "self" else Path(f"/proc/{pid}/task").iterdir()
    for thread in threads:
        yield dict(re.findall(r"^(\w+):\s*(.*)$", (thread / "status").read_text(), re.MULTILINE))


def capabilities(text):
    mask = int(text, 16)
    return {number for number in range(64) if mask >> number & 1}


def children(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def check(pid, role):
    """The process has what its role keeps, in every thread, and no way to more."""
    # In a container root itself may have less.
    (own,) = status("self")
    kept = KEPT[role] & capabilities(own["CapEff"])
    for fields in status(pid):
        sets = {name: capabilities(fields[name]) for name in SETS}
        # The keeper's programs, such as mkfs, get what it has; the others start none.
        assert sets == dict.fromkeys(SETS, kept) | {"CapInh": set(), "CapAmb": set()}, role
        assert fields["NoNewPrivs"] == "1", role
    limits = Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 +0 ", limits, re.MULTILINE), role
    assert writable_and_executable(pid) == []


@pytest.fixture
def load(tmp_path):
    """A load that runs, and how to start one as somebody else."""
    started = []

    def start(*before, place=tmp_path):
        options = ["--personality", "varmail", "--scale", "0.01", "--dir", str(place), "--seconds", "100"]
        process = subprocess.Popen(
            [*before, str(find_ascard()), "load", *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: what is kept of root's rights")
def test_processes_that_root_starts_keep_what_they_need(system, sysctl, load):
    bus = system.bus()
    interface = system.interface(KNOBS)
    agent = system.agent(AGENT)
    bus.json("ticks", lambda message: "node1" in message["nodes"])
    verdict = bus.ask("actions", {"id": "a-1", "set": {"vm.page-cluster": 6}})
    assert verdict["verdict"] == "accepted", verdict
    bus.json("outcomes", lambda it: it["id"] == "a-1" and it["verdict"] == "applied")
    (starter,) = children(agent.pid)
    until(lambda: len(children(starter)) == 2, what="a collector's program and a keeper")
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in children(starter)}
    (holder,) = [pid for pid, words in commands.items() if b"keeper" in words]
    (program,) = commands.keys() - {holder}
    (keeper,) = children(holder)
    check(agent.pid, "agent")
    check(interface.pid, "interface")
    check(holder, "holder")
    check(keeper, "keeper")
    check(load(), "load")
    # What its user wants to run is run as before: with this user's rights, and deaf to nothing.
    (before,) = status("self")
    for pid in (starter, program):
        (fields,) = status(pid)
        assert fields["CapEff"] == before["CapEff"]
        assert writable_and_executable(pid) == []
    assert int(next(status(program))["SigBlk"], 16) == 0
    # The starter ends with its agent, and with it all that it has started.
    agent.kill()
    until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in (starter, keeper)), what="they end")
    assert sysctl.read() == sysctl.default


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs a load as another user")
def test_processes_of_a_user_get_nothing_and_show_nothing(tmp_path, load):
    place = Path("/dev/shm") / f"ascar-privileges-{os.getpid()}"
    place.mkdir()
    os.chown(place, 65534, 65534)
    try:
        pid = load("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", place=place)
        for fields in status(pid):
            assert [capabilities(fields[name]) for name in ("CapPrm", "CapEff", "CapAmb")] == [set()] * 3
            assert fields["NoNewPrivs"] == "1"
        # Its memory is not its user's to read: other processes of the user are none of its own.
        assert Path(f"/proc/{pid}/mem").stat().st_uid == 0
    finally:
        subprocess.run(["rm", "-rf", place], check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: nobody else has securebits to set")
@pytest.mark.parametrize("role", ["interface", "agent", "keeper"])
def test_a_process_whose_securebits_are_not_what_was_set_does_not_go_on(system, role):
    (own,) = status("self")
    if SETPCAP not in capabilities(own["CapEff"]):
        pytest.skip("root of this container may not set securebits")
    library = preload(Path(__file__).parent / "lying_prctl.c", system.folder)
    before = ["env", f"LD_PRELOAD={library}"]
    if role == "keeper":
        command = [*before, system.ascard, "keeper", "--restore", "--state-dir", system.folder / "state"]
        process = system.start(command, "keeper")
    else:
        text = {"interface": KNOBS, "agent": AGENT}[role]
        process = getattr(system, role)(text, before=before)
    assert process.wait(60) != 0
    (line,) = system.log("node1" if role == "agent" else role).splitlines()
    assert "give up rights: securebits = 0x0: must be 0xe" in line
