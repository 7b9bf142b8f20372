"""What a modelled disk refuses: one line that names the option or key, the value, and what is allowed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from modelled_disk import MEMORY, ModelledDisk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., ModelledDisk]


@pytest.fixture
def refused(disk_binary: Path, folder: Path) -> Callable[..., str]:
    """Run `ascard disk`, which must refuse it; its one line."""
    (folder / "disk.toml").write_text(MEMORY, "utf-8")

    def run(*words: str | Path) -> str:
        done = subprocess.run(
            [disk_binary, "disk", *words], cwd=folder, capture_output=True, text=True, timeout=20, check=False
        )
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        (line,) = done.stderr.splitlines()
        return line.removeprefix("ascard disk: ")

    return run


WHERE = ("--scenario", "disk.toml", "--socket", "s")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--scenario: is missing"),
        (("--scenario", "none.toml", "--socket", "s"), "--scenario none.toml: No such file"),
        (
            ("--scenario", "cliff", "--socket", "s"),
            "--scenario cliff: must be a file (.toml) or one of btio-b, ",
        ),
        (("--scenario", "disk.toml"), "--socket, --listen: give one of them"),
        ((*WHERE, "--listen", "127.0.0.1:0"), "--socket, --listen: give one of them"),
        (("--scenario", "disk.toml", "--listen", "nowhere"), '--listen = "nowhere": '),
        ((*WHERE, "--size", "0"), '--size = "0": must be a size above 0'),
        ((*WHERE, "--size", "much"), '--size = "much": must be a size'),
        ((*WHERE, "--size", "2GB"), "--size: 1 x 2000000000 bytes; the model's disk has 1000000000"),
        ((*WHERE, "--exports", "a,a"), '--exports = "a,a": "a" is there twice'),
        ((*WHERE, "--raid", "6"), '--raid = "6": allowed are 0, 1, 5'),
        ((*WHERE, "--raid", "1"), "servers[0].count = 1: an array of this level has at least 2 members"),
        ((*WHERE, "--file", "medium"), "--file medium: there is none; give --size to make it"),
        ((*WHERE, "--file", "."), "--file .: "),
        (("--scenario", "disk.toml", "--socket", "no/s"), "--socket no/s: No such file"),
        (("--scenario", "disk.toml", "--socket", "x" * 200), "path must be shorter"),
        (("--scenario", "disk.toml", "--socket", "disk.toml"), "exists, and is not a socket"),
    ],
)
def test_wrong_arguments_are_refused(refused: Callable[..., str], words: tuple[str, ...], said: str) -> None:
    assert said in refused(*words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = \n", "line 1: "),
        ("[[servers]]\ndevice = { kind = 'mechanical', rmp = 7200 }\n", "rmp"),
        ("[[servers]]\ndevice = { kind = 'tape' }\n", "tape"),
        (
            "[[servers]]\ndevice = { kind = 'mechanical', rpm = -1 }\n",
            "servers[0].device.rpm: -1 is not",
        ),
        ("servers = []\n", "servers: 0 servers"),
    ],
)
def test_a_wrong_model_is_refused(refused: Callable[..., str], folder: Path, text: str, said: str) -> None:
    (folder / "wrong.toml").write_text(text, "utf-8")
    line = refused("--scenario", "wrong.toml", "--socket", "s")
    assert line.startswith("--scenario wrong.toml: ") and said in line


def test_a_check_touches_nothing(disk_binary: Path, folder: Path) -> None:
    (folder / "disk.toml").write_text(MEMORY, "utf-8")
    words = ["--scenario", "disk.toml", "--socket", "s", "--file", "medium", "--size", "1M", "--check"]
    done = subprocess.run([disk_binary, "disk", *words], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sorted(path.name for path in folder.iterdir()) == ["disk.toml"]


@pytest.mark.parametrize("also", [(), ("--check",)])
def test_a_file_that_does_not_fit_is_named(
    refused: Callable[..., str], folder: Path, also: tuple[str, ...]
) -> None:
    words = (*WHERE, "--file", "medium", *also)
    assert "--file medium: there is none" in refused(*words)
    medium = folder / "medium"
    medium.touch()
    assert "--file medium: is empty" in refused(*words)
    os.truncate(medium, 1001)
    assert "--file medium: has 1001 bytes" in refused(*words, "--size", "1M")
    os.truncate(medium, 2 << 30)
    line = refused(*words)
    assert line == "--file medium: has 2147483648 bytes for 1 exports; the model's disk has 1000000000"
    os.truncate(medium, 1)
    assert "--file medium: has 1 bytes for 2 exports" in refused(*words, "--exports", "a,b")
    assert "--file none/medium: No such file" in refused(
        *WHERE, "--file", "none/medium", "--size", "1M", *also
    )
    assert not (folder / "s").exists()


def test_what_is_refused_leaves_no_file(refused: Callable[..., str], folder: Path) -> None:
    words = ("--scenario", "disk.toml", "--file", "medium", "--size", "1M")
    assert "--socket no/s: " in refused(*words, "--socket", "no/s")
    assert not (folder / "medium").exists()


def test_what_another_disk_uses_is_refused(disk: Start, refused: Callable[..., str], folder: Path) -> None:
    one = disk(MEMORY, "--file", folder / "medium", "--size", "1MiB")
    again = ("--scenario", "disk.toml", "--socket")
    assert "is in use by another process" in refused(*again, one.socket)
    assert "is used by another disk" in refused(*again, "other.sock", "--file", "medium")
    assert not (folder / "other.sock").exists()
    assert one.end() == 0
    assert "has 1048576 bytes" in refused(*again, "s", "--file", "medium", "--size", "2MiB")


def test_a_socket_that_was_left_behind_is_replaced(disk: Start, folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(folder / "disk.sock"))
    one = disk(MEMORY, "--size", "1MiB")
    with one.client() as client:
        assert client.size == 1 << 20


@pytest.mark.parametrize("also", [(), ("--check",)])
def test_a_scenario_that_is_no_regular_file_is_not_waited_for(
    refused: Callable[..., str], folder: Path, also: tuple[str, ...]
) -> None:
    os.mkfifo(folder / "pipe.toml")
    for path in ("pipe.toml", "/dev/zero", "./"):
        line = refused("--scenario", path, "--socket", "s", *also)
        assert line == f"--scenario {path}: is not a regular file"
    assert not (folder / "s").exists()


def test_it_ends_when_told_at_any_moment_of_its_start(disk_binary: Path, folder: Path) -> None:
    (folder / "disk.toml").write_text(MEMORY, "utf-8")
    for late_ms in range(0, 30, 2):
        process = subprocess.Popen(
            [disk_binary, "disk", *WHERE], cwd=folder, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        time.sleep(late_ms / 1000)
        process.terminate()
        assert process.wait(10) in (0, -signal.SIGTERM)
        assert not (folder / "s").exists()
