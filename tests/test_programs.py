"""Programs of others, tuned by a study file alone: each is as before, whoever is killed whenever."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

EXAMPLES = Path(__file__).parents[1] / "examples" / "programs"
LIMIT_S = 60.0
NEEDS = {
    "redis": ("redis-server", "redis-cli", "redis-benchmark"),
    "nginx": ("nginx", "wrk"),
    "memcached": ("memcached",),
}
QUICK = """
[stop]
trials = 2
[verify]
runs_min = 2
runs_max = 2
"""
SERVICE = {
    # A Redis that runs already: what was in force comes back.
    "redis": """
[target]
kind = "program"
apply = ["redis-cli", "-e", "-p", "PORT", "config", "set", "{name}", "{value}"]
check = ["redis-cli", "-p", "PORT", "config", "get", "{name}"]
booleans = "yes/no"
""",
    # An nginx that runs already: keys of its own file are set in place, and it reads the file again.
    "nginx": """
[target]
kind = "program"
booleans = "on/off"
restart = { dyn-app = ["nginx", "-c", "CONFIG", "-s", "reload"] }
restore = ["NGINX", "-c", "CONFIG", "-s", "reload"]
[[target.file]]
path = "CONFIG"
[target.file.keys]
worker_processes = "{worker_processes}"
gzip_comp_level = "{gzip_comp_level}"
keepalive_requests = "{keepalive_requests}"
tcp_nopush = "{tcp_nopush}"
""",
}


def program(name: str) -> str:
    """The path of a program, where administrators' programs are too."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(words: Sequence[object]) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    return done.stdout


class Subject:
    """A program of others, and ascar in a world of its own.

    Args:
        name: the name of the example.
        folder: an empty folder.
    """

    def __init__(self, name: str, folder: Path) -> None:
        for one in NEEDS[name]:
            program(one)
        self.name, self.folder, self.port = name, folder, free_port()
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        for path in EXAMPLES.iterdir():
            if path.is_file():
                shutil.copy(path, folder)
        text = (folder / f"{name}.toml").read_text()
        for port in ("7379", "7480", "11911"):
            text = text.replace(port, str(self.port))
        self.text = re.sub(r"load_m(in|ax) = .*", r'load_m\1 = "1 s"', text) + QUICK
        config = (folder / "nginx.conf").read_text().replace("7480", str(self.port))
        (folder / "nginx.conf").write_text(config)
        self.study = folder / "study.toml"
        self.study.write_text(self.text)
        self.environment = {
            **os.environ,
            "XDG_STATE_HOME": str(folder / "state"),
            "ASCAR_HISTORY": str(folder / "history.sqlite"),
            "TMPDIR": str(self.temporary),
        }
        self.kept: Callable[[], object] = lambda: None
        self.before: object = None

    def run_as_service(self) -> None:
        """Start it, and study it as it runs; it is to be the same afterwards."""
        service = SERVICE.get(self.name)
        if service is not None:
            target = re.compile(r"\[target\].*?(?=\n\[space)", re.DOTALL)
            text = target.sub(lambda _: service.replace("PORT", str(self.port)), self.text, count=1)
            if self.name == "redis":
                text = re.sub(r"\[space\.parameters\.io_threads\].*?(?=\n\[)", "", text, flags=re.DOTALL)
                self._start_redis()
            else:
                config = self._start_nginx()
                text = text.replace("CONFIG", str(config)).replace('"app-restart"', '"dyn-app"')
                text = text.replace("NGINX", program("nginx"))
            self.study.write_text(text)
        self.before = self.kept()

    def _start_redis(self) -> None:
        words = (program("redis-server"), "--port", self.port, "--bind", "127.0.0.1", "--save", "")
        run((*words, "--daemonize", "yes", "--hash-max-listpack-entries", "200"))
        ask = (program("redis-cli"), "-p", self.port)
        until(lambda: run((*ask, "ping")) == "PONG\n", LIMIT_S, "redis answers")
        names = ("hash-max-listpack-entries", "activerehashing", "hz")
        self.kept = lambda: [run((*ask, "config", "get", name)) for name in names]

    def _start_nginx(self) -> Path:
        config = self.folder / "service" / "nginx.conf"
        config.parent.mkdir()
        text = (self.folder / "nginx.conf").read_text()
        text = text.replace("{directory}", str(config.parent)).replace("daemon off;", "")
        (config.parent / "page.txt").write_text("text " * 1000)
        config.write_text(text.replace("error_log stderr", f"error_log {config.parent}/log"))
        config.chmod(0o604)
        run((program("nginx"), "-c", config))
        until((config.parent / "nginx.pid").exists, LIMIT_S, "nginx runs")
        self.kept = lambda: (
            config.read_bytes(),
            (config.stat().st_mode, config.stat().st_uid, config.stat().st_gid),
            (config.parent / "nginx.pid").read_text(),
            self._workers(config),
        )
        until(lambda: self._workers(config) == 1, LIMIT_S, "nginx has its worker")
        return config

    @staticmethod
    def _workers(config: Path) -> int:
        master = (config.parent / "nginx.pid").read_text().strip()
        listed = run(("pgrep", "-P", master, "-a")).splitlines()
        return sum("worker process" in line and "shutting" not in line for line in listed)

    def start(self, *words: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "ascar", *map(str, words)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ascar(self, *words: object) -> Any:
        """The document of a command that ends well, or without a decision."""
        process = self.start(*words, "--json")
        out, err = process.communicate(timeout=4 * LIMIT_S)
        assert process.returncode in (0, 3), err + out
        return json.loads(out)

    def leftovers(self) -> list[str]:
        """What ascar has started or made, and what is not as before."""
        found = [str(path) for path in self.temporary.iterdir() if path.name.startswith("ascar-program-")]
        found += [str(path) for path in self.folder.glob("state/ascar/journal/*.jsonl")]
        found += self._processes()
        if self.kept() != self.before:
            found.append(f"{self.kept()!r} is not {self.before!r}")
        return found

    def _processes(self) -> list[str]:
        """Processes in a directory that ascar has made."""
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdecimal() and str(self.temporary) in str((entry / "cwd").readlink()):
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def end(self) -> None:
        """End what the test has started."""
        if self.name == "redis":
            run(("redis-cli", "-p", self.port, "shutdown", "nosave"))
        config = self.folder / "service" / "nginx.conf"
        if config.exists():
            run((program("nginx"), "-c", config, "-s", "stop"))


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Callable[[str], Subject]]:
    made: list[Subject] = []

    def of(name: str) -> Subject:
        made.append(Subject(name, tmp_path))
        return made[-1]

    yield of
    for one in made:
        one.end()


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_it_is_checked_and_tuned_by_its_study_alone(subject: Callable[[str], Subject], name: str) -> None:
    one = subject(name)
    shown = one.ascar("space", one.study)
    checked = one.ascar("check", one.study)
    assert checked["problems"] == []
    assert len(checked["parameters"]) == len(shown["parameters"])
    assert all(parameter["commands"] for parameter in checked["parameters"])
    assert one.leftovers() == []
    tuned = one.ascar("tune", one.study)
    assert tuned["counts"].get("failed", 0) == 0
    assert one.leftovers() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVICE)
