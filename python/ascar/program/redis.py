"""Where the programs of Redis are, or those of Valkey, which began as Redis 7.2."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.catalogues.redis import redis_of
from ascar.errors import EnvironmentLacks
from ascar.program.said import said_by
from ascar.program.version import InstalledVersion

if TYPE_CHECKING:
    from ascar.catalogues.redis import RedisSetting

FLAVOURS = ("redis", "valkey")
"""The beginnings of the programs' names."""
_VERSION = re.compile(r"\bv=(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class RedisPrograms(InstalledVersion):
    """The programs of one version.

    Attributes:
        flavour: "redis" or "valkey".
        server: the path of the server.
    """

    flavour: str
    server: Path

    @classmethod
    def find(cls, version: int | None = None, flavour: str | None = None) -> RedisPrograms:
        """The programs of a major version; None: of the first flavour that is installed.

        Raises:
            EnvironmentLacks: there are none.
        """
        flavours = FLAVOURS if flavour is None else (flavour,)
        found = [known for one in flavours if (known := _known(one, os.environ.get("PATH", os.defpath)))]
        if not found:
            package = flavours[0]
            raise EnvironmentLacks(
                f"{' or '.join(flavours)}-server is not installed; install the package {package}-server "
                f"(Fedora: {package})"
            )
        fitting = [one for one in found if version in (None, one.number[0])]
        if not fitting:
            have = ", ".join(f"{one.number[0]} ({one.flavour} {one.version})" for one in found)
            raise EnvironmentLacks(
                f"target.version = {version}: must be one of the versions that are installed: {have}"
            )
        return fitting[0]

    @property
    def folder(self) -> Path:
        """The directory of the programs."""
        return self.server.parent

    def settings(self) -> dict[str, RedisSetting]:
        """The settings that this version of the server has, by its own names."""
        return redis_of(self.flavour, self.number)

    def path(self, tool: str) -> str:
        """Another program: "cli" or "benchmark".

        Raises:
            EnvironmentLacks: it is missing.
        """
        # Both speak the same protocol, so that the other flavour's program will do.
        for flavour in (self.flavour, *FLAVOURS):
            name = f"{flavour}-{tool}"
            beside = self.server.with_name(name)
            found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
            if found is not None:
                return found
        raise EnvironmentLacks(f"{self.flavour}-{tool} is missing; install the package {self.flavour}-tools")


@cache
def _known(flavour: str, path: str) -> RedisPrograms | None:
    """The programs of a flavour on a search path."""
    server = shutil.which(f"{flavour}-server", path=path)
    if server is None:
        return None
    version = _VERSION.search(said_by(server, "--version").out)
    if version is None:
        return None
    return RedisPrograms(".".join(version.groups()), flavour, Path(server))
