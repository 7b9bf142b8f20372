"""The example of a third party's system, nginx: one file for both loops, applied, put back after kill -9."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).parents[1] / "examples" / "nginx"
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")
LIMIT_S = 120.0
CONFIG = """\
worker_processes  1;
pid HERE/nginx.pid;
error_log HERE/error.log;
# a comment stays
events {
    worker_connections 64;
}
http {
    access_log off;
    client_body_temp_path HERE/body;
    proxy_temp_path HERE/proxy;
    fastcgi_temp_path HERE/fastcgi;
    uwsgi_temp_path HERE/uwsgi;
    scgi_temp_path HERE/scgi;
    server {
        listen 127.0.0.1:PORT;
        location / { return 200 "hello"; }
        location /status { stub_status; }
    }
}
"""
MODERN = "[online.learner.modern]\nfirst_ticks = 3\nvisit_ticks_min = 1\nvisit_ticks_max = 2\n"
# It changes something at nearly every tick, where the other one may wait for a minute beside a noisy load.
CLASSIC = """\
[online.learner.classic]
preset = "game"
hidden_size = 16
ticks_per_observation = 2
"""
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


class Server:
    """An nginx of the test's own, the study, and ascar with the example's package installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        self.config = folder / "nginx.conf"
        self.config.write_text(CONFIG.replace("HERE", str(folder)).replace("PORT", str(port)))
        self.before = self.config.read_text()
        study = (EXAMPLE / "study.toml").read_text()
        study = study.replace("/etc/nginx/nginx.conf", str(self.config)).replace(
            "127.0.0.1/", f"127.0.0.1:{port}/"
        )
        study = study.replace("127.0.0.1:80", f"127.0.0.1:{port}").replace('"5 min"', '"60 s"')
        shutil.copy(EXAMPLE / "load.py", folder)
        study += (
            '[measurement]\nload_min = "600 ms"\nload_max = "1 s"\nreading = "200 ms"\n[stop]\ntrials = 4\n'
        )
        study += "[verify]\nruns_min = 2\nruns_max = 2\n"
        study += MODERN
        (folder / "study.toml").write_text(study)
        site = folder / "site"
        info = site / "ascar_nginx-0.1.dist-info"
        info.mkdir(parents=True)
        shutil.copy(EXAMPLE / "ascar_nginx.py", site)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ascar-nginx\nVersion: 0.1\n")
        (info / "entry_points.txt").write_text("[ascar.systems]\nnginx = ascar_nginx:Nginx\n")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(site),
            "XDG_STATE_HOME": str(folder / "state"),
            "ASCAR_HISTORY": str(folder / "history.sqlite"),
        }
        assert NGINX is not None
        subprocess.run([NGINX, "-c", self.config], check=True, capture_output=True)

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
        out, err = process.communicate(timeout=3 * LIMIT_S)
        assert process.returncode in (0, 3), err
        return json.loads(out)

    def workers(self) -> int:
        master = (self.folder / "nginx.pid").read_text().strip()
        listed = subprocess.run(["pgrep", "-P", master, "-a"], capture_output=True, text=True, check=False)
        return sum("worker process" in line and "shutting" not in line for line in listed.stdout.splitlines())

    def is_as_before(self) -> bool:
        return self.config.read_text() == self.before and self.workers() == 1

    def until(self, condition: Any, what: str, process: subprocess.Popen[str] | None = None) -> None:
        end_s = time.monotonic() + LIMIT_S
        while not condition():
            if process and process.poll() is not None:
                pytest.fail(f"{what}: {process.args} ended before: {process.communicate()}")
            if time.monotonic() >= end_s:
                if process:
                    process.send_signal(signal.SIGTERM)
                pytest.fail(f"{what}: {process.communicate() if process else self.config.read_text()}")
            time.sleep(0.02)

    def end(self) -> None:
        """End it without its file, which a test may have spoilt."""
        with suppress(FileNotFoundError):
            os.kill(int((self.folder / "nginx.pid").read_text()), signal.SIGTERM)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.end()


