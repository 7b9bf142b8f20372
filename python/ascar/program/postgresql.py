"""Where PostgreSQL's programs are."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks
from ascar.program.said import Said, said_by

if TYPE_CHECKING:
    from collections.abc import Iterable

HOMES = ("/usr/lib/postgresql", "/usr")
"""Where Debian has a folder for each version, and Fedora the one."""

_OUTSIDE = re.compile(
    r"\S+(?: (?P<unit>\S+))? is outside the valid range for parameter \"(?P<name>\w+)\" "
    r"\((?P<least>\S+)(?: \S+)? \.\. (?P<most>\S+?)(?: \S+)?\)"
)
_INVALID = re.compile(r"invalid value for parameter \"(?P<name>\w+)\"")


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one version.

    Attributes:
        folder: the directory of the programs.
        version: the version as the server says it, such as "15.8".
    """

    folder: Path
    version: str

    @classmethod
    def find(cls, version: int | None = None) -> Programs:
        """The programs of a major version; None: of the newest one that is installed.

        Raises:
            EnvironmentLacks: there are none.
        """
        found = sorted((known for known in map(_known, _folders()) if known), key=lambda one: one.major)
        fitting = [one for one in found if version in (None, one.major)]
        if not found:
            raise EnvironmentLacks(
                "PostgreSQL is not installed; install the package postgresql (Fedora: postgresql-server)"
            )
        if not fitting:
            have = ", ".join(str(one) for one in sorted({one.major for one in found}))
            raise EnvironmentLacks(
                f"target.version = {version}: must be one of the versions that are installed: {have}"
            )
        return fitting[-1]

    @property
    def major(self) -> int:
        """The major version."""
        return int(self.version.split(".")[0])

    def path(self, name: str) -> str:
        """A program.

        Raises:
            EnvironmentLacks: it is missing.
        """
        for place in (self.folder / name, Path("/usr/bin") / name):
            if os.access(place, os.X_OK):
                return str(place)
        raise EnvironmentLacks(f"{name} of PostgreSQL {self.major} is missing in {self.folder}")

    def settings(self) -> frozenset[str]:
        """The names of the settings that this version of the server has (`postgres --describe-config`)."""
        return _settings(self.path("postgres"))

    def takes(self, name: str, value: str) -> bool:
        """Whether the server takes a value of a setting: some depend on how it was built."""
        return value in _values(self.path("postgres"), name)

    def refused(self, values: Iterable[tuple[str, str]]) -> RefusedValue | None:
        """The first of some settings whose value the server refuses; None: it takes all of them.

        Args:
            values: names of settings, and their values as a configuration file writes them.
        """
        return _refused(self.path("postgres"), tuple(values))


@dataclass(frozen=True, slots=True)
class RefusedValue:
    """A setting to which a value was given that the server refuses.

    Attributes:
        name: the setting's name.
        unit: the server's unit of its numbers.
        least: the least number that the server takes; empty where the range was not the reason.
        most: the greatest number that it takes.
    """

    name: str
    unit: str
    least: str
    most: str


def _asked(*words: str) -> Said:
    """The answer of a server's program, which is kept: one that could not be asked now is asked again.

    Raises:
        EnvironmentLacks: it could not be asked.
    """
    said = said_by(*words, environment={"LC_ALL": "C"})
    if said.status is None:
        raise EnvironmentLacks(f"{words[0]}: does not answer {words[1]}; try again")
    return said


@cache
def _settings(server: str) -> frozenset[str]:
    lines = _asked(server, "--describe-config").out.splitlines()
    return frozenset(line.split("\t")[0] for line in lines if "\t" in line)


@cache
def _values(server: str, name: str) -> frozenset[str]:
    """The values of a setting: the server names them when it refuses another one, without any data."""
    told = re.search(r"HINT:\s+Available values: (.*)\.", _tried(server, name, ((name, "?"),)))
    return frozenset(told[1].split(", ")) if told else frozenset()


@cache
def _refused(server: str, values: tuple[tuple[str, str], ...]) -> RefusedValue | None:
    """What the server refuses of some values, without any data: parse_and_validate_value in guc.c."""
    said = _tried(server, "fsync", values) if values else ""
    if told := _OUTSIDE.search(said):
        return RefusedValue(told["name"], told["unit"] or "", told["least"], told["most"])
    other = _INVALID.search(said)
    return None if other is None else RefusedValue(other["name"], "", "", "")


def _tried(server: str, name: str, values: tuple[tuple[str, str], ...]) -> str:
    """What a server says that is asked for one setting, without any data, and given values."""
    given = [word for one, value in values for word in ("-c", f"{one}={value}")]
    return _asked(server, "-C", name, *given, "-c", f"config_file={os.devnull}", "-D", os.sep).err


def _folders() -> list[Path]:
    named = shutil.which("postgres")
    versions = sorted(Path(HOMES[0]).glob("[0-9]*/bin"))
    return [*versions, *([Path(named).resolve().parent] if named else []), Path(HOMES[1]) / "bin"]


@cache
def _known(folder: Path) -> Programs | None:
    server = folder / "postgres"
    if not os.access(server, os.X_OK):
        return None
    version = re.search(r"(\d+)(?:\.\d+|beta\d+|rc\d+|devel)?", _asked(str(server), "--version").out)
    return None if version is None else Programs(folder, version[0])
