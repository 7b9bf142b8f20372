from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from explorer_page import Explorer, explored, serving

from ascar.web import Fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from ascar.web import Subject


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """Serve a frame or a subject until the test ends; gives the address."""
    running: list[Any] = []

    def serve(what: pl.DataFrame | Subject, **roles: Any) -> str:
        subject = Fixed(explored(what, **roles)) if isinstance(what, pl.DataFrame) else what
        running.append(serving(subject))
        return running[-1].__enter__()

    yield serve
    for one in reversed(running):
        one.__exit__(None, None, None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium (Debian package chromium)")
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def explorer(browser: Browser) -> Iterator[Explorer]:
    """A page of its own; nothing in its console may be an error."""
    context = browser.new_context(viewport={"width": 1500, "height": 1000}, accept_downloads=True)
    context.set_default_timeout(100_000)
    made = Explorer(context.new_page())
    yield made
    context.close()
    assert made.problems == []
