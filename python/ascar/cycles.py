"""How long the runs of the last comparison are: several of the longest cycles of deferred work.

Deferred work is done in cycles: dirty pages are written back when they have a certain age, a journal is
committed every few seconds, a log is checkpointed when it is long enough. A run shorter than a cycle sees
nothing of it but what `ascar.charging` does for it at the end, one thing after the other; a run of several
cycles sees it done beside the load, as it will be. So the runs of the last comparison span three of the
longest cycles in force in either configuration, as far as the budget allows, and the verdict says where it
does not. Where what trials left took less of their time than a difference that does not matter (`[verify]
margin`, and 1% at least), the runs are as long as the study says.
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
SHARE_MIN = 0.01
"""The share of its time that what a load left must take to matter, whatever the study's margin."""
_PAIRS_SPARE = 1.5


@dataclass(frozen=True, slots=True)
class Span:
    """The length of the last comparison's runs.

    Attributes:
        load_s: their loads run at least this long; 0: as long as the study says.
        note: what the verdict has to say of it; empty where nothing that matters is deferred.
    """

    load_s: float = 0.0
    note: str = ""


def span_of(study: Study, system: System, sides: Sequence[Trial], left_s: float) -> Span:
    """The span of the runs that compare some configurations.

    Args:
        study: gives the least length of a load, and the pairs that are made at least.
        system: entered.
        sides: a complete trial of each configuration.
        left_s: seconds that the comparison may take.
    """
    share = max(deferred_share(trial.metrics) for trial in sides)
    if share < max(SHARE_MIN, study.verify.margin):
        return Span()
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
    load_s = max(load_min_s, min(wanted_s, _affordable_s(study, sides, left_s)))
    if load_s >= wanted_s:
        notes.append(f"each run spans {CYCLES} of the longest cycle of such work, {duration(cycle_s)}")
    else:
        notes.append(
            f"each run spans {load_s / cycle_s:.1f} of the longest cycle of such work, {duration(cycle_s)}; "
            f"the budget is too small for {CYCLES}, loads of {duration(wanted_s)}"
        )
    return Span(load_s, "; ".join(notes))


def _affordable_s(study: Study, sides: Sequence[Trial], left_s: float) -> float:
    """Seconds of load for which half as many pairs again as are needed at least fit into the time left."""
    beside_s = max(
        sum(spent_s for stage, spent_s in trial.stage_s.items() if stage not in ("load", "drain"))
        for trial in sides
    )
    run_s = left_s / (2 * _PAIRS_SPARE * study.verify.runs_min)
    return (run_s - beside_s) * (1 - max(deferred_share(trial.metrics) for trial in sides))
