"""Places for loads to run in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def directory(in_memory: Path | None) -> Iterator[Path]:
    """A directory in memory where there is one: these tests are about programs, not about the disk."""
    with tempfile.TemporaryDirectory(prefix="ascar-", dir=in_memory) as place:
        yield Path(place)


@pytest.fixture
def place(directory: Path) -> Workspace:
    return Workspace(directory)
