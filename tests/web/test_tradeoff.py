"""Two measures against one another: points, the Pareto set, costs by category, and what is worth it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import polars as pl
import pytest
from made_up import storage

from ascar.analysis.tables import read_frame
from ascar.datasets import dataset_file
from ascar.web import Exploration, Fixed, Roles, of_table

WEIGHTS = (0.0, 1.0, 10.0, 100.0)


@pytest.fixture(scope="module")
def mailserver():
    name = "storage-v5-mailserver"
    return Exploration.of(
        [of_table(read_frame(dataset_file(name), name), name, Roles("operations"))], "operations", None
    )


def second(explorer, name):
    explorer.act(lambda: explorer.page.get_by_label("Second metric").select_option(name))


def number(text):
    return float(text.replace(",", ""))


def front_of(points):
    """Of (more is better, less is better)."""
    return {(a, b) for a, b in points if not any(c >= a and d <= b and (c, d) != (a, b) for c, d in points)}


def test_a_point_of_the_front_is_chosen_and_shown_alone(served, explorer, tmp_path):
    frame = storage().filter(pl.col("workload") != "dbserver")
    explorer.open(served(frame))
    explorer.press("Pareto")
    explorer.page.get_by_text("Choose a second metric").wait_for()
    second(explorer, "latency_ms")
    names = [name for name in frame.columns if name not in ("latency_ms", "throughput")]
    means = frame.group_by(names).agg(pl.col("throughput").mean(), pl.col("latency_ms").mean())
    front = front_of(means.select("throughput", "latency_ms").rows())
    marks = explorer.page.locator("svg.scatter .front")
    assert marks.count() == len(explorer.rows("Configurations")) >= len(front)
    assert explorer.serious() == []
    # By keys: along the front, and Enter; by mouse: anywhere near.
    marks.first.focus()
    explorer.page.keyboard.press("ArrowRight")
    explorer.page.keyboard.press("Enter")
    shown = explorer.rows("Configurations")[1]
    picked = explorer.page.locator(".picked")
    assert picked.locator("dd").all_text_contents()[:2] == shown[1:3]
    box = marks.first.bounding_box()
    explorer.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert picked.locator("dd").all_text_contents()[:2] == explorer.rows("Configurations")[0][1:3]
    file = picked.get_by_role("button", name="Apply file")
    saved = json.loads(explorer.saved(file.click, tmp_path / "configuration.json"))["configuration"]
    explorer.press("Show it alone")
    assert explorer.left() == "5 rows of 1 configuration left"
    assert (
        explorer.path()[-1] == f"[{', '.join(f'{name} = {saved[name]}' for name in names if name in saved)}]"
    )
    address = explorer.page.url
    explorer.page.goto("about:blank")
    explorer.open(address)
    assert explorer.left() == "5 rows of 1 configuration left"
    drawing = explorer.page.get_by_role("button", name="SVG", exact=True)
    text = explorer.saved(drawing.click, tmp_path / "view.svg")
    titles = [one.text or "" for one in ET.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert "mean latency_ms (less is better)" in titles


def test_against_the_variation_of_own_runs(served, explorer):
    frame = storage().filter(workload="fileserver", device="sas")
    explorer.open(served(frame, metrics=("latency_ms",)))
    explorer.press("Pareto")
    second(explorer, "own runs: range")
    names = [name for name in frame.columns if name not in ("latency_ms", "throughput")]
    runs = frame.group_by(names).agg(
        pl.col("throughput").mean(), (pl.col("throughput").max() - pl.col("throughput").min()).alias("range")
    )
    front = front_of(runs.select(pl.col("throughput").round(6), pl.col("range").round(6)).rows())
    shown = sorted({(number(row[1]), number(row[2])) for row in explorer.rows("Configurations")})
    assert len(shown) == len(front) > 1
    for (mean, spread), (a, b) in zip(shown, sorted(front), strict=True):
        assert (mean, spread) == (pytest.approx(a, rel=1e-3), pytest.approx(b, rel=1e-3))


def test_costs_by_category_and_what_is_worth_them(mailserver, served, explorer):
    explorer.open(served(Fixed(mailserver)))
    explorer.press("Pareto")
    second(explorer, "change_cost")
    means: dict[int, list[float]] = {}
    values = mailserver.metric("operations").values
    for row, configuration in enumerate(mailserver.configurations):
        means.setdefault(int(configuration), []).append(values[row])
    masks = dict(zip(mailserver.configurations.tolist(), mailserver.changes.tolist(), strict=True))

    def expected(weights):
        costs = {
            one: sum(w for bit, w in enumerate(weights) if mask >> bit & 1) for one, mask in masks.items()
        }
        return front_of([(sum(all_) / len(all_), costs[one]) for one, all_ in means.items()])

    def shown():
        return sorted((number(row[2]), number(row[1])) for row in explorer.rows("Configurations"))

    def close(found, front):
        assert [cost for cost, _ in found] == sorted(cost for _, cost in front)
        assert [mean for _, mean in found] == pytest.approx(sorted(mean for mean, _ in front), rel=1e-3)

    close(shown(), expected(WEIGHTS))
    weight = explorer.page.get_by_label("Weight of category 1, seconds")
    explorer.act(lambda: (weight.fill("200"), weight.press("Tab")))
    close(shown(), expected((0.0, 200.0, 10.0, 100.0)))
    assert "weights=0%2C200%2C10%2C100" in explorer.page.url
    before = shown()
    assert len(before) > 1
    # The gain of each over the next, and those that gain less left out.
    gains = [a[1] / b[1] - 1 for b, a in pairwise(before)]
    worth = explorer.page.get_by_label("Worth it from a gain of, in percent")
    explorer.act(lambda: (worth.fill(str(100 * max(gains) + 1000)), worth.press("Tab")))
    assert shown() == before[:1]
    # As a constraint: nothing that costs more than a remount.
    explorer.act(lambda: explorer.page.get_by_label("Constraint", exact=True).select_option("change_cost"))
    most = explorer.page.get_by_label("change_cost at most")
    explorer.act(lambda: (most.fill("0"), most.press("Tab")))
    free = sum(mask in (0, 1) for mask in mailserver.changes)
    assert explorer.left().startswith(f"{free} rows")
    assert explorer.serious() == []


def test_the_categories_of_a_change(mailserver):
    """A change of several kinds costs each of them once; the highest is that of the metric."""
    names = {one.name: one for one in mailserver.dimensions}
    fs = names["fs"]
    other = fs.codes != fs.labels.index("ext4")
    assert (mailserver.changes[other] & 8 == 8).all()
    assert mailserver.changes.max() < 16
    highest = [max((bit for bit in range(4) if mask >> bit & 1), default=0) for mask in mailserver.changes]
    assert mailserver.metric("change_category").values.tolist() == highest


def test_without_a_second_run_or_a_known_cost(served, explorer):
    frame = pl.DataFrame({"mode": ["a", "b", "c"], "iops": [1.5, 2.5, 3.5]})
    explorer.open(served(frame, objective="iops"))
    assert explorer.page.get_by_role("group", name="Cost weights").count() == 0
    explorer.press("Pareto")
    second(explorer, "own runs: rsd")
    explorer.page.get_by_text("No configuration that is left was measured twice").wait_for()
    url = explorer.page.url.split("#")[0]
    explorer.open(f"{url}#table=pareto&second=own runs: rsd&weights=1,-2,x,4&gain=1e400")
    assert explorer.page.get_by_label("Worth it from a gain of, in percent").input_value() == "0"