def test_one_that_runs_already_is_tuned_applied_and_restored(
    subject: Callable[[str], Subject], name: str
) -> None:
    one = subject(name)
    one.run_as_service()
    assert one.ascar("check", one.study)["problems"] == []
    until(lambda: one.leftovers() == [], LIMIT_S, "everything is as before: a reload ends by itself")
    tuned = one.ascar("tune", one.study)
    assert tuned["counts"].get("failed", 0) == 0
    until(lambda: one.leftovers() == [], LIMIT_S, "everything is as before: a reload ends by itself")
    parameter, value = {"redis": ("hz", 50), "nginx": ("gzip_comp_level", 3)}[name]
    wanted = {**tuned["default"]["configuration"], parameter: value}
    document = {"schema": "ascar/configuration/1", "configuration": wanted}
    (one.folder / "wanted.json").write_text(json.dumps(document))
    exported = one.ascar("export", name, "--configuration", "wanted.json")
    assert any(str(value) in line for line in exported["lines"]), exported["lines"]
    applied = one.ascar("apply", name, "--configuration", "wanted.json")
    assert [(setting["parameter"], setting["after"]) for setting in applied["settings"]] == [
        (parameter, str(value))
    ]
    assert one.kept() != one.before
    assert one.ascar("restore")["restored"]
    until(lambda: one.leftovers() == [], LIMIT_S, "everything is put back")


def kills(one: Subject, count: int, source: random.Random) -> None:
    """Kill a tuning, its keeper, or both, at random moments; everything is as before each time."""
    for _ in range(count):
        whom = source.choice(("client", "client", "keeper", "both"))
        process = one.start("tune", one.study)
        time.sleep(source.uniform(0.0, 6.0))
        keepers = run(("pgrep", "-P", process.pid, "ascard")).split() if whom != "client" else []
        for pid in keepers:
            os.kill(int(pid), signal.SIGKILL)
        if whom == "keeper" and keepers:
            time.sleep(source.uniform(0.0, 0.5))
        process.kill()
        process.communicate()
        if whom == "client":
            until(lambda: one.leftovers() == [], LIMIT_S, f"as before: {one.leftovers()}")
        else:
            one.ascar("restore")
            until(lambda: one.leftovers() == [], LIMIT_S, f"as before: {one.leftovers()}")


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDS)
def test_killed_at_a_moment_everything_is_as_before(
    subject: Callable[[str], Subject], name: str, seed: int
) -> None:
    one = subject(name)
    one.run_as_service()
    kills(one, 2, random.Random(f"{name} {seed}"))
