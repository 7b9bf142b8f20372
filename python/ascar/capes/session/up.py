"""A session on this machine, from study to end: ground -> messages -> load, parts -> proof -> back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ascar.capes.messages.bus import Bus
from ascar.capes.messages.state import SessionState
from ascar.capes.session.alternation import Alternation, PhaseTurns
from ascar.capes.session.files import (
    agent_text,
    interface_text,
    knob_names,
    learner_text,
    users,
    write_private,
)
from ascar.capes.session.folder import Running
from ascar.capes.session.ground import Plot, prepared
from ascar.capes.session.kept import check_knobs, keep_setting, left_changed
from ascar.capes.session.load import Load, Readings
from ascar.capes.session.messenger import ACTOR, Messenger
from ascar.capes.session.outcome import Ended, Wishes
from ascar.capes.session.parts import Part
from ascar.capes.session.record import Record
from ascar.errors import AscarError, InputError, WorkError
from ascar.messaging import MessageServer, end_tasks, run_until_asked
from ascar.targets.keeper_process import find_ascard

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.capes.session.folder import Folder
    from ascar.capes.session.ground import Ground
    from ascar.capes.session.proof import Proof
    from ascar.capes.session.study import OnlineStudy

_LOOK_S = 0.2
_FIRST_TICK_S = 60.0
_AGENT_S, _OTHERS_S = 60.0, 15.0


def up(study: OnlineStudy, folder: Folder, wishes: Wishes, tell: Callable[[str], None]) -> Ended:
    """Run a session until its time is over, a signal comes or a part is given up; then put everything back.

    To be called by the main thread, which stays: the kernel ends the parts with it.

    Args:
        study: what is tuned.
        folder: of the session; not taken yet.
        wishes: of the user.
        tell: hears in a line what is being done.

    Raises:
        InputError: the study or the machine does not allow it; nothing is left changed.
        Refused: the session runs already, or something that it needs is held.
        WorkError: the target cannot be made.
    """
    _check(study, wishes)
    plot = Plot.of(study)
    with folder:
        running = Running(os.getpid(), study.session, wishes.file, time.time())
        folder.announce(running)
        with (
            prepared(plot, tell) as ground,
            MessageServer(folder.path / "messages", users(study.session, study.capes.node)) as server,
        ):
            names = knob_names(study, ground.device)
            knobs = dict(zip(names, study.capes.knob, strict=True))
            check_knobs({name: knob for name, knob in knobs.items() if name not in study.program_knobs})
            site = _Site(study, folder, wishes, tell, server, running)
            ended = site.run(plot, ground)
            if changed := left_changed(_of_machine(ended.defaults, study)):
                ended = replace(ended, left_changed=changed)
        if wishes.keep or folder.asked_to_keep():
            tell("setting what was learnt, to stay until `ascar restore`")
            setting = _of_machine(ended.setting, study)
            lasting = {knob: value for knob, value in setting.items() if not ground.is_of(knob)}
            ended = replace(ended, kept=keep_setting(lasting, ended.defaults))
    return ended


def _of_machine(setting: dict[str, Any], study: OnlineStudy) -> dict[str, Any]:
    """Without the knobs of programs, which end with the session."""
    return {knob: value for knob, value in setting.items() if knob not in study.program_knobs}


def _check(study: OnlineStudy, wishes: Wishes) -> None:
    if wishes.prove and study.capes.mode != "automatic":
        raise InputError(
            f"--prove: capes.mode = {study.capes.mode!r} turns nothing by itself; set it to 'automatic'"
        )
    if not wishes.prove or wishes.duration_s is None:
        return
    least_s = study.after_s + 4 * study.phase_s
    if wishes.duration_s < least_s:
        raise InputError(
            f"--for = {wishes.duration_s:g} s: two pairs of phases end after {least_s:g} s at the earliest; "
            "give more time, or change after and phase in [capes.proof]"
        )


@dataclass(slots=True)
class _Site:
    """A session that runs."""

    study: OnlineStudy
    folder: Folder
    wishes: Wishes
    tell: Callable[[str], None]
    server: MessageServer
    running: Running
    parts: list[Part] = field(default_factory=list[Part])
    load: Load | None = None
    alternation: Alternation | None = None
    started_s: float | None = None
    _restarts: int = 0

    def run(self, plot: Plot, ground: Ground) -> Ended:
        self.parts = self._parts(ground, has_load=plot.workload is not None)
        for part in self.parts:
            part.check()
        try:
            if plot.workload is not None and ground.workspace is not None:
                readings = Readings(self.folder.path / "load.jsonl")
                reading_s = self.study.capes.interval_s / 2
                self.load = Load(plot.workload, ground.workspace, readings, self.study.load_s, reading_s)
                self.load.start()
            for part in self.parts:
                part.start()
            return run_until_asked(self._run)
        finally:
            self._end()

    def _parts(self, ground: Ground, *, has_load: bool) -> list[Part]:
        """The processes, and the files that they read."""
        path, ascard = self.folder.path, str(find_ascard())
        readings = path / "load.jsonl" if has_load else None
        write_private(path / "interface.toml", interface_text(self.study, ground.device))
        write_private(path / "agent.toml", agent_text(self.study, ground.device, readings))
        write_private(path / "learner.toml", learner_text(self.study, ground.device))
        train = [sys.executable, "-P", "-m", "ascar", "capes", "train"]
        return [
            Part("interface", [ascard, "interface", "--config", "interface.toml"], path),
            Part("agent", [ascard, "agent", "--config", "agent.toml"], path),
            Part("learner", [*train, "--config", "learner.toml"], path),
        ]

    async def _run(self, asked: asyncio.Event) -> Ended:
        """Until the end; the parts still run then."""
        settings = self.server.settings("session")
        problem: str | None = None
        async with await Bus.open(settings, self.study.session, name=ACTOR) as bus:
            messenger = Messenger(
                bus=bus,
                objective=self.study.objective.text,
                interval_s=self.study.capes.interval_s,
                until_s=None,
                parts=self._standing,
                record=Record(self.study.objective.sign),
                state=SessionState(self.study.session),
            )
            tasks = [
                asyncio.create_task(work)
                for work in (messenger.listen(), messenger.speak(), self._watch(), self._go(messenger))
            ]
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
            ended = self._ended(messenger, stopped, problem)
            await messenger.enter("ending")
            return ended

    async def _go(self, messenger: Messenger) -> None:
        """From the first tick to the end of the time; it returns when that is over.

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
        duration_s = self.wishes.duration_s
        messenger.until_s = None if duration_s is None else time.time() + duration_s
        self.folder.announce(
            Running(
                self.running.pid, self.running.session, self.running.study, self.running.started_s, ready=True
            )
        )
        self.tell("the session runs")
        async with contextlib.AsyncExitStack() as stack:
            if duration_s is not None:
                stack.enter_context(contextlib.suppress(TimeoutError))
                await stack.enter_async_context(asyncio.timeout(duration_s))
            if self.wishes.prove:
                await asyncio.sleep(self.study.after_s)
                await self._prove(messenger)
            await asyncio.Event().wait()

    async def _prove(self, messenger: Messenger) -> None:
        turns = PhaseTurns(
            self.study.objective,
            self.study.phase_s,
            self.study.settle_s,
            self.study.capes.proof.p_value,
            self.study.seed,
        )
        self.tell("comparing with the baseline, phase by phase")

        def told(proof: Proof) -> None:
            self.tell(proof.words)

        self.alternation = Alternation(messenger, turns, ACTOR, told)
        await self.alternation.run()

    async def _watch(self) -> None:
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

    def _ended(self, messenger: Messenger, stopped: str, problem: str | None) -> Ended:
        state, alternation = messenger.state, self.alternation
        now = {one.key: one.value for one in state.knobs if one.value is not None}
        setting = messenger.record.best() or now
        proof = None if alternation is None or not alternation.phases else alternation.proof.to_dict()
        return Ended(
            session=self.study.session,
            study=self.study.name,
            seconds=0.0 if self.started_s is None else time.monotonic() - self.started_s,
            stopped=stopped,
            setting=setting,
            defaults=messenger.defaults,
            proof=proof,
            broken_pairs=0 if alternation is None else alternation.broken,
            restarts={name: one["restarts"] for name, one in self._standing().items()},
            state=state,
            problem=problem,
        )

    def _end(self) -> None:
        """The learner first, so that nothing is turned any more; then the agent, which puts knobs back."""
        for part, patience_s in zip(reversed(self.parts), (_OTHERS_S, _AGENT_S, _OTHERS_S), strict=True):
            part.end(patience_s)
        if self.load is not None and not self.load.end():
            self.tell("the load does not end by itself; it is killed with its control group")
