"""A study of a server that people use, by the commands: confirmed, checked, tuned, guarded, interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from ascar.errors import EnvironmentLacks
from ascar.history import History
from ascar.program.account import Account
from ascar.program.postgresql import Programs
from ascar.results.trial import TrialState
from live_postgresql import AUTO, PACED, LiveServer, live_server
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TEXT = """
[study]
name = "live"
objective = "maximize throughput_ops_per_s"
budget = "60 s"
[target]
kind = "postgresql"
server = "existing"
host = "PLACE"
user = "postgres"
database = "postgres"
memory = "8 GiB"
parameters = "wide"
[space]
tuned = ["work_mem", "random_page_cost", "jit"]
[measurement]
load_min = "2 s"
load_max = "3 s"
reading = "1 s"
[stop]
trials = 4
[verify]
runs_min = 2
runs_max = 2
"""


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    try:
        Programs.find()
        Account.of(None, "PostgreSQL", "postgres")
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with live_server() as started:
        yield started


@pytest.fixture
def study(server: LiveServer, tmp_path: Path) -> Path:
    path = tmp_path / "live.toml"
    path.write_text(TEXT.replace("PLACE", str(server.place)))
    return path


def test_it_is_confirmed_by_the_name_that_ascar_prints(
    ascar: Callable[..., Any], server: LiveServer, study: Path
) -> None:
    refused = ascar("tune", study)
    assert refused.status == 2
    assert f"--allow-live {server.name}" in refused.error
    wrong = ascar("tune", study, "--allow-live", "localhost:5432/main")
    assert wrong.status == 2
    assert f"the server of this study is {server.name}" in wrong.error
    own = study.with_name("own.toml")
    own.write_text(study.read_text().replace('server = "existing"', "").partition("host =")[0])
    needless = ascar("tune", own, "--allow-live", server.name)
    assert needless.status == 2
    assert "tunes no server that people use" in needless.error
    assert server.auto.read_text() == AUTO


def test_check_prints_statements_and_rights_before_anything_is_confirmed(
    ascar: Callable[..., Any], server: LiveServer, study: Path
) -> None:
    told = ascar("check", study, "--json")
    assert told.status == 1
    assert server.name in told.document["problems"][0]
    statements, rights = told.document["statements"], told.document["rights"]
    for name in ("work_mem", "random_page_cost", "jit"):
        assert f"ALTER SYSTEM SET {name} = ...; ALTER SYSTEM RESET {name};" in statements
    assert "SELECT pg_reload_conf();" in statements
    assert any(
        one.startswith("GRANT ALTER SYSTEM ON PARAMETER ") and "random_page_cost" in one for one in rights
    )
    for one in rights:
        if one.startswith("GRANT "):  # of settings that a newer version has, the server would refuse it
            server.ask(one)
    people = ascar("check", study)
    assert "ALTER SYSTEM SET work_mem" in people.out
    assert server.auto.read_text() == AUTO


@pytest.mark.slow
def test_check_and_tune_leave_the_file_as_it_was(
    ascar: Callable[..., Any], server: LiveServer, study: Path
) -> None:
    with server.clients(2, *PACED):
        checked = ascar("check", study, "--allow-live", server.name, "--json")
        assert checked.status == 0, checked.document["problems"]
        assert {one["parameter"] for one in checked.document["parameters"]} >= {"work_mem", "jit"}
        assert server.auto.read_text() == AUTO
        tuned = ascar("tune", study, "--allow-live", server.name, "--json")
        assert tuned.status in {0, 3}, tuned.err
        assert tuned.document["counts"]["complete"] >= 2
        assert set(tuned.document["best"]["configuration"]) >= {"work_mem", "random_page_cost", "jit"}
    assert server.auto.read_text() == AUTO
    assert server.ask("SHOW work_mem") == "8MB"
    assert ascar("export", "live", "--as", "alter-system").status == 0


@pytest.mark.slow
def test_a_trial_that_the_guard_ended_is_recorded_as_such(
    ascar: Callable[..., Any], server: LiveServer, study: Path
) -> None:
    # The first lookup by a scan of the whole table is far below the floor.
    text = study.read_text().replace(
        'tuned = ["work_mem", "random_page_cost", "jit"]', 'tuned = ["enable_indexscan"]'
    )
    text = text.replace('load_max = "3 s"', 'load_max = "8 s"').replace(
        'load_min = "2 s"', 'load_min = "7 s"'
    )
    server.ask("ALTER SYSTEM SET enable_bitmapscan = off")
    server.ask("SELECT pg_reload_conf()")
    before = server.auto.read_text()
    try:
        with server.clients(2):
            least = server.transactions() / 4
            floor = "[[guard.floor]]\nmetric = 'throughput_ops_per_s'\n"
            study.write_text(f"{text}{floor}minimum = {least}\nhold_ticks = 10\n")
            tuned = ascar("tune", study, "--allow-live", server.name, "--json")
        assert tuned.status in {0, 3}, tuned.err
        with History.existing() as history:
            trials = history.run("live").trials()
        ended = [one for one in trials if one.state is TrialState.FAILED]
        assert ended
        assert all(one.failure is not None and one.failure.stage == "guard" for one in ended)
        assert "the old values were put back in" in str(ended[0].failure)
        assert ended[0].configuration["enable_indexscan"] is False
        assert server.auto.read_text() == before
    finally:
        server.auto.write_text(AUTO)
        server.ask("SELECT pg_reload_conf()")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_or_killed_the_file_is_what_it_was(
    server: LiveServer, study: Path, how: signal.Signals, seed: int
) -> None:
    with server.clients(2, *PACED):
        for turn in range(2):
            words = ["tune", str(study), "--allow-live", server.name, "--json", "--budget", "5 min"]
            with subprocess.Popen(
                [sys.executable, "-m", "ascar", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as process:
                until(lambda: server.auto.read_text() != AUTO, 120)
                time.sleep(0.5 * turn + (seed % 10) / 10)
                process.send_signal(how)
                process.wait(60)
            until(lambda: server.auto.read_text() == AUTO, 60)
            until(lambda: server.ask("SHOW work_mem") == "8MB", 30)
