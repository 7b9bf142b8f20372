"""The documentation as a site: every page, and nothing from another machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build/site/site"
HERE = SITE / __version__
pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


def site(*published: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, ROOT / "scripts/site.py", "--jobs", "6", *published]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the site is served, once it is built beside an older version that is published."""
    older = tmp_path_factory.mktemp("published") / "0.0.9"
    older.mkdir()
    (older / "index.html").write_text("<h1>0.0.9</h1>")
    (older.parent / "versions.json").write_text(
        json.dumps([{"version": name, "title": name, "aliases": []} for name in ("0.0.9", "../etc", "..")])
    )
    done = site(older.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("address")
def test_every_page_of_the_documentation_is_there() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        folder = name.parent if name.name == "README" else name
        assert (HERE / folder / "index.html").is_file(), page
    found = json.loads((HERE / "search.json").read_text())
    assert "write_bytes_per_s" in json.dumps(found)


@pytest.mark.usefixtures("address")
def test_it_has_the_licences_of_its_theme_and_of_the_scripts_in_it() -> None:
    told = (HERE / "THIRD-PARTY-LICENSES.txt").read_text()
    listed = (HERE / "assets/javascripts/LICENSE").read_text().strip()
    assert listed in told
    texts = {
        "Apache-2.0": "Version 2.0, January 2004",
        "MIT": "copyright notice and this permission notice",
        "W3C": "W3C SOFTWARE AND DOCUMENT NOTICE AND LICENSE",
    }
    for licence in re.findall(r"^License: (.+)$", listed, re.MULTILINE):
        assert texts[licence] in told
    for whose in ("Zensical and contributors", "Lucide Icons and Contributors"):
        assert whose in told


def test_a_page_opens_and_is_searched_without_another_machine(address: str, browser: Browser) -> None:
    asked: list[str] = []
    window = browser.new_context()
    try:
        page = window.new_page()
        page.on("request", lambda request: asked.append(request.url))
        mistakes: list[str] = []
        page.on("pageerror", lambda error: mistakes.append(str(error)))
        page.goto(f"{address}/{__version__}/howto/install/")
        page.wait_for_load_state("networkidle")
        assert page.locator("h1").first.inner_text().startswith("Install")
        page.keyboard.press("/")
        page.keyboard.type("  group commit", delay=50)
        page.get_by_text("Tune MariaDB").first.wait_for()
        page.goto(f"{address}/{__version__}/reference/commands/")
        page.wait_for_load_state("networkidle")
    finally:
        window.close()
    assert not mistakes
    others = [url for url in asked if not url.startswith((address, "data:", "blob:"))]
    assert not others


def test_the_versions_of_a_published_site_can_be_chosen(address: str, browser: Browser) -> None:
    window = browser.new_context()
    try:
        page = window.new_page()
        page.goto(address)
        page.wait_for_url(f"{address}/{__version__}/")
        page.locator(".md-version").hover()
        page.get_by_role("link", name="0.0.9", exact=True).click()
        page.wait_for_url(f"{address}/0.0.9/**")
        assert page.locator("h1").inner_text() == "0.0.9"
    finally:
        window.close()
    assert {one["version"] for one in json.loads((SITE / "versions.json").read_text())} == {
        __version__,
        "0.0.9",
    }


@pytest.mark.usefixtures("address")
def test_what_commands_print_is_of_the_build() -> None:
    page = (SITE.parent / "docs/tutorials/measure.md").read_text()
    assert "verdict          reached" in page
    written = (ROOT / "docs/tutorials/measure.md").read_text()
    assert page.count("0.95 confidence") == written.count("0.95 confidence")
    assert page != written, "the times of two runs are never the same"


def test_a_folder_that_is_no_site_is_refused_by_name(tmp_path: Path) -> None:
    refused = site(tmp_path)
    assert refused.returncode == 2
    assert f"{tmp_path}: must be a published site" in refused.stderr