def test_it_is_as_short_as_the_page_says() -> None:
    code = (EXAMPLE / "ascar_nginx.py").read_text()
    code = re.sub(r'""".*?"""', "", code, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) < 170


@pytest.mark.slow
def test_it_is_checked_tuned_exported_applied_and_restored(server: Server) -> None:
    checked = server.ascar("check", "study.toml")
    assert checked["problems"] == []
    assert {one["parameter"]: one["problem"] for one in checked["parameters"]} == dict.fromkeys(
        ("worker_processes", "worker_connections", "multi_accept", "accept_mutex")
    )
    server.until(server.is_as_before, "the file and the workers are put back")

    tuned = server.ascar("tune", "study.toml")
    assert tuned["counts"].get("failed", 0) == 0
    server.until(server.is_as_before, "the file and the workers are put back")

    wanted = {"worker_processes": 3, "worker_connections": 256, "multi_accept": True, "accept_mutex": False}
    document = {"schema": "ascar/configuration/1", "configuration": wanted}
    (server.folder / "wanted.json").write_text(json.dumps(document))
    exported = server.ascar("export", "nginx", "--configuration", "wanted.json")
    assert any("worker_processes 3;" in line for line in exported["lines"])
    assert exported["lines"][-1].endswith("-s reload")

    planned = server.ascar("apply", "nginx", "--configuration", "wanted.json", "--dry-run")
    assert {one["parameter"]: one["after"] for one in planned["settings"]} == {
        "worker_processes": "3",
        "worker_connections": "256",
        "multi_accept": "on",
    }
    server.until(server.is_as_before, "the file and the workers are put back")
    server.ascar("apply", "nginx", "--configuration", "wanted.json")
    text = server.config.read_text()
    assert "worker_processes  3;" in text or "worker_processes 3;" in text
    assert "multi_accept on;" in text and "# a comment stays" in text
    server.until(lambda: server.workers() == 3, "three workers")

    restored = server.ascar("restore")
    assert any(str(server.config) in line for line in restored["restored"])
    server.until(server.is_as_before, "the file and the workers are put back")


@pytest.mark.slow
def test_the_same_file_tunes_it_while_it_serves(server: Server) -> None:
    process = server.start("capes", "up", "study.toml", "--budget", "10 min", "--json")
    # Each setting that follows another is proposed after that one was told as applied.
    seen = {server.before}
    server.until(lambda: seen.add(server.config.read_text()) or len(seen) >= 3, "two changes", process)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode in (0, 3), err
    ended = json.loads(out)
    assert ended["problem"] is None
    assert ended["verdicts"].get("applied", 0) >= 1, ended
    assert ended["defaults"]["worker_processes"] == 1
    server.until(server.is_as_before, "the file and the workers are put back")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("tune", "study.toml"), ("capes", "up", "study.toml")])
def test_killed_at_any_moment_it_is_put_back(server: Server, words: tuple[str, ...]) -> None:
    if words[0] == "capes":
        pytest.importorskip("jax")
        study = server.folder / "study.toml"
        text = study.read_text().replace("[online]\n", '[online]\nalgorithm = "classic"\n', 1)
        study.write_text(text.replace(MODERN, CLASSIC))
    for _ in range(3):
        process = server.start(*words)
        server.until(lambda: server.config.read_text() != server.before, "a change", process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        server.until(server.is_as_before, "the file and the workers are put back")


@pytest.mark.slow
def test_a_file_that_nginx_refuses_fails_by_name_and_is_put_back(server: Server) -> None:
    broken = server.before.replace("events {", "events { nonsense on;")
    server.config.write_text(broken)
    process = server.start("tune", "study.toml", "--json")
    out, err = process.communicate(timeout=3 * LIMIT_S)
    assert process.returncode == 1, err
    assert 'unknown directive "nonsense"' in out + err
    assert server.config.read_text() == broken
