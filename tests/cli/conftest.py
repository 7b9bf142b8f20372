from __future__ import annotations

import asyncio
import json
import math
import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from ascar.cli import main
from ascar.history import History
from ascar.results.measurement import Measurement
from ascar.results.outcome import Outcome
from ascar.results.trial import Purpose, Trial, TrialState
from ascar.results.verdict import Verdict
from ascar.space import ChangeCost, Space, categorical, ordinal
from documents import check_document
from testbed_processes import belonging_to

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from contextlib import AbstractContextManager

    from ascar.messaging import MessageServer
    from ascar.simulation import Scenario
    from ascar.space import Configuration
    from ascar.study import Study

GOING_S = 30.0


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout, which its published schema allows."""
        document = json.loads(self.out)
        check_document(document)
        return document

    @property
    def error(self) -> str:
        """The one line that a failing command leaves on stderr."""
        lines = [line for line in self.err.splitlines() if line]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    if os.geteuid() == 0 and Path("/dev/loop-control").exists():
        return
    for item in items:
        if here in item.path.parents and "root" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs root, loop devices and the right to mount"))


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """History, crash reports and caches go where the test can see them."""
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ASCAR_HISTORY", raising=False)
    return state


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for what lives as long as testbeds do, with a short path; nothing must be left in it."""
    with TemporaryDirectory(prefix="ascar-") as path:
        monkeypatch.setenv("ASCAR_RUNTIME_DIR", path)
        yield Path(path)
        for folder in Path(path).glob("testbeds/*"):
            subprocess.run([sys.executable, "-m", "ascar", "testbed", "down", folder.name], check=False)
        assert list(Path(path).glob("testbeds/*")) == []
        assert belonging_to(Path(path)) == []


