"""The units of both packages: how closed they are, and what they do at a boot, a kill and a power cut."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from benchmarks.fresh_debian import run_inside
from benchmarks.harness import free_port

from ascar.messaging.server import find_nats_server
from ascar.program.node_binary import find_ascard
from ascar.testing import DiskServer, Guest, VolatileDisk
from built_packages import ROOT, debian_or_skip, packages_of_this_run
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
UNITS = ROOT / "packaging/systemd"
IMAGE_BYTES = 1536 << 20
BOOT_LIMIT_S = 600.0
DEFAULT, SET = 3, 5

CONNECTION = 'url = "nats://127.0.0.1:4222"\n'
AGENT = """
session = "files"
node = "client1"
connection = "connection.toml"
[[collector]]
kind = "vm"
[[knob]]
name = "vm.page-cluster"
minimum = 0
maximum = 8
"""
INTERFACE = """
session = "files"
connection = "ascar-connection.toml"
database = "/var/lib/ascar-interface/replay.sqlite"
mode = "automatic"
[[knob]]
name = "vm.page-cluster"
minimum = 0
maximum = 8
"""
PROXY = """
controller = "client1"
workload = "objects"
control = "/run/ascar-proxy/control.sock"
[[route]]
protocol = "http"
listen = "tcp:127.0.0.1:{listen}"
server = "tcp:127.0.0.1:{server}"
"""
BODY_BYTES = 4 << 20
MESSAGES = 'listen: "127.0.0.1:4222"\n'
LEARNER = """
session = "files"
connection = "ascar-connection.toml"
objective = "minimize cpu_busy_share"
state = "/var/lib/ascar-learner/learner.npz"
"""
SCENE = """
[Unit]
After=ascar-restore.service ascar-agent.service ascar-interface.service
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/bash /root/scene
StandardOutput=file:/dev/console
StandardError=file:/dev/console
[Install]
WantedBy=multi-user.target
"""
CLOSED_MEMORY = """
import ctypes, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0)  # older kernels do not know it
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Runs a program as `MemoryDenyWriteExecute=` does."""
SCENES = Path(__file__).with_name("scenes")


def scored(unit: Path) -> float:
    """The exposure of a unit by systemd's own measure: 0 is closed, 10 is open."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs the Debian package systemd; install it")
    words = ["systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=100", unit]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said.stdout)
    assert found, said.stdout + said.stderr
    return float(found[1])


def test_who_needs_no_root_is_closed_and_roots_are_no_more_open_than_now() -> None:
    for role in ("interface", "learner", "messages", "proxy"):
        assert scored(UNITS / f"ascar-{role}.service") <= 3.0
    # A private file system would hide from them what they put back, which is everybody's.
    assert scored(UNITS / "ascar-agent.service") <= 6.5
    assert scored(UNITS / "ascar-restore.service") <= 6.5


def test_systemd_knows_every_line(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs the Debian package systemd; install it")
    for unit in UNITS.rglob("*.service"):
        # What it starts is not installed here.
        text = (
            unit.read_text()
            .replace("/usr/libexec/ascar/ascard", "/bin/true")
            .replace("/usr/lib/ascar/bin/nats-server", "/bin/true")
            .replace("/usr/bin/ascar", "/bin/true")
            .replace("User=ascar", "User=root")
        )
        (tmp_path / unit.name).write_text(text)
        words = ["systemd-analyze", "verify", "--man=no", tmp_path / unit.name]
        said = subprocess.run(words, capture_output=True, text=True, check=False)
        assert unit.name not in said.stderr, said.stderr


def allowed_calls(unit: Path) -> set[str]:
    """The system calls that a unit allows, by the groups of this machine's systemd."""
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager"], capture_output=True, text=True, check=True
    ).stdout
    groups: dict[str, set[str]] = {}
    for line in told.splitlines():
        word = line.strip()
        if line.startswith("@"):
            group = groups.setdefault(word, set())
        elif word and not word.startswith("#"):
            group.add(word)
    [line] = re.findall(r"^SystemCallFilter=(.*)$", unit.read_text(), re.MULTILINE)
    waiting, found = line.split(), set[str]()
    while waiting:
        name = waiting.pop()
        waiting += groups[name] if name.startswith("@") else ()
        found |= set() if name.startswith("@") else {name}
    return found


