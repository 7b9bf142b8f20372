"""The commands of a study, with values in their words: run, and what `check` tells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ascar.systems.program.commands import CommandPlace, done_command, program_path
from ascar.systems.program.placeholders import command_of, filled, names_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ascar.space import Space
    from ascar.systems.program.options import ProgramOptions
    from ascar.systems.program.placeholders import Words

_LINE = re.compile(r"\s*([\w.-]+)(?:\s*[=:]\s*|\s+)(.*?)\s*;?\s*$")


class ProgramCommands:
    """The commands of a `[target]` table.

    Args:
        options: the table.
        space: the study's space, which knows the program's own names of its parameters.

    Raises:
        EnvironmentLacks: a command's program is not there.
    """

    def __init__(self, options: ProgramOptions, space: Space) -> None:
        self.space = space
        self.directory = Path("/")
        self.pid: int | None = None
        self._options = options
        self._programs = {
            key: program_path(key, cast("str", words[0])) for key, words in options.commands.items()
        }

    def do(self, key: str, words: Words, values: Mapping[str, str]) -> str:
        """Run a command; what it prints.

        Raises:
            StageFailed: it fails.
        """
        return done_command(key, self.command(key, words, values), self.place(values))

    def command(self, key: str, words: Words, values: Mapping[str, str]) -> list[str]:
        """The words of a command."""
        return [self._programs[key], *command_of(words, {**values, **self._own()})[1:]]

    def place(self, values: Mapping[str, str]) -> CommandPlace:
        """Where commands run, and with which variables."""
        texts = {**values, **self._own()}
        variables = {name: filled(text, texts) for name, text in self._options.environment.items()}
        given = self._options.directory
        return CommandPlace(
            self.directory if given is None else Path(given),
            self._options.command_s,
            {name: text for name, text in variables.items() if text is not None},
        )

    def named(self, name: str, value: str) -> dict[str, str]:
        """What `{name}` and `{value}` stand for."""
        return {"name": self._native(name), "value": value}

    def checked(
        self, names: Collection[str], by_name: Collection[str], values: Mapping[str, str]
    ) -> dict[str, str]:
        """What `check` tells, as text, of the parameters that are asked about.

        Args:
            names: the parameters.
            by_name: those that are asked about one by one, where `check` has `{name}`.
            values: the values in force, for other words of `check`.

        Raises:
            StageFailed: it fails.
        """
        check = self._options.check
        if "name" not in names_of(check):
            return _told(self.do("check", check, values), {name: self._native(name) for name in names})
        told: dict[str, str] = {}
        for name in names:
            if name in by_name:
                lines = self.do("check", check, {**values, **self.named(name, "")}).splitlines()
                told[name] = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return told

    def _native(self, name: str) -> str:
        return self.space[name].native or name

    def _own(self) -> dict[str, str]:
        pid = {} if self.pid is None else {"pid": str(self.pid)}
        return {"directory": str(self.directory), **pid}


def _told(output: str, names: Mapping[str, str]) -> dict[str, str]:
    """Values by parameter, from a JSON table or from lines of `name value`.

    Args:
        output: what a command printed.
        names: the program's own name of each parameter.
    """
    try:
        table = json.loads(output)
    except (ValueError, RecursionError):
        table = None
    if isinstance(table, dict):
        said = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in cast("dict[str, Any]", table).items()
        }
    else:
        said = {match[1]: match[2] for line in output.splitlines() if (match := _LINE.match(line))}
    told: dict[str, str] = {}
    for name, native in names.items():
        found = said.get(name, said.get(native))
        if found is not None:
            told[name] = found
    return told
