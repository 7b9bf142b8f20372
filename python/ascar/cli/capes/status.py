"""`ascar capes status`: how a session stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.capes.where import session_at
from ascar.cli.epilog import examples
from ascar.cli.options import Connection, Follow, Json, Once, OneSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ascar.capes.messages.state import SessionState

EXAMPLES = examples(
    "ascar capes status                      refreshed, until ^C",
    "ascar capes status --once",
    "ascar capes status --json               one document",
    "ascar capes status --json --follow      one a tick, each on a line",
)


def status(
    session: OneSession = None,
    once: Once = False,
    follow: Follow = False,
    connection: Connection = None,
    json: Json = False,
) -> int:
    """Show a session: throughput beside its baseline, knobs, learner, nodes, refused actions, events.

    It only listens, and reads the last 600 ticks from what is stored. On a terminal the screen is refreshed
    after each tick until ^C.
    """
    from contextlib import aclosing

    from ascar.capes.messages.following import watch_ticks
    from ascar.errors import InputError
    from ascar.messaging import run_interruptible

    if follow and not json:
        raise InputError("--follow: needs --json; without it the screen is refreshed anyway")
    name, settings = session_at(session, connection, "viewer")

    async def work() -> None:
        async with aclosing(watch_ticks(settings(), name)) as states:
            await (_documents(states, follow=follow) if json else _screens(states, once=once))

    run_interruptible(work())
    return 0


async def _documents(states: AsyncIterator[SessionState], *, follow: bool) -> None:
    from ascar.cli.output import emit

    async for state in states:
        emit("capes-status", state.result(), line=follow)
        if not follow:
            return


async def _screens(states: AsyncIterator[SessionState], *, once: bool) -> None:
    from ascar.cli.capes.status_screen import screen
    from ascar.cli.output import people

    console = people()
    if once or not console.is_terminal:
        async for state in states:
            console.print(screen(state))
            if once:
                return
    from rich.live import Live

    with Live(console=console, auto_refresh=False, screen=True) as live:
        async for state in states:
            live.update(screen(state), refresh=True)
