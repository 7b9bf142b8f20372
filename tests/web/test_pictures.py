"""The pictures of the documentation, taken where its text leads the reader (`make pictures`)."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explorer_page import serving
from told_session import BEGAN, DEFAULT, SESSION, Told

from ascar.analysis.tables import read_frame
from ascar.datasets import dataset_file
from ascar.web import Exploration, Fixed, OnlineSubject, Roles, of_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from explorer_page import Explorer

IMAGES = Path(__file__).resolve().parents[2] / "docs/tutorials/images"
LOADS = ("storage-v5-fileserver", "storage-v5-mailserver")
PNG = b"\x89PNG\r\n\x1a\n"
pytestmark = pytest.mark.slow


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where the pictures go: into the documentation if PICTURES is set."""
    return IMAGES if os.environ.get("PICTURES") else tmp_path


@pytest.fixture(scope="module")
def dataset() -> Exploration:
    tables = [of_table(read_frame(dataset_file(name), name), name, Roles("operations")) for name in LOADS]
    return Exploration.of(tables, "operations", None)


def taken(explorer: Explorer, folder: Path, name: str, part: str = "") -> None:
    """Take a picture of the window, or of a part of the page, and see that it shows something."""
    page = explorer.page
    page.set_viewport_size({"width": 1280, "height": 800})
    explorer.settled()
    picture = page.locator(part).screenshot() if part else page.screenshot()
    assert picture.startswith(PNG)
    assert len(picture) > 10_000
    (folder / f"{name}.png").write_bytes(picture)


def test_the_tutorial_of_the_explorer(
    dataset: Exploration, served: Callable[..., str], explorer: Explorer, pictures: Path
) -> None:
    explorer.open(served(Fixed(dataset)))
    taken(explorer, pictures, "explore-all")
    explorer.choose("workload", "mailserver")
    taken(explorer, pictures, "explore-mailserver")
    for dimension, value in (("fs", "ext4"), ("block_size_bytes", "4096"), ("ext_inode_size_bytes", "256")):
        explorer.choose(dimension, value)
    taken(explorer, pictures, "explore-ext4")
    assert explorer.path()[-1] == "[ext_inode_size_bytes = 256]"
    for _ in range(2):
        explorer.press("Undo")
    explorer.choose("fs", "ext4")
    explorer.press("Pareto")
    explorer.act(lambda: explorer.page.get_by_label("Second metric").select_option("change_cost"))
    explorer.page.locator("svg.scatter .front").nth(1).focus()
    explorer.page.keyboard.press("Enter")
    taken(explorer, pictures, "explore-tradeoff", "#tables")


def test_the_page_of_a_session(tmp_path: Path, explorer: Explorer, pictures: Path) -> None:
    draw = random.Random(1)
    with Told(tmp_path / "messages") as told:
        for tick in range(-400, 0):
            level, ratio = (30e6, 20) if tick < -300 else (34e6, 40) if tick < -150 else (39e6, 60)
            setting = {**DEFAULT, "vm.dirty_ratio": ratio}
            told.stored.append((BEGAN + tick, level * draw.uniform(0.95, 1.05), setting))
        with OnlineSubject(SESSION, told.settings) as subject, serving(subject) as url:
            explorer.page.goto(url)
            explorer.page.get_by_role("heading", name="ascar session shown").wait_for()
            while subject.live()["objective"] is None:
                told.here()
            for tick in range(60):
                told.ticked(39e6 * draw.uniform(0.95, 1.05), {"vm.dirty_ratio": 60})
                told.learned(epsilon=0.3 * 0.97**tick, prediction_error=0.25 * 0.95**tick + 0.05)
            told.refused("change: vm.dirty_ratio may change by 20 at once", **{"vm.dirty_ratio": 80})
            explorer.page.get_by_text("By reason: change 1.").wait_for()
            explorer.page.get_by_role("img", name="epsilon over 60 ticks").wait_for()
            picture = explorer.page.screenshot(full_page=True)
    assert picture.startswith(PNG)
    (pictures / "explore-session.png").write_bytes(picture)
