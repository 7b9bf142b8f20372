"""Which controllers follow which rules, as far as this machine has put them in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ascar import typed
from ascar.errors import WorkError
from ascar.messaging import token

if TYPE_CHECKING:
    from pathlib import Path

_BYTES_MAX = 4 << 20


class ExpectedDeployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was put in force.

    Attributes:
        version: the version of this format.
        workload: the workload whose controllers follow the rules.
        rules: id of the rule set.
        controllers: the controllers' names.
    """

    workload: str
    rules: str
    controllers: tuple[str, ...]
    version: int = 1


class Roster:
    """A file a workload, in a folder that lives as long as processes do.

    Args:
        directory: the directory of the files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def expected(self, workload: str) -> ExpectedDeployment | None:
        """What was put in force for a workload; None where nothing was, or nobody can tell any more."""
        path = self._path(workload)
        try:
            with path.open("rb") as file:
                found = typed.decode(file.read(_BYTES_MAX), ExpectedDeployment)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return found if found.version == 1 else None

    def workloads(self) -> tuple[str, ...]:
        """Workloads for which something was put in force."""
        return tuple(sorted(path.stem for path in self._directory.glob("*.json")))

    def write(self, expected: ExpectedDeployment) -> None:
        """Remember what was put in force.

        Raises:
            WorkError: it cannot be written.
        """
        path = self._path(expected.workload)
        new = path.with_suffix(".new")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(msgspec.json.encode(expected))
            new.replace(path)
        except OSError as error:
            raise WorkError(f"{path}: cannot be written: {error.strerror}") from None

    def forget(self, workload: str) -> None:
        """Expect nobody any more."""
        self._path(workload).unlink(missing_ok=True)

    def _path(self, workload: str) -> Path:
        return self._directory / f"{token('workload', workload)}.json"
