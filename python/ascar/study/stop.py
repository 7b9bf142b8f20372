"""The `[stop]` table of a study file: reasons to end a search before its budget does (Cao 9.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ascar.errors import StudyError
from ascar.study.keys import duration, formula, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.expression import Expression

_TRIALS_MAX = 10_000_000
_DEPTH_MAX = 8


class DiversityStop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[stop] diversity`: the population of a genetic search has converged (Cao 9.6, Fig. 9.6).

    Attributes:
        members_percent: a parameter has converged when so many percent of the members share its value (M).
        genes_percent: the population has when so many percent of the parameters have (N).
        mutations: the number of mutations that must follow, since they may still lead out of a local optimum.
    """

    members_percent: float = 80.0
    genes_percent: float = 80.0
    mutations: int = 9


class RemainingGainStop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[stop] remaining_gain`: hardly anything is left to gain.

    Attributes:
        below: the share of the objective's value that the best configuration of the whole space is ahead of
            the one that would be recommended now: the search ends once it is not more than this.
        confidence: the confidence that the remaining gain is below the limit.
    """

    below: float = 0.02
    confidence: float = 0.9


class StopSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[stop]`: reasons to end the search before the budget does; any of them suffices.

    Attributes:
        trials: end after this number of search trials.
        trials_without_gain: end after this number of trials in a row without anything better (Cao 9.6,
            sliding window).
        time: the study has taken so long; the verification follows.
        target: a formula over metrics that a usable trial meets (Cao 9.6, user-specified).
        diversity: the population has converged; keys members_percent (80), genes_percent (80) and mutations
            (9), Cao 9.6's M, N and mutations after convergence. Of the genetic optimizer.
        remaining_gain: end when, by a model of the measurements, the best configuration of all is ahead of
            the recommended one by no more than the share `below` (0.02), with `confidence` (0.9).
        any: tables like this one, any of which suffices.
        all: tables like this one, all of which must hold at the same time.
    """

    trials: int | None = None
    trials_without_gain: int | None = None
    time: str | None = None
    target: str | None = None
    diversity: DiversityStop | None = None
    remaining_gain: RemainingGainStop | None = None
    any: tuple[StopSection, ...] = ()
    all: tuple[StopSection, ...] = ()


def stop_tables(stop: StopSection, key: str = "stop") -> Iterator[tuple[str, StopSection]]:
    """The table and all tables in it, each with its key."""
    yield key, stop
    for name, tables in (("any", stop.any), ("all", stop.all)):
        for index, table in enumerate(tables):
            yield from stop_tables(table, f"{key}.{name}[{index}]")


def targets_of(stop: StopSection) -> dict[str, Expression]:
    """The formulas of every target in it, by their text.

    Raises:
        StudyError: one cannot be read.
    """
    return {
        table.target: formula(f"{key}.target", table.target)
        for key, table in stop_tables(stop)
        if table.target is not None
    }


def check_stop(stop: StopSection) -> None:
    """Ranges that types cannot say.

    Raises:
        StudyError: a number is out of range, or tables are nested too deeply.
    """
    for key, table in stop_tables(stop):
        if key.count("[") > _DEPTH_MAX:
            raise StudyError(f"{key}: any and all are nested more than {_DEPTH_MAX} deep")
        if key != "stop" and table == StopSection():
            raise StudyError(f"{key} = {{}}: names no reason to stop; give it one, e.g. trials = 100")
        if table.trials is not None:
            within(f"{key}.trials", table.trials, 1, _TRIALS_MAX)
        if table.trials_without_gain is not None:
            within(f"{key}.trials_without_gain", table.trials_without_gain, 1, _TRIALS_MAX)
        if table.time is not None:
            duration(f"{key}.time", table.time)
        if table.diversity is not None:
            within(f"{key}.diversity.members_percent", table.diversity.members_percent, 1, 100)
            within(f"{key}.diversity.genes_percent", table.diversity.genes_percent, 1, 100)
            within(f"{key}.diversity.mutations", table.diversity.mutations, 0, _TRIALS_MAX)
        if table.remaining_gain is not None:
            within(f"{key}.remaining_gain.below", table.remaining_gain.below, 1e-6, 10)
            within(f"{key}.remaining_gain.confidence", table.remaining_gain.confidence, 0.5, 0.999)
