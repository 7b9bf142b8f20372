"""The stages of a session on this machine: its processes, started, watched, compared with before, ended."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ascar.capes.messages.bus import Bus
from ascar.capes.messages.state import SessionState
from ascar.capes.session.best_setting import Record
from ascar.capes.session.files import (
    agent_text,
    interface_text,
    learner_text,
    users,
    write_private,
)
from ascar.capes.session.folder import Running
from ascar.capes.session.load import BackgroundLoad, ReadingsFile
from ascar.capes.session.messenger import Messenger
from ascar.capes.session.parameters import keep_setting, left_changed
from ascar.capes.session.phase_turns import Alternation, PhaseTurns
from ascar.capes.session.processes import ManagedProcess
from ascar.capes.session.proof import line_of
from ascar.errors import AscarError, InputError, WorkError
from ascar.history import BegunRun, RunKind
from ascar.messaging import MessageServer, end_tasks
from ascar.program.node_binary import find_ascard
from ascar.results.session import SessionOutcome, Stopped
from ascar.space import Space
from ascar.systems.machine import describe_machine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable

    from ascar.capes.session.environment import LoadEnvironment, RequestedEnvironment
    from ascar.capes.session.folder import Folder
    from ascar.capes.session.outcome import SessionRequest
    from ascar.capes.session.study import OnlineStudy
    from ascar.results.session import Proof

READINGS = "load.jsonl"
"""In the session's folder: the readings of the load."""
_LOOK_S = 0.2
_FIRST_TICK_S = 60.0
_AGENT_S, _OTHERS_S = 60.0, 15.0


def check_request(study: OnlineStudy, request: SessionRequest) -> None:
    """Refuse a request that the study cannot fulfil.

    Raises:
        InputError: nothing is turned by itself, or the time is too short for two pairs of phases.
    """
    if request.prove and study.online.mode != "automatic":
        raise InputError(
            f"--prove: online.mode = {study.online.mode!r} turns nothing by itself; set it to 'automatic'"
        )
    if not request.prove or request.duration_s is None:
        return
    least_s = study.after_s + 4 * study.phase_s
    if request.duration_s < least_s:
        raise InputError(
            f"--budget = {request.duration_s:g} s: two pairs of phases end after {least_s:g} s at the "
            "earliest; give more time, or change after and phase in [online.proof]"
        )


def messages_of(study: OnlineStudy, folder: Folder) -> MessageServer:
    """The server between the processes of a session, with a user for each of them."""
    return MessageServer(folder.path / "messages", users(study.session, study.online.node))


def begun_session(study: OnlineStudy, folder: Folder) -> tuple[BegunRun, dict[str, Any]]:
    """What the history notes when a session begins: the run, and what its result is valid for.

    The raw ticks stay in the replay database of the session's folder, which the description names.
    """
    begun = BegunRun(
        kind=RunKind.SESSION,
        name=study.session,
        digest=hashlib.sha256(str(folder.path).encode()).hexdigest(),
        objective=study.objective.text,
        seed=study.seed,
        text=study.text,
        space=Space(name=str(study.target.get("kind", ""))),
    )
    valid_for = {"target": study.target.get("kind", ""), **describe_machine(), "folder": str(folder.path)}
    return begun, valid_for


@dataclass(frozen=True, slots=True)
class Stages:
    """The processes of the loop.

    Attributes:
        interface: closes ticks, keeps the replay database, checks actions.
        agent: observes the machine and sets its knobs.
        learner: decides.
    """

    interface: ManagedProcess
    agent: ManagedProcess
    learner: ManagedProcess


