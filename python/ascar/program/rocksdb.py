"""Where db_bench is, and which options its RocksDB has: those of the OPTIONS file of an empty database."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ascar.catalogues.rocksdb import SECTIONS
from ascar.errors import EnvironmentLacks
from ascar.program.said import said_by
from ascar.program.version import InstalledVersion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VERSION = re.compile(r"^db_bench version (\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_OPTION = re.compile(r"^ *([A-Za-z0-9_]+)=(.*)$", re.MULTILINE)
_CACHE = re.compile(r"block_cache_options:.*?\bcapacity ?: ?([0-9]+)", re.DOTALL)
_SUPPORTED = re.compile(r"\b(k[A-Za-z0-9]+) supported: 1")
_FILE_BYTES_MAX = 1 << 20
DATABASE, OPTIONS = "ROCKSDB_DATABASE", "ROCKSDB_OPTIONS"
"""The variables by which a load finds a database and its OPTIONS file."""
OPEN = "levelstats"
"""A benchmark that opens the database, prints a few lines, and closes it."""


@dataclass(frozen=True, slots=True)
class OptionsInForce:
    """What an open database has.

    Attributes:
        values: the values of its options by RocksDB's names, as an OPTIONS file has them.
        compressions: the compressions that the library was built with.
    """

    values: Mapping[str, str] = field(default_factory=dict[str, str])
    compressions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, database: Path) -> OptionsInForce:
        """What RocksDB wrote when it last opened a database: its OPTIONS file, and its log for the cache."""
        files = sorted(database.glob("OPTIONS-*"), key=lambda path: path.name)
        values = dict(_OPTION.findall(_head(files[-1]))) if files else {}
        log = _head(database / "LOG")
        if capacity := _CACHE.search(log):
            values["block_cache"] = capacity[1]
        return cls(values, frozenset({"kNoCompression", *_SUPPORTED.findall(log)}))


@dataclass(frozen=True, slots=True)
class RocksPrograms(InstalledVersion):
    """The programs of one version.

    Attributes:
        bench: the path of db_bench.
    """

    bench: Path

    @classmethod
    def find(cls, version: int | None = None) -> RocksPrograms:
        """The programs of a major version; None: of the one that is installed.

        Raises:
            EnvironmentLacks: there are none.
        """
        found = _found(os.environ.get("PATH", os.defpath))
        if found is None:
            raise EnvironmentLacks("db_bench is not installed; install the package rocksdb-tools")
        found.check_major(version)
        return found

    @property
    def folder(self) -> Path:
        """The directory of the programs."""
        return self.bench.parent

    def defaults(self) -> OptionsInForce:
        """The options that the library has, with its own defaults.

        Raises:
            EnvironmentLacks: it cannot open an empty database.
        """
        return self.opened(())

    def opened(self, lines: Sequence[str]) -> OptionsInForce:
        """What the library has in an empty database that is opened with an OPTIONS file.

        Args:
            lines: those of the file.

        Raises:
            EnvironmentLacks: it cannot open one.
        """
        return _opened(self, tuple(lines or self.options_file({})))

    def options_file(self, sections: Mapping[str, Sequence[str]]) -> list[str]:
        """The lines of an OPTIONS file; options that it does not name have RocksDB's defaults.

        Args:
            sections: lines by section.
        """
        lines = ["[Version]", f"  rocksdb_version={self.version}", "  options_file_version=1.1"]
        for name in SECTIONS:
            lines += [f"[{name}]" if name == "DBOptions" else f'[{name} "default"]']
            lines += [f"  {line}" for line in sections.get(name, ())]
        return lines

    def opening(self, database: Path, options: Path, *more: str) -> list[str]:
        """The command that opens a database with an OPTIONS file, whose block cache counts."""
        return [str(self.bench), f"--db={database}", f"--options_file={options}", "--cache_size=0", *more]


def _head(path: Path) -> str:
    """The beginning of a file, which is all that is wanted of it; empty where it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(_FILE_BYTES_MAX).decode("utf-8", "replace")
    return ""


@cache
def _found(path: str) -> RocksPrograms | None:
    """The programs on a search path."""
    bench = shutil.which("db_bench", path=path)
    version = None if bench is None else _VERSION.search("".join(said_by(bench, "--version")[:2]))
    if bench is None or version is None:
        return None
    return RocksPrograms(".".join(version.groups()), Path(bench))


@cache
def _opened(programs: RocksPrograms, lines: tuple[str, ...]) -> OptionsInForce:
    with tempfile.TemporaryDirectory(prefix="ascar-") as folder:
        options, database = Path(folder, "options"), Path(folder, "database")
        options.write_text("\n".join([*lines, ""]), "utf-8")
        told = said_by(*programs.opening(database, options, f"--benchmarks={OPEN}", "--num=1"))
        said = told.out + told.err
        found = OptionsInForce.of(database)
    if not found.values:
        last = (said.strip().splitlines() or ["it says nothing"])[-1][:300]
        raise EnvironmentLacks(f"db_bench {programs.version} opens no database; it says: {last}")
    return found
