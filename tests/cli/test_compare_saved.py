"""Results that were saved, compared later, with a warning where their machines differ."""

from __future__ import annotations

import json
import os
import sys

import pytest

pytestmark = pytest.mark.usefixtures("no_progress_lines")
METRIC = ("--metric", "mb_per_s=mb_per_s ([0-9.]+)")


@pytest.fixture
def saved(ascar, tmp_path):
    """A result of `measure`: a program whose throughput is about so much."""

    def save(name, level, *options, change=None):
        path = tmp_path / name
        code = f"import random; print('mb_per_s', random.gauss({level}, {level / 50}))"
        command = (sys.executable, "-I", "-S", "-c", code)
        done = ascar("measure", "--preset", "quick", *METRIC, *options, "--out", path, "--", *command)
        assert done.status == 0, done.err
        if change is not None:
            document = json.loads(path.read_text())
            change(document)
            path.write_text(json.dumps(document))
        return path

    return save


def test_saved_results_are_compared_by_their_means(ascar, saved):
    slow, fast = saved("slow.json", 100), saved("fast.json", 120)
    done = ascar("compare", slow, fast, "--json")
    document = done.document
    assert done.status == 0
    assert (document["mode"], document["metric"]) == ("recorded", "mb_per_s")
    assert [one["file"] for one in document["ranking"]] == [str(fast), str(slow)]
    assert document["pairs"][0]["verdict"] == "separated"
    low, high = document["pairs"][0]["ratio_low"], document["pairs"][0]["ratio_high"]
    # One in twenty intervals misses what it is of: twice as wide it does not.
    assert abs(1.2 - (low + high) / 2) < high - low
    assert document["ranking"][0]["machine"]["kernel"] == os.uname().release
    assert {one["fact"] for one in document["machine_differences"]} <= {"load before"}


def test_a_saved_result_says_what_its_own_readings_say(ascar, saved, tmp_path):
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    saved_a, saved_b = saved("a.json", 100, "--readings", a), saved("b.json", 104, "--readings", b)
    read = ascar("compare", a, b, "--column", "mb_per_s", "--json").document["pairs"][0]
    kept = ascar("compare", saved_a, saved_b, "--json").document["pairs"][0]
    assert kept["ratio"] == pytest.approx(read["ratio"], rel=1e-9)
    # Of readings and of their mean alone: what is not known widens the interval.
    assert kept["ratio_high"] - kept["ratio_low"] >= 0.9 * (read["ratio_high"] - read["ratio_low"])


def test_recordings_and_results_mix(ascar, saved, tmp_path):
    table = tmp_path / "before.csv"
    table.write_text("mb_per_s\n" + "\n".join(str(150 + index % 5) for index in range(60)) + "\n")
    document = ascar("compare", saved("after.json", 100), table, "--json").document
    assert document["ranking"][0]["file"] == str(table)
    assert document["ranking"][0]["machine"] is None
    facts = {one["fact"]: one["values"] for one in document["machine_differences"]}
    assert facts["machine"][str(table)] == "unknown"


def test_a_saved_comparison_gives_all_that_it_compared(ascar, tmp_path):
    path = tmp_path / "both.json"
    told = ascar(
        *("compare", "--label", "a", "--label", "b", "--rounds-max", "12", "-o", path, "--"),
        *("sleep 0.01", "sleep 0.05"),
    )
    assert told.status in (0, 3)
    document = ascar("compare", path, "--json").document
    assert {one["name"] for one in document["ranking"]} == {"a", "b"}


def test_machines_that_differ_are_warned_of(ascar, saved):
    def elsewhere(document):
        document["machines"][0] |= {"kernel": "4.19.0", "governor": "powersave", "memory_bytes": 2**30}
        document["machines"][0]["load_begin"] = 900.0

    done = ascar("compare", saved("here.json", 100), saved("there.json", 120, change=elsewhere))
    assert done.status == 0, "it is told, and compared"
    for words in (
        "kernel differs: ",
        "4.19.0",
        "governor differs: ",
        "memory differs: ",
        "load before differs",
    ):
        assert words in done.err, words
    assert all(line.startswith("warning: ") for line in done.err.splitlines())