def calls_of(words: Sequence[str | Path], said: str, folder: Path, ends_s: float | None = None) -> set[str]:
    """The system calls of a program and all that it starts, until it ends or is told to."""
    trace = folder / "calls"
    running = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", trace, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        running.communicate(said, timeout=ends_s or 60)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGTERM)
        running.communicate(timeout=60)
    assert running.returncode == 0
    found = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(errors="replace"), re.MULTILINE))
    assert {"execve", "prctl", "exit_group"} <= found
    return found


@pytest.mark.root
@pytest.mark.machine
def test_no_unit_forbids_a_system_call_that_its_program_makes(tmp_path: Path) -> None:
    for program in ("systemd-analyze", "strace"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}; install it")
    ascard = find_ascard()
    agent, restore, interface, learner, messages = (
        allowed_calls(UNITS / f"ascar-{role}.service")
        for role in ("agent", "restore", "interface", "learner", "messages")
    )
    image = tmp_path / "images"
    image.mkdir(mode=0o700)
    orders = [
        {"op": "hello", "version": 1, "owner": "traced"},
        {"op": "knob_read", "knob": "vm.page-cluster"},
        {"op": "knob_write", "knob": "vm.page-cluster", "value": SET},
        {"op": "image_create", "path": str(image / "image"), "size_bytes": 1 << 26},
        {"op": "image_attach", "path": str(image / "image")},
    ]
    lines = "".join(json.dumps({"id": n, **order}) + "\n" for n, order in enumerate(orders, 1))
    state = ("--state-dir", tmp_path / "state")
    assert calls_of([ascard, "keeper", *state], lines, tmp_path) <= agent
    assert calls_of([ascard, "keeper", "--restore", *state], "", tmp_path) <= agent & restore
    port = free_port()
    for name, text in (
        ("agent", AGENT),
        ("interface", INTERFACE),
        ("learner", LEARNER),
        ("connection", CONNECTION),
    ):
        file = tmp_path / f"{name}.toml"
        here = text.replace("ascar-connection", "connection").replace("4222", str(port))
        file.write_text(re.sub("/var/lib/ascar-[a-z]+", str(tmp_path), here))
        file.chmod(0o600)
    # Neither Python's packages nor the message server write to memory that they then run.
    ascar = [sys.executable, "-c", CLOSED_MEMORY, sys.executable, "-m", "ascar"]
    commands = {
        "interface": ([ascard, "interface"], interface),
        "agent": ([ascard, "agent"], agent),
        "learner": ([*ascar, "capes", "train", "--quiet"], learner),
    }
    serving = [sys.executable, "-c", CLOSED_MEMORY, find_nats_server(), "-a", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(serving, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for role, (words, allowed) in commands.items():
            whole = [*words, "--config", tmp_path / f"{role}.toml"]
            assert calls_of(whole, "", tmp_path, ends_s=8) <= allowed, role
    finally:
        server.terminate()
        server.wait()
    assert calls_of([*serving[:-1], str(free_port())], "", tmp_path, ends_s=3) <= messages


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


def test_the_unit_of_proxies_forbids_no_system_call_by_which_bytes_pass(tmp_path: Path) -> None:
    for program in ("systemd-analyze", "strace"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}; install it")
    (tmp_path / "body").write_bytes(bytes(BODY_BYTES))
    listen, got = free_port(), list[int]()

    def get() -> None:
        until((tmp_path / "control.sock").exists, what="the proxy is there")
        with urlopen(f"http://127.0.0.1:{listen}/body", timeout=30) as answer:
            got.append(len(answer.read()))

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        text = PROXY.format(listen=listen, server=server.server_port)
        (tmp_path / "proxy.toml").write_text(text.replace("/run/ascar-proxy", str(tmp_path)))
        serving, client = Thread(target=server.serve_forever), Thread(target=get)
        serving.start()
        client.start()
        try:
            words = [find_ascard(), "proxy", "--config", tmp_path / "proxy.toml"]
            calls = calls_of(words, "", tmp_path, ends_s=8)
        finally:
            client.join()
            server.shutdown()
            serving.join()
    assert got == [BODY_BYTES]
    assert "splice" in calls
    assert calls <= allowed_calls(UNITS / "ascar-proxy.service")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An image of a fresh Debian with its own systemd and both packages."""
    lack = Guest.missing()
    if lack is not None:
        pytest.skip(lack)
    packages = packages_of_this_run(tmp_path_factory)
    with TemporaryDirectory(prefix="ascar-disk-", dir="/var/tmp") as folder:
        image = Path(folder, "disk.img")
        with debian_or_skip("systemd", "procps") as place:
            for package in packages.glob("*.deb"):
                shutil.copy(package, place / "root")
            installed = run_inside(place, "sh", "-ec", "dpkg -i /root/*.deb && rm /root/*.deb")
            assert installed.returncode == 0, installed.stderr
            configure(place)
            image.touch()
            os.truncate(image, IMAGE_BYTES)
            subprocess.run(["mkfs.ext4", "-q", "-F", "-d", place, image], check=True)
        yield image


def configure(place: Path) -> None:
    """The files of an administrator, and the units enabled."""
    ours = place / "etc/ascar"
    for name, text in (
        ("agent.toml", AGENT),
        ("interface.toml", INTERFACE),
        ("connection.toml", CONNECTION),
        ("ascar-connection.toml", CONNECTION),
        ("proxy.toml", PROXY.format(listen=8081, server=8080)),
        ("learner.toml", LEARNER),
        ("nats.conf", MESSAGES),
    ):
        (ours / name).write_text(text)
        (ours / name).chmod(0o600)
    for scene in SCENES.iterdir():
        shutil.copy(scene, place / "root")
    # That of an installed machine: journals are put back on the machine that they are of.
    (place / "etc/machine-id").write_text(f"{7:032x}\n")
    units = place / "etc/systemd/system"
    (units / "scene.service").write_text(SCENE)
    # Two minutes are a long test.
    (units / "ascar-agent.service.d").mkdir()
    (units / "ascar-agent.service.d/soon.conf").write_text("[Service]\nWatchdogSec=5\n")
    shutil.rmtree(place / "var/cache/apt", ignore_errors=True)
    for script in (
        "cd /etc/ascar && chown ascar interface.toml learner.toml proxy.toml ascar-connection.toml nats.conf",
        "systemctl enable --quiet ascar-messages scene ascar-agent ascar-interface ascar-proxy",
    ):
        done = run_inside(place, "sh", "-ec", script)
        assert done.returncode == 0, done.stderr


def boot(guest: Guest, scene: str, until: str) -> dict[str, str]:
    """What the scene says, by the words before the colon, once it has said the last of them."""
    place = "/mnt/root"
    for command in (f"mkdir {place}", f"mount /dev/vda {place}", f"ln -sfn {scene} {place}/root/scene"):
        done = guest.run(command)
        assert done.status == 0, done.output
    guest.become(
        f"switch_root {place} /lib/systemd/systemd --system --unit=multi-user.target --log-target=journal "
        "--show-status=0"
    )
    guest.wait(lambda: f"## {until}" in guest.console or "## never" in guest.console, until, BOOT_LIMIT_S)
    said = re.findall(r"^## ([^:\n]+): (.*?)\r?$", guest.console, re.MULTILINE)
    return dict(said)


def test_killed_daemons_are_restarted_and_what_the_power_took_is_put_back_at_boot(disk: Path) -> None:
    with VolatileDisk(disk) as volatile, DiskServer(volatile) as server:
        with Guest([server], memory_mib=768) as guest:
            said = boot(guest, "first", "ready for the cut")
            guest.cut(random.Random(1))
        assert "never" not in said, guest_end(said)
        assert said["types"] == "notify notify"
        assert said["interface runs as"] == "ascar"
        assert said["killed"] == f"knob {DEFAULT}, restarts 1"
        assert said["stopped"] == f"knob {DEFAULT}, 1 by the watchdog"
        assert "4222" in said["logged with fields"]
        assert said["ready for the cut"] == "image"
        with Guest([server], memory_mib=768) as guest:
            said = boot(guest, "second", "end")
        assert "never" not in said, guest_end(said)
        assert said["after the cut"] == "images [], noted [0]"
        assert said["restored"] == "success yes"
        assert said["proxy and learner"] == "notify ascar, notify ascar"
        assert said["both killed"] == "restarts 1 1"
        assert said["both stopped"] == "inactive success inactive success, 600 ascar, sockets []"
        assert said["wrong file"].startswith("2, ")
        assert "nonsense" in said["wrong file"]
        assert said["end"] == "inactive 700"


def guest_end(said: dict[str, str]) -> str:
    return json.dumps(said, indent=1)
