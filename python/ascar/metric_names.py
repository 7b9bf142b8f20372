"""Metrics that a study's formulas name, held against those that its load and its system report."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from ascar.charging import CHARGED, DEFERRED
from ascar.degraded import degraded_names
from ascar.errors import StudyError
from ascar.space import change_costs_s
from ascar.study import stop_tables
from ascar.workloads import Declaring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ascar.space import Space
    from ascar.study import Study
    from ascar.systems import Target
    from ascar.workloads import Workload


_SHOWN_MAX = 24
_COMPARED_MAX = 100


def check_metrics(study: Study, target: Target, workload: Workload, space: Space) -> None:
    """See that formulas name only what is measured; where that is not known, the first trial shows it.

    Args:
        study: the study.
        target: the system, which need not be entered.
        workload: the load.
        space: the space of the search: rules of the guard may name its parameters.

    Raises:
        StudyError: a formula names a metric that is not reported.
    """
    sampled = target.sampled
    if sampled is None or not isinstance(workload, Declaring):
        return
    known = {*workload.reported, *sampled, "change_s", *CHARGED, *degraded_names(target, workload.reported)}
    if change_costs_s(study.space):
        known.add("change_cost_s")
    for key, names in _named(study):
        for name in sorted(one for one in names - known if not one.startswith(DEFERRED)):
            raise StudyError(
                f"{key}: needs the metric {name!r:.100}, which this load does not report; it reports "
                f"{_listed(name, known)}"
            )
    for index, rule, names in study.guard.rule_names():
        for name in sorted(names - known - set(space.names)):
            raise StudyError(
                f"guard.rule[{index}].forbid = {rule!r:.200}: needs {name!r:.100}, which is neither a "
                f"parameter nor a metric of this load; it reports {_listed(name, known)}"
            )


def _listed(wrong: str, known: set[str]) -> str:
    """The metrics, those whose names are nearest first, and the one that may be meant."""
    if len(known) <= _SHOWN_MAX:
        shown = ", ".join(sorted(known))
    else:
        first = get_close_matches(wrong[:_COMPARED_MAX], sorted(known), n=_SHOWN_MAX, cutoff=0.0)
        shown = f"{', '.join(first)}, ... ({len(known)} in all)"
    near = get_close_matches(wrong[:_COMPARED_MAX], sorted(known), n=1)
    return shown + (f"; did you mean {near[0]!r}?" if near else "")


def _named(study: Study) -> Iterator[tuple[str, set[str]]]:
    """Every formula over metrics, as key and text, with the names in it."""
    several = len(study.objectives) > 1
    for index, objective in enumerate(study.objectives):
        key = f"study.objective[{index}]" if several else "study.objective"
        yield f"{key} = {objective.text!r:.200}", set(objective.formula.names)
    own = len(study.constraints) - len(study.guard.limits)
    for index, constraint in enumerate(study.constraints):
        key = f"study.constraints[{index}]" if index < own else "guard"
        yield f"{key} = {str(constraint)!r:.200}", set(constraint.names)
    for key, table in stop_tables(study.stop):
        if table.target is not None:
            yield f"{key}.target = {table.target!r:.200}", set(study.stop_targets[table.target].names)
