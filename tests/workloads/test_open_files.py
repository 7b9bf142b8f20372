"""The files that a process has open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ascar.workloads.open_files import open_file_sizes

if TYPE_CHECKING:
    from pathlib import Path


def test_open_files_have_sizes(tmp_path: Path) -> None:
    log, gone = tmp_path / "log", tmp_path / "gone"
    log.write_bytes(bytes(300))
    with log.open("rb"), gone.open("wb"):
        gone.unlink()
        found = open_file_sizes(os.getpid())
    assert found[str(log)] == 300
    assert not any("gone" in path for path in found)
    assert open_file_sizes(2**30) == {}
