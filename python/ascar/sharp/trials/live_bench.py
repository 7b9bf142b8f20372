"""Controllers behind a message server as a bench: the last phase of a search, on real streams.

A run is an interval of the system at work, under rules on trial. Nothing repeats there: a repeat is just
another interval.
"""

from __future__ import annotations

import hashlib
import json
from statistics import fmean
from typing import TYPE_CHECKING

from ascar.errors import InputError
from ascar.sharp.deployment.managed_system import METRICS, check_objective, interval_metrics
from ascar.sharp.trials.bench import SHARES, RuleRun

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from ascar.objective import Objective
    from ascar.sharp.deployment.managed_system import ManagedSystem
    from ascar.sharp.metric_bounds import MetricBound
    from ascar.sharp.trials.bench import RuleTrial


class LiveBench:
    """A system at work as a bench; without rules it does what its controllers keep.

    Args:
        system: the system whose controllers try rules out.
        objective: the objective over the metrics of an interval.
        settle_s: left out after rules have changed.
        run_s: the length of a run, in the system's time.
        bounds: the bounds that rules must keep; those of shares are checked by the last comparison alone.

    Raises:
        InputError: the objective or a bound names what no interval tells, or the times are out of range.
    """

    def __init__(
        self,
        system: ManagedSystem,
        objective: Objective,
        settle_s: float,
        run_s: float,
        *,
        bounds: Sequence[MetricBound] = (),
    ) -> None:
        check_objective(objective)
        told = {*METRICS, *(name for name in SHARES if name.endswith("_share_min"))}
        for one in bounds:
            if one.metric not in told:
                raise InputError(
                    f"--constraint names {one.metric[:80]!r}; a running system tells "
                    f"{', '.join(sorted(told))}"
                )
        if not (settle_s >= 0 and run_s > 0):
            raise InputError(f"settle_s = {settle_s}, run_s = {run_s}: must not be below 0")
        self._system = system
        self._settle_s, self._run_s = settle_s, run_s

    @property
    def identity(self) -> str:
        """Digest of the controllers and of how long they are looked at."""
        kept = self._system.in_force()
        known = [
            list(self._system.controllers),
            self._settle_s,
            self._run_s,
            None if kept is None else kept.bare().text(),
        ]
        return hashlib.sha256(json.dumps(known).encode()).hexdigest()

    @property
    def groups(self) -> tuple[str, ...]:
        """Each controller is one."""
        return self._system.controllers

    def run(self, trials: Iterable[RuleTrial]) -> Generator[RuleRun]:
        """Run trials one after the other; whatever ends it, what was kept is in force again."""
        system = self._system
        try:
            for trial in trials:
                system.back()
                kept = system.in_force()
                rules = None if kept is None else kept.bare()
                if trial.rules is not None:
                    rules = trial.rules.bare()
                    system.try_out(rules)
                series = system.collect(rules, self._settle_s, self._run_s)
                totals = tuple(sum(one) for one in zip(*series.values(), strict=True))
                groups = tuple(fmean(series[name]) for name in system.controllers)
                used = system.used() if trial.rules else None
                yield RuleRun(interval_metrics(series), totals, used, groups)
        finally:
            system.back()
