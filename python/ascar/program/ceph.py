"""Where the programs of Ceph are, and their version."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.errors import EnvironmentLacks, StageFailed
from ascar.program.said import Said, said_by
from ascar.program.version import InstalledVersion

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

CONFIGURATION, POOL, USER = "CEPH_CONF", "CEPH_POOL", "CEPH_USER"
"""The variables by which a load finds a cluster, a pool and a user; Ceph's own programs know the first."""
_NEEDED = {
    "ceph-osd": "ceph-osd",
    "ceph-mon": "ceph-mon",
    "ceph-mgr": "ceph-mgr",
    "monmaptool": "ceph-common",
    "ceph": "ceph-common",
    "rados": "ceph-common",
}
_VERSION = re.compile(r"\bceph version (\d+)\.(\d+)\.(\d+)")
_HEALTH_S = 10.0


@dataclass(frozen=True, slots=True)
class CephPrograms(InstalledVersion):
    """The programs of one version.

    Attributes:
        folder: the directory of the programs.
    """

    folder: Path

    @classmethod
    def find(cls, version: int | None = None) -> CephPrograms:
        """The programs of a major version; None: of the one that is installed.

        Raises:
            EnvironmentLacks: there are none, or one of them is missing.
        """
        found = _found(os.environ.get("PATH", os.defpath))
        if isinstance(found, str):
            raise EnvironmentLacks(f"{found} is not installed; install the package {_NEEDED[found]}")
        found.check_major(version)
        return found

    def path(self, name: str) -> str:
        """The path of a program."""
        return str(self.folder / name)


def cluster_of(environment: Mapping[str, str], load: str) -> tuple[str, str]:
    """The path of ceph.conf and the pool of the target's cluster.

    Args:
        environment: the variables that programs of the load are given.
        load: the load that needs it, for the message.

    Raises:
        StageFailed: the target has no cluster.
    """
    if CONFIGURATION not in environment or POOL not in environment:
        problem = f"{load}: the target has no Ceph cluster; it needs target.kind = 'ceph'"
        raise StageFailed("load", problem)
    return environment[CONFIGURATION], environment[POOL]


@contextmanager
def explained(environment: Mapping[str, str]) -> Generator[None]:
    """Add what the cluster says of its health to a failure: a load waits for full OSDs without a word.

    Args:
        environment: the variables that programs of the load are given; without a cluster nothing is added.

    Raises:
        StageFailed: what is done meanwhile fails.
    """
    try:
        yield
    except StageFailed as failure:
        said = _health(environment)
        if not said:
            raise
        message = failure.message.removeprefix(f"{failure.stage}: ")
        raise StageFailed(failure.stage, f"{message}; the cluster says {said}", failure.stderr) from failure


def _health(environment: Mapping[str, str]) -> str:
    """What is wrong with a cluster, in one line; nothing where it is healthy or does not answer."""
    program = shutil.which("ceph")
    if CONFIGURATION not in environment or program is None:
        return ""
    words = [program, "-c", environment[CONFIGURATION], "--connect-timeout", "5", "health"]
    told = said_by(*words, limit_s=_HEALTH_S, environment=environment)
    said = " ".join(told.out.split())
    return "" if told.status != 0 or said.startswith("HEALTH_OK") else said[:200]


@cache
def _found(path: str) -> CephPrograms | str:
    """The programs on a search path, or the name of the first that is missing."""
    osd = shutil.which("ceph-osd", path=path)
    told = Said() if osd is None else said_by(osd, "--version")
    version = _VERSION.search(told.out) if told.status == 0 else None
    if osd is None or version is None:
        return "ceph-osd"
    folder = Path(osd).parent
    for name in _NEEDED:
        if not os.access(folder / name, os.X_OK):
            return name
    return CephPrograms(".".join(version.groups()), folder)
