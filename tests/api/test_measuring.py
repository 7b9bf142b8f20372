"""`ascar.measure` and `ascar.compare`: commands and functions; their errors are the command line's."""

from __future__ import annotations

import itertools
import sys
import time

import pytest

import ascar
from ascar.errors import InputError
from ascar.results.documents import struct_of
from ascar.results.encode import json_ready
from documents import check_document


def sleepy():
    time.sleep(0.001)


def test_a_function_that_returns_nothing_is_timed():
    result = ascar.measure(sleepy, preset="quick", budget="30 s")
    assert result.name == "seconds_per_call"
    assert result.reached
    assert result.ci_low <= result.mean <= result.ci_high
    assert 0.001 <= result.mean < 0.1
    assert result.command == ("sleepy",)


def test_what_a_function_returns_is_measured():
    values = itertools.cycle([9.0, 10.0, 11.0])
    result = ascar.measure(lambda: next(values), preset="quick")
    assert result.mean == pytest.approx(10, rel=0.05)
    both = ascar.measure(lambda: {"a": next(values), "b": 2 * next(values)}, preset="quick")
    assert [one.name for one in both.indicators] == ["a", "b"]


def test_a_command_is_measured_from_a_text_or_its_words():
    for what in ("sleep 0.01", ["sleep", "0.01"]):
        result = ascar.measure(what, interval_width=0.9, rounds_max=40, budget="30 s")
        assert result.command == ("sleep", "0.01")
        assert result.name == "duration_s"
        assert result.mean >= 0.01


def test_a_metric_is_read_from_what_a_command_prints():
    program = [sys.executable, "-c", "print('speed', 42.5)"]
    result = ascar.measure(program, metrics={"mb_per_s": "speed ([0-9.]+)"}, rounds_max=3, preset="quick")
    assert (result.name, result.mean) == ("mb_per_s", 42.5)


def test_the_result_is_the_document_of_the_command():
    result = ascar.measure(sleepy, preset="quick", rounds_max=30)
    check_document(json_ready(result))
    assert json_ready(result).keys() >= {*struct_of("measure").__struct_fields__}
    ranking = ascar.compare({"a": lambda: 1.0, "b": lambda: 2.0}, preset="quick")
    check_document(json_ready(ranking))


def test_functions_are_compared_by_what_they_return():
    noise = itertools.cycle([0.0, 0.1, -0.1])
    ranking = ascar.compare({"low": lambda: 1 + next(noise), "high": lambda: 3 + next(noise)}, preset="quick")
    assert ranking.verdict == "decided"
    assert [one.name for one in ranking.ranking] == ["high", "low"]
    backwards = ascar.compare({"low": lambda: 1.0, "high": lambda: 3.0}, direction="min", preset="quick")
    assert [one.name for one in backwards.ranking] == ["low", "high"]


def test_commands_are_compared():
    ranking = ascar.compare({"short": "sleep 0.01", "long": ["sleep", "0.1"]}, preset="quick", budget="1 min")
    assert [one.name for one in ranking.ranking] == ["short", "long"]
    assert ranking.ranking[0].command == ("sleep", "0.01")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ascar.measure("no-such-program-here"), "is not a program that can be run here"),
        (lambda: ascar.measure("echo 'open"), "close the quotes"),
        (
            lambda: ascar.measure("true", preset="quik"),
            "preset = 'quik': must be one of quick, normal, strict",
        ),
        (lambda: ascar.measure("true", budget="soon"), "budget = 'soon'"),
        (lambda: ascar.measure("dd count=%WORK_AMOUNT%"), "write the amount of work in its place"),
        (lambda: ascar.measure(sleepy, metrics={"a": "b"}), "metrics: only a command needs them"),
        (lambda: ascar.measure(lambda: "fast"), "must be a number"),
        (lambda: ascar.compare({"a": "true"}), "give at least two"),
        (lambda: ascar.compare({}), "give at least two"),
        (lambda: ascar.compare({"a": "true", "b": lambda: 1.0}), "'a' tells duration_s, 'b' tells value"),
        (lambda: ascar.compare({"a": lambda: {"x": 1, "y": 2}, "b": sleepy}), "return the one number"),
        (lambda: ascar.compare({"a": "true", "b": "true"}, direction="up"), "direction = 'up'"),
        (lambda: ascar.compare({"a": "true", "b": "true"}, confidence=1), "confidence = 1"),
        (lambda: ascar.compare({"a": "true", "b": "true"}, metric="x"), "metric = 'x': must be 'NAME="),
    ],
)
def test_mistakes_are_one_line(call, message):
    with pytest.raises(ascar.InputError) as told:
        call()
    assert message in told.value.message
    assert "\n" not in told.value.message


def test_a_command_that_fails_is_work_that_failed():
    with pytest.raises(ascar.WorkError, match="false"):
        ascar.measure("false")


def test_results_show_themselves_in_a_notebook():
    page = ascar.measure(sleepy, preset="quick", rounds_max=30)._repr_html_()
    assert "seconds_per_call" in page
    assert page.count("<svg") == 1
    page = ascar.compare({"<b>": lambda: 1.0, "c": lambda: 2.0}, preset="quick")._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("<svg") == 1


def test_progress_is_told_on_request(capsys):
    ascar.measure(sleepy, preset="quick", rounds_max=30, progress=True)
    assert "seconds_per_call" in capsys.readouterr().err
    ascar.compare({"a": lambda: 1.0, "b": lambda: 2.0}, preset="quick", progress=True)
    assert "b ahead" in capsys.readouterr().err


def test_metrics_have_goals_of_their_own():
    values = itertools.cycle([9.0, 10.0, 11.0, 10.0, 12.0, 8.0])
    result = ascar.measure(
        lambda: {"a": next(values), "b": 10 * next(values)}, preset="quick", goals={"b": 0.5}
    )
    widths = {one.name: one.goal.interval_width_relative for one in result.indicators if one.goal}
    assert widths == {"a": 0.2, "b": 0.5}
    assert result.machines[0].cpus >= 1
    with pytest.raises(InputError, match="goals: 'c' must be one of a, b"):
        ascar.measure(lambda: {"a": 1.0, "b": 2.0}, goals={"c": 0.5})
    with pytest.raises(InputError, match="interval width = 0: must be above 0"):
        ascar.measure(lambda: {"a": 1.0, "b": 2.0}, goals={"a": 0})
