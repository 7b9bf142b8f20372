"""The load of a session: run again and again, its readings appended to a file that the agent follows."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from ascar.capes.session.processes import RestartPolicy
from ascar.errors import AscarError
from ascar.workspace import LoadTiming

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ascar.results.measurement import Series
    from ascar.workloads import Workload
    from ascar.workspace import Workspace

_FILE_BYTES_MAX = 1 << 20
_RATE = "_per_s"
_END_S = 30.0
_LOOK_S = 0.05


class ReadingsFile:
    """A file of readings, a JSON object a line; rates as totals, so that a gap counts as what it is.

    `NAME_per_s` becomes `NAME_total`: the agent makes the rate of what grew from one tick to the next, and
    while a load is begun anew nothing grows. When the file is long it is begun anew, which who follows it by
    `tail -F` notices.

    Args:
        path: the path of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._totals: dict[str, float] = {}
        self._seen_s: dict[str, float] = {}
        path.write_bytes(b"")

    def begin(self) -> None:
        """Another run of the load: its clock starts at 0."""
        self._seen_s.clear()

    def take(self, series: Mapping[str, Series]) -> None:
        """Append what is new."""
        line: dict[str, float] = {}
        for name, one in series.items():
            if not len(one):
                continue
            if not name.endswith(_RATE):
                line[name] = float(one.values[-1])
                continue
            since_s = self._seen_s.get(name, 0.0)
            new = one.seconds > since_s
            starts = [since_s, *(float(at) for at in one.seconds[new])]
            grown = sum(
                float(value) * (end - start)
                for value, start, end in zip(one.values[new], starts, starts[1:], strict=False)
            )
            self._seen_s[name] = starts[-1]
            name = f"{name.removesuffix(_RATE)}_total"  # noqa: PLW2901
            self._totals[name] = self._totals.get(name, 0.0) + grown
            line[name] = self._totals[name]
        text = json.dumps(line).encode() + b"\n"
        long = self._path.exists() and self._path.stat().st_size > _FILE_BYTES_MAX
        with self._path.open("wb" if long else "ab") as file:
            file.write(text)


class BackgroundLoad:
    """Runs a load for ever, in a thread.

    Args:
        workload: the workload to run.
        workspace: filled, where it runs.
        readings: the file of its readings.
        run_s: length of one run.
        reading_s: between two readings.

    Attributes:
        restarts: the number of failures and restarts.
        fault: the last failure.
        problem: why it is given up; None: it is not.
    """

    def __init__(
        self, workload: Workload, workspace: Workspace, readings: ReadingsFile, run_s: float, reading_s: float
    ) -> None:
        self.restarts = 0
        self.fault = ""
        self.problem: str | None = None
        self._workload, self._workspace, self._readings = workload, workspace, readings
        self._pace = LoadTiming(0.0, run_s, reading_s, self._hear)
        self._patience = RestartPolicy()
        self._stopping = threading.Event()
        self._is_running = False
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    @property
    def standing(self) -> dict[str, Any]:
        """As P.session tells it."""
        state = "running" if self._is_running else "given up" if self.problem else "waiting"
        return {"state": state, "pid": None, "restarts": self.restarts}

    def end(self) -> bool:
        """End it with its next reading; whether it did. What did not is left to the control group's end."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_END_S)
        return not self._thread.is_alive()

    def _hear(self, series: Mapping[str, Series]) -> bool:
        self._readings.take(series)
        return self._stopping.is_set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._readings.begin()
            try:
                self._is_running = True
                self._workload.run(self._workspace, self._pace)
            except AscarError as error:
                self.fault = error.message
                self.restarts += 1
                if not self._wait(self._patience.died(time.monotonic())):
                    return
            finally:
                self._is_running = False

    def _wait(self, due_s: float | None) -> bool:
        """Until the next start; False where there is none."""
        if due_s is None:
            self.problem = f"the load failed {self._patience.deaths_max} times: {self.fault}"
            return False
        return not self._stopping.wait(max(due_s - time.monotonic(), _LOOK_S))
