"""Places for loads to run in."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = Path("/dev/shm")


@contextmanager
def memory_directory() -> Iterator[Path]:
    """A directory in memory where there is one: these tests are about programs, not about the disk."""
    with tempfile.TemporaryDirectory(
        prefix="ascar-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None
    ) as place:
        yield Path(place)


@pytest.fixture
def directory() -> Iterator[Path]:
    with memory_directory() as place:
        yield place


@pytest.fixture
def place(directory: Path) -> Workspace:
    return Workspace(directory)
