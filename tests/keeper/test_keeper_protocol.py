"""What comes down the pipe may be anything."""

from __future__ import annotations

import random
from pathlib import Path

import pytest


def test_everything_is_refused_before_hello(raw):
    session = raw(hello=False)
    for op in ("status", "knob_read", "shutdown", "restore"):
        reply = session.ask(op, **({"knob": "vm.swappiness"} if op == "knob_read" else {}))
        assert reply["error"]["kind"] == "input"
        assert "hello" in reply["error"]["message"]
    assert "this ascard speaks 1" in session.ask("hello", version=2, owner="x")["error"]["message"]
    assert "ok" in session.ask("hello", version=1, owner="x")
    assert "already" in session.ask("hello", version=1, owner="x")["error"]["message"]


@pytest.mark.parametrize(
    "line",
    [
        b"\n\n   \n",
        b"garbage\n",
        b"\x00\xff\xfe\n",
        b"{}\n[]\nnull\n",
        b'{"id": 1}\n',
        b'{"id": 1, "op": "run", "argv": ["reboot"]}\n',
        b'{"id": 1, "op": "status", "and": "more"}\n',
        b'{"id": 1, "op": "knob_write", "knob": "vm.swappiness", "value": {"a": 1}}\n',
        b"[" * 60_000 + b"\n",
        b'{"id": 1, "op": "format", "fs": "ext4", "options": '
        + b'{"a":' * 9000
        + b"1"
        + b"}" * 9000
        + b"}\n",
        b"x" * 10_000_000 + b"\n",
        b'{"id": 99999999999999999999999, "op": "status"}\n',
        b'{"id": 1, "op": "image_create", "path": "/tmp/a\\u0000b", "size_bytes": 1048576}\n',
        b'{"id": 1, "op": "image_create", "path": "", "size_bytes": 1048576}\n',
        b'{"id": 1, "op": "image_create", "path": "/", "size_bytes": 1048576}\n',
        b'{"id": 1, "op": "image_create", "path": "/tmp/..", "size_bytes": 1048576}\n',
        b'{"id": 1, "op": "image_create", "path": "/tmp/' + b"a" * 5000 + b'", "size_bytes": 1048576}\n',
        b'{"id": 1, "op": "device_claim", "path": "/dev/null", "confirmed": true}\n',
        b'{"id": 1, "op": "device_claim", "path": "/nowhere", "confirmed": true}\n',
        b'{"id": 1, "op": "cgroup_add", "pid": -1}\n',
        b'{"id": 1, "op": "drop_caches", "level": 4}\n',
    ],
    ids=range(21),
)
def test_a_bad_line_is_answered_and_the_next_one_served(raw, line):
    session = raw()
    session.send(line)
    session.send(b'{"id": 1000, "op": "status"}\n')
    for _ in range(10):
        reply = session.receive()
        if reply["id"] == 1000:
            assert reply["ok"] == {"changes": []}
            break
        assert reply["error"]["kind"] in ("input", "failed")
        assert "\n" not in reply["error"]["message"]
    else:
        pytest.fail("the good request was not served")
    assert session.end() == (0, "")


def test_random_bytes_do_not_stop_it(raw):
    session = raw()
    source = random.Random(7)
    for _ in range(200):
        session.send(source.randbytes(source.randrange(1, 400)).replace(b"\n", b" ") + b"\n")
        session.receive()
    assert session.ask("status")["ok"] == {"changes": []}


def test_a_flood_of_requests_is_bounded(raw, images):
    session = raw()
    # Making such a file system takes far longer than reading 300 lines.
    session.ask("image_create", path=str(images / "image"), size_bytes=256 << 20)
    session.ask("image_attach", path=str(images / "image"))
    options = '{"bytes_per_inode": 1024, "block_size_bytes": 1024, "blocks_per_group": 256}'
    slow = f'{{"id": 100, "op": "format", "fs": "ext4", "options": {options}}}\n'.encode()
    session.send(slow + b"".join(b'{"id": %d, "op": "status"}\n' % n for n in range(101, 400)))
    replies = [session.receive() for _ in range(300)]
    assert {reply["id"] for reply in replies} == set(range(100, 400))
    refused = [reply for reply in replies if "error" in reply]
    assert len(refused) >= 300 - 20
    assert all("requests wait" in reply["error"]["message"] for reply in refused)
    assert {"ok"} <= set(next(reply for reply in replies if reply["id"] == 100))
    assert "ok" in session.ask("status")


def test_a_line_without_end_does_not_fill_memory(raw):
    session = raw()
    for _ in range(64):
        session.send(b"y" * (1 << 20))
    status = Path(f"/proc/{session.process.pid}/status").read_text().splitlines()
    resident_kib = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    assert resident_kib < 32 * 1024
    session.send(b"\n")
    assert "longer than" in session.receive()["error"]["message"]
