"""What `ascard proxy` leaves of HTTP: wrk through it, through nginx as a plain reverse proxy, and directly.

    python -m benchmarks.proxy_http --budget 10min

nginx serves a small file and one of 64 KiB; wrk asks for one of them again and again, over connections that
stay open, for a while by each way in turn, so that what drifts takes all of them along. The proxy holds its
stream to a window above the number of connections: every request is counted, none waits. nginx in between is
that of the distribution with what its documentation wants of a proxy: HTTP/1.1 and connections that are kept.
Requests a second, and the time below which 99 of 100 requests are answered.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import (
    Benchmark,
    Estimate,
    Piece,
    batches,
    build,
    called,
    crate_sources,
    free_port,
    mean,
    number,
    ratio,
    table,
)
from benchmarks.proxy_overhead import proxy, running

if TYPE_CHECKING:
    from collections.abc import Iterator

BODIES = {"small": 100, "64 KiB": 64 << 10}
CONNECTIONS = (1, 16, 64)
TURNS = 8
SECONDS = 3
WAYS = ("direct", "nginx", "ascard proxy")
# What nginx does where it is not told otherwise ends a connection after 1,000 requests.
SETTINGS = """\
daemon off;
user root;  # ignored unless root starts it
worker_processes auto;
pid {folder}/{name}.pid;
error_log stderr crit;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/{name}-body;
    proxy_temp_path {folder}/{name}-proxy;
    fastcgi_temp_path {folder}/{name}-fastcgi;
    uwsgi_temp_path {folder}/{name}-uwsgi;
    scgi_temp_path {folder}/{name}-scgi;
    keepalive_requests 1000000000;
    {serves}
}}
"""
ORIGIN = """\
sendfile on;
    open_file_cache max=8;
    server {{ listen 127.0.0.1:{port}; root {folder}/served; }}
"""
BETWEEN = """\
upstream origin {{ server 127.0.0.1:{origin}; keepalive 64; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
"""
TELL = """\
done = function(summary, latency, requests)
    local failed = 0
    for _, count in pairs(summary.errors) do failed = failed + count end
    io.write(string.format('{"per_s": %f, "p99_us": %f, "failed": %d}\\n',
        summary.requests * 1e6 / summary.duration, latency:percentile(99), failed))
end
"""


def nginx(folder: Path, name: str, serves: str) -> tuple[list[Any], Path]:
    """The command of an nginx that serves so, and the file that is there once it does."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise RuntimeError("nginx is missing: apt-get install nginx-light")
    config = folder / f"{name}.conf"
    config.write_text(SETTINGS.format(folder=folder, name=name, serves=serves))
    return [program, "-e", "stderr", "-c", config], folder / f"{name}.pid"


@contextlib.contextmanager
def between(way: str, folder: Path, origin: int) -> Iterator[int]:
    """What stands before the origin: the port that clients connect to."""
    if way == "direct":
        yield origin
        return
    port = free_port()
    if way == "nginx":
        command, there = nginx(folder, "between", BETWEEN.format(port=port, origin=origin))
    else:
        address = "tcp:127.0.0.1"
        route = f'protocol = "http"\nlisten = "{address}:{port}"\nserver = "{address}:{origin}"\n'
        command, there = proxy(folder, route), folder / "control.sock"
    with running(command, there):
        yield port
    there.unlink(missing_ok=True)


def load(port: int, body: str, connections: int, folder: Path) -> dict[str, float]:
    """Requests a second and the 99th percentile of their times."""
    if shutil.which("wrk") is None:
        raise RuntimeError("wrk is missing: apt-get install wrk")
    script = folder / "tell.lua"
    script.write_text(TELL)
    words = ("-t", "1", "-c", str(connections), "-d", f"{SECONDS}s", "-s", script)
    told = json.loads(called("wrk", *words, f"http://127.0.0.1:{port}/{body}").splitlines()[-1])
    if told.pop("failed"):
        raise RuntimeError("wrk: requests have failed")
    return told


def turn(body: str, connections: int, at: int) -> dict[str, Any]:
    """What clients get by each way."""
    found: dict[str, Any] = {}
    first = at % len(WAYS)
    with tempfile.TemporaryDirectory(prefix="ascar-") as name:
        folder = Path(name)
        (folder / "served").mkdir()
        file = body.replace(" ", "")
        (folder / "served" / file).write_bytes(bytes(BODIES[body]))
        origin = free_port()
        with running(*nginx(folder, "origin", ORIGIN.format(port=origin, folder=folder))):
            for way in WAYS[first:] + WAYS[:first]:
                with between(way, folder, origin) as port:
                    found[way] = load(port, file, connections, folder)
    return found


def pieces() -> list[Piece]:
    """Everything that is measured."""
    return [
        Piece(f"{body}, {count} connections, {at}", partial(turn, body, count, at))
        for at in range(TURNS)
        for body in BODIES
        for count in CONNECTIONS
    ]


def main() -> None:
    """Measure and print a table."""
    given = Benchmark.parser(__doc__ or "", "10min").parse_args()
    found = Benchmark.of(given, build(*crate_sources("proxy"), Path(__file__))).run(pieces())
    rows: list[list[str]] = []
    for body in BODIES:
        for count in CONNECTIONS:
            turns = batches(found, f"{body}, {count} connections")
            rows += [[body, str(count), *_row(way, turns)] for way in WAYS if turns]
    heads = ("body", "connections", "way", "requests a second", "p99, us")
    table((*heads, "nginx's rate over it", "p99 over nginx's"), rows)


def _row(way: str, turns: list[dict[str, Any]]) -> list[str]:
    """A way's cells."""

    def values(way: str, name: str) -> list[float]:
        return [one[way][name] for one in turns]

    def over(above: str, below: str, name: str) -> Estimate:
        return ratio(values(above, name), values(below, name))

    cells = [way, number(mean(values(way, "per_s"))), number(mean(values(way, "p99_us")))]
    if way == "nginx":
        return [*cells, "1", "1"]
    return [*cells, number(over("nginx", way, "per_s")), number(over(way, "nginx", "p99_us"))]


if __name__ == "__main__":
    main()
