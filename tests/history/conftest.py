"""A study, its space, and a history on a fresh file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from ascar.history import History, WriteContext
from ascar.results.measurement import Measurement, Series
from ascar.results.trial import Change, Purpose, Trial, TrialState
from ascar.space import ChangeCost, Configuration, Space, categorical, integer
from ascar.study import Study

TEXT = """
[study]
name = "mail.server_1"
objective = "maximize throughput_ops_per_s"
budget = "10 min"
[target]
kind = "simulated"
noise = 0.1
"""


@dataclass
class Clock:
    """A clock that moves by a second a look, and a boot id that can be changed."""

    boot_id: str = "boot-1"
    looks: int = field(default=0)

    def moment(self) -> WriteContext:
        def now() -> str:
            self.looks += 1
            return f"2026-01-01T00:{self.looks // 60 % 60:02}:{self.looks % 60:02}.000+00:00"

        return WriteContext(now, self.boot_id)


@pytest.fixture
def tmp_path(in_memory):
    """In memory where possible: every trial waits for the disk, and a busy machine's disk takes its time."""
    with TemporaryDirectory(prefix="ascar-test-", dir=in_memory) as directory:
        yield Path(directory)


@pytest.fixture
def study() -> Study:
    return Study.parse(TEXT)


@pytest.fixture
def space() -> Space:
    return Space(
        (
            categorical("fs", ["ext4", "xfs"], default="ext4", cost=ChangeCost.REFORMAT_RESTORE),
            integer("agcount", (1, 64), default=4, cost=ChangeCost.REFORMAT_RESTORE, when='fs == "xfs"'),
            integer("read_ahead_kb", (0, 4096), default=128, cost=ChangeCost.DYN_KERNEL, unit="KiB"),
        )
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.sqlite"


@pytest.fixture
def history(path: Path, clock: Clock):
    with History(path, clock.moment()) as opened:
        yield opened


@pytest.fixture
def configuration() -> Configuration:
    return Configuration({"fs": "xfs", "agcount": 8, "read_ahead_kb": 256})


def running(number: int, configuration: Configuration, purpose: Purpose = Purpose.SEARCH) -> Trial:
    return Trial(number, configuration, purpose, TrialState.RUNNING)


def complete(
    number: int, configuration: Configuration, score: float = 100.0, purpose: Purpose = Purpose.SEARCH
) -> Trial:
    """A trial as the loop would finish it."""
    seconds = np.arange(1, 9) * 0.25
    values = score * (1 + 0.01 * np.sin(seconds))
    return Trial(
        number=number,
        configuration=configuration,
        purpose=purpose,
        state=TrialState.COMPLETE,
        score=score,
        measurement=Measurement(score, score - 1, score + 1, 0.95, 8, 4, 0.1, 2, 0, 8, (), "corrected"),
        metrics={"throughput_ops_per_s": score, "latency_ms_p99": 1e5 / score},
        series={"throughput_ops_per_s": Series(seconds, values)},
        change=Change(("fs",), 3, {"format": 0.5, "mount": 0.1}),
        stage_s={"change": 0.6, "load": 2.0},
        started_at="2026-01-01T00:00:00.000+00:00",
    )


@pytest.fixture
def make():
    """The two builders, for test modules (which import nothing from here)."""

    class Make:
        running = staticmethod(running)
        complete = staticmethod(complete)

    return Make


def alike(left: object, right: object, *, bits: bool = True) -> bool:
    """Equality in which NaN equals NaN; arrays are compared bit for bit, or (JSON has one NaN) by value."""
    if isinstance(left, Series) and isinstance(right, Series):
        pairs = ((left.seconds, right.seconds), (left.values, right.values))
        if not bits:
            return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        return all(a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in pairs)
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike(left[key], right[key], bits=bits) for key in left)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(
            alike(a, b, bits=bits) for a, b in zip(left, right, strict=True)
        )
    if (
        type(left) is type(right)
        and type(left).__module__.startswith("ascar.")
        and hasattr(left, "__slots__")
    ):
        if isinstance(left, Configuration):
            return left == right and left.key() == right.key()
        return all(alike(getattr(left, name), getattr(right, name), bits=bits) for name in left.__slots__)
    return left == right


@pytest.fixture
def same():
    return alike
