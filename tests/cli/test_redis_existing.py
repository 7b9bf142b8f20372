"""A study of a Redis server that people use, by the commands: confirmed, checked, tuned, killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from live_redis import LiveRedis, live_redis, redis_installed
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TEXT = """
[study]
name = "cache"
objective = "maximize throughput_ops_per_s"
budget = "60 s"
[target]
kind = "redis"
server = "existing"
host = "SOCKET"
[space]
tuned = ["hz", "hash_max_listpack_entries", "activerehashing"]
[measurement]
load_min = "1 s"
load_max = "2 s"
reading = "0.5 s"
[stop]
trials = 4
[verify]
runs_min = 2
runs_max = 2
[[guard.floor]]
metric = "throughput_ops_per_s"
minimum = 1
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveRedis]:
    if not redis_installed():
        pytest.skip("Redis is not installed")
    with live_redis() as started:
        yield started


@pytest.fixture
def study(server: LiveRedis, tmp_path: Path) -> Path:
    path = tmp_path / "cache.toml"
    path.write_text(TEXT.replace("SOCKET", str(server.socket)))
    return path


def test_what_init_writes_for_a_session_is_a_server_that_people_use(ascar: Callable[..., Any]) -> None:
    study = tomllib.loads(ascar("init", "redis", "--online", "--out", "-").out)
    assert study["target"]["server"] == "existing"
    assert "workload" not in study


def test_it_is_confirmed_by_the_name_that_ascar_prints(
    ascar: Callable[..., Any], server: LiveRedis, study: Path
) -> None:
    refused = ascar("tune", study)
    assert refused.status == 2
    assert f"--allow-live {server.name}" in refused.error
    wrong = ascar("tune", study, "--allow-live", "127.0.0.1:6379")
    assert wrong.status == 2
    assert f"the server of this study is {server.name}" in wrong.error


def test_check_prints_commands_and_rights_before_anything_is_confirmed(
    ascar: Callable[..., Any], server: LiveRedis, study: Path
) -> None:
    told = ascar("check", study, "--json")
    assert told.status == 1
    assert server.name in told.document["problems"][0]
    statements, rights = told.document["statements"], told.document["rights"]
    assert "CONFIG SET hash-max-listpack-entries ..." in statements
    assert "CONFIG GET *" in statements
    assert not any("REWRITE" in one for one in statements)
    assert rights[0].startswith("ACL SETUSER default +ping +info ")
    assert "+config|set" in rights[0]
    assert server.get("hz") == "20"


@pytest.mark.slow
def test_check_and_tune_leave_the_server_and_its_file_as_they_were(
    ascar: Callable[..., Any], server: LiveRedis, study: Path
) -> None:
    told, file = server.ask("CONFIG", "GET", "*"), server.conf.read_bytes()
    with server.clients():
        checked = ascar("check", study, "--allow-live", server.name, "--json")
        assert checked.status == 0, checked.document["problems"]
        assert {one["parameter"] for one in checked.document["parameters"]} >= {"hz", "activerehashing"}
        assert server.ask("CONFIG", "GET", "*") == told
        tuned = ascar("tune", study, "--allow-live", server.name, "--json")
        assert tuned.status in {0, 3}, tuned.err
        assert tuned.document["counts"]["complete"] >= 2
    assert server.ask("CONFIG", "GET", "*") == told
    assert server.conf.read_bytes() == file
    assert ascar("export", "cache", "--as", "config-set").status == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_or_killed_the_settings_are_what_they_were(
    server: LiveRedis, study: Path, how: signal.Signals, seed: int
) -> None:
    told, file = server.ask("CONFIG", "GET", "*"), server.conf.read_bytes()
    words = ["tune", str(study), "--allow-live", server.name, "--json", "--budget", "5 min"]
    with (
        server.clients(),
        subprocess.Popen(
            [sys.executable, "-m", "ascar", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process,
    ):
        until(lambda: server.ask("CONFIG", "GET", "*") != told, 120)
        time.sleep((seed % 10) / 10)
        process.send_signal(how)
        process.wait(60)
        until(lambda: server.ask("CONFIG", "GET", "*") == told, 60)
    assert server.conf.read_bytes() == file
