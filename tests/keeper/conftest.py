"""The keeper on the real machine: loop devices, file systems, control groups. Needs root.

Knobs are written on loop devices that a test owns; the few global ones are locked machine-wide by the keeper
itself, so that a study or another test on this machine at the same time makes these tests wait, not fail.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from ascar.errors import Refused
from ascar.program.node_binary import find_ascard
from ascar.systems.keeper import Keeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB = 1 << 20


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "anybody: a test of the keeper that does not need root")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "anybody" not in item.keywords:
            item.add_marker(pytest.mark.root)
            item.add_marker(pytest.mark.machine)
            if os.geteuid() != 0:
                item.add_marker(
                    pytest.mark.skip(reason="needs root: loop devices, mounts and control groups")
                )


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A journal of this test's own."""
    return tmp_path / "state"


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A directory for image files."""
    place = tmp_path / "images"
    place.mkdir()
    return place


@pytest.fixture
def keeper(state: Path) -> Iterator[Keeper]:
    with Keeper("a test", state_dir=state) as keeper:
        yield keeper


@pytest.fixture
def device(keeper: Keeper, images: Path) -> Path:
    """A loop device on an image of 64 MiB."""
    keeper.image_create(images / "image", 64 * MIB)
    return keeper.image_attach(images / "image").device


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Path]:
    """A loop device of the machine: not the keeper's, but nobody else's either."""
    backing = tmp_path / "backing"
    with backing.open("wb") as file:
        file.truncate(64 * MIB)
    device = execute("losetup", "--find", "--show", str(backing))
    queue = Path("/sys/block") / Path(device).name / "queue"
    scheduler = chosen(read(queue / "scheduler"))
    values = {name: read(queue / name) for name in ("nr_requests", "read_ahead_kb", "nomerges")}
    # What tests begin with is the same on every machine, whatever its rules give to new devices.
    for name, value in (("scheduler", "none"), ("read_ahead_kb", "128"), ("nomerges", "0")):
        (queue / name).write_text(value)
    yield Path(device)
    # Knobs outlive the attachment: whoever gets this device next finds it as it was.
    (queue / "scheduler").write_text(scheduler)
    for name, value in values.items():
        (queue / name).write_text(value)
    execute("losetup", "--detach", device)


@pytest.fixture
def schedulers(loop: Path) -> None:
    """For tests that go from one input-output scheduler to another."""
    known = read(Path("/sys/block") / loop.name / "queue/scheduler")
    lacking = {"bfq", "kyber", "mq-deadline"} - set(known.replace("[", " ").replace("]", " ").split())
    if lacking:
        pytest.skip(f"this kernel has no input-output scheduler {', '.join(sorted(lacking))}")


@pytest.fixture
def patiently() -> Callable[[Callable[[], Any]], Any]:
    """Does something again while another session on this machine holds the lock it needs."""

    def attempt(action: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + 100
        while True:
            try:
                return action()
            except Refused as refused:
                if "is locked by" not in refused.message:
                    raise
                if time.monotonic() > deadline:
                    pytest.skip(f"this machine is being tuned: {refused.message}")
                time.sleep(0.2)

    return attempt


@pytest.fixture
def traces(state: Path, images: Path) -> Callable[[int | None], list[str]]:
    """What a session has left on the machine; empty when everything is put back."""

    def find(pid: int | None = None) -> list[str]:
        found = [f"journal {path}" for path in state.glob("*.jsonl")]
        found += [f"file {path}" for path in images.iterdir()]
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            try:
                text = backing.read_text()
            except OSError:
                continue  # detached by its owner meanwhile
            if str(images) in text:
                found.append(f"loop device {backing.parts[3]}")
        if pid is not None:
            mounts = Path("/proc/self/mountinfo").read_text().splitlines()
            found += [f"mount {line}" for line in mounts if f"-{pid}-" in line and "/run/ascar/mnt/" in line]
            found += [f"mountpoint {path}" for path in Path("/run/ascar/mnt").glob(f"*-{pid}-*")]
            found += [f"control group {path}" for path in Path("/sys/fs/cgroup").glob(f"ascar-*-{pid}")]
            found += [
                f"control group {path}" for path in Path("/sys/fs/cgroup").glob(f"memory/ascar-*-{pid}")
            ]
        return found

    return find


@pytest.fixture
def gone(traces: Callable[[int | None], list[str]]) -> Callable[[int | None], float]:
    """Waits until nothing is left of a session; the seconds it took."""

    def wait(pid: int | None = None) -> float:
        started = time.monotonic()
        while left := traces(pid):
            assert time.monotonic() - started < 60, left
            time.sleep(0.005)
        return time.monotonic() - started

    return wait


class Raw:
    """A keeper spoken to by hand."""

    def __init__(self, words: list[str], **options: Any) -> None:
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )
        self.last_id = 0

    @property
    def stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def send(self, line: bytes) -> None:
        self.stdin.write(line)
        self.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self.last_id += 1
        self.send(json.dumps({"id": self.last_id, "op": op, **fields}).encode() + b"\n")
        reply = self.receive()
        assert reply["id"] == self.last_id
        return reply

    def end(self) -> tuple[int, str]:
        """Closes the pipe; the exit status and what was complained about."""
        _, stderr = self.process.communicate(timeout=100)
        return self.process.returncode, stderr.decode()


@pytest.fixture
def raw(state: Path) -> Iterator[Callable[..., Raw]]:
    started: list[Raw] = []

    def start(*arguments: str, words: tuple[str, ...] = (), hello: bool = True, **options: Any) -> Raw:
        command = [*words, str(find_ascard()), "keeper", "--state-dir", str(state), *arguments]
        session = Raw(command, **options)
        started.append(session)
        if hello:
            assert "ok" in session.ask("hello", version=1, owner="by hand")
        return session

    yield start
    for session in started:
        if not session.stdin.closed:
            session.end()


def execute(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def read(path: Path) -> str:
    return path.read_text().strip()


def chosen(schedulers: str) -> str:
    """The word in brackets."""
    return schedulers.partition("[")[2].partition("]")[0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Makes a file system in memory of so many MiB."""
    places: list[Path] = []

    def make(size_mib: int) -> Path:
        place = tmp_path / f"disk{len(places)}"
        place.mkdir()
        execute("mount", "-t", "tmpfs", "-o", f"size={size_mib}m,mode=755", "tmpfs", str(place))
        places.append(place)
        return place

    yield make
    for place in places:
        execute("umount", str(place))


@pytest.fixture
def run() -> Callable[..., str]:
    """Runs a program; what it prints."""
    return execute
