"""A configuration as lines of an OPTIONS file, by which RocksDB opens a database (LoadOptionsFromFile)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.catalogues.rocksdb import SECTIONS, rocksdb
from ascar.quoting import rocksdb_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ascar.program.rocksdb import RocksPrograms
    from ascar.space import Value


def options_lines(programs: RocksPrograms, configuration: Mapping[str, Value]) -> list[str]:
    """The lines of a file; what it does not name has RocksDB's defaults.

    Args:
        programs: the version that reads it.
        configuration: values by their names in a study.
    """
    known = {one.parameter_name: one for one in rocksdb().values()}
    sections: dict[str, list[str]] = {name: [] for name in SECTIONS}
    for name, value in configuration.items():
        one = known[name]
        sections[one.section].append(f"{one.name}={rocksdb_value(one.text(value))}")
    return programs.options_file(sections)
