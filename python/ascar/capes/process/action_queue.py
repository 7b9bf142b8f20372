"""Actions towards the target setting: one at a time, in steps as large as is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from ascar import typed
from ascar.capes.process.setting_keys import position, values_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ascar.capes.axes import Setting
    from ascar.capes.process.setting_keys import SettingKey, Value

_LOST_TICKS: Final = 10
_PAUSE_TICKS_MAX: Final = 60
_FOR_NOW: Final = ("busy", "holding", "killed", "storage", "window", "node", "restored", "lost")
"""Why an action may be refused or fail though nothing is wrong with its setting."""


class ActionRequest(NamedTuple):
    """The action that is sent on `P.actions`.

    Attributes:
        id: new for each.
        tick: the tick that led to the action.
        set: the changes, by key of the setting.
    """

    id: str
    tick: int
    set: dict[str, Value]


class ActionResult(NamedTuple):
    """The result of an action.

    Attributes:
        kind: "applied"; "refused": its setting is not allowed; "dropped": not now; "observed": recorded only.
        wanted: the target.
        now: the setting in force as reported by the nodes; None without a report.
        tick: the tick of the result.
        final: whether nothing is left to do towards the target.
    """

    kind: Literal["applied", "refused", "dropped", "observed"]
    wanted: Setting
    now: Setting | None
    tick: int
    final: bool


class _Outcome(msgspec.Struct, frozen=True):
    id: str
    verdict: str
    tick: int = 0
    reason: str | None = None
    set: dict[str, Any] = {}


@dataclass(slots=True)
class _InFlight:
    id: str
    step: Setting
    since: int
    waiting: bool = False


class ActionQueue:
    """Sends actions until the target setting is in force.

    Args:
        setting_keys: the knobs.
        name: the prefix of the ids, which is new at each start of the process, so that ids are never reused.

    Attributes:
        target: the target setting; None without one.
        changes: actions that were applied.
        refused: actions that were refused, or that failed.
    """

    def __init__(self, setting_keys: Sequence[SettingKey], name: str) -> None:
        self._setting_keys, self._name = tuple(setting_keys), name
        self.target: Setting | None = None
        self.changes = self.refused = 0
        self._in_flight: _InFlight | None = None
        self._serial = self._pause = 0
        self._not_before = -1
        self._changed: dict[str, int] = {}

    @property
    def in_flight(self) -> bool:
        """Whether an action is in flight."""
        return self._in_flight is not None

    @property
    def waiting(self) -> bool:
        """Whether an action waits for somebody's approval."""
        return self._in_flight is not None and self._in_flight.waiting

    def overdue(self, tick: int) -> str | None:
        """The id of an action of which nothing has been heard for long."""
        if self._in_flight is None or tick - self._in_flight.since < _LOST_TICKS:
            return None
        self._in_flight.since = tick
        return self._in_flight.id

    def next(self, tick: int, now: Setting) -> ActionRequest | None:
        """The next action towards the target; None where there is nothing to do, or not yet."""
        if now == self.target:
            self.target = None
        if self.target is None or self._in_flight is not None or tick < self._not_before:
            return None
        step = tuple(
            self._step(setting_key, value, wanted, tick)
            for setting_key, value, wanted in zip(self._setting_keys, now, self.target, strict=True)
        )
        moved = [at for at, (one, other) in enumerate(zip(now, step, strict=True)) if one != other]
        if not moved:
            return None
        self._serial += 1
        self._in_flight = _InFlight(f"{self._name}-{self._serial}", step, tick)
        values = values_of(self._setting_keys, step)
        keys = [self._setting_keys[at].key for at in moved]
        return ActionRequest(self._in_flight.id, tick, {key: values[key] for key in keys})

    def told(self, document: Mapping[str, Any], now: Setting) -> ActionResult | None:
        """Take in a verdict or an outcome; None where it is of another's action, or not the end of ours.

        Args:
            document: the message, in any form.
            now: the present setting.
        """
        in_flight, target = self._in_flight, self.target
        try:
            outcome = typed.convert(document, _Outcome)
        except msgspec.ValidationError:
            return None
        if in_flight is None or target is None or outcome.id != in_flight.id:
            return None
        in_flight.since = max(in_flight.since, outcome.tick)
        in_flight.waiting = outcome.verdict == "waiting"
        if outcome.verdict == "applied":
            return self._applied(outcome, now, target, in_flight)
        if outcome.verdict not in ("refused", "failed", "observed"):
            return None
        return self._ended(outcome, target)

    def lost(self, tick: int, now: Setting) -> ActionResult | None:
        """Take in that nobody knows the action in flight: the setting in force tells its result."""
        in_flight, target = self._in_flight, self.target
        if in_flight is None or target is None:
            return None
        if now == in_flight.step:
            return self._applied(_Outcome(in_flight.id, "applied", tick), now, target, in_flight)
        self._in_flight = self.target = None
        return ActionResult("dropped", target, None, tick, final=True)

    def give_up(self) -> Setting | None:
        """Give up the target, but for an action in flight; the target."""
        if self._in_flight is not None:
            return None
        target, self.target = self.target, None
        return target

    def _ended(self, outcome: _Outcome, target: Setting) -> ActionResult:
        """The result of an action that was not carried out."""
        self._in_flight = self.target = None
        if outcome.verdict == "observed":
            return ActionResult("observed", target, None, outcome.tick, final=True)
        self.refused += 1
        if not _for_now(outcome.reason or ""):
            return ActionResult("refused", target, None, outcome.tick, final=True)
        self._pause = min(2 * self._pause + 1, _PAUSE_TICKS_MAX)
        self._not_before = outcome.tick + self._pause
        return ActionResult("dropped", target, None, outcome.tick, final=True)

    def _applied(
        self, outcome: _Outcome, now: Setting, target: Setting, in_flight: _InFlight
    ) -> ActionResult:
        self._in_flight, self._pause = None, 0
        self.changes += 1
        for key in outcome.set:
            self._changed[key] = outcome.tick
        before = values_of(self._setting_keys, now)
        reached = position(self._setting_keys, {**before, **outcome.set}) or in_flight.step
        # Where nodes have rounded, further steps would do no better.
        final = reached == target or reached != in_flight.step
        if final:
            self.target = None
        return ActionResult("applied", target, reached, outcome.tick, final=final)

    def _step(self, setting_key: SettingKey, now: float, wanted: float, tick: int) -> float:
        if (
            now == wanted
            or tick - self._changed.get(setting_key.key, tick - setting_key.interval_ticks)
            < setting_key.interval_ticks
        ):
            return now
        most = setting_key.change_max
        if most is None or abs(wanted - now) <= most:
            return wanted
        length = int(most / setting_key.knob.step) * setting_key.knob.step or most
        return now + length if wanted > now else now - length


def _for_now(reason: str) -> bool:
    """Whether the same action may be allowed another time."""
    if reason.startswith("rate: "):
        return "ticks ago" in reason
    if reason.startswith("node "):  # what a node says itself, or "no answer"
        return False
    first = reason.partition(":")[0].partition(" ")[0]
    return reason.startswith("no answer") or first in _FOR_NOW
