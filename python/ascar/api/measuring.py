"""`ascar.measure` and `ascar.compare`: commands and Python functions, until the result can be trusted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from ascar.api.showing import ProgressLines
from ascar.errors import InputError, WorkError
from ascar.pilot import (
    CommandRunner,
    Compared,
    ComparisonTerms,
    ContestPlan,
    Goal,
    Indicator,
    Limits,
    Measured,
    MeasurementPlan,
    Sampler,
    lower_is_better,
    run_contest,
    run_session,
)
from ascar.pilot.callables import checked, rounds_of
from ascar.pilot.command import DURATION, WORK_AMOUNT, start_cost_s
from ascar.pilot.machine import record_end, record_machine
from ascar.render import number
from ascar.results.compare import CompareResult
from ascar.results.measure import MeasureResult
from ascar.study import duration

if TYPE_CHECKING:
    from ascar.pilot import ContestSession, Runner, Session

What = Callable[[], Any] | Sequence[str] | str
Preset = Literal["quick", "normal", "strict"]


class Measurements(MeasureResult, frozen=True, kw_only=True, tag_field="schema", tag="ascar/measure/1"):
    """What a measurement came to; in a notebook it shows itself, with a plot of its rounds."""

    def _repr_html_(self) -> str:
        from ascar.api.pages import measure_page

        return measure_page(self)


class Ranking(CompareResult, frozen=True, kw_only=True, tag_field="schema", tag="ascar/compare/1"):
    """What a comparison came to; in a notebook it shows itself, with a plot."""

    def _repr_html_(self) -> str:
        from ascar.api.pages import compare_page

        return compare_page(self)


def measure(
    what: What,
    *,
    metrics: Mapping[str, str] | None = None,
    preset: Preset = "normal",
    interval_width: float | None = None,
    confidence: float | None = None,
    goals: Mapping[str, float] | None = None,
    budget: str = "1 h",
    rounds_max: int = 10_000,
    progress: bool | None = None,
) -> Measurements:
    """Run a command or call a function again and again until the interval of its mean is narrow enough.

    Args:
        what: a command, as a text that a shell would split or as its words (no shell reads them); or a
            function without arguments: timed where it returns nothing, else what it returns is measured: a
            number, numbers in a row (unit readings), or those by name.
        metrics: the metrics to read from a command's output by name, as in `ascar measure --metric`: a
            regular expression or "json:PATH". None measures the run time.
        preset: the required quality of the mean: "quick", "normal" or "strict".
        interval_width: the width of the interval over the mean, instead of the preset's.
        confidence: the confidence of the interval, instead of the preset's.
        goals: the width of the interval over the mean by metric, for those that need another one.
        budget: the longest time for all of it.
        rounds_max: the greatest number of rounds.
        progress: whether progress is shown; None: in a notebook and on a terminal.

    Returns:
        The mean with its interval (`mean`, `ci_low`, `ci_high`), and whether the goal was `reached`.

    Raises:
        InputError: an argument is wrong, or a function returned something else.
        WorkError: the command failed, or no round ended.
    """
    goal = Goal.of(preset, interval_width=interval_width, confidence=confidence)
    limits = Limits(duration("budget", budget), rounds_max)
    if callable(what):
        if metrics:
            raise InputError("metrics: only a command needs them; a function returns its metrics by name")
        command, cost_s = (_name_of(what),), None
        run, names = rounds_of(what)
        runner: Runner = checked(run, names)
    else:
        runner = _command(what, metrics or {})
        command, cost_s = tuple(runner.argv), start_cost_s()
        names = tuple(metrics or {DURATION: ""})
    unknown = sorted(set(goals or {}) - set(names))
    if unknown:
        raise InputError(f"goals: {unknown[0]!r:.80} must be one of {', '.join(names)}")
    own = {name: replace(goal, interval_width=width) for name, width in (goals or {}).items()}
    indicators = [Indicator.parse(name, "ordinary", own.get(name, goal)) for name in names]
    plan = MeasurementPlan(indicators, goal, None, limits)
    lines, sampler, machine = ProgressLines(progress), Sampler(), record_machine()
    with sampler:
        session = run_session(runner, plan, partial(_tell_session, lines))
    measured = Measured(command, plan, session, sampler.used, cost_s, (record_end(machine),))
    measured.check()
    result = measured.result()
    return Measurements(**{name: getattr(result, name) for name in result.__struct_fields__})


def compare(
    contestants: Mapping[str, What],
    *,
    metric: str | None = None,
    direction: Literal["min", "max"] | None = None,
    preset: Preset = "normal",
    margin: float | None = None,
    confidence: float = 0.99,
    budget: str = "1 h",
    rounds_max: int = 10_000,
    warm_up: int = 1,
    seed: int = 0,
    progress: bool | None = None,
) -> Ranking:
    """Say which of several commands or functions is better, or that they differ by less than a margin.

    They run in turns, in an order that favours none, until all neighbours in the ranking are told apart or
    shown not to differ by more than the margin.

    Args:
        contestants: commands or functions without arguments, as `measure` takes them, by the names to show.
        metric: the metric to read from the commands' output, as "NAME=REGEX" or "NAME=json:PATH". None
            compares run times.
        direction: whether less or more is better; None: what the metric's name says.
        preset: the difference that matters: "quick" 5%, "normal" 1%, "strict" 0.5%.
        margin: the difference that does not matter, as a share, instead of the preset's.
        confidence: the probability that no verdict is wrong, over all pairs and looks together.
        budget: the longest time for all of it.
        rounds_max: the greatest number of rounds of each.
        warm_up: rounds of each that are not used.
        seed: the seed of the order.
        progress: whether progress is shown; None: in a notebook and on a terminal.

    Raises:
        InputError: an argument is wrong.
        WorkError: a command failed, or not one round of each ended.
    """
    labels = list(contestants)
    runners, name = _runners(contestants, metric)
    if direction not in (None, "min", "max"):
        raise InputError(f"direction = {direction!r}: must be 'min' or 'max'")
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence!r}: must be between 0 and 1, e.g. 0.99")
    lower = lower_is_better(name) if direction is None else direction == "min"
    terms = ComparisonTerms.of(preset, p=1 - confidence, margin=margin, lower_is_better=lower)
    plan = ContestPlan(name, terms, Limits(duration("budget", budget), rounds_max), warm_up, seed)
    lines, sampler, machine = ProgressLines(progress), Sampler(), record_machine()
    with sampler:
        session = run_contest(runners, plan, partial(_tell_contest, lines, labels))
    if not session.blocks:
        raise WorkError(f"no counted round of each has ended: {session.ended}; raise budget")
    commands = [(label, _words_of(contestants[label])) for label in labels]
    compared = Compared.of(commands, plan, session, confidence, sampler.used)
    result = replace(compared, machine=record_end(machine)).result()
    return Ranking(**{name: getattr(result, name) for name in result.__struct_fields__})


def _command(what: Sequence[str] | str, metrics: Mapping[str, str]) -> CommandRunner:
    runner = CommandRunner(_split(what), metrics)
    if runner.adjustable:
        raise InputError(
            f"{WORK_AMOUNT}: only `ascar measure` fills it in; write the amount of work in its place"
        )
    return runner


def _split(what: Sequence[str] | str) -> tuple[str, ...]:
    if not isinstance(what, str):
        return tuple(what)
    try:
        return tuple(shlex.split(what))
    except ValueError as error:
        raise InputError(f"command {what!r}: {str(error).lower()}; close the quotes") from error


def _words_of(what: What) -> tuple[str, ...]:
    return (_name_of(what),) if callable(what) else _split(what)


def _name_of(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _runners(contestants: Mapping[str, What], metric: str | None) -> tuple[list[Runner], str]:
    """What carries out the rounds of each, and the reading that is compared.

    Raises:
        InputError: they do not tell the same.
    """
    name, _, place = (metric or DURATION).partition("=")
    if metric is not None and not place:
        raise InputError(f"metric = {metric!r}: must be 'NAME=REGEX' or 'NAME=json:PATH'")
    runners: list[Runner] = []
    told: dict[str, str] = {}
    for label, what in contestants.items():
        if callable(what):
            runner, names = rounds_of(what)
            told[label] = names[0]
            if len(names) > 1:
                raise InputError(f"{label!r} returns {', '.join(names)}: return the one number to compare")
        else:
            runner, told[label] = _command(what, {name: place} if place else {}), name
        runners.append(runner)
    if len(set(told.values())) > 1:
        shown = ", ".join(f"{label!r} tells {one}" for label, one in told.items())
        raise InputError(f"{shown}: only runs that report the same metric can be compared")
    return runners, next(iter(told.values()), name)


def _tell_session(lines: ProgressLines, session: Session) -> None:
    known = ", ".join(
        f"{finding.indicator.name} {number(finding.measurement.mean)}"
        for finding in session.findings
        if finding.measurement is not None
    )
    lines.say(f"round {len(session.rounds)}: {known}", now=bool(session.ended))


def _tell_contest(lines: ProgressLines, labels: Sequence[str], session: ContestSession) -> None:
    ahead = f"{labels[session.standing.order[0]]} ahead" if session.blocks else "warming up"
    lines.say(f"round {len(session.blocks)}: {ahead}", now=bool(session.ended))
