"""A study's system opened: checked, and not yet touched."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ascar.errors import StudyError
from ascar.metric_names import check_metrics
from ascar.space import study_space
from ascar.systems import Adopting, Guarded, Owned, open_target
from ascar.workloads import Workload, open_workload

if TYPE_CHECKING:
    from ascar.evaluation import Clock
    from ascar.space import Space
    from ascar.study import Study
    from ascar.systems import Target


class Day:
    """The local time of the day, which windows of `[guard]` are about."""

    def time(self) -> datetime:
        """The local time."""
        return datetime.now().astimezone()

    def wait(self, seconds: float) -> None:
        """Wait; an interrupt ends it."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class PreparedStudy:
    """A study's system under tuning with its load: checked, and not yet touched.

    Attributes:
        study: the study.
        target: the system, not entered.
        space: the part of the target's space that the study leaves.
        workload: the load.
        clock: seconds, monotonic; the target's own where its time is virtual.
        day: the time of the day; None where time is virtual.
        start_s: time of the clock at which the budget begins: entering the target is part of it.
    """

    study: Study
    target: Target
    space: Space
    workload: Workload
    clock: Clock
    day: Day | None = None
    start_s: float = 0.0

    @classmethod
    def open(cls, study: Study, clock: Clock | None = None, *, spent_s: float = 0.0) -> PreparedStudy:
        """The prepared of a study.

        Args:
            study: the study.
            clock: seconds, monotonic; None: the target's own where its time is virtual, else the machine's.
            spent_s: real seconds of the budget that were spent before, on the start of the program.

        Raises:
            InputError: the study, or the machine, does not allow it; nothing was touched.
        """
        opened_s = time.monotonic()
        target = open_target(study.target)
        if isinstance(target, Owned):
            target.owner = f"study {study.name}, process {os.getpid()}"
        if not study.workload and isinstance(target, Workload):
            workload: Workload = target  # recorded and simulated systems bring their own load
        else:
            _check_time(study, target)
            workload = open_workload(study.workload, target.default_workload, target.workloads)
        ticks: Clock = clock or getattr(target, "clock", time.monotonic)
        day = None if hasattr(target, "clock") else Day()
        space = _space_of(study, target)
        check_metrics(study, target, workload, space)
        if isinstance(target, Guarded):
            target.guard_by(study.guard)
        else:
            study.guard.check_no_share("a share is kept on servers that people use (target.server) alone")
        late_s = 0.0 if day is None else spent_s + time.monotonic() - opened_s
        return cls(study, target, space, workload, ticks, day, ticks() - late_s)

    def entered(self) -> PreparedStudy:
        """The prepared once its target is entered: it then knows the machine's own defaults and abilities."""
        space = _space_of(self.study, self.target)
        if isinstance(self.target, Adopting):
            self.target.adopt(space)
        return replace(self, space=space)

    def valid_for(self) -> dict[str, Any]:
        """What results hold for: the machine, the system under tuning, the load; JSON-ready."""
        return {**self.target.describe(), "workload": dict(self.workload.describe())}


def _check_time(study: Study, target: Target) -> None:
    """See that the load runs in the target's time: one that really runs would be billed to a virtual clock.

    Raises:
        StudyError: the target exists on paper, and the study names a load.
    """
    if study.workload and not target.on_machine:
        raise StudyError(
            f"workload.kind = {study.workload.get('kind')!r}: target.kind = {study.target.get('kind')!r} is "
            "its own load, in a time of its own; leave [workload] out"
        )


def _space_of(study: Study, target: Target) -> Space:
    """The part of a target's space that a study, and its guard, leave."""
    return study.guard.constrained(study_space(study, target.space))
