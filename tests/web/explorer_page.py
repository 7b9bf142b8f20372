"""The page in a real browser, in the words of its user, served by the real server in a thread."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ascar.web import AccessToken, Exploration, Roles, application, bound, of_table
from ascar.web.serving import Server
from waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    import polars as pl
    from playwright.sync_api import Page

    from ascar.web import Subject

TOKEN = AccessToken.random()
"""What the servers of these tests ask for; their browser has it."""


@contextmanager
def serving(
    subject: Subject, port: int = 0, poll_s: float = 0.05, token: AccessToken = TOKEN
) -> Generator[str]:
    """Serve on 127.0.0.1; yields the address without the token."""
    listener = bound("127.0.0.1", port)
    server = Server(application(subject, token, poll_s=poll_s))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(100)
        listener.close()


def explored(frame: pl.DataFrame, objective: str = "throughput", **roles: Any) -> Exploration:
    """A table, as the command would explore it."""
    minimize = roles.pop("minimize", None)
    return Exploration.of([of_table(frame, "made-up", Roles(objective, **roles))], objective, minimize)


class Explorer:
    """The page, in the words of its user."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._heard)

    def _heard(self, line: Any) -> None:
        url = line.location.get("url", "")
        if url.endswith("/api/events") and "net::ERR_" in line.text:
            return  # the browser itself says so when a test has stopped the server
        if line.type in ("error", "warning"):
            self.problems.append(f"{line.text} ({url})")

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.settled()

    def settled(self) -> None:
        """Wait until everything was drawn."""
        self.until(
            "document.body.dataset.drawn && document.body.dataset.settled === document.body.dataset.drawn"
        )

    def until(self, condition: str) -> None:
        """Wait for what the page says; its policy allows no evaluation in the page itself."""
        until(lambda: self.page.evaluate(condition), 200.0, condition)

    def act(self, action: Callable[[], object]) -> None:
        """Do something that draws the page anew, and wait for that."""
        before = self.page.evaluate("document.body.dataset.drawn")
        action()
        self.until(f"document.body.dataset.drawn !== {before!r}")
        self.settled()

    def bar(self, dimension: str, value: str) -> Any:
        quoted = [json.dumps(text) for text in (dimension, value)]  # as a selector quotes them, too
        return self.page.locator(f".bar[data-dimension={quoted[0]}][data-value={quoted[1]}]")

    def choose(self, dimension: str, value: str) -> None:
        """Click a value."""
        self.act(lambda: self.bar(dimension, value).click())

    def press(self, name: str) -> None:
        """Click a button."""
        self.act(lambda: self.page.get_by_role("button", name=name, exact=True).click())

    def told(self, dimension: str, value: str) -> dict[str, float]:
        """What a bar says in words."""
        text = self.bar(dimension, value).get_attribute("aria-label") or ""
        if "nothing measured" in text:
            return {"rows": 0.0}
        body = text.removeprefix(f"{value}: ").replace(",", "").replace("\u2212", "-")
        words = body.split()
        at = {word: place for place, word in enumerate(words)}
        last = len(words)
        return {
            "rows": float(words[0]),
            "mean": float(words[at["mean"] + 1]),
            "median": float(words[at["median"] + 1]),
            "min": float(words[last - 3]),
            "max": float(words[last - 1]),
            "range": float(words[last - 1]) - float(words[last - 3]),
        }

    def all_told(self, dimension: str) -> dict[str, dict[str, float]]:
        """Of every value of a dimension that has rows."""
        values = self.page.locator(f'.bar[data-dimension="{dimension}"]').evaluate_all(
            "all => all.map(one => one.dataset.value)"
        )
        told = {value: self.told(dimension, value) for value in values}
        return {value: one for value, one in told.items() if one["rows"] > 0}

    def path(self) -> list[str]:
        """The steps of the time line, the one that holds in brackets."""
        return self.page.locator("#path li button").evaluate_all(
            "all => all.map(one => { const what = one.querySelector('.what').textContent;"
            "return one.hasAttribute('aria-current') ? `[${what}]` : what; })"
        )

    def left(self) -> str:
        """How many configurations left, in words."""
        return self.page.locator("#said").text_content() or ""

    def rows(self, name: str) -> list[list[str]]:
        """A table's rows, without its head."""
        return self.page.locator(f'table[aria-label="{name}"] tbody tr').evaluate_all(
            "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
        )

    def serious(self) -> list[tuple[str, list[str]]]:
        """Serious findings of axe-core about accessibility."""
        from axe_playwright_python.sync_playwright import Axe

        return [
            (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
            for one in Axe().run(self.page).response["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    def saved(self, action: Callable[[], object], path: Path) -> str:
        """The text of the file that an action saves."""
        with self.page.expect_download() as download:
            action()
        download.value.save_as(path)
        return path.read_text("utf-8")
