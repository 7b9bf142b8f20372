"""Tables of a study file: what to reach, where to begin, how to measure and to verify."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ascar.errors import StudyError
from ascar.study.keys import duration, within

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_OBJECTIVES_MAX = 8
_START_MAX = 1000


class StudySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[study]`: what to reach, within what.

    Attributes:
        name: letters, digits, ".", "_" and "-", at most 80.
        objective: "maximize FORMULA" or "minimize FORMULA" over metrics; or a list of several of them.
        budget: time for the whole study, from the start of the program to its end: the verification and the
            restore are included.
        constraints: formulas over metrics that a recommended configuration must satisfy.
        weights: the worth of a relative gain in each of several objectives, in their order, in the compromise
            that is recommended; left out: the same for all.
        seed: the seed of every random choice.
    """

    name: str
    objective: str | tuple[str, ...]
    budget: str
    constraints: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    seed: int = 0


class StartSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[start]`: what the search tries first, after the default (Cao 9.5, domain knowledge).

    Attributes:
        configurations: known good ones: tables of values; every other parameter has its default.
        study: a similar study in the history, by its name (the latest run) or a run's number: its best
            configurations, or the nearest to them that are valid here.
        study_trials: the number of trials to take from it.
        library_trials: the number of configurations to take from the library: those that improved the most
            similar loads on the same kind of system, for the same objective.
        advice: whether the configuration that the system's manual advises for the machine is tried, where
            there is one.
        preferred: parameters with a list of values each that are likely to be good ones.
        preferred_trials: the number of configurations that take the preferred values, the other parameters at
            random.
    """

    configurations: tuple[dict[str, Any], ...] = ()
    study: str | int | None = None
    study_trials: int = 3
    library_trials: int = 0
    advice: bool = True
    preferred: dict[str, list[Any]] = {}
    preferred_trials: int = 5


class MeasurementSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[measurement]`: when one evaluation is good enough.

    Attributes:
        preset: "quick", "normal" or "strict": sets interval_width and readings_min (Pilot's presets).
        interval_width: the width of the mean's interval over the mean, e.g. 0.1; None: the preset's.
        confidence: the confidence of the intervals.
        readings_min: the fewest readings in the stable phase; None: the preset's.
        load_min: the load runs at least this long, unless it is abandoned.
        load_max: the greatest length of a load. Where the search's part of the budget holds less than 16
            trials like the default's first one, their loads are shorter, but at least `load_min` long.
        reading: time between unit readings.
        abandon: the load of a search trial is ended as soon as it is worse than the best so far; so often, at
            most, that happens to one that is as good; 0: never.
        charge_deferred: the work that a load leaves undone, such as dirty pages, is done after it, and rates
            count over the time of both; false: it is left to whoever comes next.
    """

    preset: str = "quick"
    interval_width: float | None = None
    confidence: float = 0.95
    readings_min: int | None = None
    load_min: str = "3 s"
    load_max: str = "10 s"
    reading: str = "250 ms"
    abandon: float = 0.01
    charge_deferred: bool = True


class VerifySection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[verify]`: the last comparison, best against default, in turns, tested after every pair of runs.

    Attributes:
        p_value: the level at which two configurations are called different, over all looks together.
        margin: relative difference that does not matter: the default is fine once the best is shown to be
            less than this better; 0: only once the best is shown to be worse.
        runs_min: runs a side, at least; below 5, the level holds for normally distributed scores only.
        runs_max: runs a side, at most.
    """

    p_value: float = 0.01
    margin: float = 0.03
    runs_min: int = 5
    runs_max: int = 1000


class RecommendSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[recommend]`: how little the recommendation changes.

    Attributes:
        margin: the relative loss, against the best configuration, that is accepted for changing fewer
            parameters, e.g. 0.03; what is left of the budget after the verdict is used to show it. 0: none
            is left out. Left out: `[verify] margin`.
    """

    margin: float | None = None


def check_study(study: StudySection) -> None:
    """Ranges that types cannot say.

    Raises:
        StudyError: the name, the weights or the seed are not as they must be.
    """
    if not _NAME.fullmatch(study.name):
        raise StudyError(
            f"study.name = {study.name!r}: must be 1 to 80 letters, digits, '.', '_' or '-', "
            "the first a letter or digit"
        )
    within("study.seed", study.seed, 0, 2**63 - 1)
    count = 1 if isinstance(study.objective, str) else len(study.objective)
    if not 1 <= count <= _OBJECTIVES_MAX:
        raise StudyError(
            f"study.objective: has {count} objectives; must have 1 to {_OBJECTIVES_MAX}, "
            "e.g. ['maximize throughput_ops_per_s', 'minimize latency_ms_p99']"
        )
    if study.weights and len(study.weights) != count:
        raise StudyError(
            f"study.weights = {list(study.weights)}: must have one weight an objective, {count} of them"
        )
    for index, weight in enumerate(study.weights):
        within(f"study.weights[{index}]", weight, 1e-3, 1e3)


def check_start(start: StartSection) -> None:
    """Ranges that types cannot say; whether the configurations are valid, the target's space tells later.

    Raises:
        StudyError: a number is out of range, or a list is empty.
    """
    if len(start.configurations) > _START_MAX:
        raise StudyError(f"start.configurations: has {len(start.configurations)}; at most {_START_MAX}")
    within("start.study_trials", start.study_trials, 1, _START_MAX)
    within("start.library_trials", start.library_trials, 0, _START_MAX)
    within("start.preferred_trials", start.preferred_trials, 1, _START_MAX)
    for name, values in start.preferred.items():
        if not values:
            raise StudyError(f"start.preferred.{name} = []: must name at least one value")


def check_measurement(measurement: MeasurementSection) -> None:
    """Ranges that types cannot say.

    Raises:
        StudyError: a number or a duration is out of range.
    """
    presets = ("quick", "normal", "strict")
    if measurement.preset not in presets:
        raise StudyError(f"measurement.preset = {measurement.preset!r}: must be one of {', '.join(presets)}")
    if measurement.interval_width is not None:
        within("measurement.interval_width", measurement.interval_width, 1e-4, 2.0)
    within("measurement.confidence", measurement.confidence, 0.5, 0.9999)
    if measurement.readings_min is not None:
        within("measurement.readings_min", measurement.readings_min, 4, 1_000_000)
    load_min_s = duration("measurement.load_min", measurement.load_min)
    load_max_s = duration("measurement.load_max", measurement.load_max)
    if load_max_s < load_min_s:
        raise StudyError(
            f"measurement.load_max = {measurement.load_max!r}: must be at least load_min, "
            f"{measurement.load_min!r}"
        )
    within("measurement.reading (seconds)", duration("measurement.reading", measurement.reading), 0.1, 60)
    within("measurement.abandon", measurement.abandon, 0.0, 0.2)


def check_verify(verify: VerifySection) -> None:
    """Ranges that types cannot say.

    Raises:
        StudyError: a number is out of range.
    """
    within("verify.p_value", verify.p_value, 1e-6, 0.2)
    within("verify.margin", verify.margin, 0.0, 0.9)
    within("verify.runs_min", verify.runs_min, 2, 1000)
    within("verify.runs_max", verify.runs_max, verify.runs_min, 10_000)


def check_recommend(recommend: RecommendSection) -> None:
    """Ranges that types cannot say.

    Raises:
        StudyError: a number is out of range.
    """
    if recommend.margin is not None:
        within("recommend.margin", recommend.margin, 0.0, 0.9)
