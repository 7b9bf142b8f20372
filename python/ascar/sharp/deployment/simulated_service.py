"""Controllers of a simulated cluster that serve a rule manager until their time is over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ascar.errors import MessagingError
from ascar.messaging import Link
from ascar.sharp.deployment.simulated_controllers import SimulatedControllers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ascar.messaging import MessageServer, Settings
    from ascar.simulation import Scenario

_LOOK_S: Final = 1.0
_LATE_S: Final = 5.0


async def serve_controllers(
    scenario: Scenario,
    settings: Settings,
    how: tuple[float, str, int | None],
    server: MessageServer | None,
    *,
    begun: Callable[[SimulatedControllers], None],
    tell: Callable[[str], None],
) -> None:
    """Run the simulated cluster, one controller a client.

    Args:
        scenario: the scenario, which runs without end.
        settings: the connection to the message server.
        how: virtual seconds a real second, the prefix of the controllers' names, and the ticks after which
            it ends (None: never).
        server: the message server that was started for it; None: it belongs to somebody else.
        begun: is called once the controllers answer.
        tell: hears a line when the machine cannot keep up.

    Raises:
        MessagingError: there is no connection, or the own message server was given up.
    """
    speed, prefix, ticks = how
    async with await Link.open(settings, name="ascar sim serve") as link:
        controllers = SimulatedControllers(scenario, link, speed, prefix)
        await controllers.serve()
        begun(controllers)
        running = asyncio.create_task(controllers.run(ticks))
        watching = asyncio.create_task(_watched(server, controllers, tell))
        try:
            await asyncio.wait((running, watching), return_when=asyncio.FIRST_COMPLETED)
            for task in (running, watching):
                if task.done():
                    task.result()
        finally:
            for task in (running, watching):
                task.cancel()
            await asyncio.gather(running, watching, return_exceptions=True)


async def _watched(
    server: MessageServer | None, controllers: SimulatedControllers, tell: Callable[[str], None]
) -> None:
    """Tell once that the machine is too slow; end by an error when the own message server was given up."""
    told = False
    while server is None or server.problem is None:
        if controllers.late_s > _LATE_S and not told:
            told = True
            tell("this machine cannot keep up with the speed; give a lower --speed")
        await asyncio.sleep(_LOOK_S)
    raise MessagingError(f"nats-server: {server.problem}")
