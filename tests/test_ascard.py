"""The command lines of the node binary: help, options, and mistakes."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMMANDS = ["", "agent", "disk", "interface", "interface merge", "keeper", "load", "proxy"]
OPTION = re.compile(r"^  (?:-\w, )?(--[a-z-]+)(?: ([A-Z]+))?  +([A-Z].*\.|.*\]\.)$")


def ran(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([find_ascard(), *words], capture_output=True, text=True, check=False)


def helped(command: str) -> str:
    """What a command's --help prints."""
    done = ran([*command.split(), "--help"])
    if "built without it" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def options(command: str) -> dict[str, str]:
    """What its help describes, each as one sentence: options, and what their values stand for."""
    lines = helped(command).partition("Options:\n")[2].partition("\n\n")[0].splitlines()
    found = [OPTION.match(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    return {match[1]: match[2] or "" for match in found if match}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_usage_options_and_examples_that_use_them(command: str) -> None:
    text = helped(command)
    assert text == ran([*command.split(), "-h"]).stdout
    assert text[0].isupper() and text.partition("\n")[0].endswith(".")
    usage = text.partition("Usage: ")[2].partition("\n\n")[0]
    examples = text.partition("Examples:\n")[2].splitlines()
    assert examples
    known = set(options(command))
    within = {option for name in COMMANDS if name.startswith(command) for option in options(name)}
    assert set(re.findall(r"--[a-z-]+", usage)) <= (known if command != "interface" else within)
    for example in examples:
        words = re.split(r"\s{2,}", example.strip())[0].split()
        names = [word.rpartition("/")[2] for word in words]
        part = [word for word in words[names.index("ascard") + 1 :] if not word.startswith("-")]
        of = next(name for name in sorted(COMMANDS, reverse=True) if " ".join(part).startswith(name))
        assert {word for word in words if word.startswith("--")} <= set(options(of)), example


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_the_help_is_read_as_it_says(command: str) -> None:
    for option, value in options(command).items():
        if value:
            done, said = ran([*command.split(), option]), f"{option}: needs a value after it: {value}"
        else:
            done, said = ran([*command.split(), f"{option}=x"]), f'{option} = "x": the option takes no value'
        assert done.returncode == 2
        assert done.stderr == f"ascard{command and ' '}{command.split(' ', maxsplit=1)[0]}: {said}\n"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("word", ["--seconds-", "-x", "--a\nb", "--\N{SNOWMAN}"])
def test_unknown_options_are_refused_with_those_that_are_allowed(command: str, word: str) -> None:
    known = options(command)
    done = ran([*command.split(), word])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "unknown argument; allowed: " in done.stderr
    assert all(option in done.stderr for option in known)


def test_numbers_out_of_range_are_refused_with_the_range() -> None:
    for option, value, limits in (
        ("--seconds", "0", "0.001 to 31622400"),
        ("--seconds", "nan", "0.001 to 31622400"),
        ("--scale", "-1", "0.000000001 to 1000000"),
        ("--threads", "1.5", "1 to "),
        ("--seed", "-1", "0 to 18446744073709551615"),
        ("--reading-ms", "9", "10 to 3600000"),
    ):
        done = ran(["load", "--list", option, value])
        assert done.returncode == 2
        assert f'{option} = "{value}": must be a number from {limits}' in done.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--version"], 1),
        (["--help"], 1),
        (["nonsense"], 2),
        ([], 2),
        (["agent", "--help"], 1),
        (["disk", "--help"], 1),
        (["interface", "--help"], 1),
        (["interface", "merge", "--help"], 2),
        (["load", "--seconds-"], 2),
        (["proxy", "--help"], 1),
        (["keeper", "--seconds-"], 2),
        (["keeper", "--user", "--restore", "--state-dir", "{folder}"], 1),
    ],
)
def test_a_line_that_cannot_be_written_is_lost_and_no_panic(
    words: list[str], status: int, tmp_path: Path
) -> None:
    command = ["sh", "-c", 'exec "$@" >/dev/full 2>&1', "sh", find_ascard()]
    done = subprocess.run([*command, *(word.format(folder=tmp_path) for word in words)], check=False)
    assert done.returncode == status
