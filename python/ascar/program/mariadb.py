"""Where the programs of MariaDB are, and which settings its server has."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks
from ascar.program.said import said_by
from ascar.program.version import InstalledVersion

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDERS = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin")
"""Where packages put the server, beside the search path."""
_VERSION = re.compile(r"Ver (\d+)\.(\d+)\.(\d+)-MariaDB")
_SETTING = re.compile(r"^([a-z][a-z0-9-]*) +(.*)$", re.MULTILINE)
_TABLE = "Variables (--variable-name=value)"


@dataclass(frozen=True, slots=True)
class MariaPrograms(InstalledVersion):
    """The programs of one version.

    Attributes:
        server: the path of the server.
    """

    server: Path

    @classmethod
    def find(cls, version: int | None = None) -> MariaPrograms:
        """The programs of a major version; None: of the one that is installed.

        Raises:
            EnvironmentLacks: there are none.
        """
        found = _found(os.pathsep.join((os.environ.get("PATH", os.defpath), *_FOLDERS)))
        if found is None:
            raise EnvironmentLacks("MariaDB is not installed; install the package mariadb-server")
        found.check_major(version)
        return found

    @property
    def folder(self) -> Path:
        """The directory of the programs."""
        return self.server.parent

    def path(self, name: str) -> str:
        """Another program, such as "mariadb".

        Raises:
            EnvironmentLacks: it is missing.
        """
        beside = os.pathsep.join((str(self.folder), os.environ.get("PATH", os.defpath)))
        found = shutil.which(name, path=beside)
        if found is None:
            raise EnvironmentLacks(f"{name} is missing; install the package mariadb-client")
        return found

    def settings(self, max_connections: int, given: Mapping[str, str] | None = None) -> Mapping[str, str]:
        """The settings that the server has, with its own defaults (`mariadbd --verbose --help`).

        What InnoDB decides only when it starts is not among them.

        Args:
            max_connections: the connections that it takes, by which it chooses some of them.
            given: values of settings, which the server may make others of.
        """
        words = [f"--{name}={text}" for name, text in (given or {}).items()]
        return _settings(str(self.server), f"--max-connections={max_connections}", *words)


@cache
def _found(path: str) -> MariaPrograms | None:
    """The programs on a search path."""
    for name in ("mariadbd", "mysqld"):
        server = shutil.which(name, path=path)
        said = "" if server is None else said_by(server, "--version").out
        version = _VERSION.search(said)
        if server is not None and version is not None:
            return MariaPrograms(".".join(version.groups()), Path(server))
    return None


@cache
def _settings(server: str, *given: str) -> Mapping[str, str]:
    said = said_by(server, "--no-defaults", *given, "--verbose", "--help").out
    _, _, table = said.partition(_TABLE)
    return {name.replace("-", "_"): default.strip() for name, default in _SETTING.findall(table)}
