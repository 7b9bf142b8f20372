"""The learner of a session without its messages: ticks and outcomes in, actions and reports out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ascar.capes.axes import initial
from ascar.capes.messages.ticks import performance_of
from ascar.capes.policy import TickObservation
from ascar.capes.process.action_queue import ActionQueue
from ascar.capes.process.baseline import BaselineCollector
from ascar.capes.process.fallback import FallbackState, Suspension
from ascar.capes.process.learner_state import LearnerState
from ascar.capes.process.setting_keys import position, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ascar.capes.axes import Setting
    from ascar.capes.messages.ticks import Tick
    from ascar.capes.process.action_queue import ActionRequest, ActionResult
    from ascar.capes.process.learner_file import Plan
    from ascar.capes.process.observer import Observer
    from ascar.capes.process.policies import LearningPolicy
    from ascar.capes.process.setting_keys import SettingKey
    from ascar.capes.process.tick_history import TickHistory


class LearnerProcess:
    """Gives a policy the ticks of a session, and asks the interface for the actions that it chooses.

    What is in force is what ticks say. A tick after which nothing can be changed, as an action is on its way
    or the interface holds, is only observed.

    Args:
        plan: the learner's file.
        setting_keys: the keys that it sets.
        observer: the observations of the policy.
        policy: the policy that decides and learns.
        name: the prefix of its actions' ids.

    Attributes:
        plan: see above.
        tick: the last one heard or recalled; -1 before the first.
        starts: the number of starts of the process.
    """

    def __init__(
        self,
        plan: Plan,
        setting_keys: Sequence[SettingKey],
        observer: Observer,
        policy: LearningPolicy,
        name: str,
    ) -> None:
        self.plan, self.setting_keys, self.observer, self.policy = plan, tuple(setting_keys), observer, policy
        self.action_queue = ActionQueue(self.setting_keys, name)
        self.initial = initial([one.knob for one in self.setting_keys])
        self.baseline = BaselineCollector(self.initial)
        self.tick, self.starts = -1, 1
        self._now: Setting | None = None
        self._performance = float("nan")
        self._wanted: Setting | None = None
        self._workload = ""
        self._suspension: Suspension | None = None
        self._fresh = -1

    def hear(self, tick: Tick, *, newest: bool = True) -> ActionRequest | None:
        """Take in a tick; return the action to take.

        Args:
            tick: the closed tick.
            newest: no later one is known; only after that one something is decided.
        """
        if tick.number <= self.tick:
            return None
        self.tick = tick.number
        if tick.workload != self._workload:
            self._announce(tick.workload)
        now = position(self.setting_keys, tick.setting)
        if now is None:  # a value that nobody knows: changed by somebody else
            return None
        seen = self._seen(tick.number, tick.metrics, self.observer.matrix(dict(tick.rows)), now)
        if tick.number <= self._fresh and now != self._now:  # it was closed before the last action
            self.policy.watch(seen)
            return None
        before, self._now = self._now, now
        if not self.action_queue.in_flight:
            self.baseline.take(seen, self._workload)
        suspended, state = self._suspension, FallbackState.of(tick.holding)
        self._suspension = Suspension.after(suspended, state, before, now)
        if self._suspension is not None:
            self._suspend(now)
            self.policy.watch(seen)
            return None
        if suspended is not None:
            self.policy.withdraw(suspended.blamed, now, refused=suspended.avoids(now, self.initial))
        return self._act(seen, before, newest=newest)

    def told(self, document: Mapping[str, Any]) -> None:
        """Take in a verdict on an action, or its outcome."""
        if self._now is None:
            return
        self._ended(self.action_queue.told(document, self._now))

    def lost(self) -> None:
        """Take in that the interface does not know the action in flight."""
        if self._now is not None:
            self._ended(self.action_queue.lost(self.tick, self._now))

    def _ended(self, end: ActionResult | None) -> None:
        if end is None or self._now is None:
            return
        if end.kind == "applied" and end.now is not None:
            # Ticks that were closed before it still have the old setting.
            self._fresh = end.tick
            self._now = end.now
            if end.final and end.now != end.wanted:
                self.policy.withdraw(end.wanted, end.now, refused=False)
        else:
            self.policy.withdraw(end.wanted, self._now, refused=end.kind == "refused")

    def recall(self, past: TickHistory, later_by: int = 0) -> int:
        """Learn from stored ticks; return how many there were.

        Args:
            past: the ticks, in their order.
            later_by: added to their numbers: for ticks of another session.
        """
        metrics, count = past.metrics_by_tick(), 0
        for tick, matrix in past.matrices(self.observer.layout):
            now = position(self.setting_keys, past.setting(tick) or {})
            is_new = tick + later_by > self.tick
            if now is None or not (is_new or self.policy.replays):
                continue
            named = past.workload(tick)
            if self.plan.file.state_per_workload and (named or "") != self._workload:
                continue  # of another model
            # Only the one learner keeps workloads apart; the other would explore anew for each.
            if named is not None and not self.policy.replays:
                self.announce(named)
            seen = self._seen(tick + later_by, metrics.get(tick, {}), matrix, now)
            if is_new and not later_by:
                self.baseline.take(seen, self._workload)
            self.policy.recall(seen)
            count += 1
            self.tick = max(self.tick, seen.tick)
        return count

    def report(self) -> dict[str, Any]:
        """The report that is published on `P.learner`."""
        sign, now = self.plan.objective.sign, self._now
        expected = None if now is None else self.policy.expected(now)
        wanted = self._wanted if self._wanted is not None else now
        ends = None
        if expected is not None:
            low, high = sorted((sign * expected.low, sign * expected.high))
            ends = {"mean": sign * expected.mean, "low": low, "high": high}
        return {
            "version": 1,
            "tick": self.tick,
            "algorithm": self.plan.file.algorithm,
            "objective": self.plan.objective.text,
            "phase": self.phase,
            "before": values_of(self.setting_keys, self.initial),
            "wanted": {} if wanted is None else values_of(self.setting_keys, wanted),
            "epsilon": self.policy.epsilon,
            "prediction_error": self.policy.prediction_error,
            "performance": sign * self._performance if np.isfinite(self._performance) else None,
            "expected": ends,
            "baseline": self.baseline.document(self._workload, sign),
            "changes": self.action_queue.changes,
            "refused": self.action_queue.refused,
            "workload": self._workload or None,
        }

    @property
    def phase(self) -> str:
        """See docs/capes-protocol.md."""
        if self._suspension is not None:
            return "holding"
        if self.action_queue.waiting:
            return "waiting"
        return "acting" if self.action_queue.in_flight or self.action_queue.target is not None else "learning"

    def written(self) -> tuple[LearnerState, dict[str, NDArray[Any]]]:
        """The state to keep until the next start."""
        about, arrays = self.policy.written()
        state = LearnerState(
            algorithm=self.plan.file.algorithm,
            objective=self.plan.objective.text,
            keys=tuple(one.key for one in self.setting_keys),
            nodes=self.observer.layout.nodes,
            indicators=self.observer.layout.names,
            tick=self.tick,
            starts=self.starts,
            changes=self.action_queue.changes,
            refused=self.action_queue.refused,
            baselines={name: tuple(values) for name, values in self.baseline.values.items()},
            policy=about,
        )
        return state, {**arrays, "usual": self.observer.usual}

    def read(self, state: LearnerState, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state.

        Raises:
            InputError: it is of another learner, or damaged.
        """
        self.policy.read(state.policy, arrays)
        self.tick, self.starts = state.tick, state.starts + 1
        self.action_queue.changes, self.action_queue.refused = state.changes, state.refused
        self.baseline = BaselineCollector(self.initial, state.baselines)

    @property
    def now(self) -> Setting | None:
        """The setting in force, as far as it is known."""
        return self._now

    def announce(self, workload: str) -> None:
        """Take in the workload that runs."""
        if workload != self._workload:
            self._announce(workload)

    def _announce(self, workload: str) -> None:
        self._workload = workload
        if not self.plan.file.state_per_workload:  # else it knows no other
            self.policy.announce(workload)
        target = self.action_queue.give_up()
        if target is not None and self._now is not None:
            self.policy.withdraw(target, self._now, refused=False)

    def _seen(
        self, tick: int, metrics: Mapping[str, float | None], matrix: NDArray[np.float64], now: Setting
    ) -> TickObservation:
        self._performance = performance_of(self.plan.objective, metrics)
        return TickObservation(tick, self._performance, self.observer.scaled(matrix), now)

    def _act(self, seen: TickObservation, before: Setting | None, *, newest: bool) -> ActionRequest | None:
        if self.action_queue.in_flight or not newest:
            self.policy.watch(seen)
            return None
        action = self.action_queue.next(seen.tick, seen.setting)
        if self.action_queue.target is not None:  # on the way, step by step
            self.policy.watch(seen)
            return action
        if before is not None and seen.setting != before:  # changed by somebody else
            self.policy.withdraw(seen.setting, seen.setting, refused=False)
        self._wanted = self.policy.decide(seen)
        if self._wanted == seen.setting:
            return None
        self.action_queue.target = self._wanted
        return self.action_queue.next(seen.tick, seen.setting)

    def _suspend(self, now: Setting) -> None:
        """Give up the target, because nothing may be changed."""
        target = self.action_queue.give_up()
        if target is not None:
            self.policy.withdraw(target, now, refused=False)
