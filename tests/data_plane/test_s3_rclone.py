"""rclone through the proxy and without it: the same results, requests and responses, header by header.

Without rclone, or the server, which `make s3` builds, this is skipped.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from benchmarks.harness import free_port

from data_plane_peers import needed
from http_peers import HTTP
from s3_site import KEY_ID, SECRET, Exchange, Recorder
from waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from data_plane_peers import Starter

pytestmark = pytest.mark.slow

MADE_S = 1_700_000_000
SIZES = {
    "empty": 0,
    "one": 1,
    "a/text.txt": 1000,
    "a/b/d e+f": 70_000,
    "\u00fc/%2F;=&": 4096,
    "large": 3 << 20,
    "a/parts": (11 << 20) + 7,
}
"""Files by their names; what is larger than 5 MiB is sent and fetched in parts."""
REMOTE = f"""\
[store]
type = s3
provider = Other
access_key_id = {KEY_ID}
secret_access_key = {SECRET}
region = us-east-1
upload_cutoff = 5Mi
chunk_size = 5Mi
upload_concurrency = 4
endpoint = http://127.0.0.1:"""


class Rclone:
    """rclone with one server, its commands one after the other, and what came of each.

    Args:
        folder: its own.
        port: of the server.
    """

    def __init__(self, folder: Path, port: int) -> None:
        folder.mkdir()
        self.folder, self.program = folder, needed("rclone", "rclone")
        self._config = folder / "rclone.conf"
        self._config.write_text(f"{REMOTE}{port}\n")
        self.found: list[tuple[tuple[str, ...], int, list[bytes]]] = []

    def do(self, *words: str | Path, given: bytes = b"", fails: bool = False) -> bytes:
        """What a command prints; it tries once."""
        once = ("--config", self._config, "--retries", "1", "--low-level-retries", "1")
        several = ("--transfers", "4", "--checkers", "4", "--multi-thread-cutoff", "5M")
        done = subprocess.run(
            [self.program, *once, *several, "--multi-thread-streams", "4", *words],
            input=given, capture_output=True, check=False, cwd=self.folder, timeout=120,
            env={"HOME": str(self.folder), "PATH": os.defpath},
        )  # fmt: skip
        assert fails or done.returncode == 0, (words, done.stderr.decode())
        named = tuple(re.sub(rf"^{re.escape(str(self.folder))}", "", str(word)) for word in words)
        self.found.append((named, done.returncode, sorted(done.stdout.splitlines())))
        return done.stdout


def tree(folder: Path, sizes: dict[str, int], seed: int) -> Path:
    """A folder with files of these sizes, which depend on the seed alone, their times included."""
    draw = random.Random(seed)
    for name, size in sizes.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(size))
        os.utime(path, (MADE_S + seed, MADE_S + seed))
    return folder


def digests(folder: Path) -> dict[str, str]:
    """The files below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def work(rclone: Rclone, made: Path, changed: Path) -> None:
    """Copy, list, check, synchronise, read ranges, copy there, send what comes by a pipe, fetch, delete."""
    do, piped = rclone.do, random.Random(3).randbytes((10 << 20) + 1)
    large = (made / "large").read_bytes()
    do("mkdir", "store:bucket")
    do("mkdir", "store:bucket")
    do("copy", made, "store:bucket/tree")
    listed = do("lsf", "--recursive", "--files-only", "--format", "psht", "store:bucket/tree").splitlines()
    assert len(listed) == len(SIZES)
    do("check", "--download", made, "store:bucket/tree")
    do("copy", made, "store:bucket/tree")
    do("sync", changed, "store:bucket/tree")
    do("check", changed, "store:bucket/tree")
    do("check", made, "store:bucket/tree", fails=True)
    ranged = do("cat", "--offset", "1000", "--count", "5000", "store:bucket/tree/large")
    assert ranged == large[1000:6000]
    assert do("cat", "--tail", "20", "store:bucket/tree/large") == large[-20:]
    do("copyto", "store:bucket/tree/large", "store:bucket/copied")
    do("moveto", "store:bucket/copied", "store:bucket/moved")
    do("rcat", "store:bucket/piped", given=piped)
    do("rcat", "store:bucket/said", given=b"a few words")
    assert hashlib.sha256(do("cat", "store:bucket/piped")).digest() == hashlib.sha256(piped).digest()
    do("copy", "store:bucket/tree", rclone.folder / "fetched")
    assert digests(rclone.folder / "fetched") == digests(changed)
    do("size", "--json", "store:bucket")
    do("cat", "store:bucket/nothing", fails=True)
    do("lsf", "--s3-secret-access-key", "wrong", "store:bucket", fails=True)
    do("deletefile", "store:bucket/moved")
    do("delete", "--include", "*.txt", "store:bucket")
    do("lsf", "--recursive", "--files-only", "store:bucket")
    do("purge", "store:bucket")
    assert do("lsf", "store:") == b""


def differing(ours: list[Exchange], theirs: list[Exchange]) -> list[object]:
    """What one side has exchanged and the other one has not."""
    one, other = (Counter(exchange.likeness() for exchange in side) for side in (ours, theirs))
    return [*(one - other).elements(), "the other way:", *(other - one).elements()]


def test_rclone_exchanges_through_the_proxy_what_it_exchanges_without_it(
    start: Starter, gateway: int, tmp_path: Path
):
    made = tree(tmp_path / "made", SIZES, 1)
    changed = tmp_path / "changed"
    shutil.copytree(made, changed)
    (changed / "one").unlink()
    tree(changed, {"a/text.txt": 1000, "new": 9}, 2)
    port = free_port()
    with ExitStack() as stack:
        alone, behind = (stack.enter_context(Recorder(gateway)) for _ in range(2))
        terms = {"terms": HTTP, "listen": f"tcp:127.0.0.1:{port}"}
        proxy = start.proxy(f"tcp:127.0.0.1:{behind.port}", "window = 2\n", **terms)
        before = stack.enter_context(Recorder(port))
        direct, proxied = Rclone(tmp_path / "direct", alone.port), Rclone(tmp_path / "proxied", before.port)
        for one in (direct, proxied):
            work(one, made, changed)
        until(lambda: not proxy.streams())
        assert proxy.log() == ""
    assert direct.found == proxied.found
    assert sorted(map(bytes, before.sent)) == sorted(map(bytes, behind.sent)), "requests"
    assert sorted(map(bytes, before.got)) == sorted(map(bytes, behind.got)), "responses"
    ours, theirs = before.exchanges(), alone.exchanges()
    assert differing(ours, theirs) == ["the other way:"]
    assert len(ours) >= 60
    assert {one.method for one in ours} == {"GET", "HEAD", "PUT", "POST", "DELETE"}
    assert {one.status for one in ours} >= {200, 204, 206, 403, 404}
    assert sum("partNumber=" in one.asked.target for one in ours) >= 6
