"""A running system behind a message server, as loops use it: rules put in force, throughput read."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import defaultdict
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ascar.errors import InputError, MessagingError
from ascar.messaging import Background, find_settings
from ascar.messaging.rule_subjects import ANY, beat
from ascar.rules import RuleSet
from ascar.sharp.deployment.controller import TRIAL_MAX_S
from ascar.sharp.deployment.controller_socket import open_link
from ascar.sharp.deployment.manager import Manager, ManagerTimeouts
from ascar.sharp.deployment.messages import Beat, Here, RuleUse, least_left_s
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.deployment.recording import recorded_of, together
from ascar.sharp.trials.bench import merged

if TYPE_CHECKING:
    from collections.abc import Collection, Coroutine, Generator, Iterable, Mapping, Sequence
    from pathlib import Path

    from ascar.messaging import Link, Settings
    from ascar.objective import Objective
    from ascar.sharp.deployment.controller_socket import ControllerSocket
    from ascar.sharp.deployment.recording import ControllerTrace

METRICS = frozenset(("throughput_mb_per_s", "tp", "stdev", "cv", "jain_index"))
"""What an interval of a running system tells: of throughput(client, tick), section 3.1.5."""

Result = TypeVar("Result")
_TICKS_KEPT = 4_096
_CALL_S = 600.0


class OtherRules(MessagingError):
    """Rules are in force, or on trial, that others have put there."""


class ManagedSystem:
    """The controllers of one workload, wherever they are.

    Trials expire by themselves: when this process is killed, controllers go back to the rules they kept.

    Args:
        background: a loop that runs.
        settings: the connection settings of the message server.
        workload: the workload of the controllers; None: all controllers.
        trial_s: the time that rules on trial stay in force unless the trial is renewed.
        silence_s: a tick, or an answer, that takes longer than this to come is a controller lost. One that is
            back sooner, or whose agent is, was not.

    Raises:
        MessagingError: there is no connection, or no controller.
    """

    def __init__(
        self,
        background: Background,
        settings: Settings,
        workload: str | None,
        *,
        trial_s: float = 60.0,
        silence_s: float = 15.0,
    ) -> None:
        self._background = background
        self._trial_s = trial_s
        self._silence_s = silence_s
        self._workload = workload
        self._ticks: dict[str, dict[int, Beat]] = defaultdict(dict)
        self._heard_s: dict[str, float] = {}
        self._came: asyncio.Event | None = None
        self._trial: RuleSet | None = None
        self._kept: RuleSet | None = None
        self._kept_ends_s: float | None = None  # of their time limit, by `time.monotonic`
        self._asked = False
        self._time_s = 0.0
        self._instances: dict[str, str] = {}
        self.controllers: tuple[str, ...] = ()
        self._link, self._manager, self.controllers = self._call(self._open(settings))

    @classmethod
    @contextlib.contextmanager
    def connected(
        cls, workload: str | None, connection: Path | None, *, trial_s: float = 120.0
    ) -> Generator[Self]:
        """Find the controllers of a workload; at the end rules on trial are removed.

        Args:
            workload: the workload of the controllers; None: all controllers.
            connection: the connection file; None: ASCAR_NATS_URL, or the message server of this machine.
            trial_s: the time that rules on trial stay in force unless the trial is renewed.

        Raises:
            MessagingError: there is no connection, or no controller.
        """
        settings = find_settings("manager", connection)
        with Background() as background:
            system = cls(background, settings, workload, trial_s=trial_s)
            try:
                yield system
            finally:
                system.close()

    def close(self) -> None:
        """Put back what was on trial, and leave."""
        try:
            self.back()
        finally:
            self._call(self._link.close())

    def in_force(self) -> RuleSet | None:
        """The rules that all controllers keep, with their use when they were first asked; None: none do.

        Raises:
            OtherRules: some are on trial.
            MessagingError: they follow different ones, or one does not answer.
        """
        if not self._asked:
            shown = self._shown()
            if any(one.on_trial for one in shown):
                raise OtherRules("controllers have rules on trial; wait until the trial ends")
            self._kept = _with_use(shown)
            left_s = least_left_s(shown)
            self._kept_ends_s = None if left_s is None else time.monotonic() + left_s
            self._asked = True
        return self._kept

    def used(self) -> RuleSet | None:
        """The rules in force, on trial or kept, with their use since then; None: none are.

        Raises:
            MessagingError: they follow different ones, or one does not answer.
        """
        return _with_use(self._shown())

    def try_out(self, rules: RuleSet) -> None:
        """Put rules in force on trial; those that are kept already are just in force.

        Raises:
            MessagingError: a controller refuses or does not answer; none follows them.
        """
        kept = self.in_force()
        if kept is not None and kept.bare() == rules.bare():
            self.back()
            return
        # Noted before it is done: an interruption may come when controllers follow them already.
        before, self._trial = self._trial, rules
        try:
            self._call(self._manager.try_out(rules, self.controllers, self._trial_s))
        except MessagingError:
            self._trial = before
            raise

    def back(self) -> None:
        """End the trial: what was kept is in force.

        Raises:
            MessagingError: a controller does not say so.
        """
        if self._trial is not None:
            self._call(self._manager.back(self._trial, self.controllers))
            self._trial = None

    def keep(self) -> None:
        """End the trial: its rules stay, or until the time limit of those that were kept before.

        Raises:
            MessagingError: a controller does not; none follows them any more.
        """
        if self._trial is None:
            return  # they were kept already
        left_s = None if self._kept_ends_s is None else max(1.0, self._kept_ends_s - time.monotonic())
        self._call(self._manager.keep(self._trial, self.controllers, left_s))
        self._kept, self._trial = self._trial, None

    def measure(self, rules: RuleSet | None, settle_s: float, measure_s: float) -> dict[str, float]:
        """What the next seconds bring under rules that are in force, the first of them left out.

        Raises:
            MessagingError: a controller is lost, or follows other rules.
        """
        return interval_metrics(self.collect(rules, settle_s, measure_s))

    def collect(
        self, rules: RuleSet | None, settle_s: float, measure_s: float, *, going_on: bool = False
    ) -> dict[str, list[float]]:
        """Throughput by controller, a value a tick, under rules that are in force.

        Args:
            rules: the rules in force.
            settle_s: left out at first.
            measure_s: the length of the measurement.
            going_on: whether it goes on where the last call ended; else what came before is left out.

        Raises:
            MessagingError: a controller is lost, or follows other rules.
        """
        name = None if rules is None else rules_id(rules)
        return self._call(self._collected(name, settle_s, measure_s, going_on=going_on))

    def renew(self) -> None:
        """Let the trial go on for as long again as it was given.

        Raises:
            MessagingError: a controller does not; none follows them any more.
        """
        if self._trial is None:
            return  # what is kept needs nobody
        self._call(self._manager.renew(self._trial, self.controllers, self._trial_s))

    def take_off(self) -> None:
        """Do without rules from now on; those that were kept are kept no more.

        Raises:
            MessagingError: a controller does not say so.
        """
        self._call(self._manager.take_off(self.controllers))
        self._kept, self._trial, self._asked = None, None, True

    def look_again(self) -> None:
        """Others may have changed the rules: those in force are asked for anew, once a tick is over.

        Raises:
            MessagingError: a controller is lost.
        """
        self._call(self._ticked())
        self._kept, self._trial, self._asked = None, None, False

    def record(self, seconds: float) -> ControllerTrace:
        """What all clients together do in so many seconds of the system's time.

        Raises:
            MessagingError: a controller cannot tell, or is lost.
        """
        return together(self._call(self._recorded(seconds)))

    @property
    def time_s(self) -> float:
        """Seconds of the system that have passed since this was opened."""
        return self._time_s

    def _shown(self) -> Sequence[RuleUse]:
        """What every controller says of its rules, which are the same.

        Raises:
            MessagingError: they are not, or one does not answer.
        """
        shown, problems = self._call(self._manager.shown(self.controllers))
        if problems:
            raise MessagingError("; ".join(str(one) for one in problems))
        if len({one.rules for one in shown}) > 1:
            raise MessagingError("controllers follow different rules; deploy a rule set first")
        return shown

    async def _open(self, settings: Settings) -> tuple[Link | ControllerSocket, Manager, tuple[str, ...]]:
        self._came = asyncio.Event()
        link = await open_link(settings, name="ascar rules")
        manager = Manager(link, ManagerTimeouts(answer_s=self._silence_s))
        found: Sequence[Here] = await manager.find(self._workload, least=1)
        if not found:
            await link.close()
            of = "" if self._workload is None else f" of workload {self._workload}"
            raise MessagingError(f"controllers{of}: none answers; start them, or name another workload")
        self._instances = {one.controller: one.instance for one in found}
        await link.serve(beat(ANY), Beat, self._on_beat)
        return link, manager, tuple(one.controller for one in found)

    async def _on_beat(self, one: Beat) -> None:
        ticks = self._ticks[one.controller]
        ticks[one.tick] = one
        if one.controller == next(iter(self.controllers), None):
            self._time_s += one.tick_s
        self._heard_s[one.controller] = time.monotonic()
        while len(ticks) > _TICKS_KEPT:
            del ticks[next(iter(ticks))]
        assert self._came is not None
        self._came.set()

    async def _recorded(self, seconds: float) -> list[ControllerTrace]:
        found: list[ControllerTrace] = []
        begun_s = time.monotonic()
        for one in await self._manager.record(self.controllers, seconds):
            while not (parts := await self._manager.read(one)):
                await self._hear([one.controller], begun_s)
            found.append(recorded_of(parts))
        return found

    async def _collected(
        self, rules: str | None, settle_s: float, measure_s: float, *, going_on: bool
    ) -> dict[str, list[float]]:
        if not going_on:
            self._forget_ticks()
        await self._until(1)
        tick_s = next(iter(self._ticks[self.controllers[0]].values())).tick_s
        # The first tick may have begun under other rules.
        left_out = 0 if going_on else 1 + math.ceil(settle_s / tick_s)
        wanted = max(1, round(measure_s / tick_s))
        await self._until(left_out + wanted)
        series: dict[str, list[float]] = {}
        for name in self.controllers:
            ticks = self._ticks[name]
            taken = [ticks.pop(number) for number in list(ticks)[: left_out + wanted]]
            beats = taken[left_out:]
            if any(one.instance != self._instances[name] for one in beats):
                raise MessagingError(f"{name}: was started anew")
            if any(one.rules != rules for one in beats):
                raise OtherRules(f"{name}: follows other rules than those deployed")
            series[name] = [one.mb_per_s for one in beats]
        return series

    def _forget_ticks(self) -> None:
        for ticks in self._ticks.values():
            ticks.clear()

    async def _ticked(self) -> None:
        self._forget_ticks()
        await self._until(1)

    async def _until(self, ticks: int) -> None:
        """Wait until every controller has told so many ticks."""
        begun_s = time.monotonic()
        while missing := [name for name in self.controllers if len(self._ticks[name]) < ticks]:
            await self._hear(missing, begun_s)

    async def _hear(self, names: Sequence[str], begun_s: float) -> None:
        """Wait for something to come.

        Raises:
            MessagingError: one of these has been silent for too long.
        """
        assert self._came is not None
        now_s = time.monotonic()
        silent_s = {name: now_s - max(begun_s, self._heard_s.get(name, begun_s)) for name in names}
        lost = [name for name, silence_s in silent_s.items() if silence_s > self._silence_s]
        if lost:
            raise MessagingError(
                f"{', '.join(lost[:8])}: silent for {self._silence_s:g} s; is its process still running?"
            )
        self._came.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._came.wait()

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._background.call(work, _CALL_S)


def _with_use(shown: Sequence[RuleUse]) -> RuleSet | None:
    texts = [one.text for one in shown if one.text is not None]
    return merged([RuleSet.parse(text) for text in texts]) if texts else None


def interval_metrics(series: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """`METRICS` of an interval: throughput by client, one entry a tick, in MB/s.

    Raises:
        InputError: there is no client or no tick.
    """
    if not series or not all(series.values()):
        raise InputError("readings: the controllers sent none; measure longer than a tick")
    shares = [fmean(one) for one in series.values()]
    readings = [value for one in series.values() for value in one]
    tp, stdev = fmean(readings), pstdev(readings)
    squares = sum(one**2 for one in shares)
    return {
        "throughput_mb_per_s": sum(shares),
        "tp": tp,
        "stdev": stdev,
        "cv": stdev / tp if tp > 0 else 0.0,
        "jain_index": sum(shares) ** 2 / (len(shares) * squares) if squares > 0 else 0.0,
    }


def check_objective(objective: Objective) -> None:
    """Refuse an objective of what an interval of a running system does not tell.

    Raises:
        InputError: it names another metric.
    """
    check_told("--objective", objective.formula.names, METRICS)


def check_told(option: str, names: Iterable[str], known: Collection[str]) -> None:
    """Refuse metrics that an interval of a running system does not tell.

    Args:
        option: the option that names them.
        names: the metrics.
        known: those that are told.

    Raises:
        InputError: one is not told.
    """
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise InputError(
            f"{option} names {unknown[:80]!r}; a running system tells {', '.join(sorted(known))}"
        )


def trial_length_s(settle_s: float, measure_s: float) -> float:
    """The time that rules on trial stay in force when the process that tries them is gone.

    Three measurements long, so that none outlasts it, and an hour at most.
    """
    return min(TRIAL_MAX_S, 3 * (settle_s + measure_s) + 30)
