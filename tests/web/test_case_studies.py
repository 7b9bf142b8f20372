"""Cao's three case studies (8.2, 8.3), done in a browser on data in which the right answers are known."""

from __future__ import annotations

import json

import polars as pl
import pytest
from made_up import storage


@pytest.fixture(scope="module")
def frame():
    return storage()


def narrowest(told):
    return min(told, key=lambda value: told[value]["range"])


def highest(told, what="mean"):
    return max(told, key=lambda value: told[value][what])


def close(told, values):
    """Bars say four digits."""
    assert told["rows"] == len(values)
    assert told["mean"] == pytest.approx(values.mean(), rel=1e-3)
    assert told["median"] == pytest.approx(values.median(), rel=1e-3)
    assert told["min"] == pytest.approx(values.min(), rel=1e-3)
    assert told["max"] == pytest.approx(values.max(), rel=1e-3)


def test_a_file_system_for_a_file_server_by_mean_and_variance(frame, served, explorer):
    explorer.open(served(frame))
    explorer.choose("workload", "fileserver")
    systems = explorer.all_told("fs")
    for name, told in systems.items():
        close(told, frame.filter(workload="fileserver", fs=name)["throughput"])
    assert sorted(systems, key=lambda fs: -systems[fs]["mean"])[:2] == ["btrfs", "xfs"]
    assert systems["xfs"]["range"] < systems["btrfs"]["range"]

    explorer.choose("fs", "btrfs")
    assert narrowest(explorer.all_told("inode_size")) == "8192"
    explorer.choose("inode_size", "8192")
    assert explorer.path() == ["Everything", "workload = fileserver", "fs = btrfs", "[inode_size = 8192]"]

    # Back to another load: the steps can be taken back, and what is different then is taken instead.
    explorer.press("Undo")
    explorer.press("Undo")
    assert explorer.path()[1] == "[workload = fileserver]"
    explorer.choose("workload", "fileserver")
    explorer.choose("workload", "dbserver")
    systems = explorer.all_told("fs")
    assert min(systems, key=lambda fs: systems[fs]["mean"]) == "btrfs"
    assert highest(systems, "max") == "ext4"


def test_stability_under_a_file_system_that_is_given(frame, served, explorer):
    explorer.open(served(frame))
    explorer.choose("workload", "mailserver")
    systems = explorer.all_told("fs")
    assert narrowest(systems) == "xfs"
    assert systems["xfs"]["max"] < systems["nilfs2"]["max"]

    explorer.choose("fs", "ext4")
    assert narrowest(explorer.all_told("block_size")) == "1024"
    explorer.press("Most stable")
    first = explorer.rows("Values by variation")[0]
    assert first[1] == "block_size = 1024"
    explorer.act(explorer.page.get_by_role("button", name="Choose").first.click)
    assert explorer.path()[-1] == "[block_size = 1024]"

    devices = explorer.all_told("device")
    assert narrowest(devices) == "sas"
    explorer.choose("device", "sas")
    left = frame.filter(workload="mailserver", fs="ext4", block_size=1024, device="sas")
    assert explorer.left() == f"{left.height} rows of {left.height // 5} configurations left"


def test_tuning_under_constraints(frame, served, explorer, tmp_path):
    explorer.open(served(frame))
    for dimension, value in (("workload", "dbserver"), ("fs", "ext4"), ("journal", "journal")):
        explorer.choose(dimension, value)
    assert highest(explorer.all_told("device"), "max") == "ssd"
    explorer.choose("device", "ssd")
    assert highest(explorer.all_told("inode_size")) == "128"
    explorer.choose("inode_size", "128")
    assert narrowest(explorer.all_told("block_size")) == "2048"
    explorer.choose("block_size", "2048")
    schedulers = explorer.all_told("scheduler")
    assert narrowest(schedulers) == "deadline"
    assert schedulers["deadline"]["mean"] == pytest.approx(schedulers["noop"]["mean"], rel=1e-3)
    explorer.choose("scheduler", "deadline")
    assert explorer.left() == "5 rows of 1 configuration left"

    file = explorer.page.get_by_role("button", name="Apply file").first
    saved = json.loads(explorer.saved(file.click, tmp_path / "configuration.json"))
    assert saved["schema"] == "ascar/configuration/1"
    assert saved["configuration"] == {
        "workload": "dbserver",
        "fs": "ext4",
        "device": "ssd",
        "block_size": 2048,
        "inode_size": 128,
        "journal": "journal",
        "scheduler": "deadline",
    }


def test_limits_on_several_metrics(frame, served, explorer):
    explorer.open(served(frame))
    constraint = explorer.page.get_by_label("Constraint", exact=True)
    explorer.act(lambda: constraint.select_option("latency_ms"))
    most = explorer.page.get_by_label("latency_ms at most")
    explorer.act(lambda: (most.fill("6"), most.press("Tab")))
    explorer.act(lambda: explorer.page.get_by_label("Constraint", exact=True).select_option("throughput"))
    least = explorer.page.get_by_label("throughput at least")
    explorer.act(lambda: (least.fill("300"), least.press("Tab")))
    left = frame.filter(pl.col("latency_ms") <= 6, pl.col("throughput") >= 300)
    configurations = left.select(pl.exclude("latency_ms", "throughput")).n_unique()
    assert explorer.left() == f"{left.height:,} rows of {configurations:,} configurations left"
    for fs in ("ext4", "xfs", "btrfs"):
        close(explorer.told("fs", fs), left.filter(fs=fs)["throughput"])
    assert explorer.path() == ["Everything", "latency_ms ≤ 6", "[throughput ≥ 300]"]
    # Less latency is better, by its name; the Pareto set of the two is that of the configurations' means.
    explorer.press("Pareto")
    second = explorer.page.get_by_label("Second metric")
    explorer.act(lambda: second.select_option("latency_ms"))
    names = [name for name in frame.columns if name not in ("latency_ms", "throughput")]
    means = left.group_by(names).agg(pl.col("throughput").mean(), pl.col("latency_ms").mean())
    points = means.select("throughput", "latency_ms").rows()
    front = {(a, b) for a, b in points if not any(c >= a and d <= b and (c, d) != (a, b) for c, d in points)}
    shown = {
        (float(row[1].replace(",", "")), float(row[2].replace(",", "")))
        for row in explorer.rows("Configurations")
    }
    assert len(shown) == len({(f"{a:.3e}", f"{b:.3e}") for a, b in front})
    for a, b in shown:
        assert any(a == pytest.approx(c, rel=1e-3) and b == pytest.approx(d, rel=1e-3) for c, d in front)
