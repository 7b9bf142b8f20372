"""Measuring a Python function in this process."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ascar.errors import InputError
from ascar.pilot.indicator import Indicator, Kind
from ascar.pilot.presets import Goal
from ascar.pilot.round import Round
from ascar.pilot.session import Limits, MeasurementPlan, OnRound, Session, run_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar._core import WorkAmounts
    from ascar.pilot.round import Runner

TIMED = "seconds_per_call"
"""The reading of a function that returns nothing."""

# A round of a quick function is so many calls that the clock and the loop no longer matter.
_ROUND_MIN_S = 0.01
_ROUND_SURE_S = 1.0


def measure(
    function: Callable[..., Any],
    goal: Goal | str = "normal",
    *,
    work: WorkAmounts | None = None,
    indicators: Sequence[Indicator] = (),
    limits: Limits | None = None,
    on_round: OnRound | None = None,
) -> Session:
    """Measure a function until its result is known well enough.

    What the function returns says what is measured: nothing: the seconds of a call (`seconds_per_call`); a
    number: one reading a call (`value`); numbers in a row: unit readings of it; a mapping from names to
    numbers or rows of numbers: several, which `indicators` must name; a `Round`: all of it.

    Args:
        function: called without arguments; with the work amount where `work` is given.
        goal: the precision to reach, or the name of a preset.
        work: the schedule of work amounts, where the function does as much work as it is told to.
        indicators: the indicators to measure, where there is more than one, or its kind is not ordinary.
        limits: the limits of the session; a running call of the function is not cut off.
        on_round: told after each round what is known so far.

    Raises:
        InputError: the goal is unknown, or the function returns something else.
    """
    wanted = Goal.of(goal) if isinstance(goal, str) else goal
    name = "value"
    if work is None:
        run, names = rounds_of(function)
        name = names[0] if names == (TIMED,) else name
    else:
        run = _working(function)
    if not indicators:
        indicators = (Indicator(name, Kind.ORDINARY, wanted),)
    plan = MeasurementPlan(indicators, wanted, work, limits or Limits())
    deciding = [indicator.name for indicator in indicators if indicator.goal is not None]
    return run_session(checked(run, deciding), plan, on_round)


def rounds_of(function: Callable[[], Any]) -> tuple[Runner, tuple[str, ...]]:
    """The rounds of a function without arguments, and the names of what it tells; it is called once for that.

    Raises:
        InputError: it returns something else than `measure` allows.
    """
    first = function()
    if first is None:
        return _timed(function), (TIMED,)
    told = _round_of(first, 0.0, None)
    return _called(function), tuple(dict.fromkeys((*told.readings, *told.unit_readings)))


def checked(run: Runner, names: Sequence[str]) -> Runner:
    """The same rounds, refused where a reading that decides is missing: a session would wait for it in vain.

    Rounds of adjustable work that tell nothing are none the worse: their speed is what is measured then.
    """

    def told(work_amount: float | None, left_s: float) -> Round | None:
        done = run(work_amount, left_s)
        if done is None:
            return None
        found = {*done.readings, *done.unit_readings}
        missing = [name for name in names if name not in found]
        if missing and (found or work_amount is None):
            shown = ", ".join(sorted(found)) or "None"
            raise InputError(
                f"the measured function returned no {missing[0]!r}, only {shown}: name in `indicators` what "
                "it returns"
            )
        return done

    return told


def _timed(function: Callable[[], Any]) -> Runner:
    """Rounds of a function that is only timed, of so many calls that a round is not too short."""
    calls = 1
    while not _long_enough(function, calls):
        calls *= 2

    def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
        taken_s = _seconds(function, calls)
        return Round(taken_s, None, {TIMED: taken_s / calls})

    return run


def _long_enough(function: Callable[[], Any], calls: int) -> bool:
    """Whether so many calls make a round; whatever else the machine did may have drawn out one look."""
    for _ in range(3):
        taken_s = _seconds(function, calls)
        if taken_s < _ROUND_MIN_S:
            return False
        if taken_s > _ROUND_SURE_S:
            return True
    return True


def _seconds(function: Callable[[], Any], calls: int) -> float:
    started_s = time.perf_counter()
    for _ in range(calls):
        function()
    return time.perf_counter() - started_s


def _called(function: Callable[[], Any]) -> Runner:
    """Rounds of a function that returns readings."""

    def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
        started_s = time.perf_counter()
        told = function()
        return _round_of(told, time.perf_counter() - started_s, None)

    return run


def _working(function: Callable[[float], Any]) -> Runner:
    """Rounds of a function that does as much work as it is told to."""

    def run(work_amount: float | None, left_s: float) -> Round:  # noqa: ARG001
        assert work_amount is not None, "the schedule gives a work amount"
        started_s = time.perf_counter()
        told = function(work_amount)
        return _round_of(told, time.perf_counter() - started_s, work_amount)

    return run


def _round_of(told: Any, seconds: float, work_amount: float | None) -> Round:
    """What a function returned, as a round.

    Raises:
        InputError: it is nothing that can be read.
    """
    if told is None:
        return Round(seconds, work_amount)
    if isinstance(told, Round):
        return told
    named = cast("Mapping[str, Any]", told if isinstance(told, Mapping) else {"value": told})
    readings: dict[str, float] = {}
    units: dict[str, Sequence[float]] = {}
    for name, value in named.items():
        try:
            numbers = np.asarray(value, np.float64)
        except (TypeError, ValueError) as error:
            shown = repr(value)[:60]
            raise InputError(
                f"the measured function returned {name} = {shown}: must be a number, numbers in a row, a "
                "mapping of those, a Round, or None"
            ) from error
        if numbers.ndim == 0:
            readings[str(name)] = float(numbers)
        elif numbers.ndim == 1:
            units[str(name)] = cast("Sequence[float]", numbers)
        else:
            raise InputError(
                f"the measured function returned {name} of shape {numbers.shape}: must be one row"
            )
    return Round(seconds, work_amount, readings, units)
