"""`ascar sim serve`: a simulated cluster that runs on, and whose controllers answer a rule manager."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from ascar.cli.epilog import examples
from ascar.cli.options import (
    Connection,
    DurationOrNone,
    Json,
    Prefix,
    ScenarioName,
    ScenarioSettings,
    SeedOrNone,
    Speed,
)

if TYPE_CHECKING:
    from ascar.messaging import MessageServer
    from ascar.messaging import Settings as Reach
    from ascar.results.simulation import SimServeResult
    from ascar.sharp.deployment import SimulatedControllers
    from ascar.simulation import Scenario

EXAMPLES = examples(
    "ascar sim serve random-write                 one virtual second a second",
    "ascar sim serve scenario.toml --speed 20     then, elsewhere: ascar sharp deploy rules.txt",
)


def serve(
    scenario: ScenarioName,
    speed: Speed = 1.0,
    seconds: DurationOrNone = None,
    prefix: Prefix = "client",
    connection: Connection = None,
    seed: SeedOrNone = None,
    settings: ScenarioSettings = None,
    json: Json = False,
) -> int:
    """Run a simulated cluster without end, one controller a client, for `ascar sharp deploy` and its like.

    Unless a message server is named, one is started on 127.0.0.1 with passwords made for this run; it ends
    with this command, however that ends.
    """
    import os

    from ascar.cli.output import say
    from ascar.cli.sim.options import scenario_of
    from ascar.messaging import (
        MessageServer,
        controller_user,
        find_settings,
        manager_user,
        run_interruptible,
        runtime_directory,
    )
    from ascar.sharp.deployment.simulated_service import serve_controllers
    from ascar.study import duration

    wanted = scenario_of(scenario, None, seed, settings)
    ticks = None if seconds is None else max(1, round(duration("--duration", seconds) / wanted.tick_s))
    elsewhere = connection is not None or any(
        os.environ.get(name) for name in ("ASCAR_NATS_URL", "ASCAR_NATS_CREDENTIALS")
    )
    with ExitStack() as stack:
        server = None
        if elsewhere:
            reach = find_settings("controller", connection)
        else:
            users = (manager_user(), controller_user("controller"))
            server = stack.enter_context(MessageServer(runtime_directory() / "messages", users))
            reach = server.settings("controller")
        try:
            run_interruptible(
                serve_controllers(
                    wanted,
                    reach,
                    (speed, prefix, ticks),
                    server,
                    begun=lambda controllers: _announce(
                        _result(wanted, reach, controllers, server), json=json
                    ),
                    tell=say,
                )
            )
        except KeyboardInterrupt:  # how it is meant to end
            return 0
    return 0


def _result(
    scenario: Scenario, reach: Reach, controllers: SimulatedControllers, server: MessageServer | None
) -> SimServeResult:
    from ascar.results.simulation import ServedController, SimServeResult

    return SimServeResult(
        scenario=scenario.name,
        url=reach.url,
        connection_file=None if server is None else str(server.settings_path("manager")),
        controllers=tuple(
            ServedController(controller=one.name, workload=one.workload) for one in controllers.endpoints
        ),
    )


def _announce(result: SimServeResult, *, json: bool) -> None:
    from ascar.cli.output import emit, people

    if json:
        emit("sim-serve", result)
        return
    by_workload: dict[str, list[str]] = {}
    for one in result.controllers:
        by_workload.setdefault(one.workload, []).append(one.controller)
    for workload, names in by_workload.items():
        people().print(
            f"workload {workload}: {len(names)} controllers, {names[0]} to {names[-1]}", soft_wrap=True
        )
    people().print(f"message server {result.url}; end it with ^C", soft_wrap=True)
