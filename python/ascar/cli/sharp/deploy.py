"""`ascar sharp deploy` and `down`: rules in force on all controllers of a workload, or on none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ascar.cli.options import Connection, Forget, Json, Least, RuleFile, WorkloadOrNone, examples

if TYPE_CHECKING:
    from ascar.messaging import Settings
    from ascar.sharp import RuleSet
    from ascar.sharp.deployment import Deployed, Manager, Roster

EXAMPLES = examples(
    "ascar sharp deploy rules.txt                       all controllers run one workload",
    "ascar sharp deploy rules.txt --workload random --least 5",
)
DOWN_EXAMPLES = examples("ascar sharp down --workload random")


def deploy(
    file: RuleFile,
    workload: WorkloadOrNone = None,
    least: Least = 1,
    forget: Forget = False,
    connection: Connection = None,
    json: Json = False,
) -> int:
    """Put a rule set in force on every controller of a workload (Li, 3.1.1 and 3.1.4).

    Each takes the rules on trial, and keeps them once all have. When one is missing, refuses, or does not
    answer, the rules from before are put back on all; the exit status is 1, and says who and why.
    """
    from ascar.cli.connection import roster
    from ascar.cli.output import emit, people
    from ascar.cli.sharp.files import read
    from ascar.messaging import find_settings, run_interruptible
    from ascar.results.sharp import SharpDeployResult

    rules = read(file)
    known = roster()
    settings = find_settings("manager", connection)
    done = run_interruptible(_deploy(settings, rules, workload, (known, least, forget)))
    if json:
        assert done.rules is not None, "a deployment has rules"
        result = SharpDeployResult(
            rules=done.rules, workload=done.workload, controllers=tuple(done.controllers)
        )
        emit("sharp-deploy", result)
    else:
        people().print(
            f"rules {done.rules} are in force on {len(done.controllers)} controllers of {done.workload}",
            soft_wrap=True,
        )
    return 0


def down(
    workload: WorkloadOrNone = None, forget: Forget = False, connection: Connection = None, json: Json = False
) -> int:
    """Take the rules off every controller of a workload: what the system does by itself is in force again."""
    from ascar.cli.connection import roster
    from ascar.cli.output import emit, people
    from ascar.messaging import find_settings, run_interruptible

    known = roster()
    done = run_interruptible(_down(find_settings("manager", connection), workload, known, forget=forget))
    if json:
        from ascar.results.sharp import SharpDownResult

        emit("sharp-down", SharpDownResult(workload=done.workload, controllers=tuple(done.controllers)))
    else:
        people().print(f"no rules on {len(done.controllers)} controllers of {done.workload}", soft_wrap=True)
    return 0


async def _deploy(
    settings: Settings, rules: RuleSet, workload: str | None, how: tuple[Roster, int, bool]
) -> Deployed:
    from ascar.messaging import Link
    from ascar.sharp.deployment import ExpectedDeployment, Manager

    known, least, forget = how
    async with await Link.open(settings, name="ascar sharp deploy") as link:
        manager = Manager(link)
        name = await _workload(manager, workload, known)
        before = None if forget else known.expected(name)
        done = await manager.deploy(rules, name, () if before is None else before.controllers, least)
        assert done.rules is not None
        known.write(ExpectedDeployment(workload=name, rules=done.rules, controllers=done.controllers))
        return done


async def _down(settings: Settings, workload: str | None, known: Roster, *, forget: bool) -> Deployed:
    from ascar.messaging import Link
    from ascar.sharp.deployment import Manager

    async with await Link.open(settings, name="ascar sharp down") as link:
        manager = Manager(link)
        name = await _workload(manager, workload, known)
        before = known.expected(name)
        if forget:
            known.forget(name)
        done = await manager.stop(name, () if before is None or forget else before.controllers)
        known.forget(name)
        return done


async def _workload(manager: Manager, workload: str | None, known: Roster) -> str:
    """The workload that is meant.

    Raises:
        InputError: several run, and none was named.
        EnvironmentLacks: nobody is there.
    """
    from ascar.errors import EnvironmentLacks, InputError
    from ascar.messaging import token

    if workload is not None:
        return token("--workload", workload)
    there = {one.workload for one in await manager.find()}
    if not there:
        there = set(known.workloads())
    if not there:
        raise EnvironmentLacks("controllers: none is there; start them, then deploy rules")
    if len(there) > 1:
        raise InputError(f"--workload: is missing; controllers run {', '.join(sorted(there))}")
    return there.pop()
