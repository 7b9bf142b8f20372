"""Where PostgreSQL's programs are."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ascar.errors import EnvironmentLacks
from ascar.program.said import Said, said_by

HOMES = ("/usr/lib/postgresql", "/usr")
"""Where Debian has a folder for each version, and Fedora the one."""


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
            have = ", ".join(str(one.major) for one in found)
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
    wrong = [server, "-C", name, "-c", f"{name}=?", "-c", f"config_file={os.devnull}", "-D", os.sep]
    told = re.search(r"HINT:\s+Available values: (.*)\.", _asked(*wrong).err)
    return frozenset(told[1].split(", ")) if told else frozenset()


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
