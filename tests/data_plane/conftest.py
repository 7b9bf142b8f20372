"""A proxy, and what stands on its two sides."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from data_plane_peers import Starter

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name leaves room for sockets in it."""
    with TemporaryDirectory(prefix="ascar-", dir="/tmp") as path:
        yield Path(path)


@pytest.fixture
def start(folder: Path) -> Iterator[Starter]:
    """Starts programs that end with the test: `start.proxy(...)` and `start.nbdkit(...)`."""
    with ExitStack() as stack:
        yield Starter(folder, stack)
