"""Goals of single metrics, minima, the published rule, and work units that differ."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.usefixtures("no_progress_lines")

TWO = """
import random
print("ops", random.gauss(100, 6))
print("p99", random.gauss(20, 4))
"""
METRICS = ("--metric", "ops=ops ([0-9.]+)", "--metric", "p99=p99 ([0-9.]+)")
# Reads first and writes then, a tenth as fast, and how much each of them moved.
MIXED = """
import random
random.seed(7)
for kind, speed in (("read", 200), ("write", 20)):
    for unit in range(150):
        print(f"{kind} {random.choice([1, 4])} MB at {random.gauss(speed, speed / 20)}")
"""


@pytest.fixture
def program(tmp_path):
    def write(text):
        path = tmp_path / "bench.py"
        path.write_text(text)
        return (sys.executable, "-I", "-S", str(path))

    return write


def test_every_metric_may_have_a_goal_of_its_own(ascar, program):
    document = ascar(
        *("measure", "--preset", "quick", *METRICS, "--goal", "ops:3%", "--goal", "p99:0.4:0.9", "--json"),
        *("--", *program(TWO)),
    ).document
    assert document["reached"]
    ops, p99 = document["indicators"]
    assert ops["ci_width_relative"] <= 0.03 < p99["ci_width_relative"] <= 0.4
    assert (ops["goal"]["interval_width_relative"], ops["confidence"]) == (0.03, 0.95)
    assert (p99["goal"]["interval_width_relative"], p99["confidence"]) == (0.4, 0.9)
    assert document["goal"] == ops["goal"], "the goal at the top is that of the mean at the top"


def test_a_goal_makes_the_run_time_count(ascar):
    document = ascar(
        *("measure", "--preset", "quick", "--metric", "x=([0-9]+)", "--goal", "duration_s:80%", "--json"),
        *("--", "sh", "-c", "sleep 0.01; echo 7"),
    ).document
    assert [one["name"] for one in document["indicators"]] == ["x", "duration_s"]
    assert all(one["decides"] for one in document["indicators"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--goal", "none:3%"], "--goal 'none': must be one of ops, p99"),
        (["--goal", "ops:0%"], "--goal = 'ops:0%': the width must be above 0% and at most 200% of the mean"),
        (["--goal", "ops:-3%"], "above 0%"),
        (["--goal", "ops:1e9%"], "at most 200%"),
        (["--goal", "ops:nan"], "above 0%"),
        (["--goal", "ops:inf%"], "at most 200%"),
        (["--goal", "ops:x"], "--goal = 'ops:x': width = 'x': must be a share, e.g. 1% or 0.01"),
        (["--goal", "ops"], "must be NAME:WIDTH or NAME:WIDTH:LEVEL"),
        (["--goal", ":3%"], "must be NAME:WIDTH"),
        (["--goal", "ops:3%:1"], "the level must be between 0 and 1"),
        (["--goal", "ops:3%:0.9:1"], "must be NAME:WIDTH"),
        (["--goal", "ops:3%", "--goal", "ops:4%"], "names 'ops' a second time"),
        (["--goal", "ops:3%", "--report-only", "ops"], "--goal 'ops': contradicts --report-only"),
        (["--goal", "work_per_s:3%"], "--goal 'work_per_s': must be one of ops, p99"),
        (["--readings-min", "0"], "--readings-min"),
        (["--method", "none"], "method = 'none': must be corrected or faithful"),
    ],
)
def test_goals_that_cannot_be_are_refused_in_one_line(ascar, arguments, words):
    done = ascar("measure", *METRICS, *arguments, "--", "true")
    assert done.status == 2
    assert words in done.error


def test_a_goal_of_the_time_of_rounds_of_different_work_is_refused(ascar):
    done = ascar(
        *("measure", "--work-amount", "1,9", "--goal", "duration_s:3%", "--", "sleep", "%WORK_AMOUNT%"),
    )
    assert "rounds do different amounts of work; give work_per_s a goal" in done.error


def test_minima_hold(ascar):
    document = ascar(
        *("measure", "--preset", "quick", "--interval-width", "1", "--readings-min", "30"),
        *("--rounds-min", "52", "--json", "--", "sleep", "0.01"),
    ).document
    assert document["goal"]["readings_min"] == 30
    assert len(document["rounds"]) >= 52


def test_the_published_rule_has_the_published_figures(ascar, program):
    document = ascar(
        *("measure", "--preset", "quick", "--method", "faithful", *METRICS, "--json", "--", *program(TWO)),
    ).document
    assert document["reached"]
    for one in document["indicators"]:
        assert one["method"] == "faithful"
        assert one["subsessions"] >= 30 == one["goal"]["readings_min"]
        assert one["ci_width_relative"] <= 0.2


def test_units_that_differ_are_told_apart(ascar, program):
    expression = r"(?P<unit>read|write) (?P<work>\d+) MB at (?P<value>[0-9.]+)"
    command = ("--rounds-max", "6", "--json", "--", *program(MIXED))
    alike = ascar("measure", "--metric", r"mb_per_s=MB at ([0-9.]+)", *command).document
    assert alike["verdict"] == "no-interval", "a change of kind looks like a change of level"
    assert "no stable phase: of 2 levels" in alike["reason"]
    document = ascar(
        *("measure", "--metric", f"mb_per_s={expression}", "--kind", "mb_per_s=ratio", *command),
    ).document
    kinds = {one["name"]: one for one in document["indicators"][0]["units"]}
    assert kinds["read"]["mean"] == pytest.approx(200, rel=0.03)
    assert kinds["write"]["mean"] == pytest.approx(20, rel=0.03)
    # All work over all time: about half of the work is a tenth as fast.
    assert sum(one["share"] for one in kinds.values()) == pytest.approx(1)
    expected = 1 / (kinds["read"]["share"] / 200 + kinds["write"]["share"] / 20)
    assert document["mean"] == pytest.approx(expected, rel=0.03)
    people = ascar("measure", "--metric", f"mb_per_s={expression}", *command[:2], *command[3:])
    assert "units read" in people.out
    assert "of the work" in people.out


def test_units_of_a_kind_that_came_once_have_no_interval(ascar):
    text = r"read 5\nread 5\nread 6\nwrite 9\n"
    done = ascar(
        *("measure", "--rounds-max", "1", "--metric", r"x=(?P<unit>\w+) (?P<value>\d+)", "--json"),
        *("--", "printf", text),
    )
    assert done.status == 3
    assert "work units of kind 'write': fewer than 2" in done.document["reason"]