def test_results_of_before_machines_were_kept_are_read(ascar, saved):
    def old(document):
        for key in ("machines", "sources"):
            del document[key]
        for one in document["indicators"]:
            del one["goal"], one["units"]

    done = ascar("compare", saved("new.json", 100), saved("old.json", 120, change=old))
    assert done.status == 0
    assert "machine differs: " in done.err
    assert "unknown" in done.err


def test_the_metric_must_be_one(ascar, saved):
    def renamed(document):
        document["indicators"].append({**document["indicators"][0], "name": "iops"})
        document["name"] = "iops"

    one, other = saved("one.json", 100), saved("two.json", 100, change=renamed)
    done = ascar("compare", one, other)
    assert done.status == 2
    assert "metrics differ: 'mb_per_s'" in done.error
    assert "name one that all have with --column" in done.error
    assert ascar("compare", one, other, "--column", "mb_per_s").status in (0, 3)
    assert "has no metric 'none'; it has 'mb_per_s'" in ascar("compare", one, one, "--column", "none").error


def _set(*path, value):
    def change(document):
        place = document
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


BROKEN = [
    (_set("schema", value="ascar/measure/2"), "is ascar/measure/2, of a newer ascar"),
    (_set("schema", value="ascar/tune/1"), "is a result of 'tune': compare takes those of measure"),
    (_set("schema", value="ascar/error/1"), "is a result of 'error'"),
    (_set("indicators", value=3), "is damaged: Expected `array`"),
    (_set("indicators", 0, "mean", value="NaN"), "is damaged: Expected `float`"),
    (_set("indicators", 0, "mean", value=1e300), "mean = 1e+300: must be a finite number"),
    (_set("indicators", 0, "mean", value=1e9), "inside of its interval"),
    (_set("indicators", 0, "ci_low", value=None), "null exactly if ci_high is"),
    (_set("indicators", 0, "confidence", value=1.0), "confidence = 1.0: must be between 0 and 1"),
    (_set("indicators", 0, "n", value=-3), "n = -3: must be a count"),
    (_set("indicators", 0, "independent_samples", value=0), "a count of at least 1"),
    (_set("indicators", 0, "subsession_size", value=0), "subsession_size = 0"),
    (_set("machines", 0, "cpus", value="many"), "is damaged: Expected `int`"),
]


def test_damaged_results_are_refused_in_one_line(ascar, saved, tmp_path):
    good, bad = saved("good.json", 100), tmp_path / "bad.json"
    for change, words in BROKEN:
        document = json.loads(good.read_text())
        change(document)
        bad.write_text(json.dumps(document))
        done = ascar("compare", good, bad)
        assert done.status == 2, words
        assert str(bad) in done.error
        assert words in done.error


def test_broken_files_are_refused_in_one_line(ascar, saved, tmp_path):
    good, bad = saved("good.json", 100), tmp_path / "bad.json"
    text = good.read_text()
    mean = repr(json.loads(text)["mean"])
    for broken in (
        text[:600],
        text.replace(mean, "NaN"),
        text.replace(mean, "1e999"),
        text.replace('"indicators": [', '"indicators": ' + "[" * 100_000),
        text + "}",
    ):
        bad.write_text(broken)
        done = ascar("compare", good, bad)
        assert done.status == 2
        assert "is damaged" in done.error
    with bad.open("wb") as file:
        file.write(text[:600].encode())
        file.truncate(1 << 30)
    done = ascar("compare", good, bad)
    assert done.status == 2
    assert "a saved result has at most" in done.error


def test_a_result_is_not_replaced_unasked(ascar, saved, tmp_path):
    path = saved("a.json", 100)
    before = path.read_bytes()
    done = ascar("measure", "--out", path, "--", "true")
    assert done.status == 2
    assert "already exists" in done.error
    assert path.read_bytes() == before
    again = ascar("measure", "--preset", "quick", "--out", path, "--force", "--", "sleep", "0.01")
    assert again.status == 0
    assert json.loads(path.read_text())["name"] == "duration_s"
    assert "must end in .json" in ascar("measure", "--out", tmp_path / "a.txt", "--", "true").error