@pytest.fixture
def ascar(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run a command in this process."""

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Done(status, captured.out, captured.err)

    return run


@pytest.fixture
def process() -> Callable[..., Done]:
    """Run a command in a process of its own."""

    def run(*arguments: object, **options: Any) -> Done:
        command = [sys.executable, "-m", "ascar", *map(str, arguments)]
        environment = {**os.environ, **options.pop("env", {})}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=400, check=False, env=environment, **options
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@contextmanager
def controllers_of(scenario: Scenario, folder: Path, speed: float) -> Generator[MessageServer]:
    """A simulated cluster in a thread of this process, so many times as fast, with a message server.

    Commands find the server where ASCAR_RUNTIME_DIR is the folder.
    """
    from ascar.messaging import Background, Link, MessageServer, controller_user, manager_user
    from ascar.sharp.deployment import SimulatedControllers

    async def begin(server: MessageServer) -> tuple[Link, asyncio.Task[None]]:
        link = await Link.open(server.settings("controller"), name="cluster")
        found = SimulatedControllers(scenario, link, speed)
        await found.serve()
        return link, asyncio.create_task(found.run())

    async def end(link: Link, running: asyncio.Task[None]) -> None:
        running.cancel()
        await link.close()

    users = [manager_user(), controller_user("controller")]
    with MessageServer(folder / "messages", users) as server, Background() as background:
        started = background.call(begin(server), 90.0)
        yield server
        background.call(end(*started), 90.0)


@pytest.fixture(scope="session")
def controllers_here() -> Callable[..., AbstractContextManager[MessageServer]]:
    """How a test has controllers of its own: scenario, folder, speed."""
    return controllers_of


@pytest.fixture
def path_without(tmp_path: Path) -> Callable[..., str]:
    """A PATH on which one program is missing, wherever it lies now; its folder is made below another."""

    def without(program: str, below: Path = tmp_path) -> str:
        directory = below / f"without-{program}"
        directory.mkdir()
        for folder in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for path in Path(folder).glob("*"):
                link = directory / path.name
                if path.name != program and not link.is_symlink():
                    link.symlink_to(path)
        return str(directory)

    return without


@pytest.fixture
def space() -> Space:
    """A small space with a parameter of every cost."""
    return Space(
        (
            categorical("fs", ["ext4", "xfs"], default="ext4", cost=ChangeCost.REFORMAT_RESTORE),
            categorical(
                "mode",
                ["ordered", "writeback"],
                default="ordered",
                cost=ChangeCost.UMOUNT_MOUNT,
                when='fs == "ext4"',
                weaker={"writeback": "consistency"},
            ),
            ordinal("read_ahead_kb", [64, 128, 256], default=128, cost=ChangeCost.DYN_KERNEL),
        ),
        allow_weaker=("consistency",),
        name="small",
    )


@pytest.fixture
def no_progress_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come by the clock: a slow machine must not print one where none is expected."""
    monkeypatch.setattr("ascar.cli.measure_progress._LINE_EVERY_S", math.inf)


@pytest.fixture
def trial_of() -> Callable[..., Trial]:
    """A complete trial with a score and an interval of 2 percent around it."""

    def make(number: int, configuration: Configuration, score: float | None, **other: Any) -> Trial:
        measurement = score and replace(
            Measurement.single(score), ci_low=score * 0.98, ci_high=score * 1.02, n=40, independent_samples=20
        )
        values = {
            "purpose": Purpose.SEARCH,
            "state": TrialState.COMPLETE,
            "score": score,
            "measurement": measurement,
            "stage_s": {"change": 1.0, "load": 4.0},
            "started_at": "2030-01-01T00:00:00.000+00:00",
        }
        return Trial(number, configuration, **{**values, **other})

    return make


@pytest.fixture
def keep_run(trial_of: Callable[..., Trial]) -> Callable[..., int]:
    """Keeps a finished run that recommends a configuration, half as much better than the default."""

    def keep(study: Study, space: Space, best: Configuration, machine: dict[str, Any]) -> int:
        with History() as history, history.begin(study, space, machine) as run:
            trials = [trial_of(1, space.default(), 100.0, purpose=Purpose.DEFAULT), trial_of(2, best, 150.0)]
            for trial in trials:
                run.start_trial(replace(trial, state=TrialState.RUNNING))
                run.finish_trial(trial)
            verdict = Verdict("improved", 0.5, 0.4, 0.6, 1e-6, 5)
            found, counts = (trials[1], trials[0], best), {TrialState.COMPLETE: 2}
            run.finish(Outcome(run.id, study.name, *found, verdict, {}, counts, "done", machine))
            return run.id

    return keep


# The interpreter may lie where only root can look, e.g. below /root: this shows that place, and nothing else
# of what is around it, to this process and its children.
_SHOW = """
set -e
aside=$(mktemp -d)
mount --bind "$1" "$aside"
mount -t tmpfs -o mode=755 tmpfs "$2"
mkdir -p "$1"
mount --move "$aside" "$1"
rmdir "$aside"
shift 2
exec "$@"
"""


@pytest.fixture
def as_nobody(path_without: Callable[..., str]) -> Iterator[tuple[Path, Callable[..., Done]]]:
    """A home of nobody's, and how to run a command as nobody, without sudo. Needs root.

    The home is not among pytest's folders: each run of pytest closes these to all but their owner.
    """
    with TemporaryDirectory(prefix="ascar-nobody-") as place:
        yield _as_nobody(Path(place), path_without)


def _as_nobody(place: Path, path_without: Callable[..., str]) -> tuple[Path, Callable[..., Done]]:
    home = place / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    place.chmod(0o755)
    prefix = Path(sys.base_prefix)
    closed = [folder for folder in reversed(prefix.parents) if not folder.stat().st_mode & 0o001]
    show = ["unshare", "--mount", "sh", "-c", _SHOW, "sh", str(prefix), str(closed[0])] if closed else []
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PATH": f"{Path(sys.executable).parent}:{path_without('sudo', place)}",
    }

    def run(*arguments: object) -> Done:
        command = [*show, *drop, sys.executable, "-m", "ascar", *map(str, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=400, check=False, env=environment, cwd="/"
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return home, run


def everything_below(place: Path) -> set[str]:
    """Paths of files and folders; a folder that is being unmounted counts, its content does not."""
    return {f"{folder}/{name}" for folder, *below in os.walk(place) for names in below for name in names}


@contextmanager
def changing_nothing(own_state: Path, tmp_path: Path) -> Iterator[None]:
    """Fails the test if anything is there afterwards that was not there before, but for an empty history.

    What has gone meanwhile is another program's: a keeper's that cleans up, or an automount's. So is what a
    keeper mounts or writes, its process id in the name, unless it was started in this test's environment, and
    what is mounted elsewhere than here or where a keeper mounts.
    """
    running = {path.name for path in Path("/proc").glob("[0-9]*")}
    places = [tmp_path, Path("/run/ascar"), Path("/var/lib/ascar")]

    def may_be_ours(line: str) -> bool:
        # Tests of the keeper lock resources of such names, and loop devices.
        locks = ("/run/ascar/locks/test.", "/run/ascar/locks/device.7:")
        if line.startswith((str(own_state), f"{tmp_path}/cache", *locks)):
            return False
        keeper = re.search(r"/(?:run|lib)/ascar/\w+/[0-9a-f]+-(\d+)[-.]", line)
        if keeper is None:
            return " " not in line or any(f" {place}" in line for place in places)
        with suppress(OSError):
            return str(own_state).encode() in Path("/proc", keeper[1], "environ").read_bytes()
        return keeper[1] not in running

    def look() -> set[str]:
        files = {path for place in places for path in everything_below(place) if not path.endswith(".toml")}
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        return files.union(mounts, map(str, Path("/sys/block").iterdir()))

    before = look()
    yield
    # What another test's keeper had there, which has ended since, is on its way out.
    end_s = time.monotonic() + GOING_S
    while (left := {line for line in look() - before if may_be_ours(line)}) and time.monotonic() < end_s:
        time.sleep(0.2)
    assert left == set()
    kept = own_state / "ascar" / "history.sqlite"
    if kept.exists():
        with closing(sqlite3.connect(kept)) as history:
            assert history.execute("SELECT count(*) FROM run").fetchone() == (0,)


@pytest.fixture
def nothing_kept(own_state: Path, tmp_path: Path) -> Iterator[None]:
    """Fails the test if anything was changed, or a run kept."""
    with changing_nothing(own_state, tmp_path):
        yield


@pytest.fixture
def untouched(nothing_kept: None, own_state: Path) -> Iterator[None]:
    """Fails the test if anything is there afterwards that was not there before, an empty history included."""
    yield
    assert not own_state.exists()
