"""The files of docs/howto/several-nodes.md, on three hosts: namespaces of network and mounts, over TLS."""

import json
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from waiting import until

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/howto/several-nodes.md").read_text()
BLOCK = re.compile(r"<!-- (file|run): (\S+)(?: (\S+))? -->\n```\n(.*?)```", re.DOTALL)
KNOB = "vm.dirty_background_ratio"
START = 5
LIMIT_S = 200.0
# Waits until its parent has wired it, so that nothing looks for a network that is not there yet.
HOLD = """
mount --bind "$1/hosts" /etc/hosts &&
mount -t tmpfs none /var/lib && mount -t tmpfs none /run &&
mount --bind "$1/knob" /proc/sys/vm/dirty_background_ratio &&
ip link set lo up && echo ready && exec sleep 3600
"""
WIRE = """
ip link add to-$1 type veth peer name eth0 netns $2 &&
ip addr add 10.77.$3.1/24 dev to-$1 && ip link set to-$1 up &&
nsenter -t $2 -n ip addr add 10.77.$3.2/24 dev eth0 && nsenter -t $2 -n ip link set eth0 up
"""


class Host:
    """A host of the page: its folder, and what makes a command run on it."""

    def __init__(self, system, folder, name, head_ip):
        self.system, self.folder, self.name = system, folder / name, name
        self.folder.mkdir()
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost\n{head_ip} head\n")
        (self.folder / "knob").write_text(f"{START}\n")
        command = ["unshare", "-n", "-m", "--propagation", "private", "sh", "-c", HOLD, "sh", self.folder]
        self.holder = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.holder.stdout.readline() != b"ready\n":
            reason = self.holder.communicate()[1].decode()
            pytest.skip(f"no namespaces here: {reason}")

    def words(self, *command):
        inside = ["nsenter", "-t", self.holder.pid, "-n", "-m", f"--wd={self.folder}", "--"]
        return [str(word) for word in (*inside, *command)]

    def start(self, log, *command):
        return self.system.start(self.words(*command), f"{self.name}-{log}")

    def run(self, *command, status=0):
        done = subprocess.run(self.words(*command), capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def value(self):
        return int((self.folder / "knob").read_text().split()[0])

    def end(self):
        self.holder.kill()
        self.holder.communicate()


@pytest.fixture
def hosts(system):
    if os.geteuid() != 0:
        pytest.skip("needs root for namespaces")
    made = {}
    try:
        for name, ip in (("head", "127.0.0.1"), ("client1", "10.77.1.1"), ("client2", "10.77.2.1")):
            made[name] = Host(system, system.folder, name, ip)
        for number, name in enumerate(("client1", "client2"), 1):
            made["head"].run("sh", "-c", WIRE, "sh", name, made[name].holder.pid, number)
        yield made
    finally:
        system.end()
        for host in made.values():
            host.end()


def written(hosts):
    """All files of the page on their hosts, with words for passwords, and the certificates."""
    words = {word: secrets.token_hex(24) for word in re.findall(r'"([A-Z0-9]+-WORD)"', PAGE)}
    assert len(words) == 6
    for kind, host, name, text in BLOCK.findall(PAGE):
        folder = hosts[host].folder
        for word, secret in words.items():
            text = text.replace(word, secret)  # noqa: PLW2901
        if kind == "run":
            subprocess.run(["sh", "-e", "-c", text], cwd=folder, check=True, capture_output=True)
            continue
        path = folder / name
        path.touch(mode=0o600)
        # What is not the page's: five ticks a second, and one digit, for a file stands for the kernel's knob.
        pace = "interval_s = 0.2\n" if name in ("interface.toml", "agent.toml") else ""
        # And a roll-out long enough to be seen.
        text = text.replace("maximum = 50", "maximum = 9").replace("ticks = 5\n", "ticks = 50\n")  # noqa: PLW2901
        path.write_text(pace + text)
    for name in ("client1", "client2"):
        (hosts[name].folder / "ca.pem").write_bytes((hosts["head"].folder / "ca.pem").read_bytes())


@pytest.mark.slow
def test_two_clients_over_tls_one_before_the_other_and_the_learner(system, hosts):
    written(hosts)
    head, clients = hosts["head"], [hosts["client1"], hosts["client2"]]
    ascar = (sys.executable, "-P", "-m", "ascar", "capes")
    head.start("nats", Path(sys.executable).parent / "nats-server", "-c", "nats.conf")
    for name, part in (("head", "interface"), ("client1", "agent"), ("client2", "agent")):
        hosts[name].run(system.ascard, part, "--config", f"{part}.toml", "--check")
        hosts[name].start(part, system.ascard, part, "--config", f"{part}.toml")

    def status():
        done = subprocess.run(
            head.words(*ascar, "status", "files", "--connection", "viewer.toml", "--json"),
            capture_output=True,
            text=True,
            check=False,
        )
        return json.loads(done.stdout) if done.returncode == 0 else {"nodes": []}

    def control(*words, **keys):
        return head.run(
            *ascar, "control", *words, "--session", "files", "--connection", "operator.toml", **keys
        )

    until(lambda: sum(one["is_here"] for one in status()["nodes"]) == 2, what="both clients")
    control("mode", "automatic")
    seen = set()
    # Looked at meanwhile: what has set it takes its time to end.
    where = ("--session", "files", "--connection", "operator.toml")
    setting = head.start("set", *ascar, "control", "set", f"{KNOB}=7", *where)
    end = time.monotonic() + LIMIT_S
    while (values := tuple(client.value() for client in clients)) != (7, 7):
        seen.add(values)
        assert time.monotonic() < end, values
        time.sleep(0.02)
    assert seen & {(7, START), (START, 7)}, "one before the other"
    assert setting.wait(LIMIT_S) == 0

    head.start("learner", *ascar, "train", "--config", "learner.toml")
    until(
        lambda: ((status().get("learner") or {}).get("changes") or 0) >= 1, what="the learner's first change"
    )
    seen = status()
    (knob,) = seen["knobs"]
    assert knob["default"] == START and seen["objective"] == "maximize written_bytes_per_s"
    assert seen["baseline"]["ticks"] >= 5
    control("kill", "--why", "enough")
    until(lambda: [client.value() for client in clients] == [START, START], what="every knob back")
    assert "kill: enough" in control("audit")
    # Nobody is let in without a password, or heard without TLS.
    strange = head.folder / "strange.toml"
    strange.touch(mode=0o600)
    strange.write_text((head.folder / "operator.toml").read_text().replace("operator", "learner", 1))
    where = ("--session", "files", "--connection", "strange.toml")
    head.run(*ascar, "control", "revive", *where, status=1)
    strange.write_text("url = 'nats://head:4222'\nuser = 'operator'\npassword = 'x'\n")
    head.run(*ascar, "control", "revive", *where, status=2)
