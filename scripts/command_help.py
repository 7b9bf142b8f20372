"""What commands say of themselves: those of `ascar` by its parser, those of `ascard` by their help pages."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ascar.program.node_binary import find_ascard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_DESCRIBED = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")


# A command of `ascar`


def purpose_of(command: Any) -> str:
    """What the command does, in paragraphs."""
    return inspect.cleandoc(command.help or "")


def usage_of(command: Any) -> Iterator[str]:
    """The words after the command."""
    if any(parameter.param_type_name == "option" for parameter in command.params):
        yield "[OPTIONS]"
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield (parameter.metavar or parameter.name.upper())


def described_by(command: Any) -> Iterator[tuple[str, str, Any]]:
    """Its arguments and options: names with what follows them, the sentence, the default or None."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield parameter.metavar or parameter.name.upper(), parameter.help or "", None
        else:
            names = ", ".join([*parameter.opts, *parameter.secondary_opts])
            metavar = f" {parameter.metavar}" if parameter.metavar else ""
            default = parameter.default
            is_shown = not (default in (None, False, True, ...) or callable(default))
            yield f"{names}{metavar}", parameter.help or "", default if is_shown else None


def examples_of(command: Any) -> list[str]:
    """Its examples, a line each."""
    return [line.strip() for line in (command.epilog or "").splitlines()[2:]]


# A command of `ascard`


def help_of_ascard(*words: str) -> str:
    """A help page of the `ascard` that ASCARD names, else of this environment's; without words, its own."""
    ascard = os.environ.get("ASCARD") or find_ascard()
    done = subprocess.run([ascard, *words, "--help"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def rows_of(section: str) -> list[tuple[str, str]]:
    """What two columns describe; a line that is set in further goes on with the one before."""
    rows: list[tuple[str, str]] = []
    for line in section.splitlines():
        found = _DESCRIBED.match(line)
        if found:
            rows.append((found[1], found[2] or ""))
        elif rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}".strip())
    return rows


def section_of(text: str, title: str) -> str:
    """A section of a help page, without its title; empty where it has none."""
    return next((rest for head, _, rest in map(_titled, text.split("\n\n")) if head == title), "")


def _titled(block: str) -> tuple[str, str, str]:
    return block.strip("\n").partition(":\n")


def roles() -> list[str]:
    """The commands of `ascard`."""
    return [name for name, _ in rows_of(section_of(help_of_ascard(), "Commands"))]


# Files of both


def write_files(made: Callable[[], Mapping[str, str]]) -> int:
    """Write files by their names into the directory that the command line names."""
    if len(sys.argv) != 2:
        sys.stderr.write(f"{Path(sys.argv[0]).stem}: one argument, the directory to write into\n")
        return 2
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in made().items():
        (directory / name).write_text(text, "utf-8")
    return 0
