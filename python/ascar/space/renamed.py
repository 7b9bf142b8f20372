"""Parameters of the storage presets that took the identifier of their native name, in what is older."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

RENAMED: Final[Mapping[str, str]] = {
    "ext4_inode_readahead_blocks": "ext4_inode_readahead_blks",
    "scheduler": "block_scheduler",
    "nr_requests": "block_nr_requests",
    "read_ahead_kb": "block_read_ahead_kb",
    "dirty_background_ratio_percent": "vm_dirty_background_ratio",
    "dirty_ratio_percent": "vm_dirty_ratio",
    "dirty_expire_centisecs": "vm_dirty_expire_centisecs",
    "vfs_cache_pressure_percent": "vm_vfs_cache_pressure",
}
"""Old name to present name."""

# A name stands alone, or behind the table that it is a key of: not in a path, nor in a native name.
_OLD = re.compile(rf"(?:(?<![\w./])|(?<=parameters\.)|(?<=pinned\.))({'|'.join(RENAMED)})\b(?![./])")


def has_old_names(space: object) -> bool:
    """Whether a space's document is one of a storage preset with the old names."""
    if not isinstance(space, Mapping):
        return False
    document = cast("Mapping[str, Any]", space)
    tables = cast("Any", document.get("parameters"))
    return (
        str(document.get("name")).startswith("storage-v")
        and isinstance(tables, Sequence)
        and any(
            isinstance(table, Mapping) and table.get("name") in RENAMED
            for table in cast("Sequence[Any]", tables)
        )
    )


def with_present_names(value: Any) -> Any:
    """Plain values with the present names: as keys of mappings, as texts, and in formulas."""
    if isinstance(value, str):
        return _OLD.sub(lambda found: RENAMED[found[1]], value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {RENAMED.get(key, key): with_present_names(item) for key, item in items}
    if isinstance(value, Sequence):
        return [with_present_names(item) for item in cast("Sequence[Any]", value)]
    return value


def study_with_present_names(text: str) -> str:
    """A study file's text with the present names; its comments stay as they are."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        keys, mark, comment = line.partition(" #")
        lines.append(line if line.startswith("#") else with_present_names(keys) + mark + comment)
    return "".join(lines)
