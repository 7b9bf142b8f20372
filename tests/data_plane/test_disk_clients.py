"""A modelled disk under clients that others have written: libnbd, QEMU, fio."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from modelled_disk import CACHED, MECHANICAL, MEMORY, ModelledDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., ModelledDisk]


def ran(*command: str | Path) -> str:
    """What a program prints; skips where it is not installed."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed; `make setup-dev` installs it")
    # The shell of libnbd is a module of the system's own Python.
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def uri(disk: ModelledDisk, export: str = "disk") -> str:
    return f"nbd+unix:///{export}?socket={disk.socket}"


def test_nbdinfo_lists_exports_with_what_they_can(disk: Start) -> None:
    one = disk(MECHANICAL, "--exports", "alpha,beta", "--size", "64MiB")
    listed = json.loads(ran("nbdinfo", "--list", "--json", f"nbd+unix:///?socket={one.socket}"))
    found: dict[str, Any] = {export["export-name"]: export for export in listed["exports"]}
    assert list(found) == ["alpha", "beta"]
    for export in found.values():
        assert export["export-size"] == 64 << 20
        assert export["description"] == "a mechanical disk of 7500 rpm, modelled"
        assert export["is_rotational"] and export["can_multi_conn"] and not export["is_read_only"]
        assert all(export[f"can_{what}"] for what in ("flush", "fua", "trim", "zero", "cache", "df"))
    assert listed["structured"] is True


NBDSH = """
h.connect_uri({uri!r})
assert h.get_size() == 64 << 20
assert h.get_structured_replies_negotiated() == {structured}
data = bytes(range(256)) * 64
h.pwrite(data, 4096)
h.pwrite(data, 40960, nbd.CMD_FLAG_FUA)
assert h.pread(len(data), 4096) == data
assert h.pread(8192, 0) == bytes(4096) + data[:4096]
h.zero(4096, 8192)
h.zero(4096, 45056, nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE)
h.cache(4096, 0)
h.trim(4096, 1 << 20)
h.flush()
assert h.pread(4096, 8192) == bytes(4096) and h.pread(4096, 45056) == bytes(4096)
assert h.pread(4096, 40960) == data[:4096]
for refused in (lambda: h.pread(512, 64 << 20), lambda: h.pwrite(bytes(512), (64 << 20) - 100)):
    h.set_strict_mode(0)
    try:
        refused()
    except nbd.Error as error:
        assert error.errno in ("EINVAL", "ENOSPC"), error
    else:
        raise AssertionError("it is beyond the end")
assert h.pread(1, 0) == bytes(1)
h.shutdown()
"""


@pytest.mark.parametrize("structured", [True, False])
def test_nbdsh_reads_what_it_wrote(disk: Start, structured: bool) -> None:
    one = disk(MEMORY, "--size", "64MiB")
    script = NBDSH.format(uri=uri(one), structured=structured)
    ran("nbdsh", "-c", f"h.set_request_structured_replies({structured})", "-c", script)


def test_nbdcopy_brings_back_what_it_took(disk: Start, folder: Path) -> None:
    one = disk(MEMORY, "--size", "16MiB", "--file", folder / "medium")
    data = random.Random(1).randbytes(16 << 20)
    (folder / "there").write_bytes(data)
    ran("nbdcopy", folder / "there", uri(one))
    ran("nbdcopy", "--flush", uri(one), folder / "back")
    assert (folder / "back").read_bytes() == data
    assert one.end() == 0
    assert (folder / "medium").read_bytes() == data
    assert not one.socket.exists()


def test_qemu_reads_and_writes(disk: Start, folder: Path) -> None:
    one = disk(MEMORY, "--size", "16MiB")
    info = json.loads(ran("qemu-img", "info", "--output=json", uri(one)))
    assert info["virtual-size"] == 16 << 20
    commands = ["write -P 7 4k 64k", "write -f -P 8 1M 4k", "write -z 8k 4k", "discard 2M 64k", "flush"]
    reads = ["read -P 7 4k 4k", "read -P 0 8k 4k", "read -P 8 1M 4k"]
    words = [word for command in (*commands, *reads) for word in ("-c", command)]
    said = ran("qemu-io", "-f", "raw", *words, uri(one))
    assert "failed" not in said and "error" not in said
    ran("qemu-img", "convert", "-f", "raw", "-O", "raw", uri(one), folder / "image")
    assert (folder / "image").read_bytes()[4096:8192] == b"\7" * 4096


def test_fio_verifies_what_it_wrote(disk: Start) -> None:
    if "nbd" not in ran("fio", "--enghelp").split():
        pytest.skip("this fio has no engine for nbd")
    one = disk(MEMORY, "--size", "32MiB")
    job = ["--name=one", "--ioengine=nbd", f"--uri={uri(one)}", "--rw=randrw", "--bs=4k", "--iodepth=16"]
    verified = ("--size=8M", "--verify=crc32c", "--verify_state_save=0", "--output-format=json")
    said = json.loads(ran("fio", *job, *verified).partition("connected to NBD server\n")[2])
    assert said["jobs"][0]["error"] == 0
    assert said["jobs"][0]["write"]["total_ios"] > 500


def test_clients_by_tcp(disk: Start) -> None:
    one = disk(MEMORY, "--size", "1MiB", "--listen", "127.0.0.1:0")
    assert json.loads(ran("nbdinfo", "--json", f"nbd://127.0.0.1:{one.port()}/disk"))["exports"]


@pytest.mark.parametrize(("level", "members"), [(0, 2), (1, 2), (5, 3)])
def test_an_array_is_one_disk(disk: Start, level: int, members: int) -> None:
    scenario = CACHED.replace("[[servers]]", f"[[servers]]\ncount = {members}")
    one = disk(scenario, "--raid", str(level), "--size", "64MiB")
    (export,) = json.loads(ran("nbdinfo", "--list", "--json", uri(one)))["exports"]
    each = "a mechanical disk of 7500 rpm"
    assert export["description"] == f"RAID {level} of {members}, each {each}, modelled"
    data = random.Random(level).randbytes(3 << 20)
    with one.client() as client:
        client.write(12345, data)
        assert client.read(12345, len(data)) == data
        client.flush()
        one.cut()
    with one.client() as client:
        assert client.read(12345, len(data)) == data
