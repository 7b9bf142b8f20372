"""The help page of `ascar` itself is the one that the parser would write, at every width."""

import os
import subprocess
import sys

import pytest
import typer

from ascar.cli.app import app
from ascar.cli.front_page import front_page
from ascar.cli.lazy import LazyGroup


def parsers_page(columns):
    """The page as the parser writes it, from the options and commands that there are."""
    command = typer.main.get_command(app)
    context = command.make_context("ascar", ["init"])
    # The parser's own bounds for a terminal of so many columns.
    context.terminal_width = max(min(columns, 80) - 2, 50)
    return super(LazyGroup, command).get_help(context)


@pytest.mark.parametrize("columns", [1, 40, 52, 53, 66, 79, 80, 81, 200])
def test_the_page_is_what_the_parser_would_write(columns):
    assert front_page(columns) == parsers_page(columns)


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["--help", "-h"], ["--help", "tune"]])
def test_every_way_to_ask_for_it_prints_the_page(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "ascar", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{front_page()}\n"
    assert not done.stderr


def test_a_reader_that_has_seen_enough_gets_no_traceback():
    with subprocess.Popen(
        [sys.executable, "-m", "ascar", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.wait(60) == 0
        assert not process.stderr.read()


def test_a_shell_that_completes_gets_the_commands_in_place_of_the_page():
    done = subprocess.run(
        [sys.executable, "-m", "ascar"],
        env={**os.environ, "_ASCAR_COMPLETE": "complete_bash", "COMP_WORDS": "ascar hist", "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["history"]
