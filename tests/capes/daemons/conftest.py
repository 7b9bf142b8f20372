"""A message server, an interface and agents as real processes, at five ticks a second."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PATIENCE_S = 100.0
PREFIX = "ascar.capes.test"


def find_ascard():
    for path in (Path(sys.executable).parent / "ascard", ROOT / "target/release/ascard"):
        if os.access(path, os.X_OK):
            asked = subprocess.run([path, "interface", "--help"], capture_output=True, check=False)
            if asked.returncode == 0:
                return path
    return None


ASCARD = find_ascard()
SERVER = Path(sys.executable).parent / "nats-server"


class Bus:
    """A connection to the message server: a few lines of protocol, so that garbage can be sent as well."""

    def __init__(self, port, login=None, subjects=()):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.buffer = b""
        self.messages = []
        self.serial = 0
        self.user = login[0] if login else "test"
        self._line()  # INFO
        greeting = {"verbose": False, "pedantic": False}
        if login:
            greeting |= {"user": login[0], "pass": login[1]}
        subjects = [name if name.startswith("_") else f"{PREFIX}.{name}" for name in subjects] or [">"]
        listening = "".join(f"SUB {name} {number}\r\n" for number, name in enumerate(subjects, 1))
        self.socket.sendall(f"CONNECT {json.dumps(greeting)}\r\n{listening}PING\r\n".encode())
        while self._line() != b"PONG":
            pass

    def close(self):
        self.socket.close()

    def publish(self, subject, message, reply=""):
        payload = message if isinstance(message, bytes) else json.dumps(message).encode()
        head = f"PUB {PREFIX}.{subject} {reply} {len(payload)}\r\n"
        self.socket.sendall(head.encode() + payload + b"\r\n")

    def request(self, subject, message):
        """The first reply's bytes."""
        self.serial += 1
        reply = f"_INBOX.{self.user}.{os.getpid()}.{self.serial}"
        self.publish(
            f"{subject}.{self.user}" if subject in ("actions", "history") else subject, message, reply
        )
        return self.next(lambda name, payload: payload if name == reply else None)

    def ask(self, subject, message):
        return json.loads(self.request(subject, message))

    def ask_control(self, op, **keys):
        """What the interface answers, whether it does so or not."""
        return self.ask(f"control.{self.user}.{op}", {"op": op, "why": "to see", **keys})

    def control(self, op, **keys):
        answer = self.ask_control(op, **keys)
        assert "ok" in answer, answer
        return answer["ok"]

    def history(self, **keys):
        """The parts of a reply: headers, and blocks behind them."""
        self.serial += 1
        reply = f"_INBOX.{self.user}.{os.getpid()}.{self.serial}"
        self.publish(f"history.{self.user}", {"version": 1, **keys}, reply)
        parts = []
        while not parts or not parts[-1][0]["last"]:
            payload = self.next(lambda name, payload: payload if name == reply else None)
            size = int.from_bytes(payload[:4], "little")
            parts.append((json.loads(payload[4 : 4 + size]), payload[4 + size :]))
        return parts

    def next(self, choose, patience_s=PATIENCE_S):
        """The first message from which `choose` makes something."""
        end = time.monotonic() + patience_s
        while True:
            while self.messages:
                found = choose(*self.messages.pop(0))
                if found is not None:
                    return found
            left = end - time.monotonic()
            assert left > 0, "nothing came"
            self._take(left)

    def json(self, subject, choose=lambda message: True, patience_s=PATIENCE_S):
        """The first message on a subject for which `choose` is true."""

        def look(name, payload):
            if name != f"{PREFIX}.{subject}":
                return None
            try:
                message = json.loads(payload)
            except ValueError:  # of ours
                return None
            return message if isinstance(message, dict) and message and choose(message) else None

        return self.next(look, patience_s)

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._fill()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def _fill(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise ConnectionError("the server has closed")
        self.buffer += piece

    def _take(self, left_s):
        if b"\r\n" not in self.buffer:
            if not select.select([self.socket], [], [], left_s)[0]:
                return
            self._fill()
            return
        words = self._line().split()
        if words[:1] == [b"PING"]:
            self.socket.sendall(b"PONG\r\n")
        elif words[:1] == [b"MSG"]:
            size = int(words[-1])
            while len(self.buffer) < size + 2:
                self._fill()
            self.messages.append((words[1].decode(), self.buffer[:size]))
            self.buffer = self.buffer[size + 2 :]


class System:
    """Everything that a test starts, and its end."""

    def __init__(self, folder, machine):
        self.folder = folder
        self.machine = machine
        self.processes = []
        self.port = None
        self.server = None
        self.buses = []
        self.credentials = {}
        self.ascard = ASCARD
        self.interval_s = 0.2

    def connection(self, user):
        """A connection file."""
        path = self.folder / f"{user}-connection.toml"
        text = f"url = 'nats://127.0.0.1:{self.port}'\n"
        if user in self.credentials:
            text += f"user = '{user}'\npassword = '{self.credentials[user]}'\n"
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    def start_server(self, *options):
        if self.port is None:
            with socket.create_server(("127.0.0.1", 0)) as listener:
                self.port = listener.getsockname()[1]
        command = [SERVER, "-a", "127.0.0.1", "-p", str(self.port), *options]
        self.server = self.start(command, "server")
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            assert time.monotonic() < end, "nats-server does not listen"
            time.sleep(0.02)

    def bus(self, login=None, subjects=()):
        bus = Bus(self.port, login, subjects)
        self.buses.append(bus)
        return bus

    def start(self, command, name):
        words = self.machine.words(*command) if self.machine else [str(word) for word in command]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def interface(self, text="", mode="automatic", database="replay.sqlite", before=()):
        path = self.folder / "interface.toml"
        path.write_text(
            f"session = 'test'\ninterval_s = {self.interval_s}\ngrace_s = 1\nmode = '{mode}'\n"
            f"database = '{database}'\n"
            f"action_timeout_s = 20\nconnection = '{self.connection('interface')}'\n{text}"
        )
        return self.start([*before, ASCARD, "interface", "--config", path], "interface")

    def agent(self, text, node="node1", before=(), contact_s=20):
        path = self.folder / f"{node}.toml"
        path.write_text(
            f"session = 'test'\nnode = '{node}'\ninterval_s = {self.interval_s}\ncontact_s = {contact_s}\n"
            f"state_directory = '{self.folder}/journal-{node}'\n"
            f"connection = '{self.connection(f'agent-{node}')}'\n{text}"
        )
        return self.start([*before, ASCARD, "agent", "--config", path], node)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def end(self):
        for bus in self.buses:
            bus.close()
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def system(tmp_path, own_machine):
    if ASCARD is None:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    system = System(tmp_path, own_machine)
    system.start_server()
    yield system
    system.end()
    for path in sorted(tmp_path.glob("*.log")):
        sys.stdout.write(f"--- {path.name}\n{path.read_text()[-3000:]}\n")


@pytest.fixture
def sysctl(own_machine):
    """A knob of the machine that the system runs on."""
    if own_machine is None:
        pytest.skip("needs root")
    return own_machine