@dataclass(slots=True)
class SessionRun:
    """A session that runs."""

    study: OnlineStudy
    folder: Folder
    request: SessionRequest
    tell: Callable[[str], None]
    server: MessageServer
    running: Running
    parts: list[ManagedProcess] = field(default_factory=list[ManagedProcess])
    load: BackgroundLoad | None = None
    alternation: Alternation | None = None
    started_s: float | None = None
    first_tick_number: int | None = None
    _restarts: int = 0

    def stages(self, environment: LoadEnvironment, *, has_load: bool) -> Stages:
        """The processes, checked, and the files that they read."""
        path, ascard = self.folder.path, str(find_ascard())
        readings = path / READINGS if has_load else None
        write_private(path / "interface.toml", interface_text(self.study, environment))
        write_private(path / "agent.toml", agent_text(self.study, environment, readings))
        write_private(path / "learner.toml", learner_text(self.study, environment))
        train = [sys.executable, "-P", "-m", "ascar", "capes", "train"]
        stages = Stages(
            interface=ManagedProcess("interface", [ascard, "interface", "--config", "interface.toml"], path),
            agent=ManagedProcess("agent", [ascard, "agent", "--config", "agent.toml"], path),
            learner=ManagedProcess("learner", [*train, "--config", "learner.toml"], path),
        )
        self.parts = [stages.interface, stages.agent, stages.learner]
        for part in self.parts:
            part.check()
        return stages

    def start_load(self, requested: RequestedEnvironment, environment: LoadEnvironment) -> None:
        """Start the study's load, where it has one."""
        if requested.workload is None or environment.workspace is None:
            return
        readings = ReadingsFile(self.folder.path / READINGS)
        reading_s = self.study.online.interval_s / 2
        self.load = BackgroundLoad(
            requested.workload, environment.workspace, readings, self.study.load_s, reading_s
        )
        self.load.start()

    @contextlib.asynccontextmanager
    async def messenger(self) -> AsyncGenerator[Messenger]:
        """What keeps the session's state, connected to the server."""
        settings = self.server.settings("session")
        async with await Bus.open(settings, self.study.session, name="ascar capes up") as bus:
            yield Messenger(
                bus=bus,
                objective=self.study.objective.text,
                interval_s=self.study.online.interval_s,
                until_s=None,
                parts=self._standing,
                record=Record(self.study.objective.sign),
                state=SessionState(self.study.session),
            )

    async def first_end(
        self, asked: asyncio.Event, works: Iterable[Coroutine[Any, Any, object]]
    ) -> tuple[Stopped, str | None]:
        """Do several works until the first of them ends, or the end is asked for: why, and the problem."""
        problem: str | None = None
        tasks: list[asyncio.Task[object]] = [asyncio.create_task(work) for work in works]
        waiting = asyncio.create_task(asked.wait())
        try:
            done, _ = await asyncio.wait([*tasks, waiting], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    task.result()
                except AscarError as error:
                    problem = error.message
        finally:
            await end_tasks([*tasks, waiting])
        stopped = "problem" if problem else "asked" if asked.is_set() else "time"
        self.tell(f"ending the session: {problem or stopped}")
        return stopped, problem

    async def first_tick(self, messenger: Messenger) -> None:
        """Wait until a node is there, and say that the session runs.

        Raises:
            WorkError: no tick comes.
        """
        try:
            async with asyncio.timeout(_FIRST_TICK_S):
                while not any(one.is_here for one in messenger.state.nodes):
                    await messenger.next_tick(1.0)
        except TimeoutError:
            raise WorkError(
                f"no node was heard within {_FIRST_TICK_S:g} s; see the logs in {self.folder.path}"
            ) from None
        self.started_s = time.monotonic()
        self.first_tick_number = messenger.state.tick
        duration_s = self.request.duration_s
        messenger.until_s = None if duration_s is None else time.time() + duration_s
        self.folder.announce(
            Running(
                self.running.pid, self.running.session, self.running.study, self.running.started_s, ready=True
            )
        )
        self.tell("the session runs")

    async def until_over(self, work: Coroutine[Any, Any, object]) -> None:
        """Do what has no end until the session's time is over."""
        limit = asyncio.timeout(self.request.duration_s)
        try:
            async with limit:
                await work
        except TimeoutError:
            if not limit.expired():
                raise

    async def prove(self, messenger: Messenger) -> None:
        """Compare with the baseline, phase by phase, without end."""
        await asyncio.sleep(self.study.after_s)
        turns = PhaseTurns(
            self.study.objective,
            self.study.phase_s,
            self.study.settle_s,
            self.study.online.proof.p_value,
            self.study.seed,
        )
        self.tell("comparing with the baseline, phase by phase")

        def told(proof: Proof) -> None:
            self.tell(line_of(proof))

        self.alternation = Alternation(messenger, turns, told)
        await self.alternation.run()

    async def watch(self) -> None:
        """Keep the parts running, without end.

        Raises:
            WorkError: one is given up.
        """
        failures = 0
        while True:
            for part in self.parts:
                death = part.watch()
                if death is not None:
                    self.tell(
                        f"{death.part} ended with status {death.status}: {death.words}; starting it again"
                    )
            if self.server.problem is not None:
                raise WorkError(f"nats-server: {self.server.problem}")
            if self.server.restarts > self._restarts:
                self._restarts = self.server.restarts
                self.tell("nats-server ended; it was started again")
            if self.load is not None and self.load.problem is not None:
                raise WorkError(self.load.problem)
            if self.load is not None and self.load.restarts > failures:
                failures = self.load.restarts
                self.tell(f"the load failed and is begun anew: {self.load.fault}")
            await asyncio.sleep(_LOOK_S)

    def _standing(self) -> dict[str, Any]:
        """Of every part."""
        alive = self.server.pid is not None
        messages = {
            "state": "running" if alive else "waiting",
            "pid": self.server.pid,
            "restarts": self.server.restarts,
        }
        standing = {"messages": messages, **{part.name: part.standing for part in self.parts}}
        return standing if self.load is None else {**standing, "load": self.load.standing}

    def ended(self, messenger: Messenger, stopped: Stopped, problem: str | None) -> SessionOutcome:
        """What came of it, as far as it is known while the stages run."""
        state, alternation = messenger.state, self.alternation
        now = {one.key: one.value for one in state.knobs if one.value is not None}
        setting = messenger.record.best() or now
        proof = None if alternation is None or not alternation.phases else alternation.proof
        return SessionOutcome(
            session=self.study.session,
            study=self.study.name,
            seconds=0.0 if self.started_s is None else time.monotonic() - self.started_s,
            stopped=stopped,
            setting=setting,
            defaults=messenger.defaults,
            proof=proof,
            broken_pairs=0 if alternation is None else alternation.broken,
            restarts={name: one["restarts"] for name, one in self._standing().items()},
            verdicts=state.verdicts,
            refusals=state.refusals,
            first_tick=self.first_tick_number,
            last_tick=state.tick,
            problem=problem,
        )

    def end(self) -> None:
        """The learner first, so that nothing is turned any more; then the agent, which puts knobs back."""
        for part, patience_s in zip(reversed(self.parts), (_OTHERS_S, _AGENT_S, _OTHERS_S), strict=True):
            part.end(patience_s)
        if self.load is not None and not self.load.end():
            self.tell("the load does not end by itself; it is killed with its control group")

    def compared_with_before(self, ended: SessionOutcome, environment: LoadEnvironment) -> SessionOutcome:
        """With the settings that the agent has not put back."""
        changed = left_changed(environment.parameters, ended.defaults)
        return msgspec.structs.replace(ended, left_changed=changed) if changed else ended

    def kept_where_wanted(self, ended: SessionOutcome, environment: LoadEnvironment) -> SessionOutcome:
        """Where it is wanted, set what was learnt, to stay; settings of what goes with the session go too."""
        if not (self.request.keep or self.folder.asked_to_keep()):
            return ended
        self.tell("setting what was learnt, to stay until `ascar restore`")
        of_kernel = {one.key for one in environment.parameters if one.of_kernel}
        lasting = {
            key: value
            for key, value in ended.setting.items()
            if key in of_kernel and not environment.is_of(key)
        }
        return msgspec.structs.replace(ended, kept=keep_setting(lasting, ended.defaults))
