"""Places for loads to run in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ascar.results.measurement import Readings


@pytest.fixture
def directory(in_memory: Path | None) -> Iterator[Path]:
    """A directory in memory where there is one: these tests are about programs, not about the disk."""
    with tempfile.TemporaryDirectory(prefix="ascar-", dir=in_memory) as place:
        yield Path(place)


@pytest.fixture
def with_readings() -> Callable[[int, Callable[[float], Readings]], Readings]:
    """Run a load, as long as it takes until it has told so many readings of its throughput.

    A second is enough, unless the machine stops the load for most of it.
    """

    def run(least: int, load_for: Callable[[float], Readings]) -> Readings:
        counts: list[int] = []
        for load_max_s in (1.0, 4.0, 16.0):
            readings = load_for(load_max_s)
            counts.append(len(readings.series.get("throughput_ops_per_s", ())))
            if counts[-1] >= least:
                return readings
        pytest.fail(f"{counts} readings in loads of 1, 4 and 16 s; {least} were expected of each")

    return run


@pytest.fixture
def place(directory: Path) -> Workspace:
    return Workspace(directory)
