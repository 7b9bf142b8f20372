"""A controller's side: rules on trial until they are kept, else put back; kept ones until their limit."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from ascar.errors import InputError
from ascar.messaging import Message, token
from ascar.rules import RuleSet
from ascar.sharp.deployment.messages import (
    FIND,
    Back,
    Beat,
    Find,
    Here,
    InForce,
    Keep,
    LoadRules,
    Read,
    RecordingPart,
    RecordingState,
    Renew,
    RuleUse,
    Show,
    StartRecording,
    Stop,
    ask,
    beat,
)
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.deployment.recording import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ascar.messaging import Link
    from ascar.sharp.deployment.recording import ControllerTrace

TRIAL_MAX_S = 3_600.0
"""The longest time that rules are on trial without a word from the manager."""
KEPT_MAX_S = 31_536_000.0
"""The longest time limit of kept rules: 365 days."""
_RECORD_MAX_S = 3_600.0
Asked = TypeVar("Asked", bound=Message)
Said = TypeVar("Said", bound=Message)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Rules that are kept.

    Attributes:
        rules: the rules.
        ends_s: the end of their time limit, by the clock of the event loop; infinite: they stay.
    """

    rules: RuleSet
    ends_s: float


class Plane(Protocol):
    """What follows the rules: the streams of one client."""

    async def follow(self, rules: RuleSet | None) -> None:
        """Follow rules from now on, counting from zero; None: do without any.

        Streams begin anew, with the window that they begin with, too: else what rules bring would depend on
        those before them, and none could be compared in turns.

        Raises:
            AscarError: it cannot; what was followed before still is.
        """
        ...

    async def used(self) -> RuleSet | None:
        """The rules that are followed, with their use so far; None without rules."""
        ...

    async def record(self, seconds: float) -> ControllerTrace:
        """What the client does in so many seconds from now on, of the system's time.

        Raises:
            AscarError: it cannot tell.
        """
        ...


