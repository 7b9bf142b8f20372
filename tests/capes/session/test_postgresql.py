"""A session of the online loop on a PostgreSQL server that people use: settings change and come back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.errors import EnvironmentLacks
from ascar.program.account import Account
from ascar.program.postgresql import Programs
from ascar.starter.online import online_study_text
from live_postgresql import AUTO, PACED, LiveServer, live_server

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 200.0


@pytest.fixture
def server() -> Iterator[LiveServer]:
    ascard = Path(sys.executable).parent / "ascard"
    if subprocess.run([ascard, "interface", "--help"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    try:
        Programs.find()
        Account.of(None, "PostgreSQL", "postgres")
    except EnvironmentLacks as lack:
        pytest.skip(str(lack))
    with live_server(cluster="online") as started:
        yield started


def test_what_init_writes_tunes_a_server_that_people_use() -> None:
    study = tomllib.loads(online_study_text("postgresql"))
    assert study["target"]["server"] == "existing"
    assert study["study"]["objective"] == "maximize throughput_ops_per_s"
    assert "workload" not in study


@pytest.mark.slow
def test_a_session_changes_settings_under_load_and_puts_them_back(
    server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    study, place, log = tmp_path / "study.toml", tmp_path / "session", tmp_path / "up.log"
    reached = f'server = "existing"\nhost = "{server.place}"\nuser = "postgres"\ndatabase = "postgres"'
    text = online_study_text("postgresql").replace('server = "existing"', reached)
    text = text.replace('mode = "observe"', 'mode = "automatic"')
    study.write_text(
        text.replace("[space]\n", '[space]\ntuned = ["work_mem", "random_page_cost", "jit"]\n', 1)
    )
    up = [sys.executable, "-P", "-m", "ascar", "capes"]
    words = [*up, "up", str(study), "--folder", str(place), "--json"]
    refused = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert refused.returncode == 2
    assert f"--allow-live {server.name}" in refused.stderr
    with server.clients(2, *PACED), log.open("wb") as out:
        session = subprocess.Popen([*words, "--allow-live", server.name], stdout=subprocess.PIPE, stderr=out)
        try:
            end_s = time.monotonic() + LIMIT_S
            seen = {AUTO}
            while len(seen) < 4:
                seen.add(server.auto.read_text())
                assert session.poll() is None, log.read_text()
                assert time.monotonic() < end_s, log.read_text()
                time.sleep(0.05)
        finally:
            session.terminate()
            said, _ = session.communicate(timeout=LIMIT_S)
    ended = json.loads(said)
    assert (session.returncode, ended["problem"], ended["left_changed"]) == (0, None, {}), log.read_text()
    assert ended["verdicts"]["applied"] >= 1
    assert server.auto.read_text() == AUTO
    assert server.ask("SHOW work_mem") == "8MB"
