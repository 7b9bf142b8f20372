"""A history that cannot be written, on a read-only disk or of another user: it is read where it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

import sqlalchemy as sa

if TYPE_CHECKING:
    from pathlib import Path


def read_only_url(file: Path) -> sa.URL | None:
    """The address of a file of SQLite's that can be read and not written; None where it can, or is not there.

    A log beside it is read, too; without one SQLite need not make any, as no one can write meanwhile.
    """
    if not file.is_file() or (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        return None
    log = file.with_name(f"{file.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    query = {"mode": "ro", "uri": "true"} | ({} if has_log else {"immutable": "1"})
    return sa.URL.create("sqlite", database=f"file:{quote(str(file.absolute()))}", query=query)
