"""What every load must do: the suite that its tests subclass."""

from __future__ import annotations

import json
import math
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ascar.workloads import Declaring, LoadTiming, Workload
from ascar.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ascar.results.measurement import Readings, Series


class WorkloadContract:
    """Subclass it, and say in `make` how the load is made.

    Attributes:
        pace: the length of the load in these tests.
        grace_s: the extra time that the load may take to start and end.
    """

    pace = LoadTiming(load_min_s=0.5, load_max_s=1.0, reading_s=0.1, may_end=lambda series: False)  # noqa: ARG005
    grace_s = 60.0

    def make(self) -> Workload:
        """A load; called anew for each test."""
        raise NotImplementedError("a subclass of WorkloadContract says how its load is made")

    @contextmanager
    def place(self) -> Generator[Workspace]:
        """An empty workspace; override where the load needs another one."""
        with tempfile.TemporaryDirectory(prefix="ascar-contract-") as directory:
            yield Workspace(Path(directory))

    def readings(self, pace: LoadTiming | None = None) -> Readings:
        """Fill a workspace and run the load once."""
        load = self.make()
        with self.place() as workspace:
            load.prepare(workspace)
            return load.run(workspace, pace or self.pace)

    def test_it_is_a_workload(self) -> None:
        assert isinstance(self.make(), Workload)

    def test_it_describes_itself_in_json(self) -> None:
        assert json.loads(json.dumps(dict(self.make().describe()), allow_nan=False))

    def test_it_reports_finite_numbers_by_declared_names_in_time_whenever_it_runs(self) -> None:
        load = self.make()
        with self.place() as workspace:
            load.prepare(workspace)
            first, second = (load.run(workspace, self.pace) for _ in range(2))
        for readings in (first, second):
            names = {*readings.metrics, *readings.series}
            assert names
            assert all(name.isidentifier() for name in names), "formulas use them"
            assert not isinstance(load, Declaring) or names <= load.reported
            assert all(math.isfinite(value) for value in readings.metrics.values())
            assert 0 <= readings.load_s <= self.pace.load_max_s + self.grace_s
            for series in readings.series.values():
                assert np.isfinite(series.values).all()
                assert (np.diff(series.seconds) > 0).all()
        assert set(first.metrics) == set(second.metrics)
        assert set(first.series) == set(second.series)

    def test_it_ends_when_told_that_it_is_enough(self) -> None:
        calls: list[int] = []

        def may_end(series: Mapping[str, Series]) -> bool:
            calls.append(max((len(one) for one in series.values()), default=0))
            return True

        pace = LoadTiming(self.pace.load_min_s, 1000 * self.pace.load_max_s, self.pace.reading_s, may_end)
        readings = self.readings(pace)
        if readings.series:
            assert calls
            assert readings.ended == "enough"
        assert readings.load_s <= self.pace.load_max_s + self.grace_s
