"""A session of the online loop on a server that people use: settings change and come back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ascar.starter.online import online_study_text
from ceph_stand_in import FSID, CephStandIn
from live_mariadb import live_mariadb
from live_postgresql import PACED, live_server
from live_redis import live_redis, redis_installed
from own_servers import mariadb_installed, postgresql_installed
from studies import TURNS_SOON

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

LIMIT_S = 200.0


@dataclass(frozen=True)
class Live:
    """A server that people use.

    Attributes:
        name: by which it is confirmed.
        keys: of `[target]`.
        tuned: the settings of the study; `value` tells the first one, or all.
        told: everything that a session must leave as it was.
    """

    name: str
    keys: str
    tuned: tuple[str, ...]
    value: Callable[[], str]
    told: Callable[[], Any]


@contextmanager
def redis(_: Path) -> Generator[Live]:
    with live_redis() as server, server.clients():
        yield Live(
            server.name,
            f'host = "{server.socket}"',
            ("hz", "activerehashing"),
            lambda: server.get("hz"),
            lambda: (server.ask("CONFIG", "GET", "*"), server.conf.read_bytes()),
        )


@contextmanager
def mariadb(_: Path) -> Generator[Live]:
    with live_mariadb() as server, server.clients():
        yield Live(
            server.name,
            f'host = "{server.socket}"\nuser = "root"',
            ("innodb_io_capacity", "innodb_lru_scan_depth"),
            lambda: server.get("innodb_io_capacity"),
            lambda: (server.settings(), server.conf.read_bytes()),
        )


@contextmanager
def postgresql(_: Path) -> Generator[Live]:
    with live_server(cluster="online") as server, server.clients(2, *PACED):
        yield Live(
            server.name,
            f'host = "{server.place}"\nuser = "postgres"\ndatabase = "postgres"',
            ("work_mem", "random_page_cost", "jit"),
            server.auto.read_text,
            lambda: (server.auto.read_text(), server.ask("SHOW work_mem")),
        )


@contextmanager
def ceph(place: Path) -> Generator[Live]:
    cluster = CephStandIn(place)
    os.environ["PATH"] = f"{cluster.folder}:{os.environ['PATH']}"
    yield Live(
        FSID,
        f'conf = "{cluster.options["conf"]}"',
        ("osd_client_message_cap", "bluestore_throttle_bytes"),
        lambda: str(sorted(one["value"] for one in cluster.held if one["name"] == "osd_client_message_cap")),
        lambda: cluster.held,
    )


INSTALLED = {
    redis: redis_installed,
    mariadb: mariadb_installed,
    postgresql: postgresql_installed,
    ceph: lambda: True,
}


def test_what_init_writes_tunes_a_server_that_people_use() -> None:
    study = tomllib.loads(online_study_text("postgresql"))
    assert study["target"]["server"] == "existing"
    assert study["study"]["objective"] == "maximize throughput_ops_per_s"
    assert "workload" not in study


@pytest.mark.slow
@pytest.mark.parametrize("kind", INSTALLED, ids=lambda kind: kind.__name__)
def test_a_session_changes_settings_under_load_and_puts_them_back(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ascard = Path(sys.executable).parent / "ascard"
    if subprocess.run([ascard, "interface", "--help"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ascard was built without agent and interface: run `make online`")
    if not INSTALLED[kind]():
        pytest.skip(f"{kind.__name__} is not installed")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    study, place, log = tmp_path / "study.toml", tmp_path / "session", tmp_path / "up.log"
    with kind(tmp_path) as server, log.open("wb") as out:
        text = online_study_text(kind.__name__).replace(
            'server = "existing"', f'server = "existing"\n{server.keys}'
        )
        text = text.replace('mode = "observe"', 'mode = "automatic"\ninterval_s = 0.5')
        text = text.replace("[space]\n", f"[space]\ntuned = {json.dumps(server.tuned)}\n", 1)
        study.write_text(f"{text}{TURNS_SOON}")
        up = [sys.executable, "-P", "-m", "ascar", "capes", "up"]
        words = [*up, str(study), "--folder", str(place), "--json"]
        before = server.told()
        refused = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        assert refused.returncode == 2
        assert f"--allow-live {server.name}" in refused.stderr
        session = subprocess.Popen([*words, "--allow-live", server.name], stdout=subprocess.PIPE, stderr=out)
        try:
            end_s = time.monotonic() + LIMIT_S
            seen = {server.value()}
            while len(seen) < 3:
                seen.add(server.value())
                assert session.poll() is None, log.read_text()
                assert time.monotonic() < end_s, log.read_text()
                time.sleep(0.05)
        finally:
            session.terminate()
            said, _ = session.communicate(timeout=LIMIT_S)
        ended = json.loads(said)
        assert (session.returncode, ended["problem"], ended["left_changed"]) == (0, None, {}), log.read_text()
        assert ended["verdicts"]["applied"] >= 1
        assert server.told() == before
