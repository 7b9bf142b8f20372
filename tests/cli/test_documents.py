"""What the documents and help pages say can really be typed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from command_tree import COMMAND, COMMANDS

ROOT = Path(__file__).resolve().parents[2]


def _commands():
    pages = [*(ROOT / "docs" / "tutorials").glob("*.md"), ROOT / "README.md"]
    for page in pages:
        text = _joined(page.read_text("utf-8"))
        for line in re.findall(r"^ {4}(?:\$ )?(ascar .*)$", text, re.MULTILINE):
            yield line
    for command in COMMANDS.values():
        for line in _joined(command.epilog or "").splitlines():
            if line.strip().startswith("ascar "):
                yield line.strip()


def _joined(text):
    """Lines that a backslash at the end continues, as one."""
    return re.sub(r" *\\\n\s*", " ", text)


@pytest.mark.parametrize("line", sorted(set(_commands())))
def test_a_command_that_is_shown_can_be_parsed(line):
    words = shlex.split(re.split(r"\s{4,}| [|>] ", line)[0])[1:]
    command, path = COMMAND, []
    while hasattr(command, "commands"):
        assert words, line
        path.append(words.pop(0))
        command = command.commands[path[-1]]
    with command.make_context(" ".join(path), words):
        pass


def test_the_reference_is_up_to_date():
    script = ROOT / "scripts" / "reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
