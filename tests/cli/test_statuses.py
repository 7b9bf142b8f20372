"""Exit statuses mean one thing; what ends without a decision says so in its help and in its JSON."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ascar.cli
from ascar import errors
from ascar.cli.statuses import MEANINGS, NO_DECISION, WITHOUT_DECISION
from ascar.pilot import PRESETS, ComparisonTerms
from ascar.results.documents import DOCUMENTS, struct_of
from command_tree import COMMANDS

CLI = Path(ascar.cli.__file__).parent


def test_no_command_has_a_status_of_its_own():
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Return):
                value = node.value
                ends = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
                told = [one.value for one in ends if isinstance(one, ast.Constant)]
                numbers = [one for one in told if one is not True]
                assert not {1, 2, 3, 130} & set(numbers), f"{path.name}:{node.lineno}"


def test_errors_have_one_of_these_statuses():
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    assert {one.exit_status for one in kinds} <= set(MEANINGS)


@pytest.mark.parametrize("name", WITHOUT_DECISION)
def test_a_command_that_may_not_decide_says_when_and_has_the_key(name):
    help_text = " ".join((COMMANDS[name].help or "").split())
    assert "xit status" in help_text
    assert str(NO_DECISION) in help_text.partition("xit status")[2]
    struct = struct_of(name.removeprefix("ascar ").replace(" ", "-"))
    assert WITHOUT_DECISION[name][1].partition(".")[0] in struct.__struct_fields__


def test_only_these_commands_speak_of_that_status():
    for name, command in COMMANDS.items():
        told = "xit status 3" in " ".join((command.help or "").split())
        assert not told or name in WITHOUT_DECISION, name
    calling = {
        path
        for path in CLI.rglob("*.py")
        if path.name != "statuses.py" and "decided(" in path.read_text("utf-8")
    }
    assert len(calling) == len(WITHOUT_DECISION)
    assert {name.removeprefix("ascar ").replace(" ", "-") for name in WITHOUT_DECISION} <= set(DOCUMENTS)


def test_recordings_that_do_not_tell_are_no_decision(ascar, tmp_path):
    files = []
    for name, first in (("a", 100), ("b", 101)):
        file = tmp_path / f"{name}.csv"
        file.write_text("x\n" + "".join(f"{first + (7 * i) % 13}\n" for i in range(30)))
        files.append(file)
    done = ascar("compare", *files, "--column", "x", "--json")
    assert done.document["verdict"] == "undecided"
    assert done.status == NO_DECISION


def test_a_search_for_rules_without_a_comparison_is_no_decision(ascar, tmp_path):
    arguments = ("--evaluations", "1", "--duration", "1 s", "--json", "--quiet")
    done = ascar("sharp", "search", "random-write", "--out", tmp_path / "rules.txt", *arguments)
    assert (done.document["verification"]["kind"] == "not-verified") == (done.status == NO_DECISION)


@pytest.mark.parametrize("name", ["ascar measure", "ascar analyze"])
def test_the_figures_of_presets_are_those_of_the_code(name):
    text = " ".join((COMMANDS[name].help or "").split()).partition("--preset")[2]
    for preset, goal in PRESETS.items():
        told = text.partition(preset)[2].partition(";")[0]
        assert f"{goal.interval_width:.0%}" in told
        assert f"{goal.readings_min} readings" in told
        if name == "ascar measure":
            assert f"{goal.rounds_min} round" in told


def test_the_figures_of_comparisons_presets_are_those_of_the_code():
    text = " ".join((COMMANDS["ascar compare"].help or "").split()).partition("--preset")[2]
    for preset in PRESETS:
        terms = ComparisonTerms.of(preset)
        told = text.partition(preset)[2].partition(";")[0]
        assert f"{100 * terms.margin:g}%" in told
        assert f"{terms.rounds_min}" in told


def test_only_commands_with_presets_have_the_option():
    having = {
        name
        for name, command in COMMANDS.items()
        if any("--preset" in one.opts for one in command.params if one.param_type_name == "option")
    }
    assert having == {"ascar measure", "ascar analyze", "ascar compare"}
