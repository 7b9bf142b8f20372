"""The online loop: agent -> interface -> replay -> learner -> action checker -> interface -> agent.

Each stage is a process, and messages go round between them. The agent sends what it observes every tick.
The interface closes the tick, stores it in the replay database and passes it on. The learner decides on an
action. The action checker of the interface refuses it, or hands it to the agent, which sets the knobs. This
loop starts the stages, follows them, proves what they gain, ends them, and has everything put back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ascar.capes.session.environment import RequestedEnvironment, prepared
from ascar.capes.session.parameters import check_in_force
from ascar.capes.session.session_run import SessionRun, begun_session, check_request, messages_of
from ascar.messaging import run_until_asked

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.capes.session.folder import Folder
    from ascar.capes.session.messenger import Messenger
    from ascar.capes.session.outcome import SessionRequest
    from ascar.capes.session.study import OnlineStudy
    from ascar.history import History
    from ascar.results.session import SessionOutcome


def tune_online(
    study: OnlineStudy,
    folder: Folder,
    request: SessionRequest,
    history: History,
    tell: Callable[[str], None],
) -> SessionOutcome:
    """Tune this machine, and put everything back at the end.

    The end comes when the time is over, with a signal, or when a stage is given up. The main
    thread has to call it and to stay: the kernel ends the stages with it.

    Args:
        study: says what is tuned.
        folder: belongs to the session; nobody has taken it yet.
        request: is the user's.
        history: keeps what the session came to.
        tell: hears in a line what is being done.

    Raises:
        InputError: the study or the machine does not allow it; nothing is left changed.
        Refused: the session runs already, or something that it needs is held.
        WorkError: the target cannot be made.
    """
    check_request(study, request)
    requested = RequestedEnvironment.of(study)
    with folder, history.recording(*begun_session(study, folder)) as kept:
        running = folder.begin(study.session, request.file)
        with (
            prepared(requested, folder.path, tell) as environment,
            messages_of(study, folder) as server,
        ):
            check_in_force(environment.parameters)
            run = SessionRun(study, folder, request, tell, server, running)
            stages = run.stages(environment, has_load=requested.workload is not None)
            try:
                run.start_load(requested, environment)
                for stage in (stages.interface, stages.agent, stages.learner):
                    stage.start()
                ended = run_until_asked(lambda asked: _followed(run, asked))
            finally:
                run.end()
            ended = run.compared_with_before(ended, environment)
        ended = run.kept_where_wanted(ended, environment)
        kept.conclude(ended)
        return ended


async def _followed(run: SessionRun, asked: asyncio.Event) -> SessionOutcome:
    """Follow the stages to the end of the session; they still run then."""
    async with run.messenger() as messenger:
        works = messenger.listen(), messenger.speak(), run.watch(), _proved(run, messenger)
        stopped, problem = await run.first_end(asked, works)
        ended = run.ended(messenger, stopped, problem)
        await messenger.enter("ending")
        return ended


async def _proved(run: SessionRun, messenger: Messenger) -> None:
    """From the first tick to the end of the time, with the proof where one is wanted."""
    await run.first_tick(messenger)
    await run.until_over(run.prove(messenger) if run.request.prove else asyncio.Event().wait())
