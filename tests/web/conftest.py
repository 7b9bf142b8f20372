from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from explorer_page import TOKEN, Explorer, explored, serving

from ascar.web import Fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext

    from ascar.web import Subject


@pytest.fixture(scope="module")
def served() -> Iterator[Callable[..., str]]:
    """Serve a frame or a subject until the module's tests end, each once; gives the address."""
    known: dict[tuple[int, str], tuple[Any, Any, str]] = {}

    def serve(what: pl.DataFrame | Subject, **roles: Any) -> str:
        key = id(what), repr(roles)
        if key not in known:
            subject = Fixed(explored(what, **roles)) if isinstance(what, pl.DataFrame) else what
            server = serving(subject)
            known[key] = what, server, server.__enter__()  # what is held has its identity for itself
        return known[key][2]

    yield serve
    for _, server, _ in reversed(known.values()):
        server.__exit__(None, None, None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    Of a module: its driver keeps an event loop in this thread, in which others then cannot run theirs.
    """
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium (Debian package chromium)")
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """Of all pages; what they show is in their addresses alone."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000}, accept_downloads=True)
    context.set_default_timeout(200_000)
    context.add_cookies([{"name": TOKEN.cookie, "value": TOKEN.text, "domain": "127.0.0.1", "path": "/"}])
    yield context
    context.close()


@pytest.fixture
def explorer(window: BrowserContext) -> Iterator[Explorer]:
    """A page of its own; nothing in its console may be an error."""
    made = Explorer(window.new_page())
    yield made
    made.page.close()
    assert made.problems == []
