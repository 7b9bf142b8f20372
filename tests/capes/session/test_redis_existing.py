"""A session of the online loop on a Redis server that people use: settings change and come back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.starter.online import online_study_text
from live_redis import LiveRedis, live_redis, redis_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_S = 200.0


@pytest.fixture
def server() -> Iterator[LiveRedis]:
    ascard = Path(sys.executable).parent / "ascard"
    if subprocess.run([ascard, "interface", "--help"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    if not redis_installed():
        pytest.skip("Redis is not installed")
    with live_redis() as started:
        yield started


@pytest.mark.slow
def test_a_session_changes_settings_under_load_and_puts_them_back(
    server: LiveRedis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    study, place, log = tmp_path / "study.toml", tmp_path / "session", tmp_path / "up.log"
    reached = f'server = "existing"\nhost = "{server.socket}"'
    text = online_study_text("redis").replace('server = "existing"', reached)
    text = text.replace('mode = "observe"', 'mode = "automatic"')
    study.write_text(text.replace("[space]\n", '[space]\ntuned = ["hz", "activerehashing"]\n', 1))
    words = [sys.executable, "-P", "-m", "ascar", "capes", "up", str(study), "--folder", str(place), "--json"]
    told, file = server.ask("CONFIG", "GET", "*"), server.conf.read_bytes()
    with server.clients(), log.open("wb") as out:
        session = subprocess.Popen([*words, "--allow-live", server.name], stdout=subprocess.PIPE, stderr=out)
        try:
            end_s = time.monotonic() + LIMIT_S
            seen = {server.get("hz")}
            while len(seen) < 3:
                seen.add(server.get("hz"))
                assert session.poll() is None, log.read_text()
                assert time.monotonic() < end_s, log.read_text()
                time.sleep(0.05)
        finally:
            session.terminate()
            said, _ = session.communicate(timeout=LIMIT_S)
    ended = json.loads(said)
    assert (session.returncode, ended["problem"], ended["left_changed"]) == (0, None, {}), log.read_text()
    assert ended["verdicts"]["applied"] >= 1
    assert server.ask("CONFIG", "GET", "*") == told
    assert server.conf.read_bytes() == file
