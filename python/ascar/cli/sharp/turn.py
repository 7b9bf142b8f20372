"""`ascar sharp set`: numbers of the rules in force, as knobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ascar.cli.options import Connection, Json, Workload, examples

if TYPE_CHECKING:
    from ascar.messaging import Settings
    from ascar.sharp import RuleSet
    from ascar.sharp.deployment import Deployed

EXAMPLES = examples(
    "ascar sharp set --workload random rule1_tau_us=12000",
    "ascar sharp set --workload random rule1_m100=95 rule2_b100=-30",
)


def turn(
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="KNOB=VALUE...",
            help="A rule's number and its new value, e.g. rule3_tau_us=12000 (m100, b100 or tau_us).",
        ),
    ],
    workload: Workload,
    connection: Connection = None,
    json: Json = False,
) -> int:
    """Change numbers of the rules in force on all controllers of a workload, or leave all as they are.

    The same knobs are parameters for tuners: `ascar.sharp.rule_knobs`.
    """
    from ascar.cli.connection import roster
    from ascar.cli.output import emit, people
    from ascar.messaging import find_settings, run_interruptible, token
    from ascar.results.sharp import SharpDeployResult
    from ascar.sharp.deployment import ExpectedDeployment

    wanted = _wanted(values)
    token("--workload", workload)
    settings = find_settings("manager", connection)
    known = roster()
    before = known.expected(workload)
    expected = () if before is None else before.controllers
    done, rules = run_interruptible(_turn(settings, workload, wanted, expected))
    assert done.rules is not None
    known.write(ExpectedDeployment(workload=workload, rules=done.rules, controllers=done.controllers))
    if json:
        result = SharpDeployResult(
            rules=done.rules, workload=done.workload, controllers=tuple(done.controllers)
        )
        emit("sharp-deploy", result)
    else:
        people().print(
            f"rules {done.rules} are in force on {len(done.controllers)} controllers of {workload}",
            soft_wrap=True,
        )
        people().print(rules.text(), end="")
    return 0


def _wanted(values: list[str]) -> dict[str, int]:
    """By knob.

    Raises:
        InputError: one is no KNOB=VALUE, or stands twice.
    """
    from ascar.errors import InputError

    wanted: dict[str, int] = {}
    for text in values:
        name, equals, number = text.partition("=")
        try:
            value = int(number)
        except ValueError:
            equals, value = "", 0
        if not equals or name in wanted:
            raise InputError(f"{text[:80]!r}: must be KNOB=VALUE, each knob once and with a whole number")
        wanted[name] = value
    return wanted


async def _turn(
    settings: Settings, workload: str, wanted: dict[str, int], expected: tuple[str, ...]
) -> tuple[Deployed, RuleSet]:
    from ascar.errors import InputError, MessagingError
    from ascar.messaging import Link
    from ascar.sharp import RuleSet
    from ascar.sharp.deployment import Manager
    from ascar.sharp.rule_knobs import with_values

    async with await Link.open(settings, name="ascar sharp set") as link:
        manager = Manager(link)
        shown, problems = await manager.show(workload, len(expected))
        if problems:
            raise MessagingError("; ".join(str(one) for one in problems))
        if len({one.rules for one in shown}) > 1:
            raise MessagingError("controllers follow different rules; deploy a rule set first")
        text = shown[0].text if shown else None
        if text is None:
            raise InputError(f"rules: none are in force for {workload}; `ascar sharp deploy` some first")
        rules = with_values(RuleSet.parse(text).bare(), wanted)
        return await manager.deploy(rules, workload, expected, len(shown)), rules
