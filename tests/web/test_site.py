"""The documentation as a site: every page, and nothing from another machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build/site/site"
pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served, once it is built."""
    built = subprocess.run(
        [sys.executable, ROOT / "scripts/site.py"], capture_output=True, text=True, check=False, timeout=600
    )
    assert built.returncode == 0, built.stdout + built.stderr
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
        assert (SITE / folder / "index.html").is_file(), page
    found = json.loads((SITE / "search.json").read_text())
    assert "write_bytes_per_s" in json.dumps(found)


def test_a_page_opens_and_is_searched_without_another_machine(address: str, browser: Browser) -> None:
    asked: list[str] = []
    window = browser.new_context()
    try:
        page = window.new_page()
        page.on("request", lambda request: asked.append(request.url))
        mistakes: list[str] = []
        page.on("pageerror", lambda error: mistakes.append(str(error)))
        page.goto(f"{address}/howto/install/")
        page.wait_for_load_state("networkidle")
        assert page.locator("h1").first.inner_text().startswith("Install")
        page.keyboard.press("/")
        page.keyboard.type("  group commit", delay=50)
        page.get_by_text("Tune MariaDB").first.wait_for()
        page.goto(f"{address}/reference/commands/")
        page.wait_for_load_state("networkidle")
    finally:
        window.close()
    assert not mistakes
    others = [url for url in asked if not url.startswith((address, "data:", "blob:"))]
    assert not others
