"""Somebody between a process and its server, without any key, who adds bytes in clear to its greeting."""

import contextlib
import json
import socket
import sqlite3
import subprocess
import threading

import pytest

from waiting import until

GREETING = b'INFO {"server_id":"x","version":"2.11.0","max_payload":1048576,"tls_required":true}\r\nPONG\r\n'
ORDERS = {
    "agent": ("nodes.node1", {"op": "set", "id": "x", "set": {"vm.page-cluster": 7}}),
    "interface": ("control.mallory.mode", {"op": "mode", "mode": "automatic"}),
}


@contextlib.contextmanager
def between(subject, order):
    """Greets, adds an order, and waits; gives the port and what is heard."""
    payload = json.dumps(order).encode()
    added = f"MSG ascar.capes.test.{subject} 1 {len(payload)}\r\n".encode() + payload + b"\r\n"
    heard = []

    def speak(connection):
        with connection, contextlib.suppress(OSError):
            connection.sendall(GREETING + added)
            while piece := connection.recv(65536):
                heard.append(piece)

    def serve():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=speak, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1], heard
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("part", ["agent", "interface"])
def test_nobody_obeys_what_came_before_tls(system, part):
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    make += ["-subj", "/CN=x", "-keyout", "/dev/null", "-out", system.folder / "ca.pem"]
    subprocess.run(make, check=True, capture_output=True)
    with between(*ORDERS[part]) as (port, heard):
        path = system.connection(part if part == "interface" else "agent-node1")
        path.write_text(f"url = 'tls://127.0.0.1:{port}'\n[tls]\nca = 'ca.pem'\n")
        system.connection = lambda _: path
        if part == "interface":
            process, name = system.interface("", mode="observe"), "interface"
        else:
            knob = "[[knob]]\nname = 'vm.page-cluster'\nmaximum = 9\n"
            process, name = system.agent(f"[[collector]]\nkind = 'cpu'\n{knob}"), "node1"
        until(lambda: "in clear behind its greeting" in system.log(name), what="it refuses")
        assert not heard, "not even the handshake was begun"
        process.terminate()
        assert process.wait(60) == 0
    if part == "interface":
        with contextlib.closing(sqlite3.connect(system.folder / "replay.sqlite")) as replay:
            assert replay.execute("SELECT actor, what FROM audit").fetchall() == []
    elif system.machine is not None:
        assert system.machine.read() == system.machine.default
