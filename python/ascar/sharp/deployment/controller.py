"""A controller's side: the endpoint of rules, which is written in Rust, on a message server."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Protocol

from ascar._core import KEPT_S_MAX, TRIAL_S_MAX, RuleEndpoint
from ascar.errors import AscarError, InputError
from ascar.messaging import Message, Refusal, decode, encode, token
from ascar.messaging.rule_subjects import FIND, ask, beat
from ascar.rules import RuleSet
from ascar.sharp.deployment.messages import (
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
)
from ascar.sharp.deployment.naming import rules_id
from ascar.sharp.deployment.recording import parts_of

if TYPE_CHECKING:
    from ascar.messaging import Link
    from ascar.sharp.deployment.recording import ControllerTrace

TRIAL_MAX_S = TRIAL_S_MAX
"""The longest time that rules are on trial without a word from the manager."""
KEPT_MAX_S = KEPT_S_MAX
"""The longest time limit of kept rules: 365 days."""
_RECORD_MAX_S = 3_600.0
_CHANGES = (("load", LoadRules), ("renew", Renew), ("keep", Keep), ("back", Back), ("stop", Stop))


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
        self._core = RuleEndpoint(self.name, self.workload, self.instance)
        self._link = link
        self._plane = plane
        self._turn = asyncio.Lock()
        self._end: asyncio.Task[None] | None = None
        self._recordings = 0
        self._recording: asyncio.Task[list[RecordingPart]] | None = None

    @property
    def rules(self) -> str | None:
        """Id of the rules in force, on trial or kept."""
        return self._core.rules

    async def serve(self) -> None:
        """Listen from now on.

        Raises:
            MessagingError: the link is closed.
        """
        await self._link.serve(FIND, Find, self._on_find)
        for verb, kind in _CHANGES:
            await self._link.serve(ask(verb, self.name), kind, self._on_change)
        await self._link.serve(ask("show", self.name), Show, self._on_show)
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
        """Give up what is under way, so that nobody waits for its end."""
        for task in (self._end, self._recording):
            if task is not None:
                task.cancel()

    async def _on_find(self, asked: Find) -> Here | None:
        if asked.workload not in (None, self.workload):
            return None
        return Here(controller=self.name, workload=self.workload, instance=self.instance, rules=self.rules)

    async def _on_change(self, asked: Message) -> InForce:
        if isinstance(asked, LoadRules):
            name = rules_id(RuleSet.parse(asked.text).bare())
            if name != asked.rules:
                raise InputError(f"rules = {asked.rules[:80]!r}: the text is that of {name}")
        async with self._turn:
            told, changes, text = self._core.answer(encode(asked), _now_s())
            await self._follow(text, changes=changes)
        answer = decode(told.encode(), InForce | Refusal)
        if isinstance(answer, Refusal):
            raise InputError(answer.reason)
        return answer

    async def _follow(self, text: str | None, *, changes: bool) -> None:
        """Follow what the endpoint has decided; where the plane cannot, nothing is decided."""
        if changes:
            await self._plane.follow(None if text is None else RuleSet.parse(text).bare())
        self._commit()

    def _commit(self) -> None:
        """What was decided is so; its end is waited for."""
        self._core.commit()
        if self._end is not None and self._end is not asyncio.current_task():
            self._end.cancel()
        ends_at_s = self._core.ends_at_s
        self._end = None if ends_at_s is None else asyncio.create_task(self._expire(ends_at_s))

    async def _expire(self, ends_at_s: float) -> None:
        await asyncio.sleep(ends_at_s - _now_s())
        async with self._turn:
            changes, text = self._core.expire(_now_s())
            try:
                await self._follow(text, changes=changes)
            except AscarError:  # it followed these before
                self._commit()

    async def _on_show(self, _: Show) -> RuleUse:
        async with self._turn:
            used = await self._plane.used()
            return RuleUse(
                controller=self.name,
                workload=self.workload,
                rules=self.rules,
                on_trial=self._core.on_trial,
                text=None if used is None else used.text(),
                left_s=self._core.left_s(_now_s()),
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


def _now_s() -> float:
    """The clock of the event loop."""
    return asyncio.get_running_loop().time()
