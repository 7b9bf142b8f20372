"""A Python function as the system under tuning: it is called with a configuration, and returns metrics.

A study of it is made in Python by `Study.of_function`, or by `ascar.tune(function, space)`. A study file
cannot name a function; in the history, its study keeps the function's name and the key of its space.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Generator, Mapping
from inspect import isgeneratorfunction
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ascar.errors import AscarError, StageFailed, StudyError
from ascar.results.measurement import Readings, Series
from ascar.study import convert, duration
from ascar.systems.limit import OverLimit, time_limit
from ascar.systems.virtual import VirtualSystem, WallClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ascar.space import Configuration, Space
    from ascar.workspace import LoadTiming, Workspace

_OVERRUN_S = 60.0
VALUE = "value"
"""The metric that a function tells which returns a number."""


class FunctionOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[target]` with kind = "function", as the history keeps it.

    Attributes:
        name: the name of the function.
        space: the key of its space.
        call_max: the time that one call may take before it is interrupted. Left out: a minute more than
            `load_max` of the study.
    """

    name: str
    space: str
    call_max: str = ""


class PythonFunction(VirtualSystem):
    """A target and its own load.

    The function returns a number, which is the metric `value`, or numbers by metric; or it yields them one
    after the other, as unit readings: then the load ends as soon as the mean is known well enough, or is
    known to be worse than the best so far. What it raises makes the trial a failed one.

    Args:
        options: the study's `[target]` table without its kind, with the `function` and its `space`.

    Raises:
        StudyError: the function is not there, because the study was read from text.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        text = {key: value for key, value in options.items() if key not in ("function", "search_space")}
        chosen = convert(text, FunctionOptions, "target")
        function, space = options.get("function"), options.get("search_space")
        if function is None or space is None:
            raise StudyError(
                f"target.kind = 'function': the Python function {chosen.name} cannot be found from here; "
                "tune it from Python: ascar.tune(function, space)"
            )
        super().__init__(cast("Space", space), clock=WallClock())
        self._function = cast("Callable[[Configuration], Any]", function)
        self._name = chosen.name
        self._call_max_s = duration("target.call_max", chosen.call_max) if chosen.call_max else None

    def describe(self) -> Mapping[str, Any]:
        """The function's name."""
        return {"target": "function", "function": self._name}

    @property
    def ends_by_itself(self) -> bool:
        """Whether it returns its numbers, not yields them."""
        return not isgeneratorfunction(self._function)

    def run(self, workspace: Workspace, pace: LoadTiming) -> Readings:  # noqa: ARG002
        """Call the function with the configuration in force.

        Raises:
            StageFailed: it raised something, took too long, or returned what is not a number.
        """
        start_s = time.monotonic()
        limit_s = self._call_max_s or pace.load_max_s + _OVERRUN_S
        try:
            with time_limit(limit_s):
                told = self._function(self.current)
                if isinstance(told, Generator):
                    return _readings_of(cast("Iterable[object]", told), pace, start_s)
        except AscarError:
            raise
        except OverLimit:
            message = f"{self._name} took longer than {limit_s:g} s and was interrupted; see target.call_max"
            raise StageFailed("load", message) from None
        except Exception as error:
            message = f"{self._name} raised {type(error).__name__}: {error}".splitlines()[0]
            raise StageFailed("load", message, traceback.format_exc()) from error
        return Readings({}, _metrics(told), time.monotonic() - start_s, ended="program")


def _readings_of(told: Iterable[object], pace: LoadTiming, start_s: float) -> Readings:
    """Unit readings until they are enough, the time is over, or the function ends."""
    seconds: list[float] = []
    values: dict[str, list[float]] = {}
    ended, now_s = "program", 0.0
    for one in told:
        now_s = time.monotonic() - start_s
        row = _metrics(one)
        if values and row.keys() != values.keys():
            raise StageFailed("load", f"yielded {', '.join(row)}, and {', '.join(values)} before")
        seconds.append(now_s)
        for name, value in row.items():
            values.setdefault(name, []).append(value)
        if pace.asks(now_s) and pace.may_end(_series(seconds, values)):
            ended = "enough"
            break
        if now_s >= pace.load_max_s:
            ended = "time"
            break
    if not seconds:
        raise StageFailed("load", "yielded nothing; yield at least one number")
    means = {name: math.fsum(row) / len(row) for name, row in values.items()}
    return Readings(_series(seconds, values), means, now_s, ended)


def _series(seconds: list[float], values: Mapping[str, list[float]]) -> dict[str, Series]:
    return {name: Series.of(seconds, row) for name, row in values.items()}


def _metrics(told: object) -> dict[str, float]:
    """Metrics by name from what a function returned.

    Raises:
        StageFailed: it is neither a finite number nor a mapping of such.
    """
    named = cast("Mapping[Any, Any]", told if isinstance(told, Mapping) else {VALUE: told})
    metrics: dict[str, float] = {}
    for name, value in named.items():
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise StageFailed(
                "load", f"returned {name} = {value!r:.60}: must be a finite number, or finite numbers by name"
            )
        metrics[str(name)] = number
    return metrics
