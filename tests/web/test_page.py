"""What the page does beside the case studies: addresses, keys, files in and out, hostile text."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest
from explorer_page import explored
from made_up import storage

from ascar.importance import Factor, Observations, importance
from ascar.web import Fixed
from ascar.web.exploration import ABSENT


@pytest.fixture(scope="module")
def small():
    """Numbers to be cut into ranges, absent values, a failed trial."""
    rng = np.random.default_rng(1)
    count = 400
    mode = rng.choice(["none", "lz4", "zstd:1"], count)
    size = rng.uniform(1, 100, count).round(3)
    cache = rng.integers(0, 3, count)
    level = [
        int(one) if kind != "none" else None
        for kind, one in zip(mode, rng.integers(1, 4, count), strict=True)
    ]
    score = 10.0 + 5 * cache + size / 50 + (mode == "lz4") * 3 + rng.normal(0, 0.5, count)
    score[7] = np.nan
    return pl.DataFrame({"mode": mode, "size": size, "cache": cache, "level": level, "score": score})


def opened(explorer, served, frame, **roles):
    explorer.open(served(frame, **roles))


def test_an_address_restores_the_state(small, served, explorer):
    url = served(small, objective="score", parameters=("mode", "size", "cache", "level"))
    explorer.open(url)
    explorer.choose("mode", "lz4")
    explorer.choose("mode", "zstd:1")
    explorer.choose("cache", "2")
    explorer.press("Undo")
    explorer.press("Sort by importance")
    path, left, told = explorer.path(), explorer.left(), explorer.all_told("cache")
    assert path == ["Everything", "mode = lz4", "[mode = lz4 or zstd:1]", "cache = 2"]
    address = explorer.page.url
    explorer.page.goto("about:blank")
    explorer.open(address)
    assert (explorer.path(), explorer.left(), explorer.all_told("cache")) == (path, left, told)
    explorer.press("Redo")
    assert explorer.path()[-1] == "[cache = 2]"
    explorer.act(explorer.page.go_back)
    assert explorer.path() == path

    explorer.open(url + "#steps=[[%22v%22,%22nothing%22],5,[],{%22a%22:1}]&at=x&look=%00")
    assert explorer.left().startswith("399 rows")


def test_a_click_on_a_chosen_value_takes_it_back(small, served, explorer):
    opened(explorer, served, small, objective="score", parameters=("mode", "cache"))
    before = explorer.all_told("cache")
    explorer.choose("mode", "lz4")
    assert explorer.all_told("cache") != before
    # Of a restricted dimension, bars say what the other values would give.
    assert explorer.told("mode", "none")["rows"] == small.filter(mode="none").height
    explorer.choose("mode", "lz4")
    assert explorer.all_told("cache") == before
    explorer.choose("mode", "lz4")
    explorer.choose("mode", "none")
    explorer.act(lambda: explorer.bar("mode", "none").click(modifiers=["Alt"]))
    assert explorer.path()[-1] == "[mode = none]"


def test_importance_is_that_of_the_library(small, served, explorer):
    names = ("mode", "size", "cache", "level")
    whole = explored(small, "score", parameters=names)
    explorer.open(served(Fixed(whole)))
    scores = whole.metric("score").values
    held = np.isfinite(scores)
    codes = [np.where(one.codes == ABSENT, -1, one.codes.astype(np.intp))[held] for one in whole.dimensions]
    factors = [Factor(one.name, each, one.labels) for one, each in zip(whole.dimensions, codes, strict=True)]
    observations = Observations(tuple(factors), scores[held])
    expected = {name: importance(observations, name) / float(observations.values.var()) for name in names}

    def shown():
        return {
            panel.get_attribute("aria-label"): (panel.locator(".told").text_content() or "")
            for panel in explorer.page.locator("#bars .panel").all()
        }

    for name, text in shown().items():
        assert float(text.rstrip("%")) == pytest.approx(100 * expected[name], abs=0.51)
    explorer.press("Sort by importance")
    order = list(shown())
    assert order == sorted(names, key=lambda name: -expected[name])


def test_absent_values_ranges_and_failures(small, served, explorer):
    opened(explorer, served, small, objective="score", parameters=("mode", "size", "cache", "level"))
    rows = small.filter(pl.col("score").is_not_nan())
    assert explorer.told("level", "n/a")["rows"] == rows["level"].null_count()
    sizes = explorer.all_told("size")
    assert len(sizes) == 8
    assert sum(told["rows"] for told in sizes.values()) == 399
    assert explorer.page.get_by_text("1 row without score is not shown").is_visible()


def test_every_step_by_keys_alone(small, served, explorer):
    opened(explorer, served, small, objective="score", parameters=("mode", "cache"))
    press = explorer.page.keyboard.press
    explorer.page.locator('.bar[tabindex="0"]').focus()
    press("ArrowRight")
    explorer.act(lambda: press("Space"))
    assert explorer.path()[-1] == "[mode = none]"
    press("ArrowDown")
    press("End")
    explorer.act(lambda: press("Enter"))
    assert explorer.path()[-1] == "[cache = 2]"
    explorer.act(lambda: press("Control+z"))
    assert explorer.path()[-2:] == ["[mode = none]", "cache = 2"]
    explorer.act(lambda: press("Control+y"))
    explorer.act(lambda: press("Escape"))
    assert explorer.path()[-1] == "[no restriction]"
    assert explorer.left().startswith("399 rows")


def test_what_is_left_can_be_taken_away(small, served, explorer, tmp_path):
    opened(explorer, served, small, objective="score", parameters=("mode", "size", "cache", "level"))
    explorer.choose("mode", "lz4")
    button = explorer.page.get_by_role("button", name="CSV", exact=True)
    rows = list(csv.DictReader(io.StringIO(explorer.saved(button.click, tmp_path / "rows.csv"))))
    expected = small.filter(pl.col("mode") == "lz4", pl.col("score").is_not_nan())
    assert [float(row["size"]) for row in rows] == expected["size"].to_list()
    assert [float(row["score"]) for row in rows] == expected["score"].to_list()
    assert [row["level"] for row in rows] == [str(value) for value in expected["level"]]
    button = explorer.page.get_by_role("button", name="SVG", exact=True)
    drawing = ET.fromstring(explorer.saved(button.click, tmp_path / "view.svg"))
    texts = [
        one.text for tag in ("text", "tspan") for one in drawing.iter(f"{{http://www.w3.org/2000/svg}}{tag}")
    ]
    assert "mode" in texts
    assert any("mode = lz4" in (text or "") for text in texts)


def test_a_brush_sets_limits(small, served, explorer):
    opened(explorer, served, small, objective="score", parameters=("mode", "cache"))
    explorer.act(lambda: explorer.page.get_by_label("Constraint", exact=True).select_option("score"))
    box = explorer.page.locator(".constraint .overlay").bounding_box()
    mouse, middle = explorer.page.mouse, box["y"] + box["height"] / 2

    def drag():
        mouse.move(box["x"] + box["width"] / 2, middle)
        mouse.down()
        mouse.move(box["x"] + box["width"] * 0.8, middle, steps=3)
        mouse.move(box["x"] + box["width"] + 20, middle, steps=3)
        mouse.up()

    explorer.act(drag)
    low = float(explorer.page.get_by_label("score at least").input_value())
    scores = small.filter(pl.col("score").is_not_nan())["score"]
    assert low == pytest.approx((scores.min() + scores.max()) / 2, rel=0.01)
    assert explorer.page.get_by_label("score at most").input_value() == ""
    assert explorer.left().startswith(f"{(scores >= low).sum()} rows")
    explorer.press("Remove the constraint on score")
    assert explorer.left().startswith("399 rows")


def test_parallel_coordinates_restrict_too(small, served, explorer):
    opened(explorer, served, small, objective="score", parameters=("mode", "cache"))
    explorer.press("Parallel coordinates")
    value = explorer.page.get_by_role("checkbox", name="cache = 2")
    explorer.act(value.click)
    assert explorer.path()[-1] == "[cache = 2]"
    held = small.filter(pl.col("cache") == 2, pl.col("score").is_not_nan()).height
    assert explorer.page.get_by_text(f"All {held} rows that are left are drawn.").is_visible()


def test_a_sample_of_lines_says_so(served, explorer):
    frame = pl.concat([storage()] * 3)
    opened(explorer, served, frame)
    explorer.press("Parallel coordinates")
    assert explorer.page.get_by_text(f"3,000 of {frame.height:,} rows are drawn").is_visible()


def test_text_is_never_markup(served, explorer):
    evil = '<img src=x onerror="document.title=1">'
    frame = pl.DataFrame({evil: [evil, "b", evil, "b"], "x": [1, 1, 2, 2], "<b>score": [1.0, 2.0, 3.0, 4.5]})
    opened(explorer, served, frame, objective="<b>score")
    explorer.choose(evil, "b")
    assert explorer.page.locator("img, b").count() == 0
    assert explorer.path()[-1] == f"[{evil} = b]"
    assert unquote(explorer.page.url).count(evil[1:4]) == 1


def test_no_serious_finding_of_accessibility(small, served, explorer):
    opened(explorer, served, small, objective="score", parameters=("mode", "size", "cache"))
    explorer.choose("mode", "lz4")
    explorer.act(lambda: explorer.page.get_by_label("Constraint", exact=True).select_option("score"))
    assert explorer.serious() == []
    explorer.press("Pareto")
    explorer.press("Parallel coordinates")
    assert explorer.serious() == []
    explorer.page.get_by_role("button", name="?", exact=True).click()
    assert explorer.serious() == []


class TestDropped:
    """Tables that are opened on the page; dropping ends in the same place."""

    @pytest.fixture
    def give(self, small, served, explorer):
        opened(explorer, served, small, objective="score", parameters=("mode", "cache"))

        def give(text, name="own.csv"):
            content = text if isinstance(text, bytes) else text.encode()
            file = {"name": name, "mimeType": "text/csv", "buffer": content}
            explorer.page.locator('input[type="file"]').set_input_files(file)

        return give

    def problem(self, explorer):
        """The one message that is to be seen."""
        explorer.until("[...document.querySelectorAll('.problem')].some(one => one.checkVisibility())")
        shown = explorer.page.locator(".problem:visible").all_text_contents()
        assert len(shown) == 1
        explorer.problems.clear()  # the browser itself reports that an answer was a refusal
        return shown[0]

    def go(self, explorer):
        explorer.page.get_by_role("button", name="Explore", exact=True).click()

    def test_a_table_is_explored_in_place_of_what_was_there(self, give, explorer, tmp_path):
        give(
            "disk,depth,iops\n"
            + "".join(f"{d},{q},{q * w}.5\n" for d, w in (("a", 3), ("b", 5)) for q in (1, 2))
        )
        explorer.act(lambda: self.go(explorer))
        assert explorer.page.locator("#name").text_content() == "own.csv"
        assert explorer.told("disk", "b") == pytest.approx(
            {"rows": 2, "mean": 8, "median": 8, "min": 5.5, "max": 10.5, "range": 5}
        )
        file = explorer.page.get_by_role("button", name="Apply file").first
        saved = json.loads(explorer.saved(file.click, tmp_path / "configuration.json"))
        assert saved["configuration"] == {"disk": "b", "depth": 2}
        assert saved["source"] == "own.csv"

    def test_a_file_dropped_anywhere_is_asked_about(self, give, explorer):
        explorer.page.evaluate(
            """() => {
              const data = new DataTransfer();
              data.items.add(new File(["disk,iops\\na,1.5\\nb,2.5\\na,2\\n"], "dropped.csv"));
              const how = {dataTransfer: data, bubbles: true, cancelable: true};
              const event = (kind) => new DragEvent(kind, how);
              document.body.dispatchEvent(event("dragenter"));
              document.body.dispatchEvent(event("drop"));
            }"""
        )
        explorer.page.get_by_role("heading", name="dropped.csv: 3 rows").wait_for()
        explorer.act(lambda: self.go(explorer))
        assert explorer.told("disk", "a")["rows"] == 2

    def test_without_any_number(self, give, explorer):
        give("fs,mode\next4,a\nxfs,b\n")
        assert "no column holds numbers" in self.problem(explorer)

    def test_empty(self, give, explorer):
        give("")
        assert "file 'own.csv'" in self.problem(explorer)

    def test_no_table_at_all(self, give, explorer):
        give(bytes(range(256)) * 40)
        assert "must be a CSV or Parquet file" in self.problem(explorer)

    def test_text_among_the_numbers_of_the_objective(self, give, explorer):
        give("fs,depth,iops\n" + "ext4,1,10.5\nxfs,2,11.5\n" * 10 + "xfs,1,broken\n")
        explorer.page.get_by_text("row 21 holds 'broken', so it cannot be an objective").wait_for()
        explorer.page.locator("#objective").select_option("iops")
        self.go(explorer)
        assert self.problem(explorer) == (
            "own.csv: column 'iops': row 21 holds 'broken'; a metric must hold numbers"
        )

    def test_too_many_different_texts(self, give, explorer):
        rows = (f"h{row},{'xfs' if row % 2 else 'ext4'},{row % 100}.5\n" for row in range(2_000))
        give("host,fs,iops\n" + "".join(rows))
        explorer.page.get_by_text("2000 different texts, at most 200 can be shown").wait_for()
        explorer.page.get_by_label("Role of host").select_option("parameter")
        self.go(explorer)
        assert "column 'host': holds text of 2000 different values, at most 200" in self.problem(explorer)
        explorer.page.get_by_label("Role of host").select_option("ignore")
        explorer.act(lambda: self.go(explorer))
        assert explorer.told("fs", "xfs")["rows"] == 1_000
