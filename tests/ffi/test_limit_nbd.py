"""The example in C that limits libnbd's requests, against a modelled disk."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from modelled_disk import MEMORY, ModelledDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(1800)

ROOT = Path(__file__).resolve().parents[2]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
RULES = """\
2,1000000
0,2147483647,0,2147483647,100,200,100,100,50
0,2147483647,0,2147483647,200,2147483647,90,-10,90
"""

Told = dict[str, str]


@pytest.fixture(scope="module")
def program(
    tmp_path_factory: pytest.TempPathFactory, flags: list[str], compiler: Callable[[str], str]
) -> Path:
    """The example, built as its usage comment says, but with all warnings errors."""
    cc = compiler("cc")
    asked = ["pkg-config", "--cflags", "--libs", "libnbd"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    if told.returncode != 0:
        pytest.skip("libnbd's headers are missing: apt-get install libnbd-dev")
    built = tmp_path_factory.mktemp("limit") / "limit_nbd"
    words = [cc, *STRICT, "-o", built, ROOT / "examples/c/limit_nbd.c", *flags, *told.stdout.split()]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return built


@pytest.fixture
def disk(ascard: Path, in_memory: Path | None) -> Iterator[ModelledDisk]:
    """A disk of 16 MiB that takes no time to speak of."""
    said = subprocess.run([ascard, "disk", "--help"], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        pytest.skip(said.stderr.strip())
    with (
        TemporaryDirectory(prefix="ascar-", dir=in_memory) as folder,
        ModelledDisk(ascard, Path(folder), MEMORY, "--size", "16MiB") as started,
    ):
        yield started


def uri(disk: ModelledDisk) -> str:
    return f"nbd+unix:///disk?socket={disk.socket}"


def ran(program: Path, *words: str | Path) -> Told:
    """What it says."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_no_more_than_the_window_is_in_flight(program: Path, disk: ModelledDisk) -> None:
    for window in (1, 3, 64):
        told = ran(program, "-R", "-n", "2000", "-w", str(window), uri(disk))
        assert (told["requests"], told["in_flight"], told["window"]) == ("2000", "0", str(window))
        assert int(told["in_flight_most"]) <= window
        assert "rules" not in told
    assert int(told["in_flight_most"]) > 3


def test_requests_leave_as_far_apart_as_the_pace_says(program: Path, disk: ModelledDisk) -> None:
    told = ran(program, "-n", "200", "-p", "2000", uri(disk))
    assert float(told["seconds"]) >= 199 * 0.002
    assert (told["pace_us"], told["requests"]) == ("2000", "200")


def test_rules_set_window_and_pace(program: Path, disk: ModelledDisk, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text(RULES)
    told = ran(program, "-R", "-n", "3000", "-w", "2", "-r", tmp_path / "rules.txt", uri(disk))
    # The first reply only begins the averages.
    assert (told["rules"], told["rules_used"], told["in_flight"]) == ("2", "2999", "0")
    assert told["pace_us"] in {"50", "90"}
    assert float(told["seconds"]) >= 2990 * 50e-6
    assert 1 <= float(told["window"]) <= 256


def test_a_published_controller(program: Path, disk: ModelledDisk) -> None:
    told = ran(program, "-R", "-n", "3000", "-k", "vegas", uri(disk))
    assert (told["requests"], told["in_flight"]) == ("3000", "0")
    assert float(told["window"]) >= 1


def test_what_it_writes_is_on_the_disk(program: Path, disk: ModelledDisk) -> None:
    told = ran(program, "-W", "-b", "65536", "-n", "256", "-w", "4", uri(disk))
    assert (told["requests"], told["in_flight"]) == ("256", "0")
    with disk.client() as client:
        for block in (0, 1, 127, 255):
            assert client.read(block * 65536, 65536) == bytes([block]) * 65536


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "usage: "),
        (["-b", "0", "URI"], 2, "usage: "),
        (["-b", "many", "URI"], 2, "usage: "),
        (["-w", "0.5", "URI"], 2, "window is 0.5; allowed: 1 to 256 requests"),
        (["-k", "tahoe", "URI"], 2, 'controller is "tahoe"; allowed: fixed, aimd'),
        (["-r", "/nowhere", "URI"], 2, "/nowhere: No such file"),
        (["-b", "33554432", "URI"], 1, "it is smaller than a request"),
        (["nbd+unix:///disk?socket=/nowhere"], 1, "No such file"),
    ],
)
def test_it_says_what_is_wrong(
    program: Path, disk: ModelledDisk, words: list[str], status: int, said: str
) -> None:
    given = [uri(disk) if word == "URI" else word for word in words]
    done = subprocess.run([program, *given], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, said in done.stderr) == (status, True), done.stderr


def test_a_server_that_goes_away_ends_it(program: Path, disk: ModelledDisk) -> None:
    words = [program, "-R", "-n", "1000000", "-p", "100", uri(disk)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        # The disk knows of a client once that has connected.
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(1)
        disk.kill()
        _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors.startswith("limit_nbd: ")) == (1, True), errors


@pytest.mark.slow
def test_no_memory_is_lost_or_misused(program: Path, disk: ModelledDisk, tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is missing")
    (tmp_path / "rules.txt").write_text(RULES)
    checker = ["valgrind", "--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    words = [*checker, "--error-exitcode=99", program, "-n", "500", "-r", tmp_path / "rules.txt", uri(disk)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