class ControllerEndpoint:
    """Answers a rule manager for one plane.

    Rules come on trial. When they are not kept in time, because the manager or the server is gone, those that
    were in force before are so again; so no half of a deployment outlives its manager.

    Args:
        link: the connection to the message server.
        name: the unique name of the controller, a token.
        workload: the workload of its client, a token.
        plane: the plane on which the rules act.

    Raises:
        InputError: a name is not a token.
    """

    def __init__(self, link: Link, name: str, workload: str, plane: Plane) -> None:
        self.name = token("controller", name)
        self.workload = token("workload", workload)
        self.instance = secrets.token_hex(8)
        self._link = link
        self._plane = plane
        self._kept: _Kept | None = None
        self._before: _Kept | None = None  # what was kept before `_kept`
        self._trial: RuleSet | None = None
        self._turn = asyncio.Lock()
        self._trial_end: asyncio.Task[None] | None = None
        self._kept_end: asyncio.Task[None] | None = None
        self._recordings = 0
        self._recording: asyncio.Task[list[RecordingPart]] | None = None

    @property
    def rules(self) -> str | None:
        """Id of the rules in force, on trial or kept."""
        now = _rules_of(self._kept) if self._trial is None else self._trial
        return None if now is None else rules_id(now)

    async def serve(self) -> None:
        """Listen from now on.

        Raises:
            MessagingError: the link is closed.
        """
        await self._link.serve(FIND, Find, self._on_find)
        await self._link.serve(ask("load", self.name), LoadRules, self._in_turn(self._on_load))
        await self._link.serve(ask("keep", self.name), Keep, self._in_turn(self._on_keep))
        await self._link.serve(ask("back", self.name), Back, self._in_turn(self._on_back))
        await self._link.serve(ask("stop", self.name), Stop, self._in_turn(self._on_stop))
        await self._link.serve(ask("show", self.name), Show, self._in_turn(self._on_show))
        await self._link.serve(ask("renew", self.name), Renew, self._in_turn(self._on_renew))
        await self._link.serve(ask("record", self.name), StartRecording, self._on_record)
        await self._link.serve(ask("read", self.name), Read, self._on_read)

    async def beat(self, tick: int, tick_s: float, mb_per_s: float, rules: str | None) -> None:
        """Say that it is there, at the end of a tick.

        Raises:
            MessagingError: the link is closed.
        """
        said = Beat(
            controller=self.name,
            workload=self.workload,
            instance=self.instance,
            tick=tick,
            tick_s=tick_s,
            mb_per_s=mb_per_s,
            rules=rules,
        )
        await self._link.publish(beat(self.name), said)

    async def close(self) -> None:
        """Give up a trial and a recording that are under way, so that nobody waits for their end."""
        self._forget_trial()
        self._wait_for_limit(None)
        if self._recording is not None:
            self._recording.cancel()

    def _in_turn(
        self, handler: Callable[[Asked], Coroutine[None, None, Said]]
    ) -> Callable[[Asked], Coroutine[None, None, Said]]:
        async def one_by_one(asked: Asked) -> Said:
            async with self._turn:
                return await handler(asked)

        return one_by_one

    async def _on_find(self, asked: Find) -> Here | None:
        if asked.workload not in (None, self.workload):
            return None
        return Here(controller=self.name, workload=self.workload, instance=self.instance, rules=self.rules)

    async def _on_load(self, asked: LoadRules) -> InForce:
        if self._trial is not None and rules_id(self._trial) != asked.rules:
            raise InputError(f"rules {rules_id(self._trial)} are on trial here; wait until the trial ends")
        _check_within(asked.within_s)
        rules = RuleSet.parse(asked.text).bare()
        if rules_id(rules) != asked.rules:
            raise InputError(f"rules = {asked.rules[:80]!r}: the text is that of {rules_id(rules)}")
        await self._plane.follow(rules)
        self._forget_trial()
        self._trial = rules
        self._trial_end = asyncio.create_task(self._expire(asked.within_s))
        return self._in_force()

    async def _on_renew(self, asked: Renew) -> InForce:
        _check_within(asked.within_s)
        if self._trial is None or rules_id(self._trial) != asked.rules:
            raise InputError(f"rules = {asked.rules[:80]!r}: are not on trial here; load them first")
        trial = self._trial
        self._forget_trial()
        self._trial = trial
        self._trial_end = asyncio.create_task(self._expire(asked.within_s))
        return self._in_force()

    async def _on_keep(self, asked: Keep) -> InForce:
        if self._trial is None or rules_id(self._trial) != asked.rules:
            if self._trial is None and self._kept is not None and self.rules == asked.rules:
                # Kept already: the answer was lost, or their time begins anew.
                self._wait_for_limit(replace(self._kept, ends_s=_ends_s(asked.within_s)))
                return self._in_force()
            raise InputError(f"rules = {asked.rules[:80]!r}: are not on trial here; load them first")
        before, kept = self._kept, _Kept(self._trial, _ends_s(asked.within_s))
        self._before = before
        self._wait_for_limit(kept)
        self._forget_trial()
        return self._in_force()

    async def _on_back(self, asked: Back) -> InForce:
        if self._trial is not None and rules_id(self._trial) == asked.rules:
            await self._plane.follow(_rules_of(self._kept))
            self._forget_trial()
        elif self._trial is None and self.rules == asked.rules:
            before = self._before
            if before is not None and before.ends_s <= asyncio.get_running_loop().time():
                before = None
            await self._plane.follow(_rules_of(before))
            self._before = None
            self._wait_for_limit(before)
        return self._in_force()

    async def _on_stop(self, _: Stop) -> InForce:
        await self._plane.follow(None)
        self._forget_trial()
        self._before = self._kept
        self._wait_for_limit(None)
        return self._in_force()

    async def _on_show(self, _: Show) -> RuleUse:
        used = await self._plane.used()
        return RuleUse(
            controller=self.name,
            workload=self.workload,
            rules=self.rules,
            on_trial=self._trial is not None,
            text=None if used is None else used.text(),
        )

    async def _on_record(self, asked: StartRecording) -> RecordingState:
        if not 0 < asked.seconds <= _RECORD_MAX_S:
            raise InputError(f"seconds = {asked.seconds:g}: must be above 0, and at most {_RECORD_MAX_S:g}")
        if self._recording is not None:
            self._recording.cancel()
        self._recordings += 1
        self._recording = asyncio.create_task(self._recorded(asked.seconds))
        return RecordingState(controller=self.name, number=self._recordings)

    async def _on_read(self, asked: Read) -> RecordingPart:
        if self._recording is None or asked.number != self._recordings:
            raise InputError(f"number = {asked.number}: there is no such recording here; ask for one")
        if not self._recording.done():
            return RecordingPart(controller=self.name)
        parts = await self._recording
        if not 0 <= asked.part < len(parts):
            raise InputError(f"part = {asked.part}: must be from 0 to {len(parts) - 1}")
        return parts[asked.part]

    async def _recorded(self, seconds: float) -> list[RecordingPart]:
        return parts_of(await self._plane.record(seconds), self.name)

    def _in_force(self) -> InForce:
        return InForce(controller=self.name, rules=self.rules)

    def _forget_trial(self) -> None:
        self._trial = None
        if self._trial_end is not None:
            self._trial_end.cancel()
            self._trial_end = None

    def _wait_for_limit(self, kept: _Kept | None) -> None:
        """These rules are kept from now on, until their limit."""
        self._kept = kept
        if self._kept_end is not None:
            self._kept_end.cancel()
            self._kept_end = None
        if kept is not None and math.isfinite(kept.ends_s):
            self._kept_end = asyncio.create_task(self._end_kept(kept))

    async def _end_kept(self, kept: _Kept) -> None:
        await asyncio.sleep(kept.ends_s - asyncio.get_running_loop().time())
        async with self._turn:
            if self._kept is not kept:
                return
            self._kept, self._before, self._kept_end = None, None, None
            if self._trial is None:
                with contextlib.suppress(InputError):  # it did without any before
                    await self._plane.follow(None)

    async def _expire(self, within_s: float) -> None:
        await asyncio.sleep(within_s)
        async with self._turn:
            if self._trial is None:
                return
            with contextlib.suppress(InputError):  # it followed these before
                await self._plane.follow(_rules_of(self._kept))
            self._trial, self._trial_end = None, None


def _rules_of(kept: _Kept | None) -> RuleSet | None:
    return None if kept is None else kept.rules


def _ends_s(within_s: float | None) -> float:
    """The end of a time limit that begins now, by the clock of the event loop."""
    if within_s is None:
        return math.inf
    _check_within(within_s, KEPT_MAX_S)
    return asyncio.get_running_loop().time() + within_s


def _check_within(within_s: float, most_s: float = TRIAL_MAX_S) -> None:
    if not 0 < within_s <= most_s:
        raise InputError(f"within_s = {within_s:.12g}: must be above 0, and at most {most_s:.12g}")
