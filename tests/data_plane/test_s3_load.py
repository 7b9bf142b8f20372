"""A load on a real S3 server, with and without the proxy: no request fails, and each object comes whole.

The client is wrk, with requests that boto3 has signed before. Without wrk, or the server and boto3, which
`make s3` installs, this is skipped.
"""

from __future__ import annotations

import json
import random
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest
from benchmarks.harness import free_port

from data_plane_peers import Proxy, needed
from http_peers import HTTP
from s3_site import s3_client
from waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from data_plane_peers import Starter

pytestmark = pytest.mark.slow

CONNECTIONS, WINDOW, SECONDS = 16, 4, 4
OBJECTS, OBJECT_BYTES = 8, 100_000
LOADS = {"get": ("GET",), "put": ("PUT",), "mixed": ("GET", "GET", "GET", "PUT", "PUT")}
SCRIPT = """\
local body = io.open("%(body)s", "rb"):read("*a")
local asks = {%(asks)s}
local at = 0
wrong, right = 0, 0
request = function()
    at = at %% #asks + 1
    local method, target = asks[at][1], asks[at][2]
    return wrk.format(method, target, nil, method == "PUT" and body or nil)
end
response = function(status, headers, said)
    if status == 200 and (said == "" or said == body) then right = right + 1 else wrong = wrong + 1 end
end
local threads = {}
setup = function(thread) table.insert(threads, thread) end
done = function(summary, latency, requests)
    local total, failed = 0, 0
    for _, thread in ipairs(threads) do
        failed, total = failed + thread:get("wrong"), total + thread:get("right")
    end
    for _, count in pairs(summary.errors) do failed = failed + count end
    io.write(string.format('{"right": %%d, "wrong": %%d}\\n', total, failed))
end
"""


def load(folder: Path, port: int, methods: tuple[str, ...], body: Path) -> dict[str, int]:
    """How many requests were answered as they should be, and how many were not."""
    client = s3_client(port)
    asks: list[str] = []
    for at in range(OBJECTS * len(methods)):
        method = methods[at % len(methods)]
        key = f"{method.lower()}-{at // len(methods)}"
        url = client.generate_presigned_url(f"{method.lower()}_object", {"Bucket": "load", "Key": key})
        asks.append('{"%s", "%s"}' % (method, url.partition(f":{port}")[2]))  # noqa: UP031
    client.close()
    script = folder / "load.lua"
    script.write_text(SCRIPT % {"body": body, "asks": ", ".join(asks)})
    words = ["-t", "1", "-c", str(CONNECTIONS), "-d", f"{SECONDS}s", "--timeout", "60s", "-s", script]
    command = [needed("wrk", "wrk"), *words, f"http://127.0.0.1:{port}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


class Watched:
    """What a proxy's streams show while something works."""

    def __init__(self, proxy: Proxy) -> None:
        self.seen: list[dict[str, Any]] = []
        self._proxy, self._ended = proxy, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.05):
            self.seen += self._proxy.streams()


@pytest.mark.parametrize("name", LOADS)
def test_no_request_of_a_load_fails(start: Starter, gateway: int, tmp_path: Path, name: str):
    body = tmp_path / "body"
    body.write_bytes(random.Random(4).randbytes(OBJECT_BYTES))
    client = s3_client(gateway)
    client.create_bucket(Bucket="load")
    for at in range(OBJECTS):
        client.put_object(Bucket="load", Key=f"get-{at}", Body=body.read_bytes())
    port = free_port()
    keys = f"window = {WINDOW}\n"
    proxy = start.proxy(f"tcp:127.0.0.1:{gateway}", keys, terms=HTTP, listen=f"tcp:127.0.0.1:{port}")
    direct = load(tmp_path, gateway, LOADS[name], body)
    with Watched(proxy) as watched:
        proxied = load(tmp_path, port, LOADS[name], body)
    assert direct["right"] > 100 and proxied["right"] > 100, (direct, proxied)
    assert (direct["wrong"], proxied["wrong"]) == (0, 0)
    assert max(one["in_flight"] for one in watched.seen) == WINDOW
    # More where wrk connects anew and the connection before is not gone yet.
    assert max(one["connections"] for one in watched.seen) >= CONNECTIONS
    assert watched.seen[-1]["overloads"] == 0
    until(lambda: not proxy.streams())
    assert proxy.log() == ""
    for at in range(OBJECTS if "PUT" in LOADS[name] else 0):
        assert client.get_object(Bucket="load", Key=f"put-{at}")["Body"].read() == body.read_bytes()
    client.close()
