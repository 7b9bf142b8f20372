"""How long the runs of the last comparison are: equally long, and several cycles of deferred work.

A load of the search ends once its mean is known well enough. Two such loads in a pair are not alike: each
ends where its readings happen to agree, and a cache that fills makes the longer one look better. So all loads
of the comparison have one length: the usual one of both sides, or as much less as lets `PAIRS_ROOM` pairs fit
into the time left. Few long pairs tell less than several short ones: at the level of 1% the interval of ten
pairs is wider than that of twenty which take as much time, 1.2 times where readings scatter independently,
1.7 times where whole runs do (`_core.pairs_half_width`). What a run takes beside its load limits this:
loads are `LOAD_LEAST` times as long as that, as far as there is room for `PAIRS_LEAST` such pairs.

Deferred work is done in cycles: dirty pages are written back when they have a certain age, a journal is
committed every few seconds, a log is checkpointed when it is long enough. A run shorter than a cycle sees
nothing of it but what `ascar.charging` does for it at the end, one thing after the other; a run of several
cycles sees it done beside the load, as it will be. So the runs of the last comparison span three of the
longest cycles in force in either configuration, or as many as the budget allows, and the verdict says where
they are fewer. Where not even one fits, all of what a load left is charged to it at its end, which is a
greater share of a shorter load: runs are as long as the study says then, as far as `runs_min` pairs fit, or
as much less as lets `PAIRS_LEAST` pairs fit and adds no more to that share than a difference that does not
matter. (PostgreSQL with large `shared_buffers` left work for a third of the time: it gained 10% in loads of
6 s, 26% in those of 20 s that its search had. MariaDB left a twentieth: five pairs of 12 s did not tell 14%.)
Where what trials left took less of their time than a difference that does not matter (`[verify] margin`, and
1% at least), that is of no account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ascar.charging import charges, deferred_share
from ascar.errors import StageFailed
from ascar.render import duration
from ascar.study import duration as seconds_of
from ascar.systems.asking import cycle_checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ascar.results.trial import Trial
    from ascar.study import Study
    from ascar.systems import System

CYCLES = 3
PAIRS_ROOM, PAIRS_LEAST = 20, 10
"""Pairs for which there should be room before loads are as long as they like, and where changes take long."""
LOAD_LEAST = 4
"""So many times what a run takes beside its load, a load should last: more pairs would be mostly changes."""
SHARE_MIN = 0.01
"""The share of its time that what a load left must take to matter, whatever the study's margin."""
PAIRS_SPARE = 1.5
"""So many times the least number of pairs should fit."""


@dataclass(frozen=True, slots=True)
class Span:
    """The length of the last comparison's runs.

    Attributes:
        load_s: their loads run at least this long; 0: as long as the study says.
        note: what the verdict has to say of it; empty where nothing that matters is deferred.
    """

    load_s: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class PairLoad:
    """The loads of the last comparison, which are equally long.

    Attributes:
        load_s: the length of each; 0: each is as long as the study says.
        least_s: a last pair for which less time is left has loads of this length at least; infinite: there is
            no such pair, because nobody can shorten the loads.
    """

    load_s: float = 0.0
    least_s: float = 0.0

    @classmethod
    def of(
        cls,
        span: Span,
        sides: Sequence[Trial],
        left_s: float,
        *,
        study: Study,
        usual_s: float,
    ) -> PairLoad:
        """Equal loads for a comparison.

        Args:
            span: what deferred work asks for.
            sides: a complete trial of each configuration.
            left_s: seconds that the comparison may take.
            study: the study, whose lengths of a load hold here too.
            usual_s: the usual load of both sides; 0: it is not known.
        """
        measurement, wanted = study.measurement, PAIRS_SPARE * study.verify.runs_min
        least_s = max(seconds_of("measurement.load_min", measurement.load_min), span.load_s)
        if usual_s <= 0:
            return cls(span.load_s, least_s)
        few_s, many_s = (
            _affordable_s(sides, left_s, max(pairs, wanted)) for pairs in (PAIRS_LEAST, PAIRS_ROOM)
        )
        if leaves_work(study, sides):
            # Of a load that is 1 + x times shorter, what it leaves is at most 1 + x times as great a share.
            more = _matters(study) / max(deferred_share(trial.metrics) for trial in sides)
            fewest_s = _affordable_s(sides, left_s, study.verify.runs_min)
            room_s = min(fewest_s, max(few_s, usual_s / (1 + more)))
        else:
            room_s = max(many_s, min(few_s, LOAD_LEAST * _beside_s(sides)))
        # What the stage took beside the load is no part of its length.
        most_s = min(usual_s, seconds_of("measurement.load_max", measurement.load_max))
        return cls(max(least_s, min(most_s, room_s)), least_s)


def leaves_work(study: Study, trials: Sequence[Trial]) -> bool:
    """Whether what loads leave undone takes so much of their time that it matters."""
    return max((deferred_share(trial.metrics) for trial in trials), default=0.0) >= _matters(study)


def _matters(study: Study) -> float:
    """The share of a load's time that matters."""
    return max(SHARE_MIN, study.verify.margin)


def span_of(study: Study, system: System, sides: Sequence[Trial], left_s: float) -> Span:
    """The span of the runs that compare some configurations.

    Args:
        study: gives the least length of a load, and the pairs that are made at least.
        system: entered.
        sides: a complete trial of each configuration.
        left_s: seconds that the comparison may take.
    """
    if not leaves_work(study, sides):
        return Span()
    share = max(deferred_share(trial.metrics) for trial in sides)
    notes = [f"what the loads left undone took up to {share:.0%} of the time"]
    if not study.measurement.charge_deferred or not charges(study.objective.formula.names):
        notes[0] += (
            ", which the objective does not feel: only metrics whose names end in _per_s and deferred_s do"
        )
    try:
        cycle_s = max(cycle_checked(system, trial.configuration, trial.metrics) for trial in sides)
    except StageFailed as failure:
        return Span(note=f"{notes[0]}; the length of its cycles is not known: {failure.message}")
    load_min_s = seconds_of("measurement.load_min", study.measurement.load_min)
    wanted_s = CYCLES * cycle_s
    if wanted_s <= load_min_s:
        return Span(note=notes[0])
    affordable_s = _affordable_s(sides, left_s, PAIRS_SPARE * study.verify.runs_min)
    load_s = max(load_min_s, min(wanted_s, affordable_s))
    cycle = f"the longest cycle of such work, {duration(cycle_s)}"
    too_small = f"the budget is too small for {CYCLES}, loads of {duration(wanted_s)}"
    if load_s >= wanted_s:
        notes.append(f"each run spans {CYCLES} of {cycle}")
    elif load_s >= cycle_s:
        notes.append(f"each run spans {load_s / cycle_s:.1f} of {cycle}; {too_small}")
    else:
        load_s = 0.0
        notes.append(f"each run is shorter than {cycle}, and is charged for what it left; {too_small}")
    return Span(load_s, "; ".join(notes))


def _affordable_s(sides: Sequence[Trial], left_s: float, pairs: float) -> float:
    """Seconds of load for which so many pairs fit into the time left."""
    share = max(deferred_share(trial.metrics) for trial in sides)
    return (left_s / (2 * pairs) - _beside_s(sides)) * (1 - share)


def _beside_s(sides: Sequence[Trial]) -> float:
    """Seconds that a run takes beside its load and what the load left."""
    return max(
        sum(spent_s for stage, spent_s in trial.stage_s.items() if stage not in ("load", "drain"))
        for trial in sides
    )
