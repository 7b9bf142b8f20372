"""A history in a PostgreSQL server, which several machines share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from live_postgresql import LiveServer, live_server
from own_servers import postgresql_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Command = Callable[..., subprocess.Popen[str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    if not postgresql_installed():
        pytest.skip("PostgreSQL is not installed")
    with live_server() as one:
        yield one


@pytest.fixture
def url(server: LiveServer, request: pytest.FixtureRequest) -> str:
    """An empty database of the server."""
    name = request.function.__name__[-40:]
    server.ask(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://postgres:hidden@/{name}?host={server.place}"


@pytest.fixture
def ascar(url: str, tmp_path: Path) -> Iterator[Command]:
    """Starts a command whose history is the database."""
    environment = {**os.environ, "ASCAR_HISTORY": url, "XDG_STATE_HOME": str(tmp_path / "state")}
    with ExitStack() as held:

        def begun(*words: str) -> subprocess.Popen[str]:
            process = held.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "ascar", *words],
                    env=environment,
                    cwd=tmp_path,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            held.callback(process.kill)
            return process

        yield begun


def document(process: subprocess.Popen[str]) -> Any:
    """What a command that succeeds prints by `--json`."""
    out, told = process.communicate(timeout=120)
    assert process.returncode in {0, 3}, told
    return json.loads(out)


def study(folder: Path, name: str) -> str:
    """A study of a formula, in a file."""
    path = folder / f"{name}.toml"
    path.write_text(
        f'[study]\nname = "{name}"\nobjective = "maximize ops_per_s"\nbudget = "6 s"\n'
        '[target]\nkind = "simulated"\nnoise_relative_sd = 0.1\nmetrics = { ops_per_s = "10 + depth" }\n'
        '[space.parameters.depth]\nkind = "integer"\nlow = 1\nhigh = 64\ndefault = 8\ncost = "dyn-app"\n'
    )
    return str(path)


def test_two_that_begin_at_once_in_an_empty_database_are_both_in_it(ascar: Command, tmp_path: Path) -> None:
    both = [ascar("tune", study(tmp_path, name), "--json", "--quiet") for name in ("east", "west")]
    for one in both:
        assert document(one)["schema"] == "ascar/tune/1"
    runs = document(ascar("history", "ls", "--json"))["runs"]
    assert {one["study"] for one in runs} == {"east", "west"}
    numbers = {one["run_id"] for one in runs}
    assert len(numbers) == 2
    assert ascar("history", "check").wait(60) == 0
    document(ascar("history", "export", str(min(numbers)), "--out", "run.json", "--json"))
    assert (tmp_path / "run.json").stat().st_size > 1_000


def test_a_study_that_is_killed_keeps_its_trials(ascar: Command, tmp_path: Path) -> None:
    assert ascar("init", "sqlite", "--out", "lite.toml").wait(60) == 0
    killed = ascar("tune", "lite.toml", "--budget", "10 min", "--quiet")

    def trials() -> int:
        process = ascar("history", "ls", "--json")
        out, _ = process.communicate(timeout=60)
        runs = json.loads(out)["runs"] if process.returncode == 0 else []
        return sum(one["counts"].get("complete", 0) for one in runs)

    until(lambda: trials() > 0)
    killed.send_signal(signal.SIGKILL)
    killed.wait(10)
    kept = trials()
    assert kept > 0
    document(ascar("tune", study(tmp_path, "east"), "--json", "--quiet"))
    assert trials() > kept


def test_a_server_that_is_gone_is_told_in_one_line_without_the_password(
    ascar: Command, server: LiveServer
) -> None:
    server.stop()
    try:
        process = ascar("history", "ls")
        _, told = process.communicate(timeout=60)
    finally:
        server.start()
    assert process.returncode == 1
    assert len(told.strip().splitlines()) == 1
    assert "cannot be" in told
    assert "hidden" not in told
